import type { GoldenContext } from '../bundle/golden.ts';
import { newestRelease } from '../kube-proxy/releases.ts';
import { defaultSettings } from '../kube-proxy/settings/values.ts';
import { compileState } from './compile-node.ts';

/** What goldens are written by and read back by. */
export const goldenContext: GoldenContext = {
  compile: (cluster, node, settings, families) => compileState(cluster, node, settings, families, undefined),
  // Goldens leave out what has these values, so they stay.
  defaults: { ...defaultSettings('ipvs'), release: newestRelease },
};
