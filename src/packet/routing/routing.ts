import {
  type Address,
  addressBits,
  contains,
  type Family,
  isLinkLocal,
  isLoopback,
  loopbackAddresses,
} from '../../kernel/address.ts';
import type { Link, LinkTraits } from '../../kernel/link/link.ts';
import type { Tunnel } from '../../kernel/link/tunnel.ts';
import {
  lookupRoute,
  type RouteResult,
  type RouteQuestion,
  type NextHop,
  type Routes,
  type RoutingRule,
} from '../../kernel/route/route.ts';
import type { KernelState } from '../../kernel/state.ts';
import { sysctlOfLink } from '../../kernel/sysctls-and-modules.ts';
import type { Knowledge } from '../knowledge.ts';
import { isUnknownOwn, unknownOwn } from '../packet.ts';
import {
  closestTo,
  isOutward,
  networksOf,
  selectIPv4,
  selectIPv6,
  placesOf,
  type OwnAddress,
  type Places,
} from './places.ts';
import { circumstance, lacks, unreadValue, type Answer, type LostByBridge, type Reason } from '../reason.ts';

export interface Routing {
  readonly family: Family;
  /** Whether routes are listed. If not, routes are derived from addresses, and every address has one. */
  readonly isListed: boolean;
  readonly places: Places;
  isLocal(address: Address): Answer;
  isShown(address: Address): boolean;
  isLocalAt(address: Address, link: string): Answer;
  /** Whether the link has the address itself, not only a local route for it; undefined if no addresses are listed. */
  isOnLink(address: Address, link: string): boolean | undefined;
  find(question: RouteQuestion): RouteFound;
  /** The next hop for a packet that the node itself sends from no particular source; undefined if there is none. */
  hopTo(address: Address): NextHop | undefined;
  hopsTo(address: Address): readonly NextHop[];
  interfaceOf(address: Address): string | undefined;
  sourceBy(address: Address, way: RouteFound): OwnSource;
  masqueradeBy(address: Address, hop: NextHop | undefined): OwnSource;
  ownAddress(link: string | undefined): Address;
  /** Whether all addresses are shown, and the link has no address of this family. */
  isBare(link: string): boolean;
  linkLocal(link: string): Address | undefined;
  sysctl(name: string): string | undefined;
  /** Whether rules see packets that cross a bridge (br_netfilter); `link` may be that bridge. `lost`: what depends on the answer. */
  showsBridged(link: string | undefined, lost?: LostByBridge): Answer;
  carries(bridge: string, ends: BridgeEnds): Answer | 'no-hairpin' | 'isolated';
  trait(link: string | undefined, trait: keyof LinkTraits): boolean | undefined;
  portsOf(link: string): readonly string[];
  /** Whether the link is a bridge, all links are shown, and none is a port of the bridge. */
  isPortless(link: string): boolean;
  /** The link that IP sees for packets on `link`: a bridge or bond takes what its ports receive (br_handle_frame, bond_handle_frame). */
  inputOf(link: string | undefined): string | undefined;
  /** Whether the address is only tentative on the node. IPv6 accepts no advertisement for such an address (ndisc_recv_na). */
  isTentative(address: Address): boolean;
  isProxied(address: Address, link: string): boolean;
  readonly policies: Routes['policies'];
  tunnelAt(link: string): { readonly tunnel: Tunnel; readonly below: string | undefined } | undefined;
  admitsLoopback(link: string | undefined): Answer;
}

export type RouteFound =
  | {
      readonly kind: 'out';
      readonly hops: readonly NextHop[];
      readonly source?: Address | undefined;
      /** The route has the type broadcast, anycast or multicast. */
      readonly isToMany?: boolean;
    }
  | { readonly kind: 'local'; readonly source?: Address | undefined; readonly link?: string | undefined }
  | { readonly kind: 'none'; readonly why: 'no-route' | 'blackhole' | 'unreachable' | 'prohibit' }
  | { readonly kind: 'either'; readonly reason: Reason; readonly taken: RouteFound; readonly passed: RouteFound }
  | { readonly kind: 'unknown'; readonly reason: Reason };

/** The host to which a bridge carries a packet: the host that sent it, a host at another port, or any host. */
export type BridgeEnds = 'itself' | 'apart' | 'any';

export interface OwnSource {
  readonly address: Address;
  readonly candidates?: readonly Address[] | undefined;
}

