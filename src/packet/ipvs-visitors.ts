import type { Address } from '../kernel/address.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { KernelState } from '../kernel/state.ts';
import { decide, isLocal, isBetweenNeighbours, isReply, type Flow } from './flow.ts';
import { ipvsStations, type Station } from './knowledge.ts';
import type { Visitor } from './order.ts';
import { unknown, type Decision } from './packet.ts';
import { unreadValue } from './reason.ts';

/** Where IPVS restores the address that the client asked for in answers (ip_vs_ops4 in ip_vs_core.c). */
const answerStations: readonly Station[] = [
  { hook: 'input', priority: 98 },
  { hook: 'forward', priority: 99 },
  { hook: 'output', priority: -99 },
];

export function ipvsVisitors(state: KernelState): readonly Visitor[] {
  if (state.virtualServers.length === 0) return [];
  const keyOf = (protocol: string, { text }: Address, port: number): string => `${protocol} ${text} ${port}`;
  const servers = new Map(
    state.virtualServers.map((server) => [keyOf(server.protocol, server.address, server.port), server]),
  );
  const visit = (flow: Flow): Decision | 'sent-on' => {
    if (isReply(flow) || isBetweenNeighbours(flow) || flow.server) return 'accept';
    const served = flow.turn === 'later' ? flow.served : chooseServer(flow, find(flow));
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
    return decide(flow, () => isLocal(flow, chosen.address)) ? 'accept' : 'sent-on';
  };
  const find = ({ protocol, destination, port = 0 }: Flow): VirtualServer | undefined => {
    const name = protocol.toUpperCase();
    // A virtual server with port 0 takes all ports.
    return servers.get(keyOf(name, destination, port)) ?? servers.get(keyOf(name, destination, 0));
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
  const named = { name: 'IPVS', listing: 'IPVS', place: 0, reroutes: false };
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

/** How each scheduler picks a real server for a new client while none has connections. */
const schedulers: ReadonlyMap<string, 'chance' | 'weight' | 'heaviest'> = new Map([
  ...'rr lc dh'.split(' ').map((name) => [name, 'chance'] as const),
  ...'wrr wlc lblc lblcr sh sed nq mh twos'.split(' ').map((name) => [name, 'weight'] as const),
  // One of those with the highest weight; the kernel's own order decides which.
  ...'fo ovf'.split(' ').map((name) => [name, 'heaviest'] as const),
]);

/** The real servers that may be chosen, with their probabilities; undefined for an unknown scheduler. */
function schedule({ scheduler, realServers }: VirtualServer) {
  const by = schedulers.get(scheduler);
  const most = Math.max(...realServers.map(({ weight }) => weight));
  const servers = realServers.filter(({ weight }) => weight > 0 && (by !== 'heaviest' || weight === most));
  const shares = servers.map(({ weight }) => (by === 'weight' ? weight : 1));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return by && { servers, probabilities: shares.map((share) => share / total) };
}
