import type { ProxyPort } from '../kernel/balancer/balancer.ts';
import type { AddressRange } from '../kernel/address-range.ts';
import type { Address } from '../kernel/address.ts';
import type { Rule } from '../kernel/iptables/iptables.ts';
import type { SetEntry } from '../kernel/ipset/set-entry.ts';
import type { RealServer, VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { Element, NftVerdict, Value } from '../kernel/nftables/element.ts';
import type { NftRule } from '../kernel/nftables/table.ts';
import type { Origin } from '../kernel/place.ts';
import type { SocketAddress } from '../kernel/socket-address.ts';

/** The points of the kernel's network stack where rules see packets. */
export const hooks = ['prerouting', 'input', 'forward', 'output', 'postrouting'] as const;

/** A place where the kernel asks rules about a packet. */
export type Hook = (typeof hooks)[number];

/** Where rules are. */
interface InChain {
  readonly hook: Hook;
  readonly table: string;
  readonly chain: string;
}

/** Addresses that a rule asks whether the source is among them; of a set, all its entries. */
export type AskedSource = AddressRange | Value | readonly SetEntry[];

/** What carries a mark: the packet, or the connection that it is of. */
export type MarkHolder = 'packet' | 'connection';

/**
 * mark = (mark & stays) ^ (start & keep) ^ flip, where the start is one of the two marks, or 0. Any sequence of "and", "or" and
 * "xor" has this form. All are unsigned numbers of 32 bits.
 */
export interface MarkChange {
  readonly stays: number;
  /** Without it the start is 0. */
  readonly start?: { readonly from: MarkHolder; readonly keep: number };
  readonly flip: number;
}

/** What a rule of either tool does with a packet. Without a port, `dnat` leaves the packet's own. */
export type Action =
  | NftVerdict
  | { readonly kind: 'masquerade' | 'notrack' }
  /** `with`: the answer, in the tool's words; undefined for the usual one of ICMP. */
  | { readonly kind: 'reject'; readonly with?: string | undefined }
  /** One of them, each with an equal chance. */
  | { readonly kind: 'goto-random'; readonly chains: readonly string[] }
  | { readonly kind: 'dnat'; readonly target: { readonly address: Address; readonly port: number | undefined } }
  /** To the node itself: to the address of the interface that the packet came in by, or to a loopback address. */
  | { readonly kind: 'redirect'; readonly port: number | undefined }
  | { readonly kind: 'dnat-random'; readonly targets: readonly SocketAddress[] }
  | { readonly kind: 'snat'; readonly address: Address }
  /** Adds what the packet has in these directions ("src,dst") to a set of ipset, or takes it out. */
  | { readonly kind: 'write-set'; readonly set: string; readonly directions: string; readonly isRemoval: boolean }
  /** A zone of connection tracking, for both directions or one. */
  | { readonly kind: 'zone'; readonly zone: number; readonly direction: 'original' | 'reply' | undefined }
  | { readonly kind: 'change-mark'; readonly of: MarkHolder; readonly change: MarkChange }
  /** Something that kpc does not understand, in the tool's words. */
  | { readonly kind: 'unknown'; readonly text: string };

/** A rule that matched. */
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

/** A port of the node at which a program takes connections and opens others to endpoints, each with an equal chance. */
export interface Listener extends Pick<ProxyPort, 'protocol' | 'address' | 'port' | 'origin'> {
  readonly program: 'balancer' | 'kube-proxy';
  /** Undefined where they are not known. */
  readonly endpoints: readonly SocketAddress[] | undefined;
}

/** One thing that happens to a packet on its way. */
export type Step =
  | RuleStep
  /** No rule of a chain of the kernel decided, and its policy drops. */
  | (InChain & { readonly kind: 'policy'; readonly tool: RuleStep['tool'] })
  /** IPVS has a virtual server at the packet's destination, and chose a real server, or has none. */
  | {
      readonly kind: 'virtual-server';
      readonly hook: Hook;
      readonly server: VirtualServer;
      readonly chosen: RealServer | undefined;
    }
  /** A program on the node takes the connection, and opens one to one of `count` endpoints, or has none. */
  | {
      readonly kind: 'listener';
      readonly server: Listener;
      readonly count: number;
      readonly chosen: SocketAddress | undefined;
    }
  /** What routing decided. */
  | { readonly kind: 'route'; readonly decision: RouteDecision; readonly destination: Address };

/**
 * - local: the address is the node's own
 * - out: it leaves by an interface; undefined if the routes are not known
 * - no-route, blackhole, unreachable, prohibit: no route leads to the address, or one forbids it
 * - reverse-path, martian: the way back to the sender is another than it came by, or the node's own
 * - no-hairpin: a bridge does not send back by a port what came in by it
 * - not-forwarding, loopback-outside: the kernel throws it away
 * - own-address: the endpoint gets a packet that has its own address for source, and cannot answer
 * - loopback-source: another host gets a packet with a loopback address for source, and throws it away
 */
export type RouteDecision =
  | {
      readonly kind:
        | 'local'
        | 'not-forwarding'
        | 'loopback-outside'
        | 'loopback-source'
        | 'own-address'
        | 'no-route'
        | 'blackhole'
        | 'unreachable'
        | 'prohibit'
        | 'martian';
    }
  /** `back`: the interface of the way back to the sender; undefined if there is none. */
  | { readonly kind: 'reverse-path'; readonly input: string; readonly back: string | undefined }
  | { readonly kind: 'no-hairpin'; readonly bridge: string }
  | { readonly kind: 'out'; readonly interface: string | undefined };
