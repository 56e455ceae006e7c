import { emptyState } from '../../kernel/state.ts';
import { readNetworks } from './apply-bundle.ts';
import type { ChangeRequest } from './observe-node.ts';
import type { Host } from '../node/host.ts';
import { assertNoKubeProxy } from '../node/processes.ts';

/** What the operator may choose about a cleanup. */
export interface CleanUpChoices {
  /** Take away what a kube-proxy left, too. */
  readonly adopt: boolean;
  readonly excludeCIDRs: readonly string[];
  /** Go on although a kube-proxy is running. */
  readonly force: boolean;
}

/**
 * The wish to have nothing of kpc-apply's left on a node, or with `adopt` nothing of a kube-proxy's either. Modules and
 * sysctls stay as they are, as they do when kube-proxy cleans up: others may have come to need them.
 */
export function requestNothing(host: Host, choices: CleanUpChoices): ChangeRequest {
  return {
    origin: { kind: 'cleanup' },
    target: async () => ({ state: emptyState, settings: [], modules: [] }),
    families: [],
    adopt: choices.adopt,
    excluded: readNetworks(choices.excludeCIDRs),
    drainTimeout: 0,
    prepare: async ({ share }, isIdle) => {
      // Where nothing would go because it is all the kube-proxy's, that is to be said too.
      if (!choices.force && !(isIdle && share.leftovers.length === 0)) await assertNoKubeProxy(host);
    },
  };
}
