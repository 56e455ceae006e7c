import { addressAt, addressBits, addressNumber, describeSpecial, type Address } from '../../kernel/address.ts';
import { type AddressSpan } from '../../kernel/address-range.ts';
import type { Family } from '../../kernel/family.ts';
import { portAddresses, type Cluster, type Endpoint, type ServicePort, type ShownPort } from '../../cluster/model.ts';
import { zoneOf } from '../../cluster/node-context.ts';
import type { Node } from '../../cluster/objects.ts';
import { PlanMemo } from '../../cluster/memos.ts';
import { endpointClass } from '../../cluster/plan-traffic.ts';
import { isSingle, portKey, type ProtocolPort } from './questions.ts';

/** Documentation addresses. They represent the rest of the world, unless a span separates them from it. */
const preferred = { ipv4: 0xc6336463n, ipv6: 0x20010db8ffff00000000000000000063n };

/** Bounds of the addresses that hosts never have. */
const worldCuts: { readonly [F in Family]: readonly bigint[] } = {
  ipv4: [1n << 24n, 127n << 24n, 128n << 24n, 224n << 24n],
  ipv6: [2n, 0xfe80n << 112n, 0xfec0n << 112n, 0xff00n << 112n],
};

/** Kinds of addresses that no rule need tell apart, such as pods' and clients'. */
export interface Kinds {
  readonly of: (address: Address) => string;
  /** Where kinds change, except at single addresses. */
  readonly cuts: { readonly [F in Family]: readonly bigint[] };
}

const oneKind: Kinds = { of: () => '', cuts: { ipv4: [], ipv6: [] } };

/**
 * One address for each cell: the addresses of one kind that the spans cannot distinguish. Skips addresses that `isTaken` (cells of
 * their own) and those that no host has, such as multicast. A cell with one of the `known` addresses needs no other.
 */
export function representatives(
  family: Family,
  spans: readonly AddressSpan[],
  isTaken: (address: Address) => boolean,
  known: readonly { readonly address: Address; readonly kind: string }[] = [],
  kinds = oneKind,
): readonly Address[] {
  const own = spans.filter((span) => span.family === family && !isSingle(span));
  const edges = [...own.flatMap(({ first, last }) => [first, last + 1n]), ...kinds.cuts[family]];
  const starts = [...new Set([preferred[family], ...worldCuts[family], ...edges])].sort((a, b) => (a < b ? -1 : 1));
  const cellOf = (at: bigint, kind: string): string =>
    `${kind} ${own.map(({ first, last }) => (first <= at && at <= last ? 1 : 0)).join('')}`;
  const isKnown = new Set(known.map(({ address, kind }) => cellOf(addressNumber(address), kind)));
  const found = new Map<string, Address>();
  for (const [i, start] of starts.entries()) {
    const kind = kinds.of(addressAt(family, start));
    const cell = cellOf(start, kind);
    if (isKnown.has(cell) || (found.has(cell) && start !== preferred[family])) continue;
    const end = starts[i + 1] ?? 1n << BigInt(addressBits[family]);
    const isOther = (address: Address): boolean => isTaken(address) || kinds.of(address) !== kind;
    const address = firstFreeAddress(family, start, end, isOther);
    if (address) found.set(cell, address);
  }
  return [...found.values()];
}

function firstFreeAddress(
  family: Family,
  start: bigint,
  end: bigint,
  isTaken: (address: Address) => boolean,
): Address | undefined {
  // A network's first address is rarely a host's.
  for (let at = end - start > 2n ? start + 1n : start; at < end; at++) {
    const address = addressAt(family, at);
    if (describeSpecial(address) !== undefined) return undefined;
    if (!isTaken(address)) return address;
  }
  return undefined;
}

/** The part of a node's packets to compare: those to these addresses, and to these ports of the node itself. */
export interface Only {
  readonly addresses: ReadonlySet<string>;
  readonly ports: ReadonlySet<ProtocolPort>;
}

/** The packets that involve these Service ports. */
export function packetsTo(servicePorts: readonly ShownPort[]): Only {
  const addresses = new Set<string>();
  const ports = new Set<ProtocolPort>();
  for (const port of servicePorts) {
    const { protocol, nodePort, healthCheckNodePort, endpoints = [] } = port;
    for (const { address } of [...portAddresses(port), ...endpoints]) if (address) addresses.add(address.text);
    if (nodePort) ports.add(portKey(protocol, nodePort));
    if (healthCheckNodePort) ports.add(portKey('tcp', healthCheckNodePort));
  }
  return { addresses, ports };
}