export const loopbackInterface = 'lo';

const inward: ReadonlySet<string> = new Set([loopbackInterface, 'kube-ipvs0', 'nodelocaldns']);

const receivers: ReadonlySet<string | undefined> = new Set(['bridge', 'bond', 'team', 'openvswitch']);

/** Sysctls of the module br_netfilter that let rules see packets that cross a bridge. */
const bridgeSysctls: { readonly [F in Family]: string } = {
  ipv4: 'net.bridge.bridge-nf-call-iptables',
  ipv6: 'net.bridge.bridge-nf-call-ip6tables',
};

const none: Routes = { routes: [], tables: new Set(), rules: undefined, answers: [], proxied: [], policies: [] };

/** Builds the node's routing in one family, over the links in `knowledge` and in the state, such as kube-ipvs0. */
export function routingOf(knowledge: Knowledge, state: KernelState, family: Family): Routing {
  const listed = knowledge.routes[family] ?? none;
  const isListed = listed.routes.length > 0 || listed.tables === undefined;
  const links = [...knowledge.links, ...state.links];
  const { own, shown, hasAll, isRouted, isLocal, isLocalAt, isBare, isTentative } = ownAddressesOf(
    knowledge,
    links,
    listed,
    family,
  );
  const networks = networksOf(own);
  const findLink = (address: Address) => networks.find(({ network }) => contains(network, address))?.link;
  const find = finderOf({ family, listed, isLocal, isRouted, findLink });
  const hopsTo = (to: Address): readonly NextHop[] => {
    const found = find({ to, from: undefined, mark: 0, input: loopbackInterface });
    return found.kind === 'out' ? found.hops : [];
  };
  const hopTo = (to: Address): NextHop | undefined => hopsTo(to)[0];
  const places = placesOf({ own, links, routes: listed.routes, isPod: knowledge.isPod, inward });
  return {
    family,
    isListed,
    places,
    isLocal,
    isTentative,
    isShown: ({ text }) => own.some(({ address }) => address.text === text),
    isLocalAt,
    isOnLink: (address, link) =>
      shown.length === 0 ? undefined : shown.some((each) => each.address.text === address.text && each.link === link),
    isProxied: (address, link) =>
      listed.proxied.some((each) => each.address.text === address.text && each.link === link),
    policies: listed.policies,
    find,
    hopTo,
    hopsTo,
    interfaceOf: (address) => {
      if (isLocal(address) === true) return undefined;
      if (!isListed) return findLink(address);
      return hopTo(address)?.link;
    },
    ...sourcesOf({ own, networks, family, isListed, hasAll, isLocal, sends: knowledge.sendsFrom?.[family] }),
    ownAddress: (link) => own.find((each) => each.link === link)?.address ?? unknownOwn[family],
    isBare,
    tunnelAt: (name) => {
      const { tunnel } = links.find((each) => each.name === name) ?? {};
      return tunnel && { tunnel, below: tunnel.link ?? (tunnel.local && places.linksAround(tunnel.local)[0]) };
    },
    linkLocal: (link) => own.find((each) => each.link === link && isLinkLocal(each.address))?.address,
    sysctl: (name) => state.sysctls.get(name),
    ...bridgesOf({ links, places, sysctls: state.sysctls, knowledge, family }),
    admitsLoopback: (link) => family === 'ipv4' && admitsLoopbackBy(state.sysctls, knowledge.hasAllSysctls, link),
  };
}

