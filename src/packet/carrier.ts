// The packets in which a tunnel carries others: they meet routes and rules as any other (vxlan_xmit, udp_tunnel_xmit_skb, vxlan_rcv).
import { explore } from './explore.ts';
import { isBetweenNeighbours, newConnection, untouched, type Flow } from './flow.ts';
import { unknown, unknownHost, type UnknownEnd, type Verdict, type Way } from './packet.ts';
import type { Reason } from './reason.ts';

/** The outer packet, before any rule sees it; its source port is a hash, so it is of no connection. Undefined if nothing shows it. */
function carrierOf(flow: Flow, name: string, end: 'input' | 'output'): Flow | undefined {
  const { routing, family, mark, written } = flow;
  const { tunnel, below } = routing.tunnelAt(name) ?? {};
  if (tunnel?.local?.family !== family || below === undefined || below === name || !routing.isListed) return undefined;
  const far = tunnel.remote?.family === family ? tunnel.remote : unknownHost[family];
  const isOwn = end === 'output';
  const [source, destination] = isOwn ? [tunnel.local, far] : [far, tunnel.local];
  return {
    ...flow,
    ...untouched(),
    turn: 'carrier',
    protocol: 'udp',
    flags: undefined,
    isOwn,
    isUnanswered: true,
    isInvalid: false,
    wasTracked: false,
    source,
    candidates: undefined,
    destination,
    port: tunnel.port,
    sourcePort: undefined,
    asked: { address: destination, port: tunnel.port },
    sender: { address: source },
    isUnplaced: false,
    // Within the node, the outer packet keeps the mark of the inner one.
    mark: isOwn ? mark : 0,
    input: isOwn ? '' : below,
    entered: isOwn ? undefined : below,
    hop: isOwn ? { link: below } : undefined,
    connection: newConnection(),
    served: undefined,
    refusal: undefined,
    written: [...written],
    facts: new Map(),
  };
}

/** What becomes of a packet whose tunnel's outer packet is stopped; undefined if that passes. Unless it is shown, some rule may let it pass by its other end. */
export function carry(
  flow: Flow,
  name: string | undefined,
  end: 'input' | 'output',
  run: (outer: Flow) => Verdict | UnknownEnd,
): 'dropped' | UnknownEnd | undefined {
  if (name === undefined || flow.turn === 'carrier' || isBetweenNeighbours(flow)) return undefined;
  if (!carrierOf(flow, name, end)) return undefined;
  const ways = explore((choices): Way<Flow> => {
    const outer = { ...(carrierOf(flow, name, end) as Flow), choices };
    const result = run(outer);
    const [verdict, reasons] = typeof result === 'object' ? (['unknown', [result.reason]] as const) : [result, []];
    const { source, steps } = outer;
    return { probability: 1, verdict, endpoint: undefined, source, end: outer, steps, reasons };
  });
  const [first] = ways;
  if (first && ways.every(({ verdict }) => verdict === 'dropped' || verdict === 'refused')) {
    const { tunnel } = flow.routing.tunnelAt(name) ?? {};
    flow.steps.push({ kind: 'carrier', link: name, port: tunnel?.port ?? 0 }, ...first.steps);
    return 'dropped';
  }
  const reason = ways.flatMap(({ reasons }) => reasons).find((each) => !isOfPeer(each));
  return reason && unknown(reason);
}

function isOfPeer(reason: Reason): boolean {
  return reason.kind === 'circumstance' && reason.of === 'peer';
}