/** The packets to Service ports that nodes with endpoints treat differently from nodes without; undefined if there are none. */
export function packetsToPlaced(servicePorts: readonly ServicePort[]): Only | undefined {
  const placed = servicePorts.filter(looksAtPlace);
  return placed.length === 0 ? undefined : packetsTo(placed);
}

/** A node that represents others, with the packets to compare; undefined for all. */
export interface StandIn {
  readonly node: string;
  readonly only: Only | undefined;
}

/** A node and the nodes that represent it; only itself if all its packets are traced. */
export interface Represented {
  readonly node: string;
  readonly by: readonly string[];
}

/**
 * The nodes that together show every difference between a cluster's nodes, except their own addresses. How a node treats packets
 * to a Service depends on which of its endpoints the node uses and has (if a traffic policy, hints or the endpoints' addresses
 * decide that), its kinds of addresses, which of them are also Service addresses, and whether it has any endpoints at all.
 */
export function chooseStandIns(
  nodes: ReadonlyMap<string, Node>,
  /** The cluster as each side reads it: releases follow different hints. */
  clusters: readonly Cluster[],
  names: readonly string[],
): { readonly standIns: readonly StandIn[]; readonly represented: readonly Represented[] } {
  const servicePorts = [...new Set(clusters.flatMap((each) => each.servicePorts))];
  const external = new Set(
    servicePorts.flatMap((port) => [...port.externalIPs, ...port.loadBalancerIPs].map(({ text }) => text)),
  );
  const hosts = new Set(servicePorts.flatMap(({ endpoints }) => endpoints.map(({ status }) => status.nodeName)));
  const ofNodes = new Set([...nodes.values()].flatMap(({ addresses }) => addresses.map(({ address }) => address)));
  /** Whether the endpoint's address also belongs to a Node or Service, and is treated as such. */
  const isStrange = ({ address: { text } }: Endpoint): boolean =>
    ofNodes.has(text) || clusters.some(({ addresses }) => addresses.servicesAt(text).length > 0);
  const bound = servicePorts.filter((port) => looksAtPlace(port) || port.endpoints.some(isStrange));
  const traffic = new PlanMemo();
  /** The first node with each shape, plan, and use of a Service port's endpoints. */
  const seen = new Map<unknown, string>();
  const firstWith = (key: unknown, name: string): string => {
    const first = seen.get(key) ?? name;
    seen.set(key, first);
    return first;
  };
  const found = names.map((name): StandIn & { readonly by: ReadonlySet<string> } => {
    const node = nodes.get(name);
    const kinds = (node?.addresses ?? []).map(({ type, address }) => `${type} ${address.includes(':') ? 6 : 4}`);
    const shared = (node?.addresses ?? []).map(({ address }) => address).filter((text) => external.has(text));
    const families = (node?.podCIDRs ?? []).map((cidr) => (cidr.includes(':') ? 6 : 4));
    const shape = [node?.kubernetesVersion, ...kinds, ...shared, ...families, hosts.has(name)].join('|');
    const like = firstWith(shape, name);
    const identity = { name, zone: zoneOf(node) };
    const firsts = bound.map((port, i) => {
      const plan = traffic.recall(port, identity);
      return (
        seen.get(plan) ??
        firstWith(plan, firstWith(`${i} ${endpointClass(plan)} ${plan.onNode.filter(isStrange).length}`, name))
      );
    });
    if (like === name) return { node: name, only: undefined, by: new Set([name]) };
    return { node: name, only: packetsTo(bound.filter((_, i) => firsts[i] === name)), by: new Set([like, ...firsts]) };
  });
  return {
    standIns: found.flatMap(({ node, only, by }) => (by.has(node) ? [{ node, only }] : [])),
    represented: found.map(({ node, by }) => ({ node, by: [...by].toSorted() })),
  };
}

function looksAtPlace({ externalPolicyLocal, internalPolicyLocal, endpoints }: ServicePort): boolean {
  const isHinted = endpoints.some(({ status }) => status.zoneHints.length > 0 || status.nodeHints.length > 0);
  return externalPolicyLocal || internalPolicyLocal || isHinted;
}
