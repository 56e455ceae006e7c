import { diffProxyPorts } from './balancer/balancer.ts';
import { diffSets } from './ipset/ipset.ts';
import { diffFamilyTables } from './iptables/iptables-delta.ts';
import { diffTimeouts, diffVirtualServers } from './ipvs/ipvs-delta.ts';
import { diffLinks } from './link/link.ts';
import { diffModules } from './modules.ts';
import { diffNftTables } from './nftables/nft-delta.ts';
import type { KernelState } from './state.ts';
import { diffSysctls } from './sysctl.ts';

/** A kind of kernel object, named after the field of a state that holds such objects. */
export type ObjectKind = keyof KernelState;

/**
 * By kind, the function that finds how to get from some objects to others, in an order in which the changes can be
 * made. The order of the rows is the order in which a node gets new objects: an object comes after those that it
 * uses. Removal takes the reverse order. Beside this file, each kind has a folder or file with its types, formatter
 * and parser.
 */
export const diffByKind = {
  modules: diffModules,
  sysctls: diffSysctls,
  ipvsTimeouts: diffTimeouts,
  // A table takes over from rules and virtual servers of other modes, or gives way to them: it is there before these.
  nftables: diffNftTables,
  proxyPorts: diffProxyPorts,
  sets: diffSets,
  iptables: diffFamilyTables,
  virtualServers: diffVirtualServers,
  links: diffLinks,
} as const satisfies { readonly [K in ObjectKind]: (from: KernelState[K], to: KernelState[K]) => unknown };

/** In the order in which kpc-apply adds their objects. */
export const objectKinds = Object.keys(diffByKind) as readonly ObjectKind[];
