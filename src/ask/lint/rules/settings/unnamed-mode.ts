import type { LintRule } from '../../rule.ts';

export const unnamedMode: LintRule<'unnamed-mode'> = {
  check: ({ loaded: { modeNote, inputs } }) => {
    if (modeNote?.code !== 'default-mode' || modeNote.arguments.named !== 'configuration') return [];
    return [{ details: {}, place: modeNote.place ?? inputs.configs[0]?.source.place(['mode']) }];
  },
};
