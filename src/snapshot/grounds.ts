import type { Grounds } from '../base/findings/files.ts';
import type { ModeSource } from '../kube-proxy/modes.ts';
import type { CompiledSnapshot } from './snapshot.ts';

/** Returns what a state depends on. `modeFrom`: what the mode comes from, if `assumed` does not show it. */
export function groundsOf({ nodeName, mode, families, assumed }: CompiledSnapshot, modeFrom?: ModeSource): Grounds {
  return {
    node: nodeName === '' ? undefined : nodeName,
    mode,
    modeFrom: modeFrom ?? (assumed.mode ? 'nothing' : undefined),
    families,
    assumed: [
      ...(assumed.node ? (['node'] as const) : []),
      ...(assumed.families.length > 0 ? (['families'] as const) : []),
    ],
  };
}
