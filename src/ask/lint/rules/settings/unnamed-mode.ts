import type { Rule } from '../../rule.ts';

/** A configuration without a mode, whose default changes. */
export const unnamedMode: Rule<'unnamed-mode'> = {
  check: ({ loaded: { modeNote, inputs } }) => {
    if (modeNote?.code !== 'default-mode' || modeNote.arguments.named !== 'configuration') return [];
    return [{ details: {}, place: modeNote.place ?? inputs.configs[0]?.source.place(['mode']) }];
  },
};
