import { diagnose } from '../../src/base/findings/finding.ts';
import { describeError } from '../../src/base/system-errors.ts';
import { Refusal, refuse } from '../../src/library/refusal.ts';
import { sayFinding, type SaidFinding } from '../../src/say/words/said.ts';

export function refuseUse(reason: string, help?: string): never {
  return refuse({ problem: 'usage', reason, help });
}

export function findingOf(error: unknown): SaidFinding {
  if (error instanceof Refusal) return error.finding;
  // The library throws a TypeError for a wrong question.
  if (error instanceof TypeError) return sayFinding(diagnose('bad-call', { problem: 'usage', reason: error.message }));
  const reason = `kpc failed on this question: ${describeError(error)}`;
  return sayFinding(diagnose('bad-call', { problem: 'system', reason }));
}
