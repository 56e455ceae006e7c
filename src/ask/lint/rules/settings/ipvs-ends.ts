import { isDeprecated } from '../../../../kube-proxy/announced.ts';
import { modeHistories } from '../../../../kube-proxy/releases.ts';
import { namesMode } from '../../lint-input.ts';
import type { LintRule } from '../../rule.ts';

export const ipvsEnds: LintRule<'ipvs-ends'> = {
  check: ({ loaded }) => {
    const { settings, modeNote } = loaded;
    const ends = modeHistories[settings.mode].needs === 'ipvs-mode' && isDeprecated('ipvs-mode', settings.release);
    return ends && namesMode(loaded) ? [{ details: {}, place: modeNote?.place }] : [];
  },
};
