import { addressBits, contains, type Address } from '../../kernel/address.ts';
import type { Link } from '../../kernel/link/link.ts';
import type { NextHop, Route } from '../../kernel/route/route.ts';
import { isOutward, networkAround, type OwnAddress } from './own-source.ts';

/**
 * Which hosts are behind which link. Pods, and hosts that use the node as their only gateway, are `here`: what they send passes
 * the node, except what a bridge carries between them. All others choose their own ways.
 */
export interface Places {
  /** Whether hosts behind the link send everything through this node. */
  isHere(hop: NextHop | undefined): boolean;
  /** The link by which other hosts reach an address of the node: the link of its network. */
  linkAround(address: Address): string | undefined;
  /** The link of the closest route to an address, in any table, if it leads to a host that is `here`. */
  linkInside(address: Address): string | undefined;
  /** The next hop of the closest route to a pod, in any table, if that is not one of its hops. */
  closerHop(address: Address, hop: NextHop): NextHop | undefined;
  /** Whether the address is in a network of that link. */
  isAround(address: Address, link: string): boolean;
  /** The links that packets from other hosts come in by. */
  readonly outer: readonly string[];
  isTunnel(link: string): boolean;
  /** Whether the address is of the network of the cluster's pods. */
  isPod(address: Address): boolean;
  isBridge(link: string): boolean | undefined;
}

const tunnels: ReadonlySet<string> = new Set('vxlan geneve ipip sit gre gretap ip6tnl ip6gre wireguard tun'.split(' '));

/** Link names of container runtimes and network plugins, for links of unknown type. */
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
  const isHere = (hop: NextHop | undefined): boolean =>
    hop?.link !== undefined && hop.gateway === undefined && isInner(hop.link);
  return {
    isHere,
    linkAround: (address) => {
      const exact = own.find((each) => each.address.text === address.text && outer.includes(each.link));
      return exact?.link ?? around.find(({ network }) => contains(network, address))?.link;
    },
    linkInside: (address) => closestRoute(routes, address)?.hops.find(isHere)?.link,
    closerHop: (address, hop) => (isPod(address) ? closerHop(routes, address, hop) : undefined),
    isAround: (address, link) => around.some((each) => each.link === link && contains(each.network, address)),
    outer,
    isTunnel,
    isPod,
    isBridge: (link) => {
      const kind = kinds.get(link);
      return kind === undefined ? undefined : kind === 'bridge';
    },
  };
}

function closerHop(routes: readonly Route[], address: Address, { link, gateway }: NextHop): NextHop | undefined {
  const hops = closestRoute(routes, address)?.hops ?? [];
  return hops.some((each) => each.link === link && each.gateway?.text === gateway?.text) ? undefined : hops[0];
}

/** The route with the longest prefix to an address, in any table. */
function closestRoute(routes: readonly Route[], address: Address): Route | undefined {
  const leading = routes.filter(({ type, destination }) => type === 'unicast' && contains(destination, address));
  const longest = Math.max(...leading.map(({ destination }) => destination.prefixLength));
  return leading.find(({ destination }) => destination.prefixLength === longest);
}
