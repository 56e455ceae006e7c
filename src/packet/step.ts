import type { ProxyPort } from '../kernel/balancer/balancer.ts';
import type { PlainAction, OtherAction, SocketAddress } from '../kernel/ports-and-marks.ts';
import type { AddressRange } from '../kernel/address-range.ts';
import type { Address } from '../kernel/address.ts';
import type { Rule } from '../kernel/iptables/iptables.ts';
import type { SetEntry } from '../kernel/ipset/set-entry.ts';
import type { RealServer, VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { CarrierProtocol } from '../kernel/link/tunnel.ts';
import type { Element, Value, NftRule } from '../kernel/nftables/table.ts';
import type { Origin } from '../kernel/place.ts';

export const hooks = ['prerouting', 'input', 'forward', 'output', 'postrouting'] as const;

export type Hook = (typeof hooks)[number];

interface InChain {
  readonly hook: Hook;
  readonly table: string;
  readonly chain: string;
}

export type AskedSource = AddressRange | Value | readonly SetEntry[];

export type Action =
  | PlainAction
  | OtherAction
  /** Goes to one of these chains, each with equal probability. */
  | { readonly kind: 'goto-random'; readonly chains: readonly string[] }
  | { readonly kind: 'dnat-random'; readonly targets: readonly SocketAddress[] }
  | { readonly kind: 'write-set'; readonly set: string };

export type RuleStep = InChain & {
  readonly kind: 'rule';
  /** The rule's position in its chain, from 1. */
  readonly position: number;
  readonly origin: Origin | undefined;
  readonly action: Action;
} & (
    | { readonly tool: 'iptables'; readonly rule: Rule }
    /** `element`: the map's element that decided. */
    | { readonly tool: 'nftables'; readonly rule: NftRule; readonly element: Element | undefined }
  );

/** A port where a program accepts connections and opens new ones to endpoints, chosen with equal probability. */
export interface ProxyListener extends Pick<ProxyPort, 'protocol' | 'address' | 'port' | 'origin'> {
  readonly program: 'balancer' | 'kube-proxy';
  readonly endpoints: readonly SocketAddress[] | undefined;
}

export type Step =
  | RuleStep
  | (InChain & { readonly kind: 'policy'; readonly tool: RuleStep['tool'] })
  /** IPVS has a virtual server at the packet's destination, and chose a real server if there is one. */
  | {
      readonly kind: 'virtual-server';
      readonly hook: Hook;
      readonly server: VirtualServer;
      readonly chosen: RealServer | undefined;
    }
  /** A program accepts the connection, and opens another one to an endpoint if there is one. */
  | {
      readonly kind: 'listener';
      readonly server: ProxyListener & { readonly endpoints: readonly SocketAddress[] };
      readonly chosen: SocketAddress | undefined;
    }
  /** A tunnel's outer packet, which the following steps stop. `port`: the UDP port. */
  | {
      readonly kind: 'carrier';
      readonly link: string;
      readonly protocol: CarrierProtocol;
      readonly port: number | undefined;
    }
  | { readonly kind: 'route'; readonly decision: RouteDecision; readonly destination: Address };

/**
 * - local: the node accepts the packet; `isHeld`: the node has the address, and not only a route for it
 * - out: the packet leaves by an interface; undefined if the routes are unknown
 * - no-route, blackhole, unreachable, prohibit: no route leads to the address, or a route forbids it
 * - reverse-path, martian: the route back to the sender does not use the input interface, or the sender is the node itself
 * - no-hairpin: the bridge does not send a packet back by the port where it came in
 * - isolated: the bridge carries nothing between its ports
 * - no-carrier: the link is down at its other end
 * - no-address: a rule sends the packet to the address of an interface that has none
 * - foreign-local: a tunnel would send from an address that the node lacks (ip_route_output_key_hash_rcu)
 * - not-neighbour: packets from a link-local address are not forwarded to another link (ip6_forward)
 * - not-forwarding, loopback-outside: the kernel drops the packet
 * - own-address: the endpoint gets a packet from its own address, and cannot answer
 * - for-many: the packet is for a broadcast, multicast or anycast address, which nothing forwards and TCP ignores (tcp_v4_conn_request)
 * - own-next-hop: the next hop is an address of the node itself, so nobody answers for it
 * - echo-ignored: the node answers no pings (icmp_echo in icmp.c)
 * - encryption: an IPsec policy blocks the packet
 * - loopback-source: another host gets a packet from a loopback address, and drops it
 */
export type RouteDecision =
  | { readonly kind: 'local'; readonly isHeld: boolean }
  | {
      readonly kind:
        | 'loopback-outside'
        | 'loopback-source'
        | 'own-address'
        | 'encryption'
        | 'echo-ignored'
        | 'for-many'
        | 'no-route'
        | 'blackhole'
        | 'unreachable'
        | 'prohibit'
        | 'martian'
        | 'not-neighbour';
    }
  /** `sysctl`: the name of the sysctl whose value 0 forbids forwarding. */
  | { readonly kind: 'not-forwarding'; readonly sysctl: string }
  | { readonly kind: 'reverse-path'; readonly input: string; readonly back: string | undefined }
  | { readonly kind: 'no-hairpin' | 'isolated'; readonly bridge: string }
  | { readonly kind: 'no-carrier' | 'no-address'; readonly interface: string }
  | { readonly kind: 'foreign-local'; readonly link: string; readonly local: Address }
  | { readonly kind: 'own-next-hop'; readonly gateway: Address }
  /** `isOpen`: whether the destination may be an address of the node. */
  | { readonly kind: 'out'; readonly interface: string | undefined; readonly isOpen?: boolean };
