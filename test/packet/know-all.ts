import type { Link } from '../../src/kernel/link/link.ts';
import type { Knowledge } from '../../src/packet/knowledge.ts';

/** Complete knowledge, as for a compiled state. */
export function knowAll(links: readonly Link[], sendsFrom?: Knowledge['sendsFrom']): Knowledge {
  return {
    links,
    routes: {},
    isPod: () => false,
    serviceAt: () => undefined,
    isOfService: () => false,
    isOfEveryNode: () => false,
    isRemote: () => undefined,
    isEndpoint: () => false,
    isPodHere: () => undefined,
    hasAllAddresses: () => true,
    hasAllSysctls: true,
    lacksEntries: () => false,
    lacksPolicies: () => false,
    lacksProxyPorts: false,
    listeners: [],
    otherVariant: {},
    gaps: [],
    supposed: [],
    supposedChains: [],
    listed: new Map(),
    listsRuleset: () => true,
    sendsFrom,
    isOwn: () => false,
    isElsewhere: () => false,
    isLikelyOwn: () => false,
    doubtOfEnd: () => undefined,
  };
}
