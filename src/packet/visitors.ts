// What sees packets at a hook (chains, IPVS, NAT), in the kernel's order.
import { decide, isLocalAddress, isBetweenNeighbours, isReply, isInterface, type Flow } from './flow.ts';
import { unknown, type Decision, type UnknownEnd } from './packet.ts';
import { hooks, type Hook, type ProxyListener } from './step.ts';
import { ipvsStations, laterTables, type Gap, type Station, type Knowledge } from './knowledge.ts';
import { iptablesPriorities } from '../kernel/iptables/iptables.ts';
import { type Address, contains, type Family, unspecifiedIPv4 } from '../kernel/address.ts';
import { schedulerFacts, type VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { serverFinder } from '../kernel/ipvs/ipvs-delta.ts';
import type { KernelState } from '../kernel/state.ts';
import { unreadValue, someOf, circumstance } from './reason.ts';
import { proxyPortKey, type ProxyPort } from '../kernel/balancer/balancer.ts';
import { iptablesOf } from './iptables-rules.ts';
import { nftTablesOf } from './nft-rules.ts';
import { routingOf, type Routing } from './routing/routing.ts';
import { runBaseChain, type RuleTable } from './run-chain.ts';

export interface Visitor extends Station {
  /** Position among nat chains, which share one priority. */
  readonly natOrder?: number | undefined;
  readonly name: string;
  /** The listing that shows the order of registration. Among visitors of the same priority, one registered later has a higher `place`. */
  readonly listing: string;
  readonly place: number;
  /** Whether a single `nft list ruleset` may show the visitor's place. */
  readonly isListable: boolean;
  readonly reroutes: boolean;
  /** 'sent-on': IPVS sends the packet out to its real server. If the real server is the node itself, IPVS accepts the packet. */
  readonly visit: (flow: Flow) => Decision | 'sent-on';
}

export type Ordered = readonly (Visitor | readonly Ordered[])[];

/** Sorts visitors as the kernel does: by priority, nat chains then by natOrder, and otherwise the newest first (nf_hook_entries_grow). */
function arrange(visitors: readonly Visitor[]): { readonly [H in Hook]: Ordered } {
  const own = hooks.map((hook) => {
    const here = visitors.filter((visitor) => visitor.hook === hook);
    const blocks = group(here, ({ priority }) => priority).map((same) => {
      const nat = same.filter(({ natOrder }) => natOrder !== undefined);
      const others = same.filter(({ natOrder }) => natOrder === undefined);
      const ordered = group(nat, ({ natOrder = 0 }) => natOrder).flatMap((each) => newestFirst(each));
      return newestFirst(others, ordered.length > 0 ? [ordered] : []);
    });
    return [hook, blocks.flat()] as const;
  });
  return Object.fromEntries(own) as unknown as { readonly [H in Hook]: Ordered };
}

function group(visitors: readonly Visitor[], keyOf: (visitor: Visitor) => number): readonly (readonly Visitor[])[] {
  const keys = [...new Set(visitors.map(keyOf))].sort((a, b) => a - b);
  return keys.map((key) => visitors.filter((visitor) => keyOf(visitor) === key));
}

function newestFirst(visitors: readonly Visitor[], blocks: readonly Ordered[] = []): Ordered {
  const older = visitors.filter(({ listing }) => listing !== laterTables);
  const newest = byListing(visitors.filter((visitor) => !older.includes(visitor)));
  return [...newest.flat(), ...joinBlocks([...byListing(older), ...blocks])];
}

function byListing(visitors: readonly Visitor[]): readonly Ordered[] {
  const listings = [...new Set(visitors.map(({ listing }) => listing))];
  return listings.map((listing) =>
    visitors.filter((visitor) => visitor.listing === listing).toSorted((a, b) => b.place - a.place),
  );
}

function joinBlocks(blocks: readonly Ordered[]): Ordered {
  const [only, ...others] = blocks;
  return others.length === 0 ? (only ?? []) : [blocks];
}

/** Yields the visitors in one possible order. For two blocks in unknown order, separate walks try both orders. */
export function* inOrder(flow: Flow, ordered: Ordered): Generator<Visitor> {
  for (const item of ordered) {
    if ('visit' in item) yield item;
    else yield* inAnyOrder(flow, item);
  }
}

function* inAnyOrder(flow: Flow, blocks: readonly Ordered[]): Generator<Visitor> {
  const left = [...blocks];
  while (left.length > 0) {
    const next = left.findIndex((block, at) => left.slice(at + 1).every((other) => isFirst(flow, block, other)));
    const [block = []] = left.splice(next < 0 ? left.length - 1 : next, 1);
    yield* inOrder(flow, block);
  }
}

function isFirst(flow: Flow, a: Ordered, b: Ordered): boolean {
  const [one, other] = [firstOf(a), firstOf(b)];
  const chains = [one?.name ?? '', other?.name ?? ''] as const;
  const isListable = one?.isListable !== false && other?.isListable !== false;
  return decide(flow, () => ({ kind: 'unknown-order', chains, isListable, fact: `order ${chains.join(', ')}` }));
}

function firstOf(ordered: Ordered): Visitor | undefined {
  const [first] = ordered;
  return first === undefined || 'visit' in first ? first : firstOf(first[0] ?? []);
}

/** Where IPVS restores the address that the client asked for as the answer's source (ip_vs_ops4 in ip_vs_core.c). */
const answerStations: readonly Station[] = [
  { hook: 'input', priority: 98 },
  { hook: 'forward', priority: 99 },
  { hook: 'output', priority: -99 },
];

function ipvsVisitors(state: KernelState): readonly Visitor[] {
  if (state.virtualServers.length === 0) return [];
  const find = serverFinder(state.virtualServers);
  const visit = (flow: Flow): Decision | 'sent-on' => {
    if (isReply(flow) || isBetweenNeighbours(flow) || flow.server) return 'accept';
    const served =
      flow.turn === 'later' ? flow.served : chooseServer(flow, find(flow.protocol, flow.destination, flow.port ?? 0));
    if (!served) return 'accept';
    if ('reason' in served) return served;
    if (!served.chosen) return 'refused';
    const { server, chosen } = served;
    flow.server = server;
    flow.served = served;
    flow.endpoint = { address: chosen.address, port: chosen.port };
    if (chosen.forwarding === 'masquerade') {
      flow.destination = chosen.address;
      flow.port = chosen.port;
    }
    if (flow.routing.sysctl('net.ipv4.vs.conntrack') === '0') flow.connection = undefined;
    return decide(flow, () => isLocalAddress(flow, chosen.address)) ? 'accept' : 'sent-on';
  };
  const answer = (flow: Flow): Decision => {
    const { turn, served, asked, source } = flow;
    const chosen = turn === 'answer' ? served?.chosen : undefined;
    if (chosen?.forwarding === 'masquerade' && source.text === chosen.address.text) {
      flow.source = asked.address;
      flow.sourcePort = asked.port;
    }
    return 'accept';
  };
  const named = { name: 'IPVS', listing: 'IPVS', place: 0, isListable: false, reroutes: false };
  return [
    ...ipvsStations.map((station) => ({ ...station, ...named, visit })),
    ...answerStations.map((station) => ({ ...station, ...named, visit: answer })),
  ];
}

function chooseServer(flow: Flow, server: VirtualServer | undefined) {
  if (!server) return undefined;
  const choice = schedule(server);
  const chosen = choice?.servers[choice.servers.length > 0 ? flow.choices.draw(choice.probabilities) : -1];
  flow.steps.push({ kind: 'virtual-server', hook: flow.hook, server, chosen });
  return choice ? { server, chosen } : unknown(unreadValue(`scheduler ${server.scheduler}`));
}

/**
 * Returns the real servers that may be chosen for a new client while none has connections, with probabilities; undefined for an unknown
 * scheduler.
 */
function schedule({ scheduler, realServers }: VirtualServer) {
  const by = schedulerFacts.get(scheduler)?.weight;
  const most = Math.max(...realServers.map(({ weight }) => weight));
  const servers = realServers.filter(({ weight }) => weight > 0 && (by !== 'most' || weight === most));
  const shares = servers.map(({ weight }) => (by === 'counts' ? weight : 1));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return by && { servers, probabilities: shares.map((share) => share / total) };
}

export type Visitors = { readonly [H in Hook]: Ordered } & {
  readonly findListener: (flow: Flow) => ProxyListener | UnknownEnd | undefined;
  readonly onLink: (flow: Flow) => UnknownEnd | undefined;
};

export interface World extends Knowledge {
  readonly family: Family;
  readonly routing: Routing;
  readonly visitors: Visitors;
  readonly withoutGaps: Visitors;
  readonly assume: Flow['assume'];
}

export function prepareFamily(state: KernelState, knowledge: Knowledge, family: Family): World {
  const { otherVariant, gaps, listed, listsRuleset } = knowledge;
  const seen = [
    ...iptablesOf(state.iptables, state, family, knowledge).flatMap((table) => {
      // iptables-nft keeps its rules in tables that nft also lists.
      const own = listed.get(`${family} ${table.name}`);
      const isListable = own !== undefined || !listsRuleset(family);
      return tableVisitors(table, { listing: 'iptables', place: 0, ...own, isListable });
    }),
    ...iptablesOf(otherVariant, { ...state, nftables: [] }, family, {
      ...knowledge,
      supposed: [],
      supposedChains: [],
    }).flatMap((table) => tableVisitors(table, { listing: 'the other iptables', place: 0, isListable: false })),
    ...nftTablesOf(state, family, knowledge).flatMap((table, at) => {
      const own = listed.get(`${family} ${table.name}`) ?? { listing: 'nftables', place: at };
      return tableVisitors(table, { ...own, isListable: true });
    }),
    ...ipvsVisitors(state),
  ];
  const findListener = indexListeners(state, knowledge);
  const unseen = gaps
    .filter((gap) => gap.family === family)
    .flatMap(({ stations, reason, at, concerns = () => true }) =>
      stations.map(({ hook, priority }): Visitor => {
        // A gap comes before the known visitors of the same priority.
        const visit = (flow: Flow): Decision => {
          const { protocol, asked } = flow;
          const isMet = concerns({ protocol, destination: asked.address, port: asked.port });
          return isMet && (!at || isAt(flow, at)) ? unknown(reason) : 'accept';
        };
        const own = { name: '', listing: '', place: 0, isListable: false, reroutes: false };
        return { hook, priority: priority - 0.5, ...own, visit };
      }),
    );
  const ofLinks = gaps.flatMap(({ at, ...gap }) => (gap.family === family && at ? [{ ...gap, at }] : []));
  const onLink = (flow: Flow): UnknownEnd | undefined => {
    const gap = ofLinks.find(({ at }) => isAt(flow, at));
    return gap && unknown(gap.reason);
  };
  return {
    ...knowledge,
    family,
    routing: routingOf(knowledge, state, family),
    visitors: { ...arrange([...seen, ...unseen]), findListener, onLink },
    withoutGaps: { ...arrange(seen), findListener, onLink: () => undefined },
    assume: undefined,
  };
}

function isAt(flow: Flow, { end, interfaces, addresses }: NonNullable<Gap['at']>): boolean {
  const isAsked = (address: Address): boolean => !addresses || addresses.some((each) => contains(each, address));
  if (!neighboursOf(flow, flow[end]).some(isAsked)) return false;
  return decide(flow, () => someOf(interfaces, (name) => isInterface(flow, end, name)));
}

function neighboursOf({ source, destination, asked, sender, hop, routing }: Flow, link: string | undefined) {
  const ends = [source, destination, asked.address, sender.address, routing.ownAddress(link)];
  return [...ends, hop?.gateway ?? [], routing.hopTo(source)?.gateway ?? []].flat();
}

function tableVisitors(
  table: RuleTable,
  { listing, place, isListable }: Pick<Visitor, 'listing' | 'place' | 'isListable'>,
): readonly Visitor[] {
  return table.bases
    .filter(({ isIdle }) => !isIdle)
    .map((base, at) => ({
      hook: base.hook,
      priority: (base.isNat ? iptablesPriorities.nat[base.hook] : undefined) ?? base.priority,
      reroutes: base.reroutes,
      natOrder: base.isNat ? base.priority : undefined,
      name: `${table.tool} ${table.name} ${base.chain}`,
      listing,
      isListable,
      // A table lists its chains in order of creation.
      place: place + at / (table.bases.length + 1),
      visit: (flow) => runBaseChain(flow, table, base),
    }));
}

/** Finds the program that accepts a packet for the node. A dump may lack some of kube-proxy's balancers. */
function indexListeners(
  { proxyPorts }: KernelState,
  { lacksProxyPorts, listeners }: Knowledge,
): Visitors['findListener'] {
  const balancers = proxyPorts.map((port): ProxyListener => ({ program: 'balancer', ...port }));
  const ports = new Map([...balancers, ...listeners].map((port) => [proxyPortKey(port), port]));
  return ({ protocol, destination, port, asked }) => {
    if (port === undefined) return undefined;
    const isTranslated = asked.port !== port || asked.address.text !== destination.text;
    if (lacksProxyPorts && isTranslated) return unknown(circumstance('listener'));
    const name = protocol.toUpperCase() as ProxyPort['protocol'];
    const listens = (address: Address) => ports.get(proxyPortKey({ protocol: name, address, port }));
    return listens(destination) ?? (destination.family === 'ipv4' ? listens(unspecifiedIPv4) : undefined);
  };
}
