import { diffProxyPorts } from './balancer/balancer.ts';
import { diffSets } from './ipset/ipset.ts';
import { diffFamilyTables } from './iptables/iptables-delta.ts';
import { diffTimeouts, diffVirtualServers } from './ipvs/ipvs-delta.ts';
import { diffLinks } from './link/link.ts';
import { diffModules } from './modules.ts';
import { diffNftTables } from './nftables/nft-delta.ts';
import type { KernelState } from './state.ts';
import { diffSysctls } from './sysctl.ts';

/** A kind of kernel object, named after its field in a state. */
export type ObjectKind = keyof KernelState;

/**
 * For each kind, the function that finds how to get from some objects to others, in an order that works. A node gets new objects
 * in the order of the rows, so that an object comes after those it uses; removal goes in reverse. Each kind has a folder or file
 * beside this one with its types, formatter and parser.
 */
export const diffByKind = {
  modules: diffModules,
  sysctls: diffSysctls,
  ipvsTimeouts: diffTimeouts,
  // A table takes over from rules and virtual servers of other modes, or gives way to them, so it comes first.
  nftables: diffNftTables,
  proxyPorts: diffProxyPorts,
  sets: diffSets,
  iptables: diffFamilyTables,
  virtualServers: diffVirtualServers,
  links: diffLinks,
} as const satisfies { readonly [K in ObjectKind]: (from: KernelState[K], to: KernelState[K]) => unknown };

/** In the order in which kpc-apply adds objects. */
export const objectKinds = Object.keys(diffByKind) as readonly ObjectKind[];
