import { count } from '../../base/format-count.ts';
import { joinWords, nameSome } from '../../base/join-words.ts';
import { groupBy } from '../../cluster/group-by.ts';
import { serviceName, type ServiceHealthCheck, type ShownPort } from '../../cluster/model.ts';
import { planNodePorts } from '../../cluster/node-port-addresses.ts';
import { line, type DescriptionLine } from '../describe/describe-words.ts';
import { explainUnserved } from '../describe/find-subject.ts';
import { isLoopback, joinHostPort, type Address } from '../../kernel/address.ts';
import { describeSkipped } from '../../dumps/dump.ts';
import { familyNames } from '../../kernel/family.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { Location } from '../../kernel/place.ts';
import { formatSocketAddress, type SocketAddress } from '../../kernel/socket-address.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import { modeFacts, unnamedMode } from '../../kube-proxy/modes.ts';
import {
  isArrival,
  lostShare,
  sourceText,
  type Fate,
  type KnownFate,
  type ReachedEndpoint,
} from '../../packet/packet.ts';
import type { Hook, MarkChange, RouteDecision, RuleStep, Step } from '../../packet/step.ts';
import { isUnknownOwn } from '../../packet/own-address.ts';
import { connectionWords, decisionWords, type ConnectionInWords } from './connection-words.ts';
import { percent } from './expectation.ts';
import { existingFlowWords, findExistingFlows } from './existing-flows.ts';
import { lostWayWords } from './lost-jump.ts';
import { judgePolicies, type PolicyFinding } from './network-policies.ts';
import { hasAddress, packetOf, type Sender, type Trace } from './question.ts';
import { conditionWords, reasonSentence, reasonWords, ruleText, whereOf } from './reason-words.ts';
import { addressKind, portAt } from './port-at.ts';
import { isLocalEndpoint, type Scene } from './scene.ts';
import { servicesWithoutEndpoints } from './doubted-ends.ts';
import { assumedPlace, causeNote, causeOf, undetectedNote } from './stop-words.ts';

interface StepInWords {
  readonly hook?: Hook;
  /** "iptables nat KUBE-SERVICES rule 3". */
  readonly where: string;
  readonly what: string;
  /** As the tool writes it. */
  readonly rule?: string;
  readonly servicePort?: string | undefined;
  readonly place?: Location | undefined;
}

/** A trace in words: the result, then each step. */
export interface TraceInWords {
  readonly heading: string;
  readonly verdict: string;
  readonly isGood: boolean;
  /** Further reasons why the verdict is unknown, and the outcome without them. */
  readonly doubts: readonly string[];
  readonly endpoints: readonly string[];
  readonly notes: readonly string[];
  readonly steps: readonly StepInWords[];
  /** The values here that kpc chose because the input lacks them. */
  readonly assumed: readonly DescriptionLine[];
}

/** Puts a trace into words, without steps that do nothing. */
export function describeTrace(trace: Trace, scene: Scene): TraceInWords {
  const { sender, target, fate } = trace;
  const { side } = scene;
  const { mode } = side;
  const name = side.nodeName;
  const ofNone = side.kind === 'dump' ? side.name : 'an unspecified node';
  const node = name === '' ? ofNone : `node ${name}`;
  const isPing = target.protocol === 'icmp';
  const where = isPing ? `ping to ${target.address.text}` : `${target.protocol} to ${socketWords(target)}`;
  const label = labelOf(trace, scene);
  const to = label === undefined ? '' : ` (${label})`;
  const connection = connectionWords(trace, scene);
  const [verdict = '', ...doubts] =
    fate.verdict === 'unknown'
      ? unknownWords(trace, scene)
      : [`${verdictWords(fate, trace, scene)}${withConnection(fate, connection)}`];
  const { endpoints, steps: met } = fate.otherwise ?? fate;
  const steps = met.filter((_, i) => leadsOn(met, i, fate.verdict === 'unknown' && !fate.otherwise));
  return {
    heading: `${where}${to} from ${senderWords(sender)}, on ${node}${mode ? ` in ${modeFacts[mode].title}` : ''}${side.assumed?.mode ? ` ${unnamedMode}` : ''}`,
    verdict,
    doubts,
    isGood: isArrival(fate.verdict) && connection.kind !== 'fails',
    endpoints: endpoints.map((endpoint) => endpointWords(endpoint, sender, scene, connection)),
    notes: listNotes(trace, scene),
    steps: steps.filter((_, i) => !isRepeated(steps, i)).map((step) => describeStep(step, trace, scene)),
    assumed: assumedLine(valuesOf(trace, scene), side),
  };
}

