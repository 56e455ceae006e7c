// Outer packets of tunnels. They meet routes and rules like any other packet (udp_tunnel_xmit_skb, ip_tunnel_xmit, vxlan_rcv).
import type { Address } from '../kernel/address.ts';
import { actionOfPolicies, type IpsecPolicy } from '../kernel/route/ipsec.ts';
import { explore } from './explore.ts';
import {
  decide,
  type Flow,
  isBetweenNeighbours,
  isReply,
  newConnection,
  portProtocols,
  untouched,
  wayOf,
} from './flow.ts';
import {
  isUnknownHost,
  isUnknownOwn,
  unknown,
  type UnknownEnd,
  unknownHost,
  type Verdict,
  type Way,
} from './packet.ts';
import { circumstance, type Reason } from './reason.ts';
import { loopbackInterface } from './routing/routing.ts';
import type { Step } from './step.ts';

/** Returns the outer packet as it is before any rule; undefined if the tunnel's addresses are unknown. */
function carrierOf(flow: Flow, name: string, end: 'input' | 'output'): Flow | undefined {
  const { routing, family, mark, written } = flow;
  const { tunnel, below: bound } = routing.tunnelAt(name) ?? {};
  if (!tunnel || !routing.isListed) return undefined;
  const isOwn = end === 'output';
  const hop = isOwn ? flow.hop : routing.hopTo(flow.source);
  const next = tunnel.isByRoute && hop?.link === name ? hop.gateway : undefined;
  const other = tunnel.remote ?? next;
  const way = other && routing.find({ to: other, from: tunnel.local, mark: 0, input: loopbackInterface });
  const below = bound ?? (way?.kind === 'out' ? way.hops[0]?.link : undefined);
  const near = tunnel.local ?? (other && way && routing.sourceBy(other, way).address);
  if (near?.family !== family || below === name) return undefined;
  // Without a route to the tunnel's other end, the packet is lost, whichever source it has.
  const isLost = isOwn && way?.kind === 'none';
  if (!isLost && (isUnknownOwn(near) || below === undefined)) return undefined;
  const far = other?.family === family ? other : unknownHost[family];
  const { port } = tunnel;
  const [source, destination] = isOwn ? [near, far] : [far, near];
  return {
    ...flow,
    ...untouched(),
    turn: 'carrier',
    protocol: tunnel.protocol,
    flags: undefined,
    isOwn,
    isUnanswered: true,
    isInvalid: false,
    wasTracked: false,
    source,
    candidates: undefined,
    destination,
    port,
    sourcePort: undefined,
    asked: { address: destination, port: port ?? 0 },
    sender: { address: source },
    isUnplaced: false,
    // On the way out, the outer packet inherits the inner packet's mark.
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

/**
 * Walks the outer packet of a packet in a tunnel. Returns 'dropped' if the outer packet is stopped. Returns undefined if it passes, or if
 * the result depends only on the tunnel's unknown other end. If the tunnel is a bridge port, it is unknown whether the bridge uses that
 * port.
 */
export function carry(
  flow: Flow,
  name: string | undefined,
  end: 'input' | 'output',
  run: (outer: Flow) => Verdict | UnknownEnd,
): 'dropped' | UnknownEnd | undefined {
  if (name === undefined || flow.turn === 'carrier' || isBetweenNeighbours(flow)) return undefined;
  const stops = (link: string) => stepsToStop(flow, link, end, run);
  const found = stops(name);
  if (!found) {
    const isStopped = flow.routing.portsOf(name).some((port) => stops(port) !== undefined);
    return isStopped ? unknown(circumstance('bridge-port', name)) : undefined;
  }
  if ('reason' in found) return found;
  flow.steps.push(...found);
  return 'dropped';
}

/** Returns the steps that stop a tunnel's outer packet; undefined if it passes, or if the link is not a tunnel. */
function stepsToStop(
  flow: Flow,
  name: string,
  end: 'input' | 'output',
  run: (outer: Flow) => Verdict | UnknownEnd,
): readonly Step[] | UnknownEnd | undefined {
  const { routing, family, destination } = flow;
  const { tunnel } = routing.tunnelAt(name) ?? {};
  if (!tunnel || !carrierOf(flow, name, end)) return undefined;
  const { local, protocol, port } = tunnel;
  if (end === 'output' && local && family === 'ipv4' && routing.isLocal(local) === false)
    return [{ kind: 'route', decision: { kind: 'foreign-local', link: name, local }, destination }];
  const ways = explore((choices): Way<Flow> => {
    const drawn = { ...(carrierOf(flow, name, end) as Flow), choices };
    const isOld = isOfConnection(flow, drawn);
    const outer = { ...drawn, isUnanswered: !isOld, wasTracked: isOld };
    return wayOf(outer, run(outer));
  });
  const [first] = ways;
  if (first && ways.every(({ verdict }) => verdict === 'dropped' || verdict === 'refused'))
    return [{ kind: 'carrier', link: name, protocol, port }, ...first.steps];
  const reason = ways.flatMap(({ reasons }) => reasons).find((each) => !isOfPeer(each));
  return reason && unknown(reason);
}

/** Reports whether conntrack knows both directions of the tunnel, which it never does for UDP, where each source port is a hash. */
function isOfConnection({ turn }: Flow, outer: Flow): boolean {
  if (portProtocols.has(outer.protocol)) return false;
  return turn !== 'first' || decide(outer, () => circumstance('memory', 'tunnel'));
}

function isOfPeer(reason: Reason): boolean {
  return reason.kind === 'circumstance' && reason.of === 'peer';
}

/**
 * Applies IPsec policies to a packet that goes out, comes in for the node or is forwarded (xfrm_lookup, __xfrm_policy_check). Nothing
 * shows whether keys exist, so it is unknown whether a protected packet gets through.
 */
export function checkPolicies(flow: Flow, direction: IpsecPolicy['direction']): 'blocked' | UnknownEnd | undefined {
  const { routing, source, protocol, family, sourcePort, mark } = flow;
  const link = direction === 'out' ? flow.output : flow.input;
  if (routing.policies.length === 0 || link === loopbackInterface || isBetweenNeighbours(flow)) return undefined;
  const name = protocol === 'icmp' && family === 'ipv6' ? 'ipv6-icmp' : protocol;
  const { to, port } = direction === 'out' ? targetNow(flow) : targetBefore(flow);
  const [from, target] = [source, to].map((address) => (isUnknownHost(address) ? undefined : address));
  const question = { direction, from, to: target, port, sourcePort, protocol: name, mark, link };
  const action = actionOfPolicies(routing.policies, question);
  if (action === 'protect') return unknown(circumstance('encryption', direction));
  return action === 'block' ? 'blocked' : undefined;
}

interface Target {
  readonly to: Address;
  readonly port: number | undefined;
}

function targetNow({ destination: to, port }: Flow): Target {
  return { to, port };
}

function targetBefore(flow: Flow): Target {
  const { connection, asked } = flow;
  const isAnswer = isReply(flow);
  if (connection?.rewritten.has(isAnswer ? 'source' : 'destination') !== true) return targetNow(flow);
  const { address: to, port } = isAnswer ? { address: connection.source?.address, port: undefined } : asked;
  return to ? { to, port } : targetNow(flow);
}
