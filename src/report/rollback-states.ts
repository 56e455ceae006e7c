import { describeState, formatTime } from '../apply/state/history.ts';
import { describeLastCommand } from '../apply/state/last-command.ts';
import type { RollBackStates } from '../apply/change/roll-back.ts';
import { printableLines } from '../base/printable.ts';

/** The states of a node: the one that it is in, the one that a rollback goes to, and the others. */
export function formatStates({ present, before, states, damaged, last, isUnfinished }: RollBackStates): string {
  const next = isUnfinished
    ? 'An apply did not finish: "kpc-apply rollback" undoes what it did'
    : last
      ? `"kpc-apply rollback" has nothing to undo: ${describeLastCommand(last)}`
      : before === undefined
        ? '"kpc-apply rollback" has nothing to undo'
        : `"kpc-apply rollback" goes back to state ${before}`;
  const lines = [
    ...(present ? [`The node is in state ${present.id}: ${describeState(present)}`] : []),
    next,
    ...(states.length === 0 ? ['No earlier state is kept'] : ['"kpc-apply rollback --to ID" goes to one of these:']),
    ...states.map(({ state, takenAt }) => `  ${state.id}  ${describeState(state)}; replaced ${formatTime(takenAt)}`),
    ...[...damaged.values()].map(({ message }) => `  ! ${message}`),
  ];
  return printableLines(`${lines.join('\n')}\n`);
}
