import type { IpSet } from './ipset/ipset.ts';
import type { IpvsTimeouts, VirtualServer } from './ipvs/ipvs.ts';
import type { ProxyPort } from './balancer/balancer.ts';
import type { Link } from './link/link.ts';
import type { NftTable } from './nftables/table.ts';
import type { FamilyTables } from './iptables/iptables-delta.ts';

/**
 * The part of a kernel's state that kube-proxy programs, present or wanted. It is the one value that all commands exchange:
 * compiling, comparing, applying, tracing. A family without iptables state was not compiled, or not dumped.
 */
export interface KernelState {
  readonly iptables: FamilyTables;
  /** Tables of both families, IPv4 before IPv6; family and name are unique. */
  readonly nftables: readonly NftTable[];
  /** Sets of both families, in creation order. */
  readonly sets: readonly IpSet[];
  /** Virtual servers of both families, sorted by compareVirtualServers. */
  readonly virtualServers: readonly VirtualServer[];
  /** Ports that a balancer in userspace serves in userspace mode, sorted by compareProxyPorts. */
  readonly proxyPorts: readonly ProxyPort[];
  /** Links with their addresses: kube-ipvs0 in IPVS mode. */
  readonly links: readonly Link[];
  /** Sysctl name with dots → value as the kernel prints it. */
  readonly sysctls: ReadonlyMap<string, string>;
  /** Seconds; undefined if kpc sets none. */
  readonly ipvsTimeouts: IpvsTimeouts | undefined;
  /** Kernel modules needed, in load order. */
  readonly modules: readonly string[];
}

/** For states that have only some kinds. */
export const emptyState: KernelState = {
  iptables: {},
  nftables: [],
  sets: [],
  virtualServers: [],
  proxyPorts: [],
  links: [],
  sysctls: new Map(),
  ipvsTimeouts: undefined,
  modules: [],
};
