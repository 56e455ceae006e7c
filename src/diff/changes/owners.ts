import { joinHostPort } from '../../kernel/address.ts';
import { families } from '../../kernel/family.ts';
import { tableNames, type Chain, type Rule } from '../../kernel/iptables.ts';
import type { IpSet } from '../../kernel/ipset.ts';
import type { VirtualServer } from '../../kernel/ipvs.ts';
import { virtualServerKey } from '../../kernel/ipvs-delta.ts';
import { entryKey, type SetEntry } from '../../kernel/set-entry.ts';
import type { LinkAddress } from '../../kernel/link.ts';
import { findNftOwners, renameNftOwners, type NftOwners } from './nft-owners.ts';
import { jumpChain } from '../../kernel/restrict.ts';
import type { KernelState } from '../../kernel/state.ts';
import { findNodePortServers } from '../../kube-proxy/virtual-servers.ts';
import { setFamily } from '../../kube-proxy/sets.ts';

/**
 * Which Service port each item of a state is there for: its label ("namespace/name:port"). Where nothing tells the name,
 * as in a dump of IPVS mode, it is the address ("10.96.0.1:80/TCP") or "node port 30080/TCP". Undefined for what every
 * node has.
 */
export interface Owners extends NftOwners {
  ofChain(chain: Chain): string | undefined;
  ofRule(rule: Rule): string | undefined;
  ofEntry(set: IpSet, entry: SetEntry): string | undefined;
  ofServer(server: VirtualServer): string | undefined;
  ofAddress(address: LinkAddress): string | undefined;
}

/** Who owns the items of each side of a comparison. */
export interface SideOwners {
  readonly from: Owners;
  readonly to: Owners;
}

/** Labels by the name of what they own. */
type Labels = Map<string, string>;

/** What can be looked up of items that carry no origin. Each map is made when it is first asked for. */
interface OwnerIndex {
  /** By chain name. */
  readonly chains: () => Labels;
  /** By "set value". */
  readonly entries: () => Labels;
  readonly servers: () => ServerLabels;
}

/** What virtual servers tell. */
interface ServerLabels {
  /** By virtualServerKey. */
  readonly servers: Labels;
  /** By "TCP address port" of an endpoint. */
  readonly endpoints: Labels;
  /** By address on kube-ipvs0. */
  readonly addresses: Labels;
  /** By "ipv4 TCP 30080". */
  readonly nodePorts: Labels;
}

/**
 * Finds the owners of the items of some states. An item's own origin wins; else an item of the same name in any of the
 * states tells; else the state itself: comments, jumps, and the virtual server that an entry is about.
 */
export function findOwners(states: readonly KernelState[]): Owners {
  const index: OwnerIndex = {
    chains: once(() => indexChains(states)),
    entries: once(() => indexEntries(states)),
    servers: once(() => indexServers(states)),
  };
  return {
    ofChain: (chain) => chain.origin?.servicePort ?? index.chains().get(chain.name),
    ofRule: (rule) => rule.origin?.servicePort ?? ownerOfRule(rule, index),
    ofEntry: (set, entry) =>
      entry.origin?.servicePort ??
      index.entries().get(`${set.name} ${entryKey(entry)}`) ??
      ownerOfEntry(set, entry, index),
    ofServer: (server) => server.origin?.servicePort ?? index.servers().servers.get(virtualServerKey(server)),
    ofAddress: (address) => address.origin?.servicePort ?? index.servers().addresses.get(address.address.text),
    ...findNftOwners(states),
  };
}

