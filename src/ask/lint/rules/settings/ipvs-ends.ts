import { isDeprecated } from '../../../../kube-proxy/announced.ts';
import { modeHistories } from '../../../../kube-proxy/releases.ts';
import type { LintRule } from '../../rule.ts';

/** IPVS mode, if the release announces its end and a flag or the input names it. */
export const ipvsEnds: LintRule<'ipvs-ends'> = {
  check: ({ loaded: { modeNote }, settings, namesMode }) => {
    const ends = modeHistories[settings.mode].needs === 'ipvs-mode' && isDeprecated('ipvs-mode', settings.release);
    return ends && namesMode ? [{ details: {}, place: modeNote?.place }] : [];
  },
};
