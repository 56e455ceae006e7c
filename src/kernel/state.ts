import type { IpSet } from './ipset/ipset.ts';
import type { IpvsTimeouts, VirtualServer } from './ipvs/ipvs.ts';
import type { ProxyPort } from './balancer/balancer.ts';
import type { Link } from './link/link.ts';
import type { NftTable } from './nftables/table.ts';
import type { FamilyTables } from './iptables/iptables-delta.ts';

/**
 * What a kernel holds, or is to hold, of what kube-proxy programs. Every command reads it or makes it: it is the one
 * value between compiling, comparing, applying and tracing. A family without iptables state was not compiled, or not
 * dumped.
 */
export interface KernelState {
  readonly iptables: FamilyTables;
  /** Tables of both families, one of each family and name; IPv4 before IPv6. */
  readonly nftables: readonly NftTable[];
  /** Sets of both families, in the order to create them. */
  readonly sets: readonly IpSet[];
  /** IPVS services of both families, sorted by compareVirtualServers. */
  readonly virtualServers: readonly VirtualServer[];
  /** What a balancer beside the kernel serves in userspace mode, sorted by compareProxyPorts. */
  readonly proxyPorts: readonly ProxyPort[];
  /** Links with the addresses bound to them: kube-ipvs0 in IPVS mode. */
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
