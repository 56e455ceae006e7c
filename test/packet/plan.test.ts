import type { Link } from '../../src/kernel/link/link.ts';
// For random clusters: what packets come to is what the plan of a node's traffic says, in every mode and family. The plan
// knows nothing of chains, sets and virtual servers, and the evaluator nothing of Services.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Endpoint, NodeContext, ServicePort } from '../../src/cluster/model.ts';
import { planTraffic, type TrafficPath } from '../../src/cluster/plan-traffic.ts';
import { compileIptables } from '../../src/modes/iptables/compile-iptables.ts';
import { compileIpvs } from '../../src/modes/ipvs/compile-ipvs.ts';
import { type Address, contains, families, type Family } from '../../src/kernel/address.ts';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import { compileNftables } from '../../src/modes/nftables/compile-nftables.ts';
import { prepareEvaluator } from '../../src/packet/evaluate.ts';
import { knowAll } from './know-all.ts';
import type { Fate, Packet, PacketProtocol } from '../../src/packet/packet.ts';
import { address, clusterOf, defaults, network, worker } from '../modes/iptables/compile.ts';
import { servicePort } from '../modes/nftables/arbitrary-cluster.ts';
import { rounds } from '../support/rounds.ts';

const compilers = { ipvs: compileIpvs, iptables: compileIptables, nftables: compileNftables } as const;

const node: NodeContext = { ...worker, podCIDRs: [network('10.244.1.0/24'), network('fd00:10:244:1::/64')] };
const clusterCIDRs = ['10.244.0.0/16', 'fd00:10:244::/48'];

const links: readonly Link[] = [
  {
    name: 'eth0',
    addresses: node.hostAddresses.map((own) => ({
      family: own.family,
      address: own,
      prefixLength: own.family === 'ipv4' ? 24 : 64,
    })),
  },
];

/** None of them is an endpoint, nor in a source range except those that hold all addresses. */
const pods = { ipv4: address('10.244.1.200'), ipv6: address('fd00:10:244:1::c8') };
const clients = { ipv4: address('198.51.100.7'), ipv6: address('2001:dc8::7') };

/** Service ports of one family that do not claim each other's addresses or node ports. */
const portsOf = (family: Family): fc.Arbitrary<readonly ServicePort[]> =>
  fc.array(servicePort(family), { minLength: 1, maxLength: 6 }).map((ports) => {
    const taken = new Set<string>();
    return ports.filter((port) => {
      const claims = claimsOf(port);
      const isFree = new Set(claims).size === claims.length && !claims.some((claim) => taken.has(claim));
      if (isFree) for (const claim of claims) taken.add(claim);
      return isFree;
    });
  });

function claimsOf({ label, clusterIP, externalIPs, loadBalancerIPs, nodePort }: ServicePort): readonly string[] {
  const addresses = [clusterIP, ...externalIPs, ...loadBalancerIPs].map(({ text }) => text);
  return [label, ...addresses, ...(nodePort === 0 ? [] : [`:${nodePort}`])];
}

interface Ask {
  readonly what: string;
  readonly from: Address;
  readonly to: Address;
  readonly port: number;
  readonly expected: string;
}

/** What the plan of a Service port says of packets to its addresses. */
function askAll(port: ServicePort, mode: ProxyMode): readonly Ask[] {
  const plan = planTraffic(port, node);
  const { internal, external, firewall } = plan;
  const listOf = ({ policy }: TrafficPath): readonly Endpoint[] =>
    policy === 'Local' ? plan.localEndpoints : plan.clusterEndpoints;
  const fate = (path: TrafficPath, source: Address | 'masqueraded'): string => {
    // A virtual server cannot drop: without endpoints on the node, it has those of policy Cluster (syncEndpoint in the
    // IPVS proxier). Without these too, it refuses.
    if (mode === 'ipvs' && path.refusal) {
      return plan.clusterEndpoints.length === 0 ? 'refused' : delivered(plan.clusterEndpoints, source);
    }
    if (path.refusal) return path.refusal.answer === 'reject' ? 'refused' : 'dropped';
    return delivered(listOf(path), source);
  };
  const pod = pods[port.family];
  const client = clients[port.family];
  const outside = fate(external, external.policy === 'Local' ? client : 'masqueraded');
  const isAdmitted = !firewall || firewall.sourceRanges.some((range) => contains(range.network, client));
  const ask = (what: string, from: Address, to: Address, number: number, expected: string): Ask => ({
    what: `${port.label} ${what}`,
    from,
    to,
    port: number,
    expected,
  });
  return [
    ask('cluster IP from a pod', pod, port.clusterIP, port.port, fate(internal, pod)),
    ...port.externalIPs.map((to) => ask('external IP', client, to, port.port, outside)),
    ...port.loadBalancerIPs.flatMap((to) => {
      if (isAdmitted) return [ask('load balancer', client, to, port.port, outside)];
      // Which of the two answers first is the mode's own.
      return plan.hasEndpoints ? [ask('guarded load balancer', client, to, port.port, 'dropped')] : [];
    }),
    ...(port.nodePort === 0 ? [] : [ask('node port', client, node.nodeIPs[port.family], port.nodePort, outside)]),
  ];
}

/** Endpoints with the same address and port are one. */
function delivered(endpoints: readonly Endpoint[], source: Address | 'masqueraded'): string {
  const from = source === 'masqueraded' ? source : source.text;
  const each = (1 / endpoints.length).toFixed(4);
  return endpoints
    .map(({ address: { text }, port }) => `${text} ${port} ${each} ${from}`)
    .toSorted()
    .join(', ');
}

function inWords({ verdict, endpoints, ways }: Fate): string {
  if (verdict !== 'delivered') return verdict;
  if (ways.some((way) => way.verdict !== 'delivered')) return 'delivered in part';
  return endpoints
    .map((end) => {
      const from = end.source === 'masqueraded' ? end.source : end.source.text;
      return `${end.address.text} ${end.port} ${end.probability.toFixed(4)} ${from}`;
    })
    .toSorted()
    .join(', ');
}

for (const mode of ['ipvs', 'iptables', 'nftables'] as const) {
  for (const family of families) {
    test(`${mode}, ${family}: packets come to what the plan says`, () => {
      let asked = 0;
      fc.assert(
        fc.property(portsOf(family), (ports) => {
          const settings = { ...defaults, mode, clusterCIDRs };
          const state = compilers[mode](clusterOf(...ports), node, settings, families);
          const evaluate = prepareEvaluator(state, knowAll(links));
          for (const port of ports) {
            for (const { what, from, to, port: number, expected } of askAll(port, mode)) {
              const packet: Packet = {
                source: from,
                destination: to,
                protocol: port.protocol.toLowerCase() as PacketProtocol,
                port: number,
                enters: { interface: 'eth0' },
              };
              asked++;
              expect(`${what}: ${inWords(evaluate(packet))}`).toBe(`${what}: ${expected}`);
            }
          }
        }),
        { numRuns: rounds(500, 12) },
      );
      expect(asked).toBeGreaterThan(rounds(500, 12));
    });
  }
}