/** The Service port that a packet is sent to, named or by its address. */
function labelOf({ target }: Trace, { side }: Scene): string | undefined {
  return target.label ?? (isUnknownOwn(target.address) ? undefined : portAt(target, side.ports)?.label);
}

function senderWords({ words, address, isExample }: Sender): string {
  if (address === undefined) return words;
  return `${words} (${isExample ? 'such as ' : ''}${address.text})`;
}

/** A colon if a list of endpoints follows. */
function endOf({ verdict }: Pick<KnownFate, 'verdict'>): string {
  return verdict === 'delivered' ? ':' : '';
}

/** Adds what happens to the connection, if the first packet arrives but that is not the whole story. */
function withConnection(fate: KnownFate, { kind, reason }: ConnectionInWords): string {
  if (!isArrival(fate.verdict) || reason === undefined) return endOf(fate);
  switch (kind) {
    case 'works':
    case 'unknown':
      return endOf(fate);
    case 'fails':
      return `, but the connection fails: ${reason}`;
    case 'partial':
      return `, but some connections fail: ${reason}`;
    case 'depends':
      return `, but whether the connection works depends on what is there: ${reason}`;
  }
}

/** An address and port; "the node, port 30080" for an unknown address of the node. */
function socketWords({ address, port }: SocketAddress): string {
  return isUnknownOwn(address) ? `the node, port ${port}` : joinHostPort(address.text, port);
}

export function listTraceLines(trace: TraceInWords): readonly DescriptionLine[] {
  return [
    line('heading', 0, trace.heading),
    line(trace.isGood ? 'good' : 'bad', 1, trace.verdict),
    ...trace.doubts.map((doubt) => line('bad', 1, doubt)),
    ...trace.endpoints.map((endpoint) => line('plain', 2, endpoint)),
    ...trace.notes.map((note) => line('plain', 1, note)),
    ...(trace.steps.length === 0 ? [] : [line('heading', 1, 'how')]),
    ...trace.steps.flatMap(({ hook, where, what, rule, servicePort, place }, i) => {
      const owner = servicePort === undefined ? '' : ` [${servicePort}]`;
      const from = place ? `  (${place.file}:${place.line}:${place.column})` : '';
      const at = hook === undefined ? '' : `${hook}: `;
      return [
        line('plain', 2, `${String(i + 1).padStart(2)}. ${at}${what}${owner}${from}`),
        line('dim', 4, rule === undefined ? where : `${where}: ${rule}`),
      ];
    }),
  ];
}

/** Whether a later routing step decides the same: routing may run before and after a hook that changes nothing. */
function isRepeated(steps: readonly Step[], index: number): boolean {
  const step = steps[index];
  if (step?.kind !== 'route') return false;
  const next = steps.find((each, i) => i > index && each.kind === 'route');
  return next?.kind === 'route' && decisionKey(next) === decisionKey(step);
}

type RouteStep = Step & { readonly kind: 'route' };

function decisionKey({ decision, destination }: RouteStep): string {
  return JSON.stringify([decision, destination.text]);
}

/** Whether a jump leads to a rule that matches, or is the last step before an unknown end. */
function leadsOn(steps: readonly Step[], index: number, endsInDoubt: boolean): boolean {
  const [step, next] = [steps[index], steps[index + 1]];
  if (step?.kind !== 'rule' || (step.action.kind !== 'jump' && step.action.kind !== 'goto')) return true;
  if (!next) return endsInDoubt;
  return next.kind === 'rule' && next.chain === step.action.chain && leadsOn(steps, index + 1, endsInDoubt);
}

