import { families, type Family, joinHostPort } from '../kernel/address.ts';
import { tableNames, type Chain, type Rule } from '../kernel/iptables/iptables.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import { entryKey, type SetEntry } from '../kernel/ipset/set-entry.ts';
import type { LinkAddress } from '../kernel/link/link.ts';
import type { Element, NftChain, NftSet } from '../kernel/nftables/table.ts';
import { isKubeProxyTable, maxNftComment, nftSets, parseNftName } from './nft-table.ts';
import { keyMeaning } from '../kernel/nftables/nft-delta.ts';
import { isNamedByKubeProxy } from './chains.ts';
import { jumpChain, type KernelState } from '../kernel/state.ts';
import type { Origin } from '../kernel/place.ts';
import type { SocketAddress } from '../kernel/ports-and-marks.ts';
import { baseChains, parseServiceChain } from './chain-names.ts';
import { findNodePortServers, nodePortProtocol, parseSetName } from './ipvs-objects.ts';

/**
 * Finds the Service port of an object, as a label: "namespace/name:port". Without a visible name, as in a dump of IPVS mode, the label is
 * "10.96.0.1:80/TCP" or "node port 30080/TCP". Undefined for objects that every node has.
 */
export interface Owners {
  ofChain(chain: Chain): string | undefined;
  ofRule(rule: Rule, chain: string): string | undefined;
  ofEntry(set: IpSet, entry: SetEntry): string | undefined;
  ofServer(server: VirtualServer): string | undefined;
  ofAddress(address: LinkAddress): string | undefined;
  ofNftChain(chain: Pick<NftChain, 'name' | 'origin'>): string | undefined;
  ofNftSet(set: Pick<NftSet, 'name' | 'origin'>): string | undefined;
  ofNftElement(family: Family, set: Pick<NftSet, 'name'>, element: Element): string | undefined;
}

export interface SideOwners {
  readonly from: Owners;
  readonly to: Owners;
}

type LabelsByKey = Map<string, string>;

/**
 * Finds the owner by origin, else by an object with the same name in any of the states, else by comments, jumps and virtual servers.
 * Replaces labels in `renamed`. Two sides of a comparison may share `chains`.
 */
export function findOwners(
  states: readonly KernelState[],
  renamed: ReadonlyMap<string, string> = new Map(),
  chains: ChainLabels = indexChains(states),
): Owners {
  const entries = once(() => {
    const labels: LabelsByKey = new Map();
    for (const set of states.flatMap(({ sets }) => sets)) {
      for (const entry of set.entries) if (entry.origin) addLabel(labels, keyIn(set, entry), entry.origin.servicePort);
    }
    return labels;
  });
  const servers = once(() => indexServers(states));
  const findNft = once(() => indexNftables(states));
  const ownerOf = ({ origin }: { readonly origin?: Origin | undefined }, find: () => string | undefined) => {
    const label = origin?.servicePort ?? find();
    return label === undefined ? undefined : (renamed.get(label) ?? label);
  };
  const byName = (chain: string) => chains.origins().get(chain) ?? chains.jumps().get(chain);
  return {
    ofChain: (chain) =>
      ownerOf(chain, () => chains.origins().get(chain.name) ?? labelInside(chain) ?? chains.jumps().get(chain.name)),
    ofRule: (rule, chain) =>
      ownerOf(
        rule,
        () => (mayBeKubeProxys(chain) ? labelInComment(rule) : undefined) ?? ownerOfRule(rule, servers, byName),
      ),
    ofEntry: (set, entry) =>
      ownerOf(entry, () => entries().get(keyIn(set, entry)) ?? ownerOfEntry(set, entry, servers())),
    ofServer: (server) => ownerOf(server, () => servers().servers.get(virtualServerKey(server))),
    ofAddress: (item) => ownerOf(item, () => servers().addresses.get(item.address.text)),
    ofNftChain: (chain) => ownerOf(chain, () => parseNftName(chain.name)?.label),
    ofNftSet: (set) => ownerOf(set, () => parseNftName(set.name)?.label),
    ofNftElement: (family, set, element) =>
      ownerOf(element, () => labelOfValue(element) ?? findNft()(family, set.name, element)),
  };
}

