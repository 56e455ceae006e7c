import type { ServiceInfo } from '../cluster/model.ts';
import { isServiceChain } from '../diff/changes/owners.ts';
import { joinHostPort } from '../kernel/address.ts';
import { families, type Family } from '../kernel/family.ts';
import { formatRule, tableNames, type Chain, type Rule, type TableName } from '../kernel/iptables/iptables.ts';
import { ruleMeaning } from '../kernel/iptables/iptables-meaning.ts';
import { parseIptablesSave } from '../kernel/iptables/parse-save.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import { formatEntry, parseEntry } from '../kernel/ipset/set-entry.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import { findNodePortListeners } from '../kube-proxy/node-port-listeners.ts';
import { beginsAsKubeProxys } from '../kube-proxy/chain-names.ts';
import { isNftServiceName } from '../kube-proxy/nftables.ts';
import { setName } from '../kube-proxy/sets.ts';
import { parseAskedAddress, parseAskedPort } from './asked-address.ts';
import { nameInDns, nameInKubectl, parseAskedName } from './asked-name.ts';
import { destinationOf } from './decompile-iptables.ts';
import { findElsewhere, type Elsewhere } from './unserved-address.ts';
import {
  askablePort,
  closedAt,
  findClosedPort,
  findDeafPort,
  hasOwnPort,
  roleOfAddress,
  roleOfNumber,
  type AskablePort,
  type AskedNode,
  type ClosedPort,
  type DeafNodePort,
  type PortRole,
} from './find-port.ts';
import { bareNftName, findNftSubject, nftNames, type SharedSubject } from './find-nftables.ts';
import { mostSuggestions, nearest } from './near-names.ts';
import type { View } from './described-node.ts';

/** What was asked about. */
export type Finding =
  | { readonly kind: 'services'; readonly matches: readonly ServiceMatch[] }
  /** A chain or a set that Service ports share, or that every node has. */
  | { readonly kind: 'shared'; readonly subjects: readonly SharedSubject[] }
  | {
      readonly kind: 'nothing';
      readonly suggestions: readonly string[];
      /** Set where the name is of a chain that only another mode makes. */
      readonly otherMode: OtherMode | undefined;
      readonly deaf?: DeafNodePort | undefined;
      readonly closed?: ClosedPort | undefined;
      readonly elsewhere?: Elsewhere | undefined;
    };

interface OtherMode {
  /** The mode of the view. */
  readonly lacking: ProxyMode;
  readonly maker: ProxyMode;
}

/** A Service that the question is about. */
interface ServiceMatch {
  readonly service: ServiceInfo;
  /** Its ports that are meant; undefined for all. */
  readonly labels: ReadonlySet<string> | undefined;
  readonly because: readonly Because[];
}

/** What the thing asked about is to the Service port. */
export type Because =
  | PortRole
  | { readonly kind: 'name' | 'port' }
  | { readonly kind: 'chain'; readonly chain: string; readonly to?: string }
  /** A set of nftables that holds the clients of an endpoint. */
  | { readonly kind: 'affinity-set'; readonly set: string; readonly endpoint?: string }
  | {
      readonly kind: 'rule';
      readonly family: Family;
      readonly table: TableName;
      readonly chain: string;
      readonly number: number;
    }
  | { readonly kind: 'rule-elsewhere'; readonly chain: string };

/**
 * Finds what a text is about: a line of iptables-save, a chain, a set or an entry of one, an address with or without a
 * port, a node port, a Service by its name ("name", "namespace/name", either with ":port"), or its name in DNS.
 */
export function findSubject(text: string, view: View): Finding {
  const what = bareName(text.trim());
  const finders = [findRule, findChain, findSet, findNftables, findAddress, findNodePort, findName];
  for (const find of finders) {
    const found = find(what, view);
    if (found) return found;
  }
  // kubectl's way of naming a Service, where no namespace is called so.
  const named = nameInKubectl(what);
  if (named !== undefined)
    return findName(named, view) ?? { kind: 'nothing', suggestions: suggest(named, view), otherMode: undefined };
  const ports = view.services.cluster.servicePorts.map(askablePort);
  const deaf = findDeafPort(ports, what, nodeOf(view));
  const closed = deaf ? undefined : findClosed(what, ports, view);
  const asked = parseAskedAddress(what);
  const elsewhere = asked && view.objects && findElsewhere(asked, view.objects, view.services);
  if (deaf ?? closed ?? elsewhere)
    return { kind: 'nothing', suggestions: [], otherMode: undefined, deaf, closed, elsewhere };
  const otherMode = findOtherMode(what, view);
  return { kind: 'nothing', suggestions: otherMode ? [] : suggest(what, view), otherMode };
}

