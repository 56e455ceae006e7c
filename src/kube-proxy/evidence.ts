import { isBuiltInChain, type Chain, type Rule, type TableName } from '../kernel/iptables/iptables.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import { addressesOn, type Link, type LinkAddress } from '../kernel/link/link.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import { jumpChain, type KernelState } from '../kernel/state.ts';
import { baseChains } from './chain-names.ts';
import { classifyChain, isKnownJump, isNamedByKubeProxy, isLocalnetRule } from './chains.ts';
import {
  parseSetName,
  setType,
  readServerMarks,
  formatServerSocket,
  serviceLink,
  boundAddresses,
} from './ipvs-objects.ts';
import { isFixedNftName, isKubeProxyTable, isNftServiceName, nftTableComment } from './nft-table.ts';
import { families } from '../kernel/address.ts';
import type { ProxyMode } from './modes.ts';

/**
 * How certain it is that a kube-proxy made an object in a kernel:
 * - certain: named and filled as only kube-proxy does
 * - possible: has kube-proxy's name, but another program may have filled it, or the deciding part was not read
 * - none: no kube-proxy makes such an object
 */
export type Evidence = 'certain' | 'possible' | 'none';

export interface KubeProxyEvidence {
  chain(table: TableName, chain: Chain): Evidence;
  jump(table: TableName, from: string, rule: Rule): Evidence;
  set(set: IpSet): Evidence;
  nftTable(table: NftTable): Evidence;
  link(link: Link): Evidence;
  virtualServer(server: VirtualServer): Evidence;
}

interface Context {
  /** Virtual servers that are known to belong to Services, even if the state lacks them. */
  readonly known?: readonly VirtualServer[];
  /** Whether all sets and links on the node were read; true if absent. */
  readonly shows?: { readonly sets: boolean; readonly links: boolean };
}

/** Weighs whether a kube-proxy made an object. Only this function decides about that, because names alone prove little. */
export function weighEvidence(state: KernelState, context: Context = {}): KubeProxyEvidence {
  let ofServer: ((server: VirtualServer) => Evidence) | undefined;
  return {
    chain: weighChain,
    jump: weighJump,
    set: weighSet,
    nftTable: weighNftTable,
    link: weighLink,
    virtualServer(server) {
      ofServer ??= weighServers(state, context);
      return ofServer(server);
    },
  };
}

/**
 * Weighs a chain. A hash in the name is proof. A fixed name is proof only if the chain is empty or has a rule with a sign of kube-proxy.
 */
function weighChain(table: TableName, { name, rules }: Chain): Evidence {
  const kind = classifyChain(table, name);
  if (kind === undefined) return 'none';
  const isProven =
    kind === 'service' || rules.length === 0 || rules.some(isOfKubeProxyChain) || isSourceRangesDrop(name, rules);
  return isProven ? 'certain' : 'possible';
}

/**
 * Recognises KUBE-SOURCE-RANGES-FIREWALL with a plain DROP as its only rule. IPVS mode writes it like this if no Service in the family has
 * source ranges.
 */
function isSourceRangesDrop(name: string, [rule, ...more]: readonly Rule[]): boolean {
  if (name !== baseChains.sourceRangesFirewall || more.length > 0) return false;
  return rule?.args.every((arg) => arg.kind === 'jump' && arg.target.kind === 'drop') === true;
}

/**
 * Reports whether a rule has a sign of kube-proxy. At least one rule in each of kube-proxy's chains has such a sign (syncProxyRules in both
 * proxiers).
 */
function isOfKubeProxyChain(rule: Rule): boolean {
  return rule.args.some((arg) => {
    switch (arg.kind) {
      case 'comment':
        return /kubernetes|^[-a-z0-9.]+\/[-a-z0-9.]+/i.test(arg.text);
      case 'match-set':
        return parseSetName(arg.set) !== undefined;
      case 'mark':
      case 'virtual-server':
        return true;
      case 'jump':
        return arg.target.kind === 'mark' || isNamedByKubeProxy(jumpChain(rule) ?? '') || isLocalnetRule(rule);
      default:
        return false;
    }
  });
}

