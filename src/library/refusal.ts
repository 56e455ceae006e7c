import type { Snapshot } from '../snapshot/snapshot.ts';
import type { IdleFlags } from '../base/findings/calls.ts';
import type { ArgumentsOf } from '../base/findings/codes.ts';
import { diagnose } from '../base/findings/finding.ts';
import { sayFinding, type SaidFinding } from '../say/words/said.ts';

/** Thrown if a call or its input is wrong. The message is the reason. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly finding: SaidFinding;
  /** The findings made before, which may explain this one. */
  readonly findings: readonly SaidFinding[];

  constructor(finding: SaidFinding, findings: readonly SaidFinding[] = []) {
    super(finding.text);
    this.finding = finding;
    this.findings = findings;
  }

  get help(): string | undefined {
    return this.finding.help;
  }
}

export type BadCall = ArgumentsOf<'bad-call'>;

export function refuseFlag(flag: string, kind: (IdleFlags['because'] & { readonly path?: never })['kind']): never {
  return refuse({ problem: 'idle-flag', flags: [flag], because: { kind } as IdleFlags['because'] });
}

export function refuse(why: BadCall): never {
  throw new Refusal(sayFinding(diagnose('bad-call', why)));
}

/** Adds the findings made before to a refusal. */
export function refuseAfter<Result>(findings: readonly SaidFinding[], part: () => Result): Result {
  try {
    return part();
  } catch (error) {
    throw error instanceof Refusal ? new Refusal(error.finding, findings) : error;
  }
}

/**
 * Refuses to call two sides equal if both are manifests without Services. If packets are compared, Services that no packet can reach do not
 * count. A bundle without Services is accepted, because someone made it on purpose.
 */
export function refuseNoServices(
  from: Snapshot,
  to: Snapshot,
  compared: 'services' | 'packets',
  notCompared: readonly string[] = [],
): void {
  const isEmpty = (side: Snapshot): boolean => {
    if (side.kind !== 'manifests') return false;
    const { servicePorts, services } = side.cluster;
    if (compared === 'services') return services.length === 0;
    return servicePorts.every(({ family }) => !side.families.includes(family));
  };
  if (isEmpty(from) && isEmpty(to))
    refuse({ problem: 'no-services', from: from.name, to: to.name, compared, notCompared });
}