/** The mode that makes a chain of that name, and the one of the view, which makes none. */
function findOtherMode(what: string, view: View): OtherMode | undefined {
  const { mode } = view.services.settings;
  const maker = isServiceChain(what) ? 'iptables' : isNftServiceName(what) ? 'nftables' : undefined;
  return maker === undefined || maker === mode ? undefined : { lacking: mode, maker };
}

/** What stands in lists of ipset and nft, by the name or address that is meant; any other text is given back. */
export function bareName(what: string): string {
  return bareNftName(addressOfEntry(what));
}

/**
 * What an entry of a set is about, of a line of ipset save or without its beginning: "10.96.0.80,tcp:80" is the address
 * "10.96.0.80:80/tcp". Any other text is given back.
 */
function addressOfEntry(what: string): string {
  const entry = what.replace(/^add \S+ /i, '').toLowerCase();
  const { address, protocol, port } = parseEntry(entry, 'hash:ip,port,net');
  if (!address || protocol === undefined || port === undefined) return what;
  return `${joinHostPort(address.text, port)}/${protocol}`;
}

/** The chain and rule in a line of iptables-save, with or without counters; undefined for any other text. */
export function parseRuleLine(what: string): { readonly chain: Chain; readonly rule: Rule } | undefined {
  if (!/^(\[\d+:\d+\] )?-[AI] /.test(what)) return undefined;
  const { tables } = parseIptablesSave(`*nat\n${what}\nCOMMIT\n`);
  const [chain] = tables.nat?.values() ?? [];
  const [rule] = chain?.rules ?? [];
  return chain && rule && { chain, rule };
}

function findRule(what: string, view: View): Finding | undefined {
  const parsed = parseRuleLine(what);
  if (!parsed) return undefined;
  const { chain, rule } = parsed;
  const meaning = ruleMeaning(rule);
  for (const { family, table, chain: known } of allChains(view, chain.name)) {
    const at = known.rules.findIndex((each) => ruleMeaning(each) === meaning);
    const found = known.rules[at];
    if (!found) continue;
    const owner = view.owners.ofRule(found) ?? view.owners.ofChain(known);
    if (owner === undefined) return { kind: 'shared', subjects: [describeRule(family, table, chain.name, found)] };
    return matchLabel(owner, view, { kind: 'rule', family, table, chain: chain.name, number: at + 1 });
  }
  const label = view.owners.ofRule(rule) ?? view.owners.ofChain(chain);
  return label === undefined ? undefined : matchLabel(label, view, { kind: 'rule-elsewhere', chain: chain.name });
}

function describeRule(family: Family, table: TableName, chain: string, rule: Rule): SharedSubject {
  return { kind: 'rule', name: chain, family, table, items: [{ text: `-A ${chain} ${formatRule(rule)}` }] };
}

interface PlacedChain {
  readonly family: Family;
  readonly table: TableName;
  readonly chain: Chain;
}

/**
 * What a state holds of that very name, be it a Service port's or not: chains, sets and maps, or the rule of a line of
 * iptables-save.
 */
export function findHeld(text: string, view: Held): readonly SharedSubject[] {
  const parsed = parseRuleLine(text.trim());
  if (parsed) {
    const meaning = ruleMeaning(parsed.rule);
    return allChains(view, parsed.chain.name).flatMap(({ family, table, chain }) => {
      const found = chain.rules.find((rule) => ruleMeaning(rule) === meaning);
      return found ? [describeRule(family, table, chain.name, found)] : [];
    });
  }
  const what = bareName(text.trim());
  const nft = findNftSubject(what, view);
  return [
    ...allChains(view, what).map((placed) => describeChain(placed, view)),
    ...view.state.sets
      .filter((set) => set.name === what || holdsHealthCheck(set, what))
      .map((set) => describeSet(set, view)),
    ...(nft?.kind === 'shared' ? nft.subjects : []),
  ];
}

