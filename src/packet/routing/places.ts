// Where hosts are as seen from the node: behind which link, and which of its addresses the node uses to send to them.
import {
  addressBits,
  compareAddresses,
  contains,
  isLinkLocal,
  isLoopback,
  addressNumber,
  parseNetwork,
  prefixKey,
  type Address,
  type Network,
} from '../../kernel/address.ts';
import type { LinkAddress, Link } from '../../kernel/link/link.ts';
import type { NextHop, Route } from '../../kernel/route/route.ts';

export type OwnAddress = LinkAddress & { readonly link: string };

export function isOutward({ address, scope }: LinkAddress): boolean {
  return !isLoopback(address) && scope !== 'link' && scope !== 'host';
}

function networkAround({ address, prefixLength }: LinkAddress): Network | undefined {
  if (prefixLength === addressBits[address.family] || isLoopback(address)) return undefined;
  return parseNetwork(`${address.text}/${prefixLength}`);
}

/**
 * Returns the IPv4 sources that the kernel may choose for packets leaving by a link (inet_select_addr in devinet.c). Candidates are the
 * addresses that are first in their networks. The kernel takes the first one in the next hop's network, or else the first of all. A link
 * without addresses borrows one from lo, or else from the oldest link, which is unknown.
 */
export function selectIPv4(own: readonly OwnAddress[], link: string, near: Address | undefined): readonly Address[] {
  const onLink = own.filter((each) => each.link === link);
  const primary = onLink.filter((each, at) => {
    const network = networkAround(each);
    const isSame = (other: OwnAddress): boolean =>
      other.prefixLength === each.prefixLength && network !== undefined && contains(network, other.address);
    return isOutward(each) && !onLink.slice(0, at).some(isSame);
  });
  const isNear = (each: OwnAddress): boolean => {
    const network = networkAround(each);
    return near !== undefined && (network ? contains(network, near) : each.address.text === near.text);
  };
  const chosen = primary.find(isNear) ?? primary[0];
  if (chosen) return [chosen.address];
  const others = own.filter(isOutward);
  const first = others.filter((each, at) => others.findIndex(({ link: name }) => name === each.link) === at);
  const ofLoopback = first.filter(({ link: name }) => name === 'lo');
  return (ofLoopback.length > 0 ? ofLoopback : first).map(({ address }) => address);
}

/**
 * Returns the kernel's IPv6 source for packets leaving by a link (ipv6_dev_get_saddr in addrconf.c). The kernel prefers the destination
 * itself, then an address that is not deprecated, one on the link, one with the destination's label, and the most bits in common. On a tie
 * the kernel takes the latest added, which ip lists first.
 */
export function selectIPv6(own: readonly OwnAddress[], link: string, to: Address): Address | undefined {
  const able = own.filter((each) => (isLinkLocal(to) ? each.link === link : isOutward(each)));
  const rank = (each: OwnAddress): readonly number[] => [
    each.address.text === to.text ? 1 : 0,
    each.isDeprecated === true ? 0 : 1,
    each.link === link ? 1 : 0,
    labelOfNetwork(each.address) === labelOfNetwork(to) ? 1 : 0,
    commonBits(each, to),
  ];
  return able.toSorted((a, b) => compareRanks(rank(b), rank(a)))[0]?.address;
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((each, i) => each !== b[i]);
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}

const labels: readonly Network[] = ['fc00::/7', '2002::/16', '2001::/32', '2001:10::/28', 'fec0::/10'].flatMap(
  (text) => parseNetwork(text) ?? [],
);

function labelOfNetwork(address: Address): string {
  return labels.find((network) => contains(network, address))?.text ?? '';
}

function commonBits({ address, prefixLength }: LinkAddress, to: Address): number {
  const different = (addressNumber(address) ^ addressNumber(to)).toString(2);
  const bits = addressBits[address.family];
  return Math.min(prefixLength, different === '0' ? bits : bits - different.length);
}

/**
 * Returns the link's IPv6 addresses that share the most bits with a destination; the kernel takes one of them. Bits beyond an address's
 * own prefix do not count (rule 8 of RFC 6724; ipv6_get_saddr_eval).
 */
export function closestTo(to: Address, own: readonly LinkAddress[]): readonly Address[] {
  const common = own.map((each) => commonBits(each, to));
  const most = Math.max(...common);
  return own.filter((_, at) => common[at] === most).map(({ address }) => address);
}

export function networksOf(own: readonly OwnAddress[]) {
  return own
    .flatMap((each) => {
      const network = networkAround(each);
      return network ? [{ network, link: each.link, source: each.address }] : [];
    })
    .toSorted(
      ({ network: a }, { network: b }) => b.prefixLength - a.prefixLength || compareAddresses(a.address, b.address),
    );
}

/** Pods, and hosts whose only gateway is the node, are `here`: everything they send passes the node, except within a bridge. */
export interface Places {
  isHere(hop: NextHop | undefined): boolean;
  /** The links by which other hosts may reach an address of the node: all links in the address's network, its own link first. */
  linksAround(address: Address): readonly string[];
  /**
   * The link that leads to an address, by the most specific route in any table or by the link's network, if hosts behind that link are
   * `here`.
   */
  linkInside(address: Address): string | undefined;
  /** A next hop of the most specific routes (in any table) to a pod, if `hop` is not among these. */
  closerHop(address: Address, hop: NextHop): NextHop | undefined;
  isAround(address: Address, link: string): boolean;
  readonly outer: readonly string[];
  isTunnel(link: string): boolean;
  readonly joiningTunnels: readonly string[];
  isPod(address: Address): boolean;
  isBridge(link: string): boolean | undefined;
}