/**
 * Weighs a jump. A jump with other matches or another comment is another program's. A jump without a comment may be kube-proxy's, because
 * people remove comments.
 */
function weighJump(table: TableName, from: string, rule: Rule): Evidence {
  if (!isBuiltInChain(table, from)) return 'none';
  if (isKnownJump(table, from, rule)) return 'certain';
  const target = rule.args.length === 1 ? jumpChain(rule) : undefined;
  return target !== undefined && classifyChain(table, target) === 'fixed' ? 'possible' : 'none';
}

function weighSet({ name, type, family }: IpSet): Evidence {
  const named = parseSetName(name);
  if (!named) return 'none';
  const isOfFamily = family === undefined || family === (named.family === 'ipv6' ? 'inet6' : 'inet');
  return type === setType(named.set) && isOfFamily ? 'certain' : 'possible';
}

/**
 * Weighs a table by its comment, or by its content if there is no comment. kube-proxy comments its tables, but nft 1.0.1 prints no
 * comments.
 */
function weighNftTable({ name, comment, chains, sets }: NftTable): Evidence {
  if (!isKubeProxyTable(name)) return 'none';
  const names = [...chains.keys(), ...sets.keys()];
  const isProven = comment === nftTableComment || names.some((each) => isFixedNftName(each) || isNftServiceName(each));
  return isProven ? 'certain' : 'possible';
}

/** Weighs a link. kube-proxy's link is a dummy without networks: all its addresses are single ones. */
function weighLink({ name, kind, addresses }: Link): Evidence {
  if (name !== serviceLink) return 'none';
  const isSingle = ({ family, prefixLength }: LinkAddress) => prefixLength === (family === 'ipv4' ? 32 : 128);
  const given = addresses.filter(({ scope }) => scope !== 'link');
  const isProven = (kind === undefined || kind === 'dummy') && (given.length === 0 || given.some(isSingle));
  return isProven ? 'certain' : 'possible';
}

/**
 * Weighs virtual servers by other traces, because kube-proxy treats all virtual servers on a node as its own. A Service's address is on
 * kube-ipvs0 or, if it is the node's own, in a set with its port. For a node port, a set has only the number, which another program's
 * virtual server may share. Such a virtual server is kube-proxy's only if it also forwards as kube-proxy does: to a Service's endpoints,
 * or, at an address of the node, to no real server.
 */
function weighServers(
  state: KernelState,
  { known = [], shows = { sets: true, links: true } }: Context,
): (server: VirtualServer) => Evidence {
  const { bound, own, listed, nodePorts, local } = readServerMarks(state);
  const isOfService = (server: VirtualServer) =>
    bound.has(server.address.text) || listed.has(formatServerSocket(server));
  // Compute the marks only on demand. They are rarely needed, because the address usually proves that a Service owns the virtual server.
  let found: ServiceMarks | undefined;
  const marks = () => (found ??= markServices([...known, ...state.virtualServers.filter(isOfService)], local));
  const isOfNodePort = (server: VirtualServer): boolean => {
    const { family, protocol, address, port, scheduler, realServers } = server;
    if (
      !isMasquerading(server) ||
      !nodePorts.has(`${family} ${protocol} ${port}`) ||
      !marks().schedulers.has(scheduler)
    )
      return false;
    if (realServers.length === 0) return own.size === 0 || own.has(address.text);
    return realServers.some((real) => marks().endpoints.has(formatServerSocket({ ...real, protocol })));
  };
  const isUndecided = findUndecided(state, shows);
  return (server) => {
    if (isOfService(server) || isOfNodePort(server)) return 'certain';
    return isUndecided(server) && isMasquerading(server) ? 'possible' : 'none';
  };
}

