import { diagnose } from '../../src/base/findings/finding.ts';
import { describeError } from '../../src/base/system-errors.ts';
import { Refusal, refuse } from '../../src/library/refusal.ts';
import { sayFinding, type SaidFinding } from '../../src/say/words/said.ts';

export function refuseUse(reason: string, help?: string): never {
  return refuse({ problem: 'usage', reason, help });
}

/** Returns why a question has no answer, after the findings that may explain it. */
export function explained(error: unknown): readonly SaidFinding[] {
  return error instanceof Refusal ? [...error.findings, error.finding] : [findingOf(error)];
}

function findingOf(error: unknown): SaidFinding {
  // The library throws a TypeError for a wrong question.
  if (error instanceof TypeError) return sayFinding(diagnose('bad-call', { problem: 'usage', reason: error.message }));
  const reason = `kpc failed on this question: ${describeError(error)}`;
  return sayFinding(diagnose('bad-call', { problem: 'system', reason }));
}