function verdictWords(fate: KnownFate, { target }: Trace, scene: Scene): string {
  const { verdict, endpoints, ways, steps, redirectedTo } = fate;
  if (verdict === 'unknown') return verdict;
  switch (verdict) {
    case 'delivered': {
      const reached = new Set(endpoints.map(formatSocketAddress)).size;
      const lost = lostShare({ ways, verdict });
      const rest = lost > 1e-9 ? `, but ${percent(lost)} of connections fail` : '';
      return `delivered to ${count(reached, 'endpoint')}${rest}`;
    }
    case 'local':
      if (redirectedTo !== undefined)
        return `redirected to port ${redirectedTo} of the node itself: a program on the node answers, if one listens there`;
      return `reaches the node itself: no rule of a Service takes it, so a program on the node answers${target.protocol === 'icmp' ? '' : ', if one listens there'}`;
    default: {
      const others = lostShare({ ways, verdict });
      const rest = others > 1e-9 ? `; ${percent(others)} of connections end otherwise` : '';
      const isClosed = verdict === 'refused' && target.protocol === 'tcp' && steps.at(-1)?.kind === 'listener';
      const { end, meaning } = isClosed ? closedByBalancer : endWords[verdict];
      return `${end}${assumedPlace(target, fate, scene)}: ${meaning}${rest}`;
    }
  }
}

/** A balancer without endpoints keeps its port open, so a bare port check passes. */
const closedByBalancer = { end: 'refused', meaning: 'the connection is taken, and closed at once' };

/** Why a verdict is unknown, one reason a line, and the outcome otherwise. */
function unknownWords(trace: Trace, scene: Scene): readonly string[] {
  const { fate, target } = trace;
  const reasons = fate.reasons.map((reason) => reasonWords(reason, target.address.family, scene));
  const lines = reasons.map((each) => `unknown: ${reasonSentence(each)}`);
  return fate.otherwise
    ? [...lines, `${conditionWords(fate)}: ${verdictWords(fate.otherwise, trace, scene)}${endOf(fate.otherwise)}`]
    : lines;
}

const endWords = {
  refused: { end: 'refused', meaning: 'the sender gets an error at once' },
  dropped: { end: 'dropped', meaning: 'the sender gets no answer, and waits until it times out' },
  forwarded: { end: 'left to routing', meaning: 'no rule of a Service changes it' },
} as const;

function endpointWords(
  endpoint: ReachedEndpoint,
  { address }: Sender,
  scene: Scene,
  { byEndpoint }: ConnectionInWords,
): string {
  const { source, masqueradedAs, probability } = endpoint;
  const isLocal = isLocalEndpoint(scene, endpoint);
  const where = isLocal === undefined ? '' : isLocal ? ', on this node' : ', on another node';
  const isNode = source === 'masqueraded' || isUnknownOwn(source);
  const own = masqueradedAs ? `${masqueradedAs.text}, the node's address,` : "the node's address";
  const client = isNode ? own : source.text === address?.text ? undefined : source.text;
  const sees = client === undefined ? "sees the client's own address" : `sees ${client} as the client`;
  const outcome = byEndpoint.get(formatSocketAddress(endpoint));
  const answer = outcome === undefined ? '' : `; the connection ${outcomeWords[outcome]}`;
  return `${percent(probability).padStart(6)}  ${formatSocketAddress(endpoint)}${where}; ${sees}${answer}`;
}

const outcomeWords = {
  works: 'works',
  fails: 'fails',
  depends: 'depends on what is there',
  unknown: 'is not known to work',
} as const;

/** Notes that answer an operator's next questions. */
function listNotes(trace: Trace, scene: Scene): readonly string[] {
  const { target, fate } = trace;
  const { side } = scene;
  const port = portAt(target, scene.side.ports);
  const notes = [
    healthCheckNote(trace, scene),
    ...describeSkipped(scene.side.doubts),
    side.kind === 'dump' ? undefined : explainUnserved(target, side),
    port && (lostWayWords(trace, scene) ?? unservedNodePort(port, trace, scene)),
    port && listenerNote(port, trace),
    port ? undefined : otherFamilyNote(trace, scene),
    port ? undefined : unprogrammedNote(trace, scene),
    causeNote(trace, scene),
    arrivalNote(trace, scene),
    undetectedNote(trace, scene),
    existingFlowNote(trace, scene, port),
    routeNote(trace, scene),
    ...choiceNotes(trace, port, scene),
    ...judgePolicies(trace, scene).map((finding) => policyWords(finding, fate)),
  ];
  return notes.filter((note) => note !== undefined);
}