/** Finds the node's own addresses, from table `local` and from links. A link's address is doubtful if table `local` is shown without it. */
function ownAddressesOf(knowledge: Knowledge, links: readonly Link[], listed: Routes, family: Family) {
  const allLocal = listed.routes.filter(({ type }) => type === 'local');
  const localRoutes = allLocal.filter(({ table }) => table === 'local');
  const all = links
    .flatMap(({ name, addresses }) => addresses.map((each) => ({ ...each, link: name })))
    .filter((each) => each.family === family);
  const shown = all.filter(({ isTentative }) => isTentative !== true);
  const own = shown.length > 0 ? shown : addressesOfRoutes(localRoutes);
  const hasAll = knowledge.hasAllAddresses(family) || listed.tables === undefined;
  const isRouted = (address: Address): boolean => localRoutes.some(({ destination }) => contains(destination, address));
  const local = new Set(own.map(({ address }) => address.text));
  // The links that kube-proxy makes are left out, because their routes come with them.
  const isTableShown = localRoutes.length > 0 && (listed.tables === undefined || listed.tables.has('local'));
  const unrouted = isTableShown
    ? knowledge.links.flatMap(({ addresses }) => addresses.filter(({ address }) => !isRouted(address)))
    : [];
  // An address on a VRF's link is local only in the VRF's own table.
  const isOfVrf = (address: Address): boolean => allLocal.some(({ destination }) => contains(destination, address));
  const unassigned = [
    ...all.filter(({ address, isTentative }) => isTentative === true && !local.has(address.text)),
    ...unrouted.filter(({ address }) => isOfVrf(address)),
  ];
  const doubted = new Set(unrouted.map(({ address }) => address.text));
  const lacking = new Set(unassigned.map(({ address }) => address.text));
  const isLocal = (address: Address): Answer => {
    if (lacking.has(address.text)) return false;
    if (doubted.has(address.text))
      return { ...lacks({ kind: 'own-address', address, isUnrouted: true }, `own ${address.text}`), likely: true };
    if (isLoopback(address) || local.has(address.text) || isUnknownOwn(address) || isRouted(address)) return true;
    // Addresses from rules may be outdated, so they count only if not all addresses are known.
    if (!hasAll && knowledge.isOwn(address)) return true;
    const isOther = hasAll || knowledge.isElsewhere(address);
    if (isOther) return false;
    // An endpoint's address is the node's own only if the endpoint is a host-network pod.
    return {
      ...lacks({ kind: 'own-address', address }, `own ${address.text}`),
      likely: !knowledge.isEndpoint(address),
    };
  };
  const isTentative = (address: Address): boolean => unassigned.some((each) => each.address.text === address.text);
  const isLocalAt = (address: Address, link: string): boolean => {
    const isOn = own.some((each) => each.address.text === address.text && each.link === link);
    const isBy = localRoutes.some(
      ({ destination, hops }) => contains(destination, address) && hops.some((hop) => hop.link === link),
    );
    return isOn || isBy;
  };
  const isBare = (link: string): boolean =>
    hasAll && shown.length > 0 && links.some(({ name }) => name === link) && !shown.some((each) => each.link === link);
  return { own, shown, hasAll, isRouted, isLocal, isLocalAt, isBare, isTentative };
}

function finderOf({
  family,
  listed,
  isLocal,
  isRouted,
  findLink,
}: {
  readonly family: Family;
  readonly listed: Routes;
  readonly isLocal: (address: Address) => Answer;
  readonly isRouted: (address: Address) => boolean;
  readonly findLink: (address: Address) => string | undefined;
}): Routing['find'] {
  const wayOf = (found: RouteResult, question: RouteQuestion): RouteFound => {
    if (found.kind === 'either') {
      const [taken, passed] = [wayOf(found.taken, question), wayOf(found.passed, question)];
      return { kind: 'either', reason: reasonOfRule(found.rule, question), taken, passed };
    }
    if (found.kind === 'unread') return { kind: 'unknown', reason: unreadValue(found.text) };
    if (found.kind !== 'open') return wayOfRoute(found);
    // If the routing rules are unknown, the local table comes first.
    if (isLocal(question.to) === true) return { kind: 'local' };
    if (listed.routes.length === 0) return { kind: 'out', hops: [{ link: findLink(question.to) }] };
    const { table } = found;
    return { kind: 'unknown', reason: lacks({ kind: 'routes', family, table, isRules: found.lacks === 'rules' }) };
  };
  return (question) => {
    if (isLocal(question.to) === true && !isRouted(question.to)) return { kind: 'local' };
    return wayOf(lookupRoute(family, listed, question), question);
  };
}

function reasonOfRule(rule: RoutingRule, { input, transport }: RouteQuestion): Reason {
  const { priority, users, other, sourcePort } = rule;
  if (rule.input !== undefined && input === undefined)
    return { kind: 'missing-flag', flag: '--in-interface', such: rule.input, fact: `input ${rule.input}` };
  const fact = { fact: `rule ${priority} ${other ?? users ?? ''}`, likely: false };
  if (other !== undefined) return { ...circumstance('content', other), ...fact };
  if (users !== undefined) return { ...circumstance('program', `uidrange ${users}`), ...fact };
  const { first, last } = sourcePort ?? transport?.sourcePort ?? { first: 0, last: 0 };
  return { ...circumstance('source-port', first === last ? String(first) : `${first}-${last}`), ...fact };
}

