import type { GoldenContext } from '../bundle/golden.ts';
import { resolveSettings } from '../input/settings.ts';
import { compileState } from './compile-node.ts';

/** What goldens are written by and read back by. */
export const goldenContext: GoldenContext = {
  compile: (cluster, node, settings, families) => compileState(cluster, node, settings, families, undefined),
  defaults: resolveSettings(undefined, {}).settings,
};