/** A note if the assumed input link of a packet from another host matters. */
function arrivalNote(trace: Trace, scene: Scene): string | undefined {
  const { sender, target, fate } = trace;
  const arrival = fate.verdict === 'unknown' ? undefined : fate.arrival();
  if (!arrival) return undefined;
  const { link, others } = arrival;
  const elsewhere = others.flatMap((other) => {
    const found = scene.evaluate(packetOf({ ...sender, enters: { interface: other } }, target));
    return endKey(found) === endKey(fate)
      ? []
      : [`by ${other} it is ${verdictWords(found, trace, scene)} (--in-interface ${other})`];
  });
  return elsewhere.length === 0 ? undefined : `it is taken to come in by ${link}; ${elsewhere.join('; ')}`;
}

function endKey({ verdict, endpoints }: Fate): string {
  return [verdict, ...endpoints.map(formatSocketAddress)].join(' ');
}

/** A note on where the dump's flows between the same ends go. */
function existingFlowNote(trace: Trace, scene: Scene, port: ShownPort | undefined): string | undefined {
  const found = findExistingFlows(trace, scene);
  const labels = port?.endpoints && new Set(port.endpoints.map(({ label }) => label));
  return found && existingFlowWords(found, (endpoint) => labels?.has(endpoint));
}

/** A local program's packet needs a route before any rule sees it. In IPVS mode the node holds the address itself. */
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

/** What the endpoints' shares mean for a single client. */
function choiceNotes({ fate }: Trace, port: ShownPort | undefined, { side }: Scene): readonly string[] {
  const { steps, endpoints } = fate.otherwise ?? fate;
  if (endpoints.length < 2) return [];
  const server = steps.find((step) => step.kind === 'virtual-server')?.server;
  const notes: string[] = [];
  if (server) {
    const { scheduler, schedulerFlags, address } = server;
    // With the flag sh-port or mh-port, the client's port counts too.
    if (byClient.has(scheduler) && !schedulerFlags.includes('flag-2'))
      notes.push(
        `scheduler ${scheduler} chooses by the client's address: one client always gets the same endpoint, and the shares are those of many clients`,
      );
    if (byDestination.has(scheduler))
      notes.push(
        `scheduler ${scheduler} chooses by the destination: all clients of ${address.text} get the same endpoint, and the shares are those of many addresses`,
      );
  }
  if (port?.affinitySeconds) {
    const keeps = server
      ? `while it has connections, in TIME_WAIT too, and for ${port.affinitySeconds} s after them`
      : `for ${port.affinitySeconds} s`;
    notes.push(`session affinity: the chances are those of a new client, which then keeps its endpoint ${keeps}`);
    // Each port has its own chains and lists.
    if (side.ports.some((each) => serviceName(each) === serviceName(port) && each.label !== port.label))
      notes.push(
        'each port of the Service keeps its own: a client may reach one Pod at this port and another Pod at the other',
      );
  }
  return notes;
}

/** IPVS schedulers that hash one end of a connection. */
const byClient: ReadonlySet<string> = new Set(['sh', 'mh']);
const byDestination: ReadonlySet<string> = new Set(['dh', 'lblc', 'lblcr']);

/** Notes that the node's dump has no rule for a Service in the manifests beside it. */
function unprogrammedNote({ target }: Trace, { side }: Scene): string | undefined {
  const named = side.kind === 'dump' ? (side.named?.servicePorts ?? []) : [];
  const port = named.find((each) => hasAddress(each, target.address) && each.port === target.port);
  return (
    port &&
    `the manifests have ${port.label} there, and this node has no rule for it: kube-proxy has not programmed it yet, or another program flushed its rules`
  );
}

/** Notes that a node port was asked in a family that its Service does not have. */
function otherFamilyNote({ target }: Trace, { side }: Scene): string | undefined {
  const { family } = target.address;
  const other = side.ports.find(({ nodePort, family: own }) => nodePort === target.port && own !== family);
  const isOwn = side.ports.some((each) => addressKind(each, target.address) !== undefined);
  if (!other || target.port === 0 || isOwn) return undefined;
  return `node port ${target.port} is that of ${other.label}, which has no ${familyNames[family]}: it is ${familyNames[other.family]} only`;
}

