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

/** The source addresses that a rule tests for; for a set, all its entries. */
export type AskedSource = AddressRange | Value | readonly SetEntry[];

/** What a rule of either tool does with a packet. */
export type Action =
  | PlainAction
  | OtherAction
  /** One of these chains, each with equal probability. */
  | { readonly kind: 'goto-random'; readonly chains: readonly string[] }
  | { readonly kind: 'dnat-random'; readonly targets: readonly SocketAddress[] }
  /** Adds the packet's fields to a set, or removes them. */
  | { readonly kind: 'write-set'; readonly set: string };

export type RuleStep = InChain & {
  readonly kind: 'rule';
  /** Counts from 1. */
  readonly position: number;
  readonly origin: Origin | undefined;
  readonly action: Action;
} & (
    | { readonly tool: 'iptables'; readonly rule: Rule }
    /** With the element of the map that decided. */
    | { readonly tool: 'nftables'; readonly rule: NftRule; readonly element: Element | undefined }
  );

/** A port where a program accepts connections and opens its own to endpoints with equal probability. */
export interface ProxyListener extends Pick<ProxyPort, 'protocol' | 'address' | 'port' | 'origin'> {
  readonly program: 'balancer' | 'kube-proxy';
  readonly endpoints: readonly SocketAddress[] | undefined;
}

export type Step =
  | RuleStep
  /** No rule of a base chain decided, and its policy drops. */
  | (InChain & { readonly kind: 'policy'; readonly tool: RuleStep['tool'] })
  /** IPVS has a virtual server at the packet's destination and chose a real server, or has none. */
  | {
      readonly kind: 'virtual-server';
      readonly hook: Hook;
      readonly server: VirtualServer;
      readonly chosen: RealServer | undefined;
    }
  /** A program accepts the connection and opens one to an endpoint, or has none. */
  | {
      readonly kind: 'listener';
      readonly server: ProxyListener & { readonly endpoints: readonly SocketAddress[] };
      readonly chosen: SocketAddress | undefined;
    }
  /** A tunnel carries it in another packet, which the steps after this one stop. `port`: of UDP. */
  | {
      readonly kind: 'carrier';
      readonly link: string;
      readonly protocol: CarrierProtocol;
      readonly port: number | undefined;
    }
  | { readonly kind: 'route'; readonly decision: RouteDecision; readonly destination: Address };

/**
 * - local: the node takes it; `isHeld`: the address is its own, and not only routed to it
 * - out: it leaves by an interface; undefined if the routes are unknown
 * - no-route, blackhole, unreachable, prohibit: no route leads to the address, or a route forbids it
 * - reverse-path, martian: the way back to the sender is not the way it came, or is the node itself
 * - no-hairpin: the bridge does not send a packet back by the port it came in by
 * - isolated: the bridge carries nothing between its ports
 * - no-carrier: the link is down at its other end
 * - not-forwarding, loopback-outside: the kernel drops it
 * - own-address: the endpoint gets a packet from its own address, and cannot answer
 * - echo-ignored: the node answers no pings (icmp_echo in icmp.c)
 * - encryption: a policy of IPsec blocks it
 * - loopback-source: another host gets a packet from a loopback address, and drops it
 */
export type RouteDecision =
  | { readonly kind: 'local'; readonly isHeld: boolean }
  | {
      readonly kind:
        | 'not-forwarding'
        | 'loopback-outside'
        | 'loopback-source'
        | 'own-address'
        | 'encryption'
        | 'echo-ignored'
        | 'no-route'
        | 'blackhole'
        | 'unreachable'
        | 'prohibit'
        | 'martian';
    }
  /** `back`: the interface of the way back to the sender; undefined if there is no way back. */
  | { readonly kind: 'reverse-path'; readonly input: string; readonly back: string | undefined }
  | { readonly kind: 'no-hairpin' | 'isolated'; readonly bridge: string }
  | { readonly kind: 'no-carrier'; readonly interface: string }
  | { readonly kind: 'out'; readonly interface: string | undefined };
