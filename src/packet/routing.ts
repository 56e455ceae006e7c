import {
  compareAddresses,
  contains,
  hostNetwork,
  isLoopback,
  loopbackAddresses,
  parseNetwork,
  type Address,
} from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { Link, LinkAddress } from '../kernel/link/link.ts';
import type { KernelState } from '../kernel/state.ts';

/** What the rules and the kernel ask of the node. */
export interface Routing {
  /** Whether the address is the node's own; undefined if none of its addresses are known. */
  isLocal(address: Address): boolean | undefined;
  /** The interface by which an address is reached that is not the node's own; undefined if it is not known. */
  interfaceOf(address: Address): string | undefined;
  /** The source of a packet of the node's own. */
  sourceTo(address: Address): Address;
  sysctl(name: string): string | undefined;
}

/** The interface of connections from the node to itself. */
export const loopbackInterface = 'lo';

/**
 * Stand-ins for a node's own address if none is known: addresses that no host has (RFC 7600, RFC 6666), so that no rule names
 * them.
 */
const unknownOwn: { readonly [F in Family]: Address } = {
  ipv4: { family: 'ipv4', text: '192.0.0.8', bits: 0xc0000008 },
  ipv6: { family: 'ipv6', text: '100::1', groups: [0x100, 0, 0, 0, 0, 0, 0, 1] },
};

/** Whether an address is the placeholder for the node's own, unknown one. */
export function isUnknownOwn({ family, text }: Address): boolean {
  return unknownOwn[family].text === text;
}

/**
 * The node's routing in one family. `nodeLinks` are its own links; those of the state, such as kube-ipvs0, come on top. No
 * tool of a dump prints routes, so any address has one.
 */
export function routingOf(nodeLinks: readonly Link[], state: KernelState, family: Family): Routing {
  const addressesOf = (links: readonly Link[]) =>
    links
      .flatMap(({ name, addresses }) => addresses.map((each) => ({ ...each, link: name })))
      .filter((each) => each.family === family);
  const own = addressesOf([...nodeLinks, ...state.links]);
  const local = new Set(own.map(({ address }) => address.text));
  const knowsAddresses = addressesOf(nodeLinks).some(isOutward);
  const outward = own.find((each) => isOutward(each) && each.prefixLength > 0)?.address;
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
  const isLocal = (address: Address): boolean | undefined => {
    if (isLoopback(address) || local.has(address.text)) return true;
    if (knowsAddresses) return false;
    return isUnknownOwn(address) ? true : undefined;
  };
  return {
    isLocal,
    interfaceOf: (address) => (isLocal(address) ? undefined : find(address)?.link),
    sourceTo: (address) => {
      if (isLocal(address)) return isLoopback(address) ? loopbackAddresses[family] : address;
      return find(address)?.source ?? outward ?? unknownOwn[family];
    },
    sysctl: (name) => state.sysctls.get(name),
  };
}

function isOutward({ address, scope }: LinkAddress): boolean {
  return !isLoopback(address) && scope !== 'link';
}