function listenerNote({ label, nodePort }: ShownPort, { fate }: Trace) {
  const isTaken = fate.steps.some((step) => step.kind === 'listener' && step.server.program === 'kube-proxy');
  return isTaken
    ? `kube-proxy itself listens for node port ${nodePort} of ${label} here, and forwards connections: no rule does this, so kube-proxy must be running`
    : undefined;
}

const programs = { balancer: 'the balancer', 'kube-proxy': 'kube-proxy itself' } as const;

/** How the kernel loses packets with loopback addresses. */
const lostLoopbacks: ReadonlySet<RouteDecision['kind']> = new Set(['loopback-outside', 'loopback-source']);

/** Why this address of the node serves no node port. */
function unservedNodePort({ label, nodePort }: ShownPort, { target, fate }: Trace, { side }: Scene) {
  const { mode } = side;
  const { address, port } = target;
  const { verdict, steps } = fate.otherwise ?? fate;
  if (!mode || nodePort !== port) return undefined;
  const { title, loopbackNodePorts, defaultNodePortAddresses } = modeFacts[mode];
  if (isLoopback(address)) {
    // A packet that a rule drops or refuses has another cause.
    const isLost = steps.some((step) => step.kind === 'route' && lostLoopbacks.has(step.decision.kind));
    if (verdict !== 'local' && !isLost) return undefined;
    const why = loopbackNodePorts.includes(address.family)
      ? 'node ports on loopback addresses need iptables.localhostNodePorts and net.ipv4.conf.all.route_localnet'
      : `${title} serves no node port on this loopback address`;
    return `${why}: use another address of the node instead`;
  }
  // A dump does not show how its kube-proxy was started.
  if (verdict !== 'local' || (side.kind === 'dump' && !defaultNodePortAddresses.includes('primary'))) return undefined;
  const named = (side.settings?.nodePortAddresses ?? []).join(', ');
  const isUsual = named === '' || named === defaultNodePortAddresses.join(', ');
  const why =
    isUsual && defaultNodePortAddresses.includes('primary')
      ? `${title} serves node ports on the primary address of the node, unless nodePortAddresses names others`
      : named === ''
        ? 'it was compiled without the addresses of the node'
        : `nodePortAddresses is ${named}`;
  return `${label} has node port ${port}, which this node does not serve at ${address.text}: ${why}`;
}

function policyWords({ direction, verdict, policies, endpoints }: PolicyFinding, fate: Fate): string {
  const names = policies.map(({ name, place }) => `${name} (${place.file}:${place.line}:${place.column})`);
  const isOne = policies.length === 1;
  const all = new Set(fate.endpoints.map(formatSocketAddress)).size;
  const where = endpoints.size < all ? ` at ${joinWords([...endpoints.keys()], 'and')}` : '';
  const does = fate.verdict === 'delivered' ? 'kube-proxy delivers it' : 'the node forwards it';
  const who = `${isOne ? 'policy' : 'policies'} ${joinWords(names, 'and')}${direction === 'egress' ? ' on egress' : ''}`;
  if (policies.length === 0)
    return `${does}; whether a policy refuses it is not known: kpc did not read all policies and Pods of this cluster`;
  if (verdict === 'unknown')
    return `${does}; ${who} may refuse it${where}: ${isOne ? 'it depends' : 'they depend'} on facts about Pods or Namespaces that the input lacks`;
  const seen = {
    refused: '',
    'refused-node': " and sees the node's address as the client",
    'refused-client': ' and sees the client before masquerading',
    'refused-endpoint': ', and sees the endpoint and not the address that the sender asks for',
  };
  return `${does}; ${who} would refuse it${where}, if your network plugin enforces policies${seen[verdict]}`;
}