function wayOfRoute(found: Extract<RouteResult, { readonly kind: 'route' | 'none' }>): RouteFound {
  if (found.kind === 'none') return found;
  const { type, source, hops } = found.route;
  const live = hops.filter(({ down }) => down !== 'dead');
  return type === 'local'
    ? { kind: 'local', source, link: hops[0]?.link }
    : { kind: 'out', hops: live, source, isToMany: type !== 'unicast' };
}

function admitsLoopbackBy(sysctls: KernelState['sysctls'], hasAllSysctls: boolean, link: string | undefined): Answer {
  const name = sysctlOfLink('all', 'route_localnet');
  const ofAll = sysctls.get(name);
  if (ofAll === '1' || sysctls.get(sysctlOfLink(link ?? '', 'route_localnet')) === '1') return true;
  return ofAll === undefined && !hasAllSysctls && lacks({ kind: 'sysctl', name }, 'route_localnet');
}

function bridgesOf({
  links,
  places,
  sysctls,
  knowledge: { hasAllSysctls, hasAllAddresses },
  family,
}: {
  readonly links: readonly Link[];
  readonly places: Places;
  readonly sysctls: KernelState['sysctls'];
  readonly knowledge: Pick<Knowledge, 'hasAllSysctls' | 'hasAllAddresses'>;
  readonly family: Family;
}): Pick<Routing, 'showsBridged' | 'carries' | 'portsOf' | 'isPortless' | 'inputOf' | 'trait'> {
  const named = new Map(links.map((link) => [link.name, link]));
  const sysctl = bridgeSysctls[family];
  const own = family === 'ipv4' ? 'nf_call_iptables' : 'nf_call_ip6tables';
  const setting = sysctls.get(sysctl) ?? (hasAllSysctls ? '0' : undefined);
  const portsOf = (bridge: string): readonly Link[] => [...named.values()].filter(({ master }) => master === bridge);
  return {
    showsBridged: (link, lost) => {
      const { kind, traits } = named.get(link ?? '') ?? {};
      const isShown = setting === '1' || (setting === '0' && traits?.[own] === true);
      if ((setting === '0' && !isShown) || (kind !== undefined && kind !== 'bridge')) return false;
      return (isShown && kind === 'bridge') || lacks({ kind: 'bridge', sysctl, link, lost }, `bridge ${link ?? ''}`);
    },
    // A bridge sends no packet back to the port it came from (should_deliver in br_forward.c). Each pod has its own port; other hosts may
    // share one.
    carries: (bridge, ends) => {
      const ports = portsOf(bridge);
      // A bridge is known by its ports or its kind. A physical link has no kind, even with `ip -d`.
      if (ports.length === 0 && named.get(bridge)?.kind !== 'bridge') return true;
      const question = { ...circumstance('bridge-port', bridge), fact: `ports ${bridge} ${ends}` };
      const count = (trait: keyof LinkTraits, value: boolean): number =>
        ports.filter(({ traits }) => traits?.[trait] === value).length;
      const isolated = count('isolated', true);
      if (ports.length > 0 && isolated === ports.length) return 'isolated';
      const isApart = ends === 'apart' || (ends === 'any' && !places.outer.includes(bridge));
      if (isolated > (isApart ? 1 : 0)) return question;
      if (isApart) return true;
      const isOnePort = ends === 'itself' ? ports.length > 0 : ports.length === 1;
      if (isOnePort && count('hairpin', false) === ports.length) return 'no-hairpin';
      return (ends === 'itself' && count('hairpin', true) === ports.length) || question;
    },
    trait: (link, trait) => named.get(link ?? '')?.traits?.[trait],
    portsOf: (link) => portsOf(link).map(({ name }) => name),
    isPortless: (link) =>
      named.get(link)?.kind === 'bridge' &&
      named.get(link)?.traits?.vlan_filtering !== undefined &&
      portsOf(link).length === 0 &&
      hasAllAddresses(family),
    inputOf: (link) => {
      const master = named.get(named.get(link ?? '')?.master ?? '');
      return master && receivers.has(master.kind) ? master.name : link;
    },
  };
}

