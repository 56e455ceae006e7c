import { unspecifiedIPv4, type Address } from '../kernel/address.ts';
import { proxyPortKey } from '../kernel/balancer/balancer.ts';
import type { Family } from '../kernel/family.ts';
import { formatSocketAddress } from '../kernel/ports-and-marks.ts';
import type { KernelState } from '../kernel/state.ts';
import { decide, isInterface, type Flow, type NatHalf } from './flow.ts';
import { iptablesOf } from './iptables-rules.ts';
import { ipvsVisitors } from './ipvs-visitors.ts';
import type { Knowledge } from './knowledge.ts';
import { anyOf } from './maybe.ts';
import { nftTablesOf } from './nft-rules.ts';
import { arrange, type Ordered, type Visitor } from './order.ts';
import { unknown, type Decision, type Unknown } from './packet.ts';
import { circumstance } from './reason.ts';
import { routingOf, type Routing } from './routing/routing.ts';
import { runBaseChain, type RuleTable } from './run-chain.ts';
import type { Hook, Listener } from './step.ts';

/** What sees packets at each hook, and the program that takes packets addressed to the node itself and connects to an endpoint. */
export type Visitors = { readonly [H in Hook]: Ordered } & {
  readonly findListener: (flow: Flow) => Listener | Unknown | undefined;
};

export interface World {
  readonly family: Family;
  readonly routing: Routing;
  readonly visitors: Visitors;
  /** The visitors if everything that is not shown lets all packets pass. */
  readonly withoutGaps: Visitors;
  readonly serviceAt: Knowledge['serviceAt'];
  readonly isRemote: Knowledge['isRemote'];
  readonly isPodHere: Knowledge['isPodHere'];
  readonly doubtOfEnd: Knowledge['doubtOfEnd'];
  readonly assume: Flow['assume'];
}

export function prepareFamily(state: KernelState, knowledge: Knowledge, family: Family): World {
  const { otherVariant, gaps, listed } = knowledge;
  const seen = [
    ...iptablesOf(state.iptables, state.sets, family, knowledge).flatMap((table) => {
      // iptables-nft keeps its rules in tables that nft also lists.
      const { listing, place } = listed.get(`${family} ${table.name}`) ?? { listing: 'iptables', place: 0 };
      return tableVisitors(table, listing, place);
    }),
    ...iptablesOf(otherVariant, state.sets, family, { ...knowledge, supposed: [], supposedChains: [] }).flatMap(
      (table) => tableVisitors(table, 'the other iptables', 0),
    ),
    ...nftTablesOf(state, family, knowledge).flatMap((table, at) => {
      const { listing, place } = listed.get(`${family} ${table.name}`) ?? { listing: 'nftables', place: at };
      return tableVisitors(table, listing, place);
    }),
    ...ipvsVisitors(state),
  ];
  const findListener = indexListeners(state, knowledge);
  const unseen = gaps
    .filter((gap) => gap.family === family)
    .flatMap(({ stations, reason, at }) =>
      stations.map(({ hook, priority }): Visitor => {
        // Placed before what is known to be there.
        const visit = (flow: Flow): Decision => {
          const isSeen =
            !at || decide(flow, () => anyOf(at.interfaces, (name) => isInterface(flow, at.end, name, '*')));
          return isSeen ? unknown(reason) : 'accept';
        };
        return { hook, priority: priority - 0.5, name: '', listing: '', place: 0, reroutes: false, visit };
      }),
    );
  return {
    family,
    routing: routingOf(knowledge, state, family),
    visitors: { ...arrange([...seen, ...unseen]), findListener },
    withoutGaps: { ...arrange(seen), findListener },
    serviceAt: knowledge.serviceAt,
    isRemote: knowledge.isRemote,
    isPodHere: knowledge.isPodHere,
    doubtOfEnd: knowledge.doubtOfEnd,
    assume: undefined,
  };
}

/**
 * The priorities at which chains of type nat see packets. A chain's own priority only orders it among them. On the way in they
 * decide a connection's destination, on the way out its source, each once.
 */
export const natStations: { readonly [H in Hook]?: { readonly priority: number; readonly decides: NatHalf } } = {
  prerouting: { priority: -100, decides: 'destination' },
  output: { priority: -100, decides: 'destination' },
  input: { priority: 100, decides: 'source' },
  postrouting: { priority: 100, decides: 'source' },
};

function tableVisitors(table: RuleTable, listing: string, place: number): readonly Visitor[] {
  return table.bases
    .filter(({ isIdle }) => !isIdle)
    .map((base, at) => ({
      hook: base.hook,
      priority: (base.isNat ? natStations[base.hook]?.priority : undefined) ?? base.priority,
      reroutes: base.reroutes,
      natOrder: base.isNat ? base.priority : undefined,
      name: `${table.tool} ${table.name} ${base.chain}`,
      listing,
      // The chains of a table are also listed in order of creation.
      place: place + at / (table.bases.length + 1),
      visit: (flow) => runBaseChain(flow, table, base),
    }));
}

/** Finds the program that takes a packet to the node itself. A dump does not show all balancers. */
function indexListeners(
  { proxyPorts }: KernelState,
  { lacksProxyPorts, listeners }: Knowledge,
): Visitors['findListener'] {
  const balancers = proxyPorts.map((port): Listener => ({ program: 'balancer', ...port }));
  const ports = new Map([...balancers, ...listeners].map((port) => [proxyPortKey(port), port]));
  return ({ protocol, destination, port, asked }) => {
    if (port === undefined) return undefined;
    // Rules translated the packet to this address.
    const isTranslated = asked.port !== port || asked.address.text !== destination.text;
    if (lacksProxyPorts && isTranslated) return unknown(circumstance('listener', 'kube-proxy itself listens'));
    const keyOf = (address: Address) => `${protocol.toUpperCase()} ${formatSocketAddress({ address, port })}`;
    return (
      ports.get(keyOf(destination)) ?? (destination.family === 'ipv4' ? ports.get(keyOf(unspecifiedIPv4)) : undefined)
    );
  };
}
