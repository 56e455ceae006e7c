import { emptyState } from '../kernel/state.ts';
import { readNetworks } from './apply-bundle.ts';
import type { ChangeRequest } from './change-node.ts';

/**
 * The wish to have nothing of kpc-apply's left on a node, or with `adopt` nothing of a kube-proxy's either. Modules and
 * sysctls stay as they are, as they do when kube-proxy cleans up: others may have come to need them.
 */
export function requestNothing(adopt: boolean, excludeCIDRs: readonly string[]): ChangeRequest {
  return {
    target: async () => ({ state: emptyState, settings: [], modules: [] }),
    families: [],
    adopt,
    excluded: readNetworks(excludeCIDRs),
    drainTimeout: 0,
  };
}