/** Finds the sources of the node's own packets by the listed routes, or else by the node's links. */
function sourcesOf({
  own,
  networks,
  family,
  isListed,
  hasAll,
  isLocal,
  sends,
}: {
  readonly own: readonly OwnAddress[];
  readonly networks: ReturnType<typeof networksOf>;
  readonly family: Family;
  readonly isListed: boolean;
  readonly hasAll: boolean;
  readonly isLocal: (address: Address) => Answer;
  readonly sends: Address | undefined;
}): Pick<Routing, 'sourceBy' | 'masqueradeBy'> {
  const unlisted = sourcesUnlisted(own, networks, family);
  const byLinks = (address: Address): OwnSource => {
    if (sends) return { address: sends };
    // An empty list of candidates means that any address is possible.
    const isKnown = hasAll || networks.some(({ network }) => contains(network, address));
    const candidates = isKnown ? unlisted(address) : [];
    const [only, ...others] = candidates;
    return only && others.length === 0 ? { address: only } : { address: unknownOwn[family], candidates };
  };
  const select = (link: string | undefined, near: Address | undefined, to: Address): OwnSource => {
    if (!isListed || link === undefined) return byLinks(to);
    return oneOf(family === 'ipv4' ? selectIPv4(own, link, near) : [selectIPv6(own, link, to) ?? []].flat());
  };
  const oneOf = (candidates: readonly Address[]): OwnSource => {
    const [address, ...others] = candidates;
    const isOne = address !== undefined && others.every(({ text }) => text === address.text);
    return isOne ? { address } : { address: unknownOwn[family], candidates };
  };
  return {
    sourceBy: (address, way) => {
      if (isLocal(address) === true) {
        const kept = isLoopback(address) ? loopbackAddresses[family] : address;
        const { source, link = '' } = way.kind === 'local' ? way : {};
        // IPv6 does not send from an address that only a local route makes the node's own.
        const isRoute =
          family === 'ipv6' && !isLoopback(address) && !own.some(({ address: { text } }) => text === address.text);
        return !source && isRoute && isListed ? select(link, undefined, address) : { address: source ?? kept };
      }
      // Without a route, IPv6 chooses a source among all addresses, then looks for a route from that source (ip6_dst_lookup_tail).
      if (way.kind === 'none' && family === 'ipv6' && isListed) return select('', undefined, address);
      if (way.kind !== 'out') return byLinks(address);
      if (way.source) return { address: way.source };
      if (way.hops.length === 0) return byLinks(address);
      const sources = way.hops.map((hop) => select(hop.link, hop.gateway, address));
      const candidates = sources.map((each) => each.candidates ?? [each.address]);
      return oneOf(candidates.some(({ length }) => length === 0) ? [] : candidates.flat());
    },
    masqueradeBy: (address, hop) => select(hop?.link, hop?.gateway ?? address, address),
  };
}

function addressesOfRoutes(local: Routes['routes']): readonly OwnAddress[] {
  return local.flatMap(({ family, destination, hops }) => {
    const { address, prefixLength } = destination;
    if (prefixLength < addressBits[family]) return [];
    const scope = isLoopback(address) ? 'host' : isLinkLocal(address) ? 'link' : undefined;
    return hops.flatMap(({ link }) => (link === undefined ? [] : [{ family, address, prefixLength, scope, link }]));
  });
}

function sourcesUnlisted(own: readonly OwnAddress[], networks: ReturnType<typeof networksOf>, family: Family) {
  const outward = own.filter((each) => isOutward(each) && !inward.has(each.link));
  return (address: Address): readonly Address[] => {
    const length = networks.find(({ network }) => contains(network, address))?.network.prefixLength;
    const routes = networks.filter(({ network }) => network.prefixLength === length && contains(network, address));
    const links = new Set((routes.length > 0 ? routes : outward).map(({ link }) => link));
    // The first address that a link has in a network created the route to that network, and is the route's source.
    if (family === 'ipv4' && routes.length > 0)
      return [...links].flatMap((link) => routes.find((route) => route.link === link)?.source ?? []);
    const able = (isLinkLocal(address) ? own : outward).filter(({ link }) => links.has(link));
    // A compiled input shows addresses without networks or links, so they may be on several links.
    const isOfOne = links.size === 1 && able.some(({ prefixLength }) => prefixLength < addressBits[family]);
    return family === 'ipv6' && isOfOne ? closestTo(address, able) : able.map((each) => each.address);
  };
}