export function describeStep(step: Step, { sender }: Pick<Trace, 'sender'>, scene: Scene): StepInWords {
  const { owners } = scene.side;
  switch (step.kind) {
    case 'rule': {
      const own = step.tool === 'iptables' ? owners.ofRule(step.rule, step.chain) : undefined;
      return {
        hook: step.hook,
        where: whereOf(step),
        what: actionWords(step),
        rule: ruleText(step),
        servicePort: step.origin?.servicePort ?? own,
        place: step.origin?.place?.locate(),
      };
    }
    case 'policy': {
      const where = `${step.tool} ${step.table} ${step.chain}`;
      return { hook: step.hook, where, what: 'no rule decides, and the policy of the chain is drop' };
    }
    case 'virtual-server': {
      const { server, chosen, hook } = step;
      const open = server.realServers.filter(({ weight }) => weight > 0).length;
      return {
        hook,
        where: `virtual server ${server.protocol} ${formatSocketAddress(server)}`,
        what: chosen
          ? `IPVS sends it to ${formatSocketAddress(chosen)}, one of ${open} by scheduler ${server.scheduler}`
          : 'IPVS has no real server for it, and refuses it',
        servicePort: server.origin?.servicePort ?? owners.ofServer(server),
        place: server.origin?.place?.locate(),
      };
    }
    case 'listener': {
      const { server, chosen } = step;
      return {
        where: `proxy port ${server.protocol} ${formatSocketAddress(server)}`,
        what: chosen
          ? `${programs[server.program]} connects to ${formatSocketAddress(chosen)}, one of ${server.endpoints.length}`
          : `${programs[server.program]} has no endpoint for it, and closes the connection`,
        servicePort: server.origin?.servicePort,
        place: server.origin?.place?.locate(),
      };
    }
    case 'route':
      return { where: 'routing', what: routeWords(step, sender, scene) };
  }
}

function routeWords({ decision, destination }: RouteStep, { enters }: Sender, { side: { endpoints } }: Scene): string {
  if (decision.kind === 'local' && isUnknownOwn(destination)) return 'it is for the node itself';
  if (decision.kind !== 'out') return decisionWords(decision, destination.text);
  const isLocal = endpoints.at(destination.text)[0]?.isLocal;
  const where = isLocal === undefined ? '' : isLocal ? ', on this node' : ', on another node';
  const by = decision.interface === undefined ? '' : ` by ${decision.interface}`;
  return `it is ${enters ? 'forwarded' : 'sent'} to ${destination.text}${by}${where}`;
}

/** What a rule does, as the end of a sentence. */
function actionWords({ tool, chain, rule, action }: RuleStep): string {
  const share = 'args' in rule ? rule.args.find((arg) => arg.kind === 'statistic')?.probability : undefined;
  const by = share === undefined ? '' : ` by chance, ${percent(Number(share))}`;
  switch (action.kind) {
    case 'jump':
    case 'goto':
      return `goes on to ${action.chain}${by}`;
    case 'goto-random':
      return `goes on to one of ${count(action.chains.length, 'endpoint')}`;
    case 'accept':
      return tool === 'iptables' ? 'passes this table' : 'passes this chain';
    case 'snat':
      return `gets ${action.address.text} as its source`;
    case 'dnat': {
      const { address, port } = action.target;
      return `goes to ${port === undefined ? address.text : joinHostPort(address.text, port)}${by}`;
    }
    case 'dnat-random':
      return `goes to one of ${count(action.targets.length, 'endpoint')}`;
    case 'redirect':
      return `goes to the node itself${action.port === undefined ? '' : `, port ${action.port}`}`;
    case 'write-set':
      return `changes the set ${action.set}`;
    case 'change-mark':
      return action.of === 'connection' ? "changes the connection's mark" : markWords(action.change);
    case 'unknown':
      return tool === 'iptables' ? `meets ${action.text}` : 'meets a rule that kpc does not understand';
    case 'return':
      return chain === baseChains.postrouting ? 'is not marked, so is not masqueraded' : 'leaves this chain';
    default:
      return plainActions[action.kind];
  }
}

const plainActions = {
  continue: 'matches',
  drop: 'is dropped',
  reject: 'is refused',
  masquerade: "gets the node's address as its source",
  notrack: 'is not tracked as a connection',
  zone: 'is put into a zone of connection tracking',
} as const;

/** kube-proxy marks packets to masquerade with one bit of the mark, and flips that bit once it has masqueraded them. */
function markWords({ stays, start, flip }: MarkChange): string {
  if (start === undefined && (stays ^ flip) >>> 0 === 0xffffffff) return 'is marked for masquerading';
  return stays === 0xffffffff && flip !== 0 ? 'loses its mark' : 'has its mark changed';
}