/** Whether a set lists a health check node port: no more than its number is in a kernel, and no Service. */
function holdsHealthCheck({ name, entries }: IpSet, what: string): boolean {
  const [, number] = /^:?(\d{1,5})(?:\/tcp)?$/i.exec(what) ?? [];
  const isList = families.some((family) => name === setName('healthCheckNodePort', family));
  return number !== undefined && isList && entries.some(({ port }) => port === Number(number));
}

/** A state, and whose its items are. */
type Held = Pick<View, 'state' | 'owners'>;

function allChains({ state }: Held, name: string): readonly PlacedChain[] {
  return families.flatMap((family) =>
    tableNames.flatMap((table) => {
      const chain = state.iptables[family]?.[table]?.get(name);
      return chain ? [{ family, table, chain }] : [];
    }),
  );
}

function findChain(what: string, view: View): Finding | undefined {
  const places = allChains(view, what);
  const [first] = places;
  if (!first) return undefined;
  const owner = view.owners.ofChain(first.chain);
  if (owner !== undefined) {
    const to = destinationOf(first.chain);
    return matchLabel(owner, view, { kind: 'chain', chain: what, ...(to === undefined ? {} : { to }) });
  }
  return { kind: 'shared', subjects: places.map((placed) => describeChain(placed, view)) };
}

function describeChain({ family, table, chain }: PlacedChain, { owners }: Held): SharedSubject {
  const items = chain.rules.map((rule) => {
    const label = owners.ofRule(rule);
    return { text: formatRule(rule), ...(label === undefined ? {} : { owner: label }) };
  });
  return { kind: 'chain', name: chain.name, family, table, items };
}

function findSet(what: string, view: View): Finding | undefined {
  const set = view.state.sets.find(({ name }) => name === what);
  return set && { kind: 'shared', subjects: [describeSet(set, view)] };
}

function describeSet(set: IpSet, view: Held): SharedSubject {
  const items = set.entries.map((entry) => {
    const owner = view.owners.ofEntry(set, entry);
    return { text: formatEntry(entry), ...(owner === undefined ? {} : { owner }) };
  });
  return { kind: 'set', name: set.name, type: set.type, items };
}

/** A chain, set or map of nftables. */
function findNftables(what: string, view: View): Finding | undefined {
  const found = findNftSubject(what, view);
  switch (found?.kind) {
    case 'own-chain':
      return matchLabel(found.label, view, { kind: 'chain', chain: what, ...(found.to ? { to: found.to } : {}) });
    case 'own-set': {
      const endpoint = found.endpoint ? { endpoint: found.endpoint } : {};
      return matchLabel(found.label, view, { kind: 'affinity-set', set: what, ...endpoint });
    }
    case 'shared':
    case undefined:
      return found;
  }
}

function findAddress(what: string, view: View): Finding | undefined {
  const asked = parseAskedAddress(what);
  if (!asked) return undefined;
  const node = nodeOf(view);
  return matchPorts(view, (port) => roleOfAddress(port, asked, node)) ?? matchHeadless(view, asked.address.text);
}

function nodeOf({ state, services: { node } }: View): AskedNode {
  return {
    isOwn: (address) => node.hostAddresses.some(({ text }) => text === address.text),
    listeners: findNodePortListeners(state),
  };
}

/** The Services of an address that was asked for with another port than theirs; a headless one has no ports there. */
function findClosed(what: string, ports: readonly AskablePort[], view: View): ClosedPort | undefined {
  const asked = parseAskedAddress(what);
  if (asked?.port === undefined) return undefined;
  const headless = headlessAt(view, asked.address.text).map(({ namespace, name }) => {
    return { service: `${namespace}/${name}`, isEndpoint: true, ports: [] };
  });
  const found = findClosedPort(ports, what);
  return found ?? (headless.length > 0 ? { ...closedAt(asked, asked.port), owners: headless } : undefined);
}

function matchHeadless(view: View, address: string): Finding | undefined {
  const matches = headlessAt(view, address).map((service) => {
    return { service, labels: undefined, because: [{ kind: 'endpoint', endpoint: address } as const] };
  });
  return matches.length > 0 ? { kind: 'services', matches } : undefined;
}

