import {
  compareAddresses,
  contains,
  hostNetwork,
  isLoopback,
  loopbackAddresses,
  parseNetwork,
  type Address,
  type Network,
} from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { Link, LinkAddress } from '../kernel/link/link.ts';
import type { KernelState } from '../kernel/state.ts';

/** What of a node decides where its packets go, besides its rules. */
export interface PacketNode {
  /** Its own links with their addresses. Those of the state, such as kube-ipvs0, come on top. */
  readonly links: readonly Link[];
  /** Besides those to the networks on its links. Undefined where they are not known: then any address has a route. */
  readonly routes: readonly Route[] | undefined;
  /** Values that the state does not set. */
  readonly sysctls: ReadonlyMap<string, string>;
}

export interface Route {
  readonly network: Network;
  readonly interface: string;
  readonly source?: Address | undefined;
}

/** Where a packet to an address goes; an interface that is not known is undefined. */
type Destination =
  | { readonly kind: 'local' }
  | { readonly kind: 'out'; readonly interface: string | undefined }
  | { readonly kind: 'no-route' };

/** What the rules and the kernel ask of the node. */
export interface Routing {
  /** Whether the address is the node's own; undefined where none of its addresses are known. */
  isLocal(address: Address): boolean | undefined;
  route(address: Address): Destination;
  /** The interface that packets from an address come by, if the routes are symmetric; undefined where not known. */
  interfaceOf(source: Address): string | undefined;
  /** The source of a packet of the node's own. */
  sourceTo(address: Address): Address;
  sysctl(name: string): string | undefined;
}

export const loopbackInterface = 'lo';

/** The node's routing in one family. */
export function routingOf(node: PacketNode, state: KernelState, family: Family): Routing {
  const links = [...node.links, ...state.links];
  const own = links.flatMap(({ name, addresses }) =>
    addresses.filter((address) => address.family === family).map((address) => ({ ...address, link: name })),
  );
  const local = new Set(own.map(({ address }) => address.text));
  const knowsAddresses = node.links.some(({ addresses }) => addresses.some(isOutward(family)));
  const routes = sortRoutes([...own.flatMap(connectedRoute), ...(node.routes ?? [])], family);

  const isLocal = (address: Address): boolean | undefined => {
    if (isLoopback(address) || local.has(address.text)) return true;
    return knowsAddresses ? false : undefined;
  };
  const find = (address: Address): Route | undefined => routes.find(({ network }) => contains(network, address));
  const outward = own.filter((address) => isOutward(family)(address) && address.prefixLength > 0);
  // IPVS mode gives the node thousands of addresses: the first of each link is looked up, not searched for.
  const firsts = new Map(outward.toReversed().map(({ link, address }) => [link, address]));
  const firstOf = (link: string | undefined): Address | undefined =>
    (link === undefined ? undefined : firsts.get(link)) ?? outward[0]?.address;
  const route = (address: Address): Destination => {
    if (isLocal(address)) return { kind: 'local' };
    const found = find(address);
    if (!found && node.routes) return { kind: 'no-route' };
    return { kind: 'out', interface: found?.interface };
  };
  return {
    isLocal,
    route,
    interfaceOf: (source) => (isLocal(source) ? undefined : find(source)?.interface),
    sourceTo: (address) => {
      if (isLocal(address)) return isLoopback(address) ? loopbackAddresses[family] : address;
      const found = find(address);
      return found?.source ?? firstOf(found?.interface) ?? loopbackAddresses[family];
    },
    sysctl: (name) => state.sysctls.get(name) ?? node.sysctls.get(name),
  };
}

function isOutward(family: Family): (address: LinkAddress) => boolean {
  return (each) => each.family === family && !isLoopback(each.address) && each.scope !== 'link';
}

function connectedRoute({ address, prefixLength, link }: LinkAddress & { readonly link: string }): readonly Route[] {
  const whole = hostNetwork(address).prefixLength;
  if (prefixLength === whole || isLoopback(address)) return [];
  const network = parseNetwork(`${address.text}/${prefixLength}`);
  return network ? [{ network, interface: link, source: address }] : [];
}

/** The most specific first. */
function sortRoutes(routes: readonly Route[], family: Family): readonly Route[] {
  return routes
    .filter(({ network }) => network.family === family)
    .toSorted(
      (a, b) =>
        b.network.prefixLength - a.network.prefixLength || compareAddresses(a.network.address, b.network.address),
    );
}