export function traceJson(trace: Trace, scene: Scene) {
  const { sender, target, fate } = trace;
  const connection = connectionWords(trace, scene);
  const notes = listNotes(trace, scene);
  const policies = judgePolicies(trace, scene).map(({ policies: own, endpoints, ...finding }) => ({
    ...finding,
    names: own.map(({ name }) => name),
    endpoints: [...endpoints.values()].map(({ address, port }) => ({ address: address.text, port })),
  }));
  const { side } = scene;
  const assumed = assumedValues(valuesOf(trace, scene), side).map(({ value }) => value);
  return {
    verdict: fate.verdict,
    cause: causeOf(trace, scene),
    from: { sender: sender.words, address: sender.address?.text, example: sender.isExample || undefined },
    to: {
      address: isUnknownOwn(target.address) ? 'node' : target.address.text,
      port: target.port,
      protocol: target.protocol,
      servicePort: labelOf(trace, scene),
    },
    node: side.nodeName === '' ? undefined : side.nodeName,
    mode: side.mode,
    assumed: assumed.length === 0 ? undefined : assumed,
    endpoints: endpointsJson(fate, connection),
    sourceAfter: fate.masqueradedAs?.text ?? sourceText(fate.source),
    redirectedTo: fate.redirectedTo,
    connection: connection.kind,
    connectionReason: connection.reason,
    ...unknownJson(trace, scene),
    notes: notes.length === 0 ? undefined : notes,
    policies: policies.length === 0 ? undefined : policies,
    existingFlows: findExistingFlows(trace, scene)?.ends.map(({ end, flows }) => {
      return { address: end.address.text, port: end.port, flows };
    }),
    steps: fate.steps.map((each) => describeStep(each, trace, scene)),
  };
}

/** Why a verdict is unknown, and the outcome otherwise, for programs; empty if it is known. */
function unknownJson({ fate, target }: Trace, scene: Scene) {
  if (fate.verdict !== 'unknown') return {};
  const { otherwise } = fate;
  return {
    reasons: fate.reasons.map((reason) => reasonWords(reason, target.address.family, scene)),
    otherwise: otherwise && {
      condition: conditionWords(fate),
      verdict: otherwise.verdict,
      endpoints: endpointsJson(otherwise),
      sourceAfter: sourceText(otherwise.source),
      redirectedTo: otherwise.redirectedTo,
    },
  };
}

/** Endpoints may see different sources: a pod that reaches itself sees the node's address. */
function endpointsJson({ endpoints }: KnownFate, connection?: ConnectionInWords) {
  return endpoints.map(({ address, port, probability, source, masqueradedAs }) => ({
    address: address.text,
    port,
    probability: Number(probability.toFixed(6)),
    sourceAfter: masqueradedAs?.text ?? sourceText(source),
    connection: connection?.byEndpoint.get(joinHostPort(address.text, port)),
  }));
}

/** The addresses, ports and node name of a trace, in the order in which its words name them. */
function valuesOf({ sender, target, fate }: Trace, { side }: Scene): readonly string[] {
  return [
    ...socketValues(target),
    ...addressValues(sender.address),
    side.nodeName,
    ...(side.assumed?.clusterCIDRs ?? []),
    ...fate.endpoints.flatMap((each) => [
      ...socketValues(each),
      ...addressValues(each.source === 'masqueraded' ? undefined : each.source),
    ]),
    ...fate.steps.flatMap(valuesOfStep),
  ];
}

function socketValues({ address, port }: { readonly address: Address; readonly port?: number | undefined }) {
  return [address.text, ...(port === undefined ? [] : [String(port)])];
}

function addressValues(address: Address | undefined): readonly string[] {
  return address ? [address.text] : [];
}

function valuesOfStep(step: Step): readonly string[] {
  switch (step.kind) {
    case 'virtual-server':
    case 'listener':
      return [step.chosen, step.server].flatMap((at) => (at ? socketValues(at) : []));
    case 'route':
      return addressValues(step.destination);
    case 'rule':
      switch (step.action.kind) {
        case 'snat':
          return addressValues(step.action.address);
        case 'dnat':
          return socketValues(step.action.target);
        case 'dnat-random':
          return step.action.targets.flatMap(socketValues);
        default:
          return [];
      }
    case 'policy':
      return [];
  }
}

