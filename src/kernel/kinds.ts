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
 * All kinds of objects, in the order in which they are added on a node: an object comes after those that it uses. Removal
 * takes the reverse order. Each has how to get from some objects to others, in an order in which the changes can be made,
 * and its own files beside this one: types, formatter and parser, and diff.
 */
export const differs = {
  modules: diffModules,
  sysctls: diffSysctls,
  ipvsTimeouts: diffTimeouts,
  // A table takes over from rules and virtual servers of other modes, or gives way to them: it is there before these.
  nftables: diffNftTables,
  sets: diffSets,
  iptables: diffFamilyTables,
  virtualServers: diffVirtualServers,
  links: diffLinks,
} as const satisfies { readonly [K in ObjectKind]: (from: KernelState[K], to: KernelState[K]) => unknown };

/** All kinds, in the order in which kpc-apply adds their objects. */
export const objectKinds = Object.keys(differs) as readonly ObjectKind[];
