import { describeState, formatTime } from '../apply/state/history.ts';

import { describeLastCommand } from '../apply/state/last-command.ts';
import type { StateMark } from '../apply/state/record.ts';
import type { RollBackStates } from '../apply/change/roll-back.ts';
import { printableLines } from '../base/printable.ts';
import { formatJson } from './format-json.ts';

/** The states of a node for people: the one that it is in, the one that a rollback goes to, and the others. */
export function formatStatesText({ present, before, states, damaged, last, isUnfinished }: RollBackStates): string {
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

/** The same for programs. `undoes` is null if a rollback without --to would undo nothing. */
export function formatStatesJson({ present, before, states, damaged, last, isUnfinished }: RollBackStates): string {
  return formatJson({
    present: present ? stateValue(present) : null,
    unfinished: isUnfinished,
    undoes: isUnfinished || last ? null : (before ?? null),
    lastCommand: last && { ...last, at: formatTime(last.at) },
    states: states.map(({ state, takenAt }) => ({ ...stateValue(state), replacedAt: formatTime(takenAt) })),
    damaged: [...damaged].map(([id, { message }]) => ({ id, message })),
  });
}

/** What a program reads of a state; without `command`, it is one that kpc-apply found. */
export function stateValue({ id, since, command, bundle }: StateMark): object {
  return { id, command, since: since && formatTime(since), bundle };
}