/** A line naming the values that kpc chose because the input lacks them; empty if it chose none. */
export function assumedLine(values: readonly string[], side: Snapshot): readonly DescriptionLine[] {
  const named = groupBy(assumedValues(values, side), ({ kind }) => kind);
  const parts = [...named].map(([kind, own]) => {
    const names = own.map(({ value }) => value);
    const listed = names.length > mostAssumed ? nameSome(names, mostAssumed) : joinWords(names);
    return `${own.length === 1 ? kind : plural(kind)} ${listed}`;
  });
  return parts.length === 0 ? [] : [line('dim', 1, `assumed: ${parts.join(', ')}`)];
}

function plural(noun: string): string {
  return `${noun}${noun.endsWith('s') ? 'es' : 's'}`;
}

const mostAssumed = 6;

/** Those of the values that kpc chose because the input lacks them. */
function assumedValues(values: readonly string[], side: Snapshot) {
  const chosen = chosenValues(side);
  return [...new Set(values)].flatMap((value) => {
    const kind = chosen.get(value);
    return kind === undefined ? [] : [{ value, kind }];
  });
}

/** All that kpc chose because the input lacks it, each value with its kind. */
function chosenValues(side: Snapshot): ReadonlyMap<string, string> {
  if (side.kind === 'dump') return new Map();
  const { assumed, node } = side;
  const all = (kind: string, texts: readonly (string | number)[]) => texts.map((text) => [String(text), kind] as const);
  return new Map([
    ...(assumed.node
      ? all(
          'address',
          node.hostAddresses.map(({ text }) => text),
        )
      : []),
    ...(assumed.node ? all('node', [node.name]) : []),
    ...all('Pod', [...assumed.pods]),
    ...all('clusterCIDR', assumed.clusterCIDRs),
    ...assumed.services.flatMap(({ clusterIPs, nodePorts, healthCheckNodePort = [], loadBalancerIPs = [] }) => [
      ...all('cluster IP', clusterIPs),
      ...all('node port', Object.values(nodePorts)),
      ...all('health check port', [healthCheckNodePort].flat()),
      ...all('load balancer address', loadBalancerIPs),
    ]),
  ]);
}

/** kube-proxy's answer to a load balancer's health check on the node: 200 with ready endpoints here, else 503 (healthcheck/service_health.go). */
export function healthCheckWords(
  { namespace, service, port, readyEndpoints }: ServiceHealthCheck,
  side: Snapshot,
): string {
  const words = `health check of ${namespace}/${service} on port ${port}: kube-proxy answers`;
  if (side.kind !== 'dump' && servicesWithoutEndpoints(side).has(`${namespace}/${service}`))
    return `${words} 200 with a ready endpoint on this node, and 503 without; the input holds no EndpointSlices of ${namespace}/${service}`;
  const local = readyEndpoints.filter(({ nodeName }) => nodeName === side.node?.name).length;
  const status = local > 0 ? 200 : 503;
  return `${words} ${status}, with ${count(local, 'ready endpoint')} on this node`;
}

/** The health check node port that a dump's rules show. */
function shownHealthCheck(port: number, fate: Fate, ports: Snapshot['ports']): string | undefined {
  const label = ports.find(({ healthCheckNodePort }) => healthCheckNodePort === port)?.label;
  if (label === undefined || (fate.otherwise ?? fate).verdict !== 'local') return undefined;
  return `port ${port} is the health check of ${label}: kube-proxy answers 200 with a ready endpoint on this node, and 503 without`;
}

/** The note for one address of the node. kube-proxy listens on the addresses that serve node ports (newServiceHealthServer). */
function healthCheckNote({ target: { address, port }, fate }: Trace, { side }: Scene): string | undefined {
  if (side.kind === 'dump') return shownHealthCheck(port, fate, side.ports);
  const check = side.cluster.healthChecks.find((each) => each.port === port);
  if (!check || fate.verdict !== 'local') return undefined;
  const served = planNodePorts(side.settings, side.node, address.family).addresses;
  const listens = !served || served.some(({ text }) => text === address.text);
  return listens ? `this is the ${healthCheckWords(check, side)}` : undefined;
}
