import { count, joinWords, formatCount } from '../../base/printable.ts';
import { nameSome } from '../words/rows.ts';
import { portAddresses, serviceName, type ServiceHealthCheck, type ShownPort } from '../../cluster/model.ts';
import { groupBy } from '../../cluster/grouping.ts';
import { whyUnprogrammed } from '../../ask/describe/find-ports.ts';
import { familyNames, isLoopback, joinHostPort, loopbackAddresses } from '../../kernel/address.ts';
import { findLocalhostHandling } from '../../kube-proxy/node-port-listeners.ts';
import { describeSkippedListings, noSubjectWords, unlistedWords, unmasqueradedWords } from './lack.ts';
import { findHealthCheckSets } from '../../kube-proxy/ipvs-objects.ts';
import { healthAnswerOf, healthCheckFinder } from '../../snapshot/health-checks.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { formatSocketAddress, type SocketAddress } from '../../kernel/ports-and-marks.ts';
import { schedulerFacts, type SchedulerFacts, type VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import type { Fate } from '../../packet/packet.ts';
import type { RouteDecision } from '../../packet/step.ts';
import { connectionDoes, connectionWords } from './connection.ts';
import {
  besideManifestsNotes,
  causeNote,
  lostWayWords,
  noServerWords,
  otherServiceNote,
  undetectedNote,
  verdictWords,
} from './stop.ts';
import { judgePolicies, type PolicyFinding } from '../../ask/trace/network-policies.ts';
import { packetOf } from '../../ask/trace/ask.ts';
import type { Trace } from '../../ask/trace/question.ts';
import { whereOf } from './reason.ts';
import { addressKind, servicePortAt } from '../../ask/trace/service-ends.ts';
import { otherFamilyAt, unmasqueradedBy } from '../../ask/trace/obstacles.ts';
import { bypassIn, diversionIn } from '../../ask/trace/stop.ts';
import type { Scene } from '../../ask/trace/scene.ts';

/** Lists notes that answer the questions that an operator is likely to ask next. */
export function listNotes(trace: Trace, scene: Scene): readonly string[] {
  const { target } = trace;
  const { side } = scene;
  const port = servicePortAt(target, scene.side);
  const unprogrammed = side.kind === 'dump' ? undefined : whyUnprogrammed(target, side);
  const lostWay = lostWayWords(trace, scene);
  const unmasqueraded = lostWay === undefined ? unmasqueradedBy(trace, scene) : undefined;
  const notes = [
    healthCheckNote(trace, scene),
    ...describeSkippedListings(scene.side.doubts),
    unprogrammed && noSubjectWords(unprogrammed),
    lostWay ?? (port && (divertedNote(port, trace) ?? unservedNodePort(port, trace, scene))),
    port && listenerNote(port, trace),
    port ? unaskedFamilyNote(port, trace, scene) : otherFamilyNote(trace, scene),
    lostWay === undefined ? causeNote(trace, scene) : undefined,
    arrivalNote(trace, scene),
    undetectedNote(trace, scene),
    otherServiceNote(trace, scene),
    ...besideManifestsNotes(trace, scene),
    unmasqueraded && unmasqueradedWords(unmasqueraded),
    existingFlowNote(trace, scene, port),
    routeNote(trace, scene),
    ...choiceNotes(trace, port, scene),
    ...policyNotes(trace, scene),
  ];
  return notes.filter((note) => note !== undefined);
}

/** Says how network policies would treat a delivered packet. */
export function policyNotes(trace: Trace, scene: Scene): readonly string[] {
  return judgePolicies(trace, scene).map((finding) => policyWords(finding, trace.fate));
}

/** kpc assumes on which link a packet from another host comes in. Returns a note if the packet would end differently on another link. */
function arrivalNote(trace: Trace, scene: Scene): string | undefined {
  const { sender, target, fate } = trace;
  const arrival = fate.verdict === 'unknown' ? undefined : fate.arrival();
  if (!arrival) return undefined;
  const { link, others } = arrival;
  const { kind } = fate.connection();
  const isFirm = kind === 'works' || kind === 'fails' || kind === 'partial';
  const ends = others.flatMap((other) => {
    const found = scene.evaluate(packetOf({ ...sender, enters: { interface: other } }, target));
    const goesOn = connectionWords({ fate: found, target }, scene);
    const why = goesOn.reason === undefined ? '' : `: ${goesOn.reason}`;
    if (endKey(found) !== endKey(fate)) return [{ other, does: `it is ${verdictWords(found, trace, scene)}`, why: '' }];
    return isFirm && goesOn.kind !== kind
      ? [{ other, does: `the connection ${connectionDoes[goesOn.kind]}`, why }]
      : [];
  });
  const elsewhere = Array.from(groupBy(ends, ({ does }) => does).values(), (same) => {
    const [{ other, does, why }] = same;
    return `by ${nameSome(same.map((each) => each.other))} ${does} (--in-interface ${other})${why}`;
  });
  return elsewhere.length === 0 ? undefined : `the packet is assumed to arrive by ${link}; ${elsewhere.join('; ')}`;
}

function endKey({ verdict, endpoints }: Fate): string {
  return [verdict, ...endpoints.map(formatSocketAddress)].join(' ');
}

/** Returns a note that says where the dump's flows to the same destination go. */
function existingFlowNote(trace: Trace, scene: Scene, port: ShownPort | undefined): string | undefined {
  const found = findExistingFlows(trace, scene);
  const labels = port?.endpoints && new Set(port.endpoints.map(({ label }) => label));
  return found && existingFlowWords(found, (endpoint) => labels?.has(endpoint));
}

/**
 * Notes that a local program's packet needs a route before any rule sees it. In IPVS mode, no note is needed, because the node itself has
 * the address.
 */
function routeNote({ sender, target, fate }: Trace, { side, links }: Scene): string | undefined {
  const { mode } = side;
  const { address } = target;
  if (side.routes[address.family]) return undefined;
  const own = links.flatMap(({ addresses }) => addresses);
  const isOwn = isLoopback(address) || own.some((each) => each.address.text === address.text);
  const { verdict } = fate.otherwise ?? fate;
  const isServed = verdict === 'delivered' || verdict === 'refused';
  if (sender.enters || isOwn || !mode || modeFacts[mode].kinds.has('links') || !isServed) return undefined;
  return `the node needs a route to ${address.text}, such as a default route: without one, its own connections fail with "Network is unreachable" before any rule sees them`;
}

/** Says what the endpoints' shares mean for a single client. */
function choiceNotes({ fate }: Trace, port: ShownPort | undefined, { side }: Scene): readonly string[] {
  const { steps, endpoints } = fate.otherwise ?? fate;
  if (endpoints.length < 2) return [];
  const server = steps.find((step) => step.kind === 'virtual-server')?.server;
  const notes: string[] = [];
  if (server) {
    const { scheduler, address } = server;
    const by = schedulerFacts.get(scheduler)?.by;
    const does = by && schedulerWords[by](server, address.text);
    if (does) notes.push(`scheduler ${scheduler} ${does}`);
  }
  if (port?.affinitySeconds) {
    const keeps = server
      ? `while it has connections (TIME_WAIT included) and for ${port.affinitySeconds} s after them`
      : `for ${port.affinitySeconds} s`;
    notes.push(`session affinity: these are the chances of a new client, which then keeps its endpoint ${keeps}`);
    // Each Service port has its own chains, and its own list of the clients that it remembers.
    if (side.ports.some((each) => serviceName(each) === serviceName(port) && each.label !== port.label))
      notes.push(
        'each port of the Service has its own session affinity: a client may reach one Pod at this port and another Pod at another port',
      );
  }
  return notes;
}

const schedulerWords: {
  readonly [By in SchedulerFacts['by']]: (server: VirtualServer, address: string) => string | undefined;
} = {
  turn: () => undefined,
  load: () => 'prefers endpoints with fewer open connections: the shares are those while none is open',
  // With the flag sh-port or mh-port, the client's port counts too.
  client: ({ schedulerFlags }) =>
    schedulerFlags.includes('flag-2')
      ? "chooses by the client's address and port: the shares are averages over many connections"
      : "chooses by the client's address: one client always gets the same endpoint, and the shares are averages over many clients",
  destination: (_, address) =>
    `chooses by the destination: all clients of ${address} get the same endpoint, and the shares are averages over many addresses`,
  first: () =>
    'sends all clients to the same endpoint, the first with the highest weight in the list of the kernel: kpc does not know which one that is, and the shares are the chances of each',
  fill: () =>
    'fills one endpoint until it has more active connections than its weight, then the next, and refuses clients if all are full: kpc does not know the order, and the shares are the chances of each to be first',
};

/** Returns a note if the question names a Service that also has an address of the other family, which the sender may use too. */
function unaskedFamilyNote(port: ShownPort, { sender: { who, address, isExample }, target }: Trace, { side }: Scene) {
  const { label, family, nodePort } = port;
  const other = side.ports.find((each) => each.label === label && each.family !== family);
  const pod = who.kind === 'named-pod' ? side.pods.get(who.name) : undefined;
  const hasBoth = pod ? pod.status?.addresses.some((each) => each.family !== family) : isExample || !address;
  if (target.label === undefined || !other || !hasBoth) return undefined;
  const kind = addressKind(port, target.address);
  const own = portAddresses(other).find((each) => each.kind === kind)?.address;
  const isNodePort = kind === undefined && target.port === nodePort;
  if (!own && !isNodePort) return undefined;
  const to = own ? joinHostPort(own.text, target.port) : `node/${other.family}:${nodePort}`;
  return `${label} has an ${familyNames[other.family]} address too, which may fare differently: ask with --to ${to}`;
}

/** Returns a note if a node port was traced in a family that its Service does not have. */
function otherFamilyNote({ target }: Trace, { side }: Scene): string | undefined {
  const other = otherFamilyAt(target, side);
  const isOwn = side.ports.some((each) => addressKind(each, target.address) !== undefined);
  if (!other || isOwn) return undefined;
  return `node port ${target.port} belongs to ${other.label}, which is ${familyNames[other.family]} only`;
}

function listenerNote({ label, nodePort }: ShownPort, { fate }: Trace) {
  const isTaken = fate.steps.some((step) => step.kind === 'listener' && step.server.program === 'kube-proxy');
  return isTaken
    ? `kube-proxy itself listens for node port ${nodePort} of ${label} here, and forwards connections: no rule does this, so kube-proxy must be running`
    : undefined;
}

/** Returns a note that names another program's rule which keeps a packet from kube-proxy's rules. */
function divertedNote(port: ShownPort, { fate }: Trace): string | undefined {
  const { verdict, steps, endpoints } = fate.otherwise ?? fate;
  const isUntaken = verdict === 'local' || verdict === 'forwarded';
  const bypassed = ['nat', ...(port.endpoints?.length === 0 ? (['filter'] as const) : [])] as const;
  const step = diversionIn(steps) ?? (isUntaken ? bypassIn(steps, bypassed) : undefined);
  if (!step || verdict === 'dropped' || verdict === 'refused') return undefined;
  const keeps = `${whereOf(step)} keeps the packet from kube-proxy's rules`;
  switch (step.action.kind) {
    case 'notrack':
      return `${keeps}: that rule exempts the packet from connection tracking, and untracked packets are not translated`;
    case 'accept':
    case 'return':
      return `${keeps}: that rule ends the table first`;
    case 'goto':
      return `${keeps}: that rule leaves the chain first`;
    default: {
      const known = new Set(port.endpoints?.map(({ label }) => label));
      const others = endpoints.map(formatSocketAddress).filter((each) => !known.has(each));
      const is = others.length === 1 ? 'is no endpoint' : 'are no endpoints';
      const no = port.endpoints && others.length > 0 ? `, and ${joinWords(others, 'and')} ${is} of ${port.label}` : '';
      return `${keeps}: that rule translates the packet first${no}`;
    }
  }
}

/** The decisions by which the kernel drops packets with loopback addresses. */
const lostLoopbacks: ReadonlySet<RouteDecision['kind']> = new Set(['loopback-outside', 'loopback-source']);

/** Says why this address of the node serves no node port. */
function unservedNodePort(shown: ShownPort, trace: Trace, scene: Scene) {
  const { label, nodePort, protocol } = shown;
  const { target, fate } = trace;
  const { side } = scene;
  const { mode } = side;
  const { address, port } = target;
  const { verdict, steps } = fate.otherwise ?? fate;
  if (!mode || nodePort !== port) return undefined;
  const { title, loopbackNodePorts, defaultNodePortAddresses } = modeFacts[mode];
  if (isLoopback(address)) {
    // If a rule drops or refuses the packet, the note does not apply.
    const isLost = steps.some((step) => step.kind === 'route' && lostLoopbacks.has(step.decision.kind));
    if (verdict !== 'local' && !isLost) return undefined;
    const isLocalhost = address.text === loopbackAddresses[address.family].text;
    if (isLocalhost && findLocalhostHandling(side.state)({ family: address.family, protocol, port }) === 'no-endpoint')
      return `kube-proxy itself does not listen here for node port ${port}: ${noServerWords(shown, trace, scene)}`;
    const why = loopbackNodePorts.includes(address.family)
      ? 'node ports on loopback addresses need iptables.localhostNodePorts and net.ipv4.conf.all.route_localnet'
      : `${title} serves no node port on this loopback address`;
    return `${why}: use another address of the node instead`;
  }
  const lacking = side.doubts.find((doubt) => doubt.kind === 'unlisted' && doubt.lacks === 'address');
  if (verdict === 'local' && lacking?.kind === 'unlisted' && lacking.apart?.has(address.family))
    return `${label} has node port ${port}, which this node does not serve at ${address.text}: ${unlistedWords(lacking)}`;
  // A dump does not show with which flags its kube-proxy was started.
  if (verdict !== 'local' || (side.kind === 'dump' && !defaultNodePortAddresses.includes('primary'))) return undefined;
  const named = (side.settings?.nodePortAddresses ?? []).join(', ');
  const isUsual = named === '' || named === defaultNodePortAddresses.join(', ');
  const why =
    isUsual && defaultNodePortAddresses.includes('primary')
      ? `${title} serves node ports on the primary address of the node, unless nodePortAddresses names others`
      : named === ''
        ? 'the rules were compiled without the addresses of the node'
        : `nodePortAddresses is ${named}`;
  return `${label} has node port ${port}, which this node does not serve at ${address.text}: ${why}`;
}

/** Combines the notes on many packets. Says which policies may refuse some of the packets, and at which endpoints. */
export function policyLines(traces: readonly Trace[], scene: Scene): readonly string[] {
  const found = traces.flatMap((trace) => judgePolicies(trace, scene));
  const byPolicies = groupBy(found, (finding) => policyNames(finding));
  return [...byPolicies].map(([who, own]) => {
    if (own.some(({ policies }) => policies.length === 0))
      return `whether a policy refuses these packets is not known: ${unreadPolicies}`;
    const endpoints = new Set(own.flatMap((each) => [...each.endpoints.keys()]));
    return `${who} may refuse some of these packets at ${joinWords([...endpoints], 'and')}, if your network plugin enforces policies: "kpc trace --from" shows which`;
  });
}

const unreadPolicies = 'kpc did not read all policies and Pods of this cluster';

function policyNames({ direction, policies }: PolicyFinding): string {
  const names = policies.map(({ name, place }) => `${name} (${place.file}:${place.line}:${place.column})`);
  return `${policies.length === 1 ? 'policy' : 'policies'} ${joinWords(names, 'and')}${direction === 'egress' ? ' on egress' : ''}`;
}

function policyWords(finding: PolicyFinding, fate: Fate): string {
  const { verdict, policies, endpoints } = finding;
  const all = new Set(fate.endpoints.map(formatSocketAddress)).size;
  const where = endpoints.size < all ? ` at ${joinWords([...endpoints.keys()], 'and')}` : '';
  const does = fate.verdict === 'delivered' ? 'kube-proxy delivers the packet' : 'the node forwards the packet';
  const who = policyNames(finding);
  if (policies.length === 0) return `${does}; whether a policy refuses it is not known: ${unreadPolicies}`;
  if (verdict === 'unknown')
    return `${does}; ${who} may refuse it${where}: that depends on facts about Pods or Namespaces that the input lacks`;
  const seen = {
    refused: '',
    'refused-node': " and sees the node's address as the client",
    'refused-client': ' and sees the client before masquerading',
    'refused-endpoint': ', and sees the endpoint, not the address that the sender uses',
  };
  return `${does}; ${who} would refuse it${where}, if your network plugin enforces policies${seen[verdict]}`;
}

const byReadiness = '200 with a ready endpoint on this node, and 503 without';

export function healthCheckWords(check: ServiceHealthCheck, side: Snapshot): string {
  const service = serviceName(check);
  const words = `health check of ${service} on port ${check.port}: kube-proxy answers`;
  const { status, local } = healthAnswerOf(check, side);
  if (status === 'unknown') return `${words} ${byReadiness}; the input holds no EndpointSlices of ${service}`;
  if (status === '200 or 503') return `${words} ${byReadiness}`;
  return `${words} ${status}, with ${count(local, 'ready endpoint')} on this node`;
}

/** Describes a health check node port that a dump's rules or sets show. */
function shownHealthCheck(port: number, fate: Fate, { ports, state }: Snapshot): string | undefined {
  const named = ports.find(({ healthCheckNodePort }) => healthCheckNodePort === port)?.label;
  const label = named ?? (findHealthCheckSets(state, port).length > 0 ? 'a Service' : undefined);
  if (label === undefined || (fate.otherwise ?? fate).verdict !== 'local') return undefined;
  return `port ${port} is the health check of ${label}: kube-proxy answers ${byReadiness}`;
}

/** Returns the note on a health check at an address of the node. */
function healthCheckNote({ target, fate }: Trace, { side }: Scene): string | undefined {
  if (side.kind === 'dump') return shownHealthCheck(target.port, fate, side);
  const check = fate.verdict === 'local' && target.protocol === 'tcp' ? healthCheckFinder(side)(target) : undefined;
  return check && `this is the ${healthCheckWords(check, side)}`;
}

/** The dump's flows to the packet's destination, and where these flows end. */
interface ExistingFlows {
  /** True if these are only the sender's flows. False if they are all clients' flows. */
  readonly isSender: boolean;
  /** The ends, sorted by their number of flows, with the highest number first. */
  readonly ends: readonly { readonly end: SocketAddress; readonly flows: number }[];
}

/**
 * Finds the listed flows to the packet's destination. They matter because rules decide only about the first packet of a flow. If the sender
 * has flows of its own there, returns only these.
 */
export function findExistingFlows(
  { sender, target }: Pick<Trace, 'sender' | 'target'>,
  { side: { flows = [] } }: Pick<Scene, 'side'>,
): ExistingFlows | undefined {
  const to = formatSocketAddress(target);
  const all = flows.filter((flow) => flow.protocol === target.protocol && formatSocketAddress(flow.destination) === to);
  const own = all.filter(({ source }) => source.address.text === sender.address?.text);
  const ends = new Map<string, { readonly end: SocketAddress; flows: number }>();
  for (const { answers: end } of own.length > 0 ? own : all) {
    const known = ends.get(formatSocketAddress(end));
    if (known) known.flows++;
    else ends.set(formatSocketAddress(end), { end, flows: 1 });
  }
  if (ends.size === 0) return undefined;
  return { isSender: own.length > 0, ends: [...ends.values()].sort((a, b) => b.flows - a.flows) };
}

/** The most destinations that a sentence names. */
const mostNamed = 5;

/** Returns a sentence about existing flows. `serves`: whether an endpoint gets new flows; undefined if that is unknown. */
function existingFlowWords(
  { isSender, ends }: ExistingFlows,
  serves: (endpoint: string) => boolean | undefined,
): string {
  const total = ends.reduce((sum, { flows }) => sum + flows, 0);
  const named = ends.slice(0, mostNamed).map(({ end, flows }) => {
    const at = formatSocketAddress(end);
    return `${formatCount(flows)} to ${at}${serves(at) === false ? ', to which no rule leads now' : ''}`;
  });
  const more = ends.length > mostNamed ? `; and ${count(ends.length - mostNamed, 'more destination')}` : '';
  const whose = isSender ? 'of this sender' : 'to the same address';
  const exist = total === 1 ? 'exists and keeps its destination' : 'exist and keep their destinations';
  return `${count(total, 'flow')} ${whose} ${exist}, whatever the rules say: ${named.join('; ')}${more}`;
}
