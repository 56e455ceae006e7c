import {
  addressBits,
  compareAddresses,
  contains,
  hostNetwork,
  isLinkLocal,
  isLoopback,
  loopbackAddresses,
  numberOf,
  parseNetwork,
  type Address,
} from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { LinkAddress } from '../kernel/link/link.ts';
import type { KernelState } from '../kernel/state.ts';
import type { Knowledge } from './knowledge.ts';
import { isUnknownOwn, unknownOwn } from './own-address.ts';
import { lacks, type Answer } from './reason.ts';

/** What the rules and the kernel ask of the node. */
export interface Routing {
  /** Whether the address is the node's own. */
  isLocal(address: Address): Answer;
  /** The interface by which an address is reached that is not the node's own; undefined if it is not known. */
  interfaceOf(address: Address): string | undefined;
  /** The source of a packet of the node's own. */
  sourceTo(address: Address): OwnSource;
  /** The node's address on an interface. */
  ownAddress(link: string | undefined): Address;
  sysctl(name: string): string | undefined;
  /** Whether rules see packets that come in by the interface with the bridge's port that took them (br_netfilter). */
  showsBridged(link: string | undefined): Answer;
  /** Whether packets with loopback addresses pass between interfaces (net.ipv4.conf.all.route_localnet). */
  readonly admitsLoopback: Answer;
}

/** An address of the node. */
export interface OwnSource {
  /** A placeholder if it is not known which. */
  readonly address: Address;
  /** If it is not known which: those that it may be, as far as they are known. */
  readonly candidates?: readonly Address[] | undefined;
}

/** The interface of connections from the node to itself. */
export const loopbackInterface = 'lo';

/** Links that the node's packets to other hosts do not choose a source from: what they hold serves the node itself. */
const inward: ReadonlySet<string> = new Set([loopbackInterface, 'kube-ipvs0', 'nodelocaldns']);

/** Whether iptables and nftables see what passes a bridge. Without the module br_netfilter, there is no such sysctl. */
const bridgeSysctls: { readonly [F in Family]: string } = {
  ipv4: 'net.bridge.bridge-nf-call-iptables',
  ipv6: 'net.bridge.bridge-nf-call-ip6tables',
};

/**
 * The node's routing in one family. `links` of the knowledge are its own links; those of the state, such as kube-ipvs0, come on
 * top. No tool of a dump prints routes, so any address has one.
 */
export function routingOf(
  { links: nodeLinks, hasAllAddresses, hasAllSysctls, sendsFrom, isOwn, isElsewhere }: Knowledge,
  state: KernelState,
  family: Family,
): Routing {
  const hasAll = hasAllAddresses(family);
  const own = [...nodeLinks, ...state.links]
    .flatMap(({ name, kind, addresses }) => addresses.map((each) => ({ ...each, link: name, kind })))
    .filter((each) => each.family === family);
  const local = new Set(own.map(({ address }) => address.text));
  const { find, sourcesFor } = routesOf(own, family);
  const isLocal = (address: Address): Answer => {
    if (isLoopback(address) || local.has(address.text) || isOwn(address) || isUnknownOwn(address)) return true;
    return hasAll || isElsewhere(address) ? false : lacks({ kind: 'own-address', address }, `own ${address.text}`);
  };
  const localnet = state.sysctls.get('net.ipv4.conf.all.route_localnet');
  return {
    isLocal,
    interfaceOf: (address) => (isLocal(address) === true ? undefined : find(address)?.link),
    sourceTo: (address) => {
      if (isLocal(address) === true) return { address: isLoopback(address) ? loopbackAddresses[family] : address };
      const chosen = sendsFrom?.[family];
      if (chosen) return { address: chosen };
      // Of addresses that are not known, nothing holds for all.
      if (!hasAll && !find(address)) return { address: unknownOwn[family], candidates: [] };
      const candidates = sourcesFor(address);
      const [only, ...others] = candidates;
      return only && others.length === 0 ? { address: only } : { address: unknownOwn[family], candidates };
    },
    ownAddress: (link) => own.find((each) => each.link === link)?.address ?? unknownOwn[family],
    sysctl: (name) => state.sysctls.get(name),
    showsBridged: (link) => {
      const sysctl = bridgeSysctls[family];
      const setting = state.sysctls.get(sysctl) ?? (hasAllSysctls ? '0' : undefined);
      const kind = own.find((each) => each.link === link)?.kind;
      if (setting === '0' || (kind !== undefined && kind !== 'bridge')) return false;
      return (setting === '1' && kind === 'bridge') || lacks({ kind: 'bridge', sysctl }, `bridge ${link ?? ''}`);
    },
    admitsLoopback:
      family === 'ipv4' &&
      (localnet === undefined && !hasAllSysctls
        ? lacks({ kind: 'sysctl', name: 'net.ipv4.conf.all.route_localnet' }, 'route_localnet')
        : localnet === '1'),
  };
}

/** An address of the node, and the link that has it. */
type OwnAddress = LinkAddress & { readonly link: string };

/** The routes that come with addresses, and the addresses that packets of the node's own may have for source. */
function routesOf(own: readonly OwnAddress[], family: Family) {
  // The most specific first.
  const networks = own
    .flatMap(({ address, prefixLength, link }) => {
      if (prefixLength === hostNetwork(address).prefixLength || isLoopback(address)) return [];
      const network = parseNetwork(`${address.text}/${prefixLength}`);
      return network ? [{ network, link, source: address }] : [];
    })
    .toSorted(
      ({ network: a }, { network: b }) => b.prefixLength - a.prefixLength || compareAddresses(a.address, b.address),
    );
  const find = (address: Address) => networks.find(({ network }) => contains(network, address));
  const routesTo = (address: Address) => {
    const length = find(address)?.network.prefixLength;
    return networks.filter(({ network }) => network.prefixLength === length && contains(network, address));
  };
  const outward = own.filter((each) => isOutward(each) && !inward.has(each.link));
  /** The addresses that the kernel may choose from for a packet of the node's own. */
  const sourcesFor = (address: Address): readonly Address[] => {
    const routes = routesTo(address);
    const links = new Set((routes.length > 0 ? routes : outward).map(({ link }) => link));
    // A link's first address of a network made the route to it, and is the source of packets that take it.
    if (family === 'ipv4' && routes.length > 0)
      return [...links].flatMap((link) => routes.find((route) => route.link === link)?.source ?? []);
    const able = (isLinkLocal(address) ? own : outward).filter(({ link }) => links.has(link));
    // Addresses without networks may be of many links: what was compiled does not say which.
    const isOfOne = links.size === 1 && able.some(({ prefixLength }) => prefixLength < addressBits[family]);
    return family === 'ipv6' && isOfOne ? closestTo(address, able) : able.map((each) => each.address);
  };
  return { find, sourcesFor };
}

/**
 * Of a link's IPv6 addresses, those that have the most bits in common with a destination: the kernel takes such a one, and counts no
 * bits past an address's own prefix (rule 8 of RFC 6724; ipv6_get_saddr_eval).
 */
function closestTo(to: Address, own: readonly LinkAddress[]): readonly Address[] {
  const common = own.map(({ address, prefixLength }) => {
    const different = (numberOf(address) ^ numberOf(to)).toString(2);
    const bits = addressBits[address.family];
    return Math.min(prefixLength, different === '0' ? bits : bits - different.length);
  });
  const most = Math.max(...common);
  return own.filter((_, at) => common[at] === most).map(({ address }) => address);
}

function isOutward({ address, scope }: LinkAddress): boolean {
  return !isLoopback(address) && scope !== 'link' && scope !== 'host';
}