/** The same owners where some labels are called by other names. */
export function renameOwners(owners: Owners, names: ReadonlyMap<string, string>): Owners {
  if (names.size === 0) return owners;
  const rename = (label: string | undefined) => (label === undefined ? undefined : (names.get(label) ?? label));
  return {
    ofChain: (chain) => rename(owners.ofChain(chain)),
    ofRule: (rule) => rename(owners.ofRule(rule)),
    ofEntry: (set, entry) => rename(owners.ofEntry(set, entry)),
    ofServer: (server) => rename(owners.ofServer(server)),
    ofAddress: (address) => rename(owners.ofAddress(address)),
    ...renameNftOwners(owners, rename),
  };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

/** The first that tells is believed. */
function remember(labels: Labels, key: string, label: string | undefined): void {
  if (label !== undefined && !labels.has(key)) labels.set(key, label);
}

const serviceChain = /^KUBE-(?:SVC|SVL|EXT|FW|SEP|XLB)-/;

/** Whether a chain has the name of one that belongs to a Service port. */
export function isServiceChain(name: string): boolean {
  return serviceChain.test(name);
}

function indexChains(states: readonly KernelState[]): Labels {
  const labels: Labels = new Map();
  for (const state of states) {
    for (const chain of allChains(state)) remember(labels, chain.name, chain.origin?.servicePort);
  }
  for (const state of states) indexComments(state, labels);
  return labels;
}

/** In iptables mode the comments name the Service port; where a large cluster has none, the jumps lead to it. */
function indexComments(state: KernelState, labels: Labels): void {
  const own: Chain[] = [];
  for (const chain of allChains(state)) {
    const isOwn = isServiceChain(chain.name);
    // Its own origin has told all there is to tell.
    if (isOwn && chain.origin) continue;
    for (const rule of chain.rules) {
      const label = rule.origin?.servicePort ?? labelInComment(rule);
      if (label === undefined) continue;
      if (isOwn) remember(labels, chain.name, label);
      rememberTarget(labels, rule, label);
    }
    if (isOwn) own.push(chain);
  }
  for (const chain of own) {
    const label = labels.get(chain.name);
    for (const rule of chain.rules) rememberTarget(labels, rule, label);
  }
}

function rememberTarget(labels: Labels, rule: Rule, label: string | undefined): void {
  const target = jumpChain(rule);
  if (target !== undefined && isServiceChain(target)) remember(labels, target, label);
}

function indexEntries(states: readonly KernelState[]): Labels {
  const labels: Labels = new Map();
  for (const { sets } of states) {
    for (const { name, entries } of sets) {
      for (const entry of entries) {
        if (entry.origin) remember(labels, `${name} ${entryKey(entry)}`, entry.origin.servicePort);
      }
    }
  }
  return labels;
}

/** In IPVS mode nothing has a name: what is about an address belongs to the virtual server there. */
function indexServers(states: readonly KernelState[]): ServerLabels {
  const labels: ServerLabels = { servers: new Map(), endpoints: new Map(), addresses: new Map(), nodePorts: new Map() };
  for (const { virtualServers, links } of states) {
    for (const server of virtualServers) remember(labels.servers, virtualServerKey(server), server.origin?.servicePort);
    for (const { addresses } of links) {
      for (const { address, origin } of addresses) remember(labels.addresses, address.text, origin?.servicePort);
    }
  }
  for (const state of states) indexServersOf(state, labels);
  return labels;
}

function indexServersOf(state: KernelState, labels: ServerLabels): void {
  const isNodePortServer = findNodePortServers(state);
  for (const server of state.virtualServers) {
    const { family, protocol, address, port } = server;
    const key = virtualServerKey(server);
    const isNodePort = isNodePortServer(server);
    const name = isNodePort ? `node port ${port}/${protocol}` : `${joinHostPort(address.text, port)}/${protocol}`;
    remember(labels.servers, key, name);
    const label = labels.servers.get(key);
    if (isNodePort) remember(labels.nodePorts, `${family} ${protocol} ${port}`, label);
    else remember(labels.addresses, address.text, label);
    for (const real of server.realServers)
      remember(labels.endpoints, `${protocol} ${real.address.text} ${real.port}`, label);
  }
}

function allChains(state: KernelState): readonly Chain[] {
  return families.flatMap((family) =>
    tableNames.flatMap((table) => [...(state.iptables[family]?.[table]?.values() ?? [])]),
  );
}

/** A dump that is shown to others may have other names put in, such as YYYY/XXX. */
const servicePortLabel = /(?:^| )([a-zA-Z0-9][\w.-]*\/[a-zA-Z0-9][\w.-]*(?::[\w.-]*)?)(?= |$)/;

/** What kube-proxy writes behind the name of a Service port, in rules that all share. */
const nameBefore =
  /^(\S+?):?(?: (?:(?:cluster|external|loadbalancer) IP|has no (?:local )?endpoints|traffic not accepted by \S+))$/;

/**
 * The Service port that kube-proxy's comment on a rule names: "namespace/name:port", or without the namespace where
 * it was taken out before the dump was shown. Up to 1.14 a port without a name had its colon too.
 */
export function labelInComment(rule: Rule): string | undefined {
  for (const arg of rule.args) {
    if (arg.kind !== 'comment') continue;
    const label = servicePortLabel.exec(arg.text)?.[1] ?? nameBefore.exec(arg.text)?.[1];
    if (label !== undefined) return label.replace(/:$/, '');
    // A word alone is a name beside a jump that only kube-proxy writes.
    const target = jumpChain(rule);
    const isOwn = target !== undefined && (isServiceChain(target) || target === 'KUBE-MARK-MASQ');
    return isOwn && /^\S+$/.test(arg.text) ? arg.text.replace(/:$/, '') : undefined;
  }
  return undefined;
}

function ownerOfRule(rule: Rule, index: OwnerIndex): string | undefined {
  const named = labelInComment(rule);
  if (named !== undefined) return named;
  for (const arg of rule.args) {
    switch (arg.kind) {
      case 'virtual-server':
        return index.servers().servers.get(`${arg.protocol.toUpperCase()} ${arg.address.text} ${arg.port}`);
      case 'jump':
        if (arg.target.kind === 'chain' && isServiceChain(arg.target.chain))
          return index.chains().get(arg.target.chain);
        break;
      default:
        break;
    }
  }
  return undefined;
}

function ownerOfEntry(set: IpSet, entry: SetEntry, index: OwnerIndex): string | undefined {
  const { servers, endpoints, nodePorts, addresses } = index.servers();
  const { address, protocol, port } = entry;
  if (address && protocol !== undefined) {
    const key = `${protocol} ${address.text} ${port}`;
    return servers.get(key) ?? endpoints.get(key);
  }
  const ofPorts = /-(TCP|UDP)$/.exec(set.name)?.[1];
  if (ofPorts !== undefined) return nodePorts.get(`${setFamily(set)} ${ofPorts} ${port}`);
  return address && addresses.get(address.text);
}
