// The states that a rollback can restore, and the last command.
import type { IdleCommand, NamedState } from '../../base/findings/apply.ts';

/** Advice if a rollback has nothing to undo, or if the state to restore is not kept. */
export function adviseOnStates(states: readonly NamedState[]): string {
  if (states.length === 0)
    return 'no earlier state is kept, for example because the node rebooted: apply the bundle that you want';
  return `"kpc-apply rollback --to ID" goes to one of these: ${states.map(nameState).join('; ')}`;
}

/** "state 3 (bundle /root/shop (3f2a9c0b1d2e), applied 2026-01-31T12:00:00Z)". */
export function nameState(state: NamedState): string {
  return `state ${state.id} (${describeState(state)})`;
}

/** "bundle /root/shop (3f2a9c0b1d2e), applied 2026-01-31T12:00:00Z". */
export function describeState({ since, command, bundle }: NamedState): string {
  if (command === undefined) return 'what kpc-apply found';
  const what = bundle ? `bundle ${bundle.folder} (${bundle.digest.slice(0, 12)})` : 'nothing of kpc-apply';
  const how = { apply: 'applied', watch: 'applied by watch', cleanup: 'after cleanup' }[command];
  const when = since === undefined ? '' : ` ${formatTime(since)}`;
  return `${what}, ${how}${when}`;
}

/** Milliseconds since 1970 → "2026-01-31T12:00:00Z". A time outside the calendar is unknown. */
export function formatTime(milliseconds: number): string {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? 'at an unknown time' : `${date.toISOString().slice(0, 19)}Z`;
}

/** Why a rollback would undo nothing: "the last command, "apply /root/shop" at 2026-…, changed nothing". */
export function describeLastCommand({ command, at, outcome, reason }: IdleCommand): string {
  const [first = ''] = (reason ?? '').split('\n');
  const why = first === '' ? '' : ` (${first})`;
  const what = {
    unchanged: 'changed nothing',
    'put-back': `rolled everything back${why}`,
    refused: `was refused and changed nothing${why}`,
  }[outcome];
  return `the last command, "${command}" at ${formatTime(at)}, ${what}`;
}
