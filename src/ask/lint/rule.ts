import type { ArgumentsOf, FindingCode } from '../../base/findings/codes.ts';
import type { Place } from '../../kernel/place.ts';
import type { Evidence } from '../../base/findings/finding.ts';
import type { Verdict } from '../../packet/packet.ts';
import type { LintedService, LintInput } from './lint-input.ts';

/** How a packet ends; `fails`: it arrives, and its connection fails all the same. */
export type PacketEnd = Verdict | 'fails';

/** A packet and how it ends, if the finding is right. */
export interface PacketClaim extends Omit<Evidence, 'verdict'> {
  readonly ends: readonly PacketEnd[];
}

/** What a rule finds. */
export interface Found<Code extends FindingCode> {
  /** The arguments of its code: `service`, or `services` with one name, is the Service that it is about. */
  readonly details: ArgumentsOf<Code>;
  readonly place?: Place | undefined;
  /** A packet that shows it. If it ends in another way, the finding is not true of this mode or node, and is left out. */
  readonly packet?: PacketClaim | undefined;
}

/** A rule of kpc lint, of one code: it looks for something, or compiling does. */
export interface Rule<Code extends FindingCode> {
  /** Finds what it is about. What compiling says by this code, of several Services at once, is left out then. */
  readonly check?: (input: LintInput) => readonly Found<Code>[];
  /** A packet that shows what compiling says by this code, of `service` if it names one. */
  show?(details: ArgumentsOf<Code>, input: LintInput, service: LintedService | undefined): PacketClaim | undefined;
}

/** A rule that looks at one Service at a time. */
export function ofServices<Code extends FindingCode>(
  check: (service: LintedService, input: LintInput) => Found<Code> | readonly Found<Code>[] | undefined,
): Rule<Code> {
  return { check: (input) => input.services.flatMap((service) => check(service, input) ?? []) };
}