const tunnels: ReadonlySet<string> = new Set('vxlan geneve ipip sit gre gretap ip6tnl ip6gre wireguard tun'.split(' '));

/** Names that container runtimes and network plugins give to links, used if a link's type is unknown. */
const innerNames = /^(?:cni|docker|br-|cbr|virbr|lxdbr|podman|kube-bridge|weave|cali|veth|lxc|azv|eni[0-9a-f]{8}|gke)/;

export function placesOf({
  own,
  links,
  routes,
  isPod,
  inward,
}: {
  readonly own: readonly OwnAddress[];
  readonly links: readonly Link[];
  readonly routes: readonly Route[];
  readonly isPod: (address: Address) => boolean;
  readonly inward: ReadonlySet<string>;
}): Places {
  const kinds = new Map(links.map(({ name, kind }) => [name, kind]));
  const withGateway = new Set(
    routes.flatMap(({ hops }) => hops.flatMap(({ gateway, link }) => (gateway && link !== undefined ? [link] : []))),
  );
  const single = routes.filter(
    ({ type, destination }) => type === 'unicast' && destination.prefixLength === addressBits[destination.family],
  );
  const isTunnel = (link: string): boolean => tunnels.has(kinds.get(link) ?? '');
  const isInner = (link: string): boolean => {
    if (inward.has(link) || kinds.get(link) === 'dummy') return true;
    if (withGateway.has(link) || isTunnel(link)) return false;
    if (kinds.get(link) === 'bridge') return true;
    const isNetworkOfPods = own.some((each) => each.link === link && isPod(each.address));
    const isOfOne = single.some(({ hops }) => hops.some((hop) => hop.link === link));
    return isNetworkOfPods || isOfOne || innerNames.test(link);
  };
  const named = new Set([
    ...own.map(({ link }) => link),
    ...routes.flatMap(({ hops }) => hops.map(({ link }) => link)),
  ]);
  const outer = [...named].flatMap((link) => (link !== undefined && !isInner(link) ? [link] : []));
  const around = own.flatMap((each) => {
    const network = isOutward(each) && outer.includes(each.link) ? networkAround(each) : undefined;
    return network ? [{ network, link: each.link }] : [];
  });
  const closest = closestFinder(routes);
  const within = networksOf(own).filter(({ link }) => isInner(link));
  const isHere = (hop: NextHop | undefined): boolean =>
    hop?.link !== undefined && hop.gateway === undefined && isInner(hop.link);
  return {
    isHere,
    linksAround: (address) => {
      const exact = own.filter((each) => each.address.text === address.text && outer.includes(each.link));
      const near = around.filter(({ network }) => contains(network, address));
      return [...new Set([...exact, ...near].map(({ link }) => link))];
    },
    linkInside: (address) =>
      closest(address)?.hops.find(isHere)?.link ?? linkWithin(within, closest(address)?.prefixLength, address),
    closerHop: closerHopFinder(routes, isPod),
    isAround: (address, link) => around.some((each) => each.link === link && contains(each.network, address)),
    outer,
    isTunnel,
    joiningTunnels: outer.filter((link) => isTunnel(link) && leadsToNetwork(routes, link)),
    isPod,
    isBridge: (link) => (kinds.get(link) === undefined ? undefined : kinds.get(link) === 'bridge'),
  };
}

function leadsToNetwork(routes: readonly Route[], link: string): boolean {
  return routes.some(
    ({ type, destination, hops }) =>
      type === 'unicast' && destination.prefixLength > 0 && hops.some((hop) => hop.link === link && hop.gateway),
  );
}

/** Returns the link whose network is more specific than all routes. A link keeps its addresses when its routes are gone. */
function linkWithin(within: ReturnType<typeof networksOf>, prefixLength = -1, address: Address) {
  const near = within.find(({ network }) => contains(network, address));
  return near && near.network.prefixLength > prefixLength ? near.link : undefined;
}

type RouteFinder = (
  address: Address,
) => { readonly prefixLength: number; readonly hops: readonly NextHop[] } | undefined;

function closestFinder(routes: readonly Route[]): RouteFinder {
  const found = new Map<string, { readonly prefixLength: number; readonly hops: NextHop[] }>();
  for (const { type, destination, hops } of routes) {
    if (type !== 'unicast' || hops.length === 0) continue;
    const { address, prefixLength } = destination;
    const key = prefixKey(address, prefixLength);
    const known = found.get(key);
    if (known) known.hops.push(...hops);
    else found.set(key, { prefixLength, hops: [...hops] });
  }
  const lengths = [...new Set([...found.values()].map(({ prefixLength }) => prefixLength))].sort((a, b) => b - a);
  return (address) => {
    const length = lengths.find((each) => found.has(prefixKey(address, each)));
    return length === undefined ? undefined : found.get(prefixKey(address, length));
  };
}

function closerHopFinder(routes: readonly Route[], isPod: Places['isPod']): Places['closerHop'] {
  const closest = closestFinder(
    routes.map((route) => ({ ...route, hops: route.hops.filter(({ down }) => down !== 'dead') })),
  );
  return (address, { link, gateway }) => {
    const hops = isPod(address) ? (closest(address)?.hops ?? []) : [];
    return hops.some((each) => each.link === link && each.gateway?.text === gateway?.text) ? undefined : hops[0];
  };
}