function headlessAt({ services: { cluster } }: View, address: string): readonly ServiceInfo[] {
  return cluster.services.filter(({ headlessEndpoints }) => headlessEndpoints.some((each) => each.address === address));
}

function findNodePort(what: string, view: View): Finding | undefined {
  const asked = parseAskedPort(what);
  if (!asked) return undefined;
  const ofNode = matchPorts(view, (port) => roleOfNumber(port, asked));
  return ofNode ?? matchPorts(view, (port) => (hasOwnPort(port, asked) ? { kind: 'port' } : undefined));
}

/** All Service ports for which `why` gives a reason, by Service. */
function matchPorts(view: View, why: (port: AskablePort) => Because | undefined): Finding | undefined {
  const found = new Map<string, { readonly labels: Set<string>; readonly because: Map<string, Because> }>();
  for (const port of view.services.cluster.servicePorts) {
    const because = why(askablePort(port));
    if (!because) continue;
    const key = `${port.namespace}/${port.service}`;
    const match = found.get(key) ?? { labels: new Set<string>(), because: new Map<string, Because>() };
    match.labels.add(port.label);
    match.because.set(JSON.stringify(because), because);
    found.set(key, match);
  }
  const matches = view.services.cluster.services.flatMap((service): readonly ServiceMatch[] => {
    const match = found.get(`${service.namespace}/${service.name}`);
    return match ? [{ service, labels: match.labels, because: [...match.because.values()] }] : [];
  });
  return matches.length > 0 ? { kind: 'services', matches } : undefined;
}

function matchLabel(label: string, view: View, because: Because): Finding | undefined {
  return matchPorts(view, (port) => (port.name === label ? because : undefined));
}

function findName(what: string, view: View): Finding | undefined {
  const { name, port } = parseAskedName(what);
  const matches = view.services.cluster.services.flatMap((service): readonly ServiceMatch[] => {
    const full = `${service.namespace}/${service.name}`;
    if (full !== name && service.name !== name) return [];
    if (port === undefined) return [{ service, labels: undefined, because: [{ kind: 'name' }] }];
    const spec = service.ports.find((each) => each.name === port || String(each.port) === port);
    if (!spec) return [];
    const label = spec.name === '' ? full : `${full}:${spec.name}`;
    return [{ service, labels: new Set([label]), because: [{ kind: 'name' }] }];
  });
  return matches.length > 0 ? { kind: 'services', matches } : undefined;
}

/** Names that the one that was not found could have meant. */
function suggest(what: string, view: View): readonly string[] {
  if (/^[a-z]+-[A-Z2-7]{8}-/.test(what)) return nearest(what, nftNames(view));
  if (beginsAsKubeProxys(what)) {
    const chains = families.flatMap((family) =>
      tableNames.flatMap((table) => [...(view.state.iptables[family]?.[table]?.keys() ?? [])]),
    );
    return nearest(what, [...new Set([...chains, ...view.state.sets.map(({ name }) => name)])]);
  }
  const { services } = view.services.cluster;
  const dns = nameInDns(what);
  if (dns !== undefined)
    return nearest(
      dns,
      services.map((each) => `${each.namespace}/${each.name}`),
    );
  const labelOf = ({ namespace, name }: (typeof services)[number]) => `${namespace}/${name}`;
  const [named = what] = what.split(':');
  const hasNamespace = named.includes('/');
  const known = services.filter((service) => (hasNamespace ? labelOf(service) : service.name) === named);
  if (known.length > 0) {
    return known
      .slice(0, mostSuggestions)
      .flatMap((service) => service.ports.map(({ name, port }) => `${labelOf(service)}:${name || port}`));
  }
  if (!hasNamespace) {
    const near = new Set(nearest(named, [...new Set(services.map(({ name }) => name))]));
    return services.flatMap((service) => (near.has(service.name) ? [labelOf(service)] : [])).slice(0, mostSuggestions);
  }
  // A Service of that very name in another namespace is what was meant more likely than any name that is near.
  const bare = named.slice(named.indexOf('/') + 1);
  const elsewhere = services
    .flatMap((service) => (service.name === bare ? [labelOf(service)] : []))
    .slice(0, mostSuggestions);
  return elsewhere.length > 0 ? elsewhere : nearest(named, services.map(labelOf));
}