/** Reports whether all real servers use NAT. kube-proxy adds no others (syncEndpoint in pkg/proxy/ipvs/proxier.go). */
function isMasquerading({ realServers }: VirtualServer): boolean {
  return realServers.every(({ forwarding }) => forwarding === 'masquerade');
}

/**
 * Schedulers and endpoints of virtual servers that are certainly kube-proxy's. kube-proxy's other virtual servers have the same schedulers
 * and endpoints.
 */
interface ServiceMarks {
  readonly schedulers: ReadonlySet<string>;
  readonly endpoints: ReadonlySet<string>;
}

function markServices(servers: readonly VirtualServer[], local: readonly string[]): ServiceMarks {
  const schedulers = new Set<string>();
  const endpoints = new Set(local);
  for (const server of servers) {
    schedulers.add(server.scheduler);
    const { protocol } = server;
    for (const real of server.realServers) endpoints.add(formatServerSocket({ ...real, protocol }));
  }
  return { schedulers, endpoints };
}

/** Finds virtual servers whose owner is undecided, because neither sets nor the addresses on links show whether they are kube-proxy's. */
function findUndecided(
  { sets, links }: KernelState,
  shows: { readonly sets: boolean; readonly links: boolean },
): (server: VirtualServer) => boolean {
  // kube-proxy makes all its sets before any virtual server. Without this set, no virtual server is kube-proxy's.
  if (shows.sets && sets.some(({ name }) => parseSetName(name)?.set === 'clusterIP')) return () => false;
  if (!shows.links) return () => true;
  if (shows.sets) return () => false;
  // `ip addr show kube-ipvs0` does not show the node's own addresses.
  if (links.every(({ name }) => name === serviceLink)) return () => true;
  const ofNode = addressesOn(links);
  return ({ address }) => ofNode.has(address.text);
}

/**
 * Returns the mode of the kube-proxy that left a state. Decides by the rules that packets pass, or else by objects that only one mode
 * makes.
 */
export function modeOfState(state: KernelState): ProxyMode | undefined {
  // In any other mode, kube-proxy deletes its nftables tables when it starts.
  if (state.nftables.some(({ name }) => isKubeProxyTable(name))) return 'nftables';
  const working = modeOfRules(state);
  if (working) return working;
  if (state.proxyPorts.length > 0) return 'userspace';
  if (state.sets.some(({ name }) => parseSetName(name)?.set === 'clusterIP')) return 'ipvs';
  const chains = new Set(
    families.flatMap((family) => {
      const { nat, filter } = state.iptables[family] ?? {};
      return [...(nat?.keys() ?? []), ...(filter?.keys() ?? [])];
    }),
  );
  if (chains.has(baseChains.loadBalancer) || chains.has(baseChains.accessFilter)) return 'ipvs';
  if (chains.has(baseChains.externalServices) || [...chains].some((name) => /^KUBE-(SVC|SVL|EXT)-/.test(name))) {
    return 'iptables';
  }
  if (chains.has(baseChains.portalsContainer) || chains.has(baseChains.portalsHost)) return 'userspace';
  if (boundAddresses(state).length > 0) return 'ipvs';
  return chains.has(baseChains.services) && state.virtualServers.length === 0 ? 'iptables' : undefined;
}

/** Returns the mode by the rules in the first nat chain that packets pass. Each mode fills this chain with its own kind of rules. */
function modeOfRules({ iptables }: KernelState): ProxyMode | undefined {
  const rules = families.flatMap((family) => iptables[family]?.nat?.get(baseChains.services)?.rules ?? []);
  for (const rule of rules) {
    if (rule.args.some((arg) => arg.kind === 'match-set' && parseSetName(arg.set))) return 'ipvs';
    const target = jumpChain(rule) ?? '';
    if (target === baseChains.nodePorts || /^KUBE-(SVC|SVL|EXT|FW|XLB)-/.test(target)) return 'iptables';
  }
  const portals = families.flatMap((family) => iptables[family]?.nat?.get(baseChains.portalsContainer)?.rules ?? []);
  return portals.length > 0 ? 'userspace' : undefined;
}
