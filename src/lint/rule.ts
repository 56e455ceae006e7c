import type { ArgumentsOf, DiagnosticCode } from '../diagnostics/codes.ts';
import type { Place } from '../kernel/place.ts';
import type { PacketClaim } from './finding.ts';
import type { LintedService, LintInput } from './lint-input.ts';

/** What a rule finds. */
export interface Found<Code extends DiagnosticCode> {
  /** The arguments of its code: `service`, or `services` with one name, is the Service that it is about. */
  readonly details: ArgumentsOf<Code>;
  readonly place?: Place | undefined;
  /** A packet that shows it. If it ends in another way, the finding is not true of this mode or node, and is left out. */
  readonly packet?: PacketClaim | undefined;
}

/** A rule of kpc lint, of one code: it looks for something, or compiling does. */
export interface Rule<Code extends DiagnosticCode> {
  /** Finds what it is about. What compiling says by this code, of several Services at once, is left out then. */
  readonly check?: (input: LintInput) => readonly Found<Code>[];
  /** A packet that shows what compiling says by this code, of `service` if it names one. */
  show?(details: ArgumentsOf<Code>, input: LintInput, service: LintedService | undefined): PacketClaim | undefined;
}

/** A rule that looks at one Service at a time. */
export function ofServices<Code extends DiagnosticCode>(
  check: (service: LintedService, input: LintInput) => Found<Code> | readonly Found<Code>[] | undefined,
): Rule<Code> {
  return { check: (input) => input.services.flatMap((service) => check(service, input) ?? []) };
}