function keyIn(set: IpSet, entry: SetEntry): string {
  return `${set.name} ${entryKey(entry)}`;
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

function addLabel(labels: LabelsByKey, key: string, label: string | undefined): void {
  if (label !== undefined && !labels.has(key)) labels.set(key, label);
}

export function isServiceChain(name: string): boolean {
  return parseServiceChain(name) !== undefined;
}

function labelInside(chain: Chain): string | undefined {
  if (!isServiceChain(chain.name)) return undefined;
  for (const rule of chain.rules) {
    const label = rule.origin?.servicePort ?? labelInComment(rule);
    if (label !== undefined) return label;
  }
  return undefined;
}

interface ChainLabels {
  readonly origins: () => LabelsByKey;
  readonly jumps: () => LabelsByKey;
}

export function indexChains(states: readonly KernelState[]): ChainLabels {
  const all = once(() => states.flatMap(allChains));
  const origins = once(() => {
    const labels: LabelsByKey = new Map();
    for (const { name, origin } of all()) addLabel(labels, name, origin?.servicePort);
    return labels;
  });
  return { origins, jumps: once(() => indexComments(all(), origins())) };
}

/**
 * Indexes chains by comments, which name the Service port in iptables mode. In large clusters, some rules lack comments, so the index also
 * follows jumps.
 */
function indexComments(chains: readonly Chain[], origins: LabelsByKey): LabelsByKey {
  const labels: LabelsByKey = new Map();
  const own: Chain[] = [];
  for (const chain of chains) {
    const isOwn = isServiceChain(chain.name);
    if (isOwn && chain.origin) continue;
    for (const rule of chain.rules) {
      const label = rule.origin?.servicePort ?? labelInComment(rule);
      if (label === undefined) continue;
      if (isOwn) addLabel(labels, chain.name, label);
      rememberTarget(labels, rule, label);
    }
    if (isOwn) own.push(chain);
  }
  for (const { name, rules } of own) {
    for (const rule of rules) rememberTarget(labels, rule, origins.get(name) ?? labels.get(name));
  }
  return labels;
}

function rememberTarget(labels: LabelsByKey, rule: Rule, label: string | undefined): void {
  const target = jumpChain(rule);
  if (target !== undefined && isServiceChain(target)) addLabel(labels, target, label);
}

/** IPVS has no names, so the objects for an address belong to the virtual server there. */
type ServerLabels = ReturnType<typeof indexServers>;

function indexServers(states: readonly KernelState[]) {
  const [servers, addresses, nodePorts]: [LabelsByKey, LabelsByKey, LabelsByKey] = [new Map(), new Map(), new Map()];
  for (const { virtualServers, links } of states) {
    for (const server of virtualServers) addLabel(servers, virtualServerKey(server), server.origin?.servicePort);
    for (const link of links) {
      for (const { address, origin } of link.addresses) addLabel(addresses, address.text, origin?.servicePort);
    }
  }
  for (const state of states) {
    const isNodePortServer = findNodePortServers(state);
    for (const server of state.virtualServers) {
      const { family, protocol, address, port } = server;
      const isNodePort = isNodePortServer(server);
      const name = `${joinHostPort(isNodePort ? 'node' : address.text, port)}/${protocol}`;
      addLabel(servers, virtualServerKey(server), name);
      const label = servers.get(virtualServerKey(server));
      if (isNodePort) addLabel(nodePorts, `${family} ${protocol} ${port}`, label);
      else addLabel(addresses, address.text, label);
    }
  }
  return {
    servers,
    addresses,
    nodePorts,
    endpoints: once(() => {
      const endpoints: LabelsByKey = new Map();
      for (const server of states.flatMap(({ virtualServers }) => virtualServers)) {
        const label = servers.get(virtualServerKey(server));
        for (const { address, port } of server.realServers) {
          addLabel(endpoints, `${server.protocol} ${address.text} ${port}`, label);
        }
      }
      return endpoints;
    }),
  };
}

function allChains(state: KernelState): readonly Chain[] {
  return families.flatMap((family) =>
    tableNames.flatMap((table) => [...(state.iptables[family]?.[table]?.values() ?? [])]),
  );
}

/**
 * Reports whether a chain may be kube-proxy's. Comments in other chains do not count, because they may look like a Service port: "Policy
 * default/web ingress".
 */
function mayBeKubeProxys(chain: string): boolean {
  return isServiceChain(chain) || isNamedByKubeProxy(chain);
}

/** Matches a Service port in a comment. Accepts capitals, because people anonymise names in dumps, for example as YYYY/XXX. */
const servicePortLabel = /(?:^| )([a-zA-Z0-9][\w.-]*\/[a-zA-Z0-9][\w.-]*(?::[\w.-]*)?)(?= |$)/;

/** Matches a Service port's name followed by kube-proxy's words in the rules of shared chains. */
const nameBefore =
  /^(\S+?):?(?: (?:(?:cluster|external|loadbalancer) IP|has no (?:local )?endpoints|traffic not accepted by \S+))$/;

/** Returns the Service port in a comment. Dumps may lack the namespace. Up to 1.14, unnamed ports end in a colon. */
export function labelInComment(rule: Rule): string | undefined {
  for (const arg of rule.args) {
    if (arg.kind !== 'comment') continue;
    const label = servicePortLabel.exec(arg.text)?.[1] ?? nameBefore.exec(arg.text)?.[1];
    if (label !== undefined) return label.replace(/:$/, '');
    // A comment of one word is a name if the rule jumps to a chain of kube-proxy's.
    const target = jumpChain(rule);
    const isOwn = target !== undefined && (isServiceChain(target) || target === baseChains.markMasquerade);
    return isOwn && /^\S+$/.test(arg.text) ? arg.text.replace(/:$/, '') : undefined;
  }
  return undefined;
}

function ownerOfRule(
  rule: Rule,
  servers: () => ServerLabels,
  ofChain: (chain: string) => string | undefined,
): string | undefined {
  for (const arg of rule.args) {
    if (arg.kind === 'virtual-server') {
      return servers().servers.get(`${arg.protocol.toUpperCase()} ${arg.address.text} ${arg.port}`);
    }
    if (arg.kind === 'jump' && arg.target.kind === 'chain' && isServiceChain(arg.target.chain)) {
      return ofChain(arg.target.chain);
    }
  }
  return undefined;
}

function ownerOfEntry(
  set: IpSet,
  { address, protocol, port }: SetEntry,
  { servers, endpoints, nodePorts, addresses }: ServerLabels,
): string | undefined {
  if (address && protocol !== undefined) {
    const key = `${protocol} ${address.text} ${port}`;
    return servers.get(key) ?? endpoints().get(key);
  }
  const named = parseSetName(set.name);
  const ofPorts = named && nodePortProtocol(named.set);
  if (named && ofPorts) return nodePorts.get(`${named.family} ${ofPorts} ${port}`);
  return address && addresses.get(address.text);
}

function labelOfValue({ value }: Element): string | undefined {
  return value?.kind === 'goto' || value?.kind === 'jump' ? parseNftName(value.chain)?.label : undefined;
}

/** Finds the owners of elements without origin or chain. The first port with the cluster IP or endpoint is the owner. */
function indexNftables(
  states: readonly KernelState[],
): (family: Family, set: string, element: Element) => string | undefined {
  /** Labels by family, set and key; by family and address; and by family, protocol and endpoint. */
  const [origins, addresses, endpoints]: [LabelsByKey, LabelsByKey, LabelsByKey] = [new Map(), new Map(), new Map()];
  const labels = new Set<string>();
  const keepFirst = (known: LabelsByKey, key: string, label: string): void => {
    if (label < (known.get(key) ?? '\uffff')) known.set(key, label);
  };
  const tables = states.flatMap((state) => state.nftables.filter(({ name }) => isKubeProxyTable(name)));
  for (const { family, chains, sets } of tables) {
    for (const { name, elements } of sets.values()) {
      for (const { key, origin } of elements) {
        if (origin) addLabel(origins, `${family} ${name} ${keyMeaning(key)}`, origin.servicePort);
      }
    }
    for (const chain of chains.values()) {
      const name = parseNftName(chain.name);
      if (!name) continue;
      labels.add(name.label);
      for (const { address, port } of dnatTargets(chain)) {
        keepFirst(endpoints, `${family} ${name.protocol.toLowerCase()} ${address.text} ${port}`, name.label);
      }
    }
  }
  for (const { family, sets } of tables) {
    for (const map of [nftSets.serviceIPs, nftSets.noEndpointServices]) {
      for (const element of sets.get(map)?.elements ?? []) {
        const label = labelOfValue(element) ?? labelOfComment(element, labels);
        const [address] = element.key;
        if (label !== undefined && address) keepFirst(addresses, `${family} ${keyMeaning([address])}`, label);
      }
    }
  }
  return (family, set, element) => {
    const known = origins.get(`${family} ${set} ${keyMeaning(element.key)}`);
    if (known !== undefined) return known;
    switch (set) {
      case nftSets.noEndpointServices:
      case nftSets.noEndpointNodePorts:
        return labelOfComment(element, labels);
      case nftSets.clusterIPs:
        return addresses.get(`${family} ${keyMeaning(element.key)}`);
      case nftSets.hairpinConnections: {
        const [address, , protocol, port] = element.key.map((value) => keyMeaning([value]));
        return endpoints.get(`${family} ${protocol} ${address} ${port}`);
      }
      default:
        return undefined;
    }
  };
}

/**
 * Reads kube-proxy's comment on an element that refuses packets. The comment names the Service port; a long name is cut or ends in dots.
 */
function labelOfComment({ comment }: Element, labels: ReadonlySet<string>): string | undefined {
  if (comment === undefined || !/^[a-z0-9][-a-z0-9]*\/[a-z0-9]/.test(comment)) return undefined;
  const start = comment.endsWith('...') ? comment.slice(0, -3) : comment;
  if (start === comment && comment.length < maxNftComment) return comment;
  const [only, ...others] = [...labels].filter((label) => label.startsWith(start));
  return others.length === 0 ? (only ?? comment) : comment;
}

export function dnatTargets({ rules }: Pick<NftChain, 'rules'>): readonly SocketAddress[] {
  return rules
    .flatMap(({ expressions }) => expressions)
    .flatMap((expression) => {
      if (expression.kind === 'dnat-random') return expression.targets;
      const { address, port } = expression.kind === 'dnat' ? expression.target : {};
      return address && port !== undefined ? [{ address, port }] : [];
    });
}
