import type { ArgumentsOf, FindingCode } from '../../base/findings/codes.ts';
import type { Place } from '../../kernel/place.ts';
import type { PacketEvidence } from '../../base/findings/finding.ts';
import type { OnNodes } from '../../base/findings/lint.ts';
import type { Verdict } from '../../packet/packet.ts';
import type { LintedService, LintInput } from './lint-input.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import type { ServicePort } from '../../cluster/model.ts';
import { planTraffic } from '../../cluster/plan-traffic.ts';
import { type Address, families, isLoopback, parseAddress } from '../../kernel/address.ts';

export type PacketEnd = Verdict | 'fails';

export interface PacketClaim extends Omit<PacketEvidence, 'verdict'> {
  readonly ends: readonly PacketEnd[];
}

export interface RuleFinding<Code extends FindingCode> {
  readonly details: ArgumentsOf<Code>;
  readonly place?: Place | undefined;
  /** A packet that shows the finding. If the packet ends differently, the finding does not apply to this mode or node and is dropped. */
  readonly packet?: PacketClaim | undefined;
}

/** A kpc lint rule for one code. The problem is found either by the rule's `check` or by compiling. */
export interface LintRule<Code extends FindingCode> {
  /** Finds the problem. The findings, which may name several Services, replace compiling's findings with this code. */
  readonly check?: (input: LintInput) => readonly RuleFinding<Code>[];
  /** Returns a packet that shows compiling's finding with this code. `service`: the Service that the finding names, if any. */
  show?(details: ArgumentsOf<Code>, input: LintInput, service: LintedService | undefined): PacketClaim | undefined;
}

type CheckService<Code extends FindingCode> = (
  service: LintedService,
  input: LintInput,
) => RuleFinding<Code> | readonly RuleFinding<Code>[] | undefined;

export function ofServices<Code extends FindingCode>(check: CheckService<Code>): LintRule<Code> {
  return { check: (input) => input.services.flatMap((service) => check(service, input) ?? []) };
}

export const unanswered: readonly PacketEnd[] = ['dropped', 'refused', 'fails'];

export function isServed(port: ServicePort): boolean {
  return planTraffic(port, { name: '', zone: '' }).hasEndpoints;
}

export function claimedSocket({
  port,
  protocol,
}: Pick<ServicePort, 'port' | 'protocol'>): Pick<PacketClaim, 'port' | 'protocol'> {
  return { port, protocol };
}

/** Returns a packet from the node to the cluster IP, which reaches no endpoint. Any input shows an address of the node. */
export function claimRefused(port: ServicePort, { nodes }: LintInput): PacketClaim {
  return { ...claimedSocket(port), from: 'node', to: port.clusterIP, node: nodes[0]?.nodeName ?? '', ends: unanswered };
}

/** Returns a client's packet to a node port that has endpoints. Undefined if no node's address is known. */
export function toNodePort(port: ServicePort, { nodes }: LintInput): PacketClaim | undefined {
  const known = nodes.find(({ node }) => !isLoopback(node.nodeIPs[port.family]));
  if (!known) return undefined;
  const { name: node, nodeIPs } = known.node;
  const to = nodeIPs[port.family];
  return { from: 'external', to, port: port.nodePort, protocol: port.protocol, node, ends: ['delivered'] };
}

interface PortOnNodes {
  readonly port: ServicePort;
  readonly node: CompiledSnapshot;
  readonly nodes: readonly CompiledSnapshot[];
  /** The names of `nodes`, and the number of all nodes. The family is set only if the Service has both families. */
  readonly on: OnNodes;
}

/**
 * For each family, returns the first port of the Service for which the condition holds on some node. Also returns all nodes on which the
 * condition holds for any port.
 */
export function findNodes(
  { name }: LintedService,
  { nodes }: LintInput,
  holds: (port: ServicePort, node: CompiledSnapshot) => boolean,
): readonly PortOnNodes[] {
  const all = nodes.map((node) => ({ node, ports: node.cluster.addresses.portsOf(name) }));
  const own = families.filter((family) => all.some(({ ports }) => ports.some((port) => port.family === family)));
  return own.flatMap((family) => {
    const found = all.flatMap(({ node, ports }) => {
      const port = ports.find((each) => each.family === family && holds(each, node));
      return port ? [{ port, node }] : [];
    });
    const [first] = found;
    const on = {
      nodes: found.map(({ node }) => node.nodeName),
      of: nodes.length,
      family: own.length > 1 ? family : undefined,
    };
    return first ? [{ ...first, nodes: found.map(({ node }) => node), on }] : [];
  });
}

/**
 * Like findNodes, but for missing endpoints. Returns nothing if the input does not show all endpoints of the Service. Reports both
 * families as one if they lack endpoints on the same nodes.
 */
export function findLacks(...[service, input, lacks]: Parameters<typeof findNodes>): readonly PortOnNodes[] {
  const gaps = service.knowsEndpoints ? findNodes(service, input, lacks) : [];
  const [first, second] = gaps;
  if (!first || !second || first.on.nodes.join() !== second.on.nodes.join()) return gaps;
  return [{ ...first, on: { ...first.on, family: undefined } }];
}

export function isRefusedForLack({ refusal }: ReturnType<typeof planTraffic>['internal']): boolean {
  return refusal?.reason === 'no-local-endpoints';
}

export function ofRestricted<Code extends FindingCode>(check: CheckService<Code>): LintRule<Code> {
  return ofServices((service, input) => {
    const { object, ports } = service;
    const { type, loadBalancerSourceRanges: ranges } = object.spec;
    return type === 'LoadBalancer' && ranges.length > 0 && ports.length > 0 ? check(service, input) : undefined;
  });
}

/** Reports whether the ranges admit every client and so restrict nothing. */
export function admitsEveryone({ object: { spec } }: LintedService): boolean {
  return spec.loadBalancerSourceRanges.some((range) => /\/0+$/.test(range.trim()));
}

interface OutsideAddress {
  readonly address: Address;
  readonly place: Place;
}

export function outsideAddresses({ written: { spec, ingress }, source }: LintedService): readonly OutsideAddress[] {
  const read = (text: string | undefined, place: Place): readonly OutsideAddress[] => {
    const address = parseAddress(text ?? '');
    return address ? [{ address, place }] : [];
  };
  return [
    ...spec.externalIPs.flatMap((text, i) => read(text, source.place(['spec', 'externalIPs', i]))),
    ...ingress.flatMap(({ ip, ipMode }, i) =>
      ipMode === 'VIP' ? read(ip, source.place(['status', 'loadBalancer', 'ingress', i, 'ip'])) : [],
    ),
  ];
}
