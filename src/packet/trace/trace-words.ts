import { count } from '../../base/format-count.ts';
import { joinWords } from '../../base/join-words.ts';
import { assignedTexts } from '../../cluster/assign-addresses.ts';
import type { ServiceHealthCheck } from '../../cluster/model.ts';
import { planNodePorts } from '../../cluster/node-port-addresses.ts';
import { line, type DescriptionLine } from '../../describe/describe-words.ts';
import { explainUnserved } from '../../describe/find-subject.ts';
import type { ShownPort } from '../../describe/shown-port.ts';
import { isLoopback, joinHostPort } from '../../kernel/address.ts';
import { formatRule as formatIptablesRule } from '../../kernel/iptables/iptables.ts';
import type { Side } from '../../diff/compared-side.ts';
import { formatElement, formatRule as formatNftRule } from '../../kernel/nftables/format-expression.ts';
import type { Location } from '../../kernel/place.ts';
import type { Family } from '../../kernel/family.ts';
import { formatSocketAddress } from '../../kernel/socket-address.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import {
  lostShare,
  sourceText,
  type Fate,
  type Hook,
  type ReachedEndpoint,
  type RuleStep,
  type Step,
} from '../packet.ts';
import { isUnknownOwn } from '../routing.ts';
import { percent } from './expectation.ts';
import { judgePolicies, type PolicyFinding } from './network-policies.ts';
import type { Sender, Trace } from './question.ts';
import { isLocalEndpoint, listMissing, type Scene } from './scene.ts';

/** A step in words. */
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

/** A trace in words: what comes out, then how, step by step. */
export interface TraceInWords {
  readonly heading: string;
  readonly verdict: string;
  readonly isGood: boolean;
  readonly endpoints: readonly string[];
  readonly notes: readonly string[];
  readonly steps: readonly StepInWords[];
}

/** Puts a trace into words. Leaves out steps where nothing happens. */
export function describeTrace(trace: Trace, scene: Scene): TraceInWords {
  const { sender, target, fate } = trace;
  const { side, mode } = scene;
  const name = side.services?.node.name ?? '';
  const node = name === '' ? side.name : `node ${name}`;
  const isPing = target.protocol === 'icmp';
  const where = isPing ? `ping to ${target.address.text}` : `${target.protocol} to ${formatSocketAddress(target)}`;
  const to = target.label === undefined ? '' : ` (${target.label})`;
  const from = sender.address === undefined ? sender.words : `${sender.words} (${sender.address.text})`;
  return {
    heading: `${where}${to} from ${from}, on ${node}${mode ? ` in ${modeFacts[mode].title}` : ''}`,
    verdict: verdictWords(trace, scene),
    isGood: fate.verdict === 'delivered' || fate.verdict === 'local' || fate.verdict === 'forwarded',
    endpoints: fate.endpoints.map((endpoint) => endpointWords(endpoint, sender, scene)),
    notes: listNotes(trace, scene),
    steps: fate.steps
      .filter((_, i, steps) => leadsOn(steps, i, fate.verdict === 'unknown'))
      .map((step) => describeStep(step, scene))
      .filter(isNews),
  };
}

/** A trace in words, line by line. */
export function listTraceLines(trace: TraceInWords): readonly DescriptionLine[] {
  return [
    line('heading', 0, trace.heading),
    line(trace.isGood ? 'good' : 'bad', 1, trace.verdict),
    ...trace.endpoints.map((endpoint) => line('plain', 2, endpoint)),
    ...trace.notes.map((note) => line('plain', 1, note)),
    line('heading', 1, 'how'),
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

/** Routing may decide the same twice, as before and after a hook where nothing happens. */
function isNews({ hook, what }: StepInWords, index: number, steps: readonly StepInWords[]): boolean {
  const before = steps[index - 1];
  return hook !== undefined || before?.hook !== undefined || before?.what !== what;
}

/** Whether something happens in the chain that a step goes on to. Most chains let most packets be; a doubt may be the last step. */
function leadsOn(steps: readonly Step[], index: number, endsInDoubt: boolean): boolean {
  const [step, next] = [steps[index], steps[index + 1]];
  if (step?.kind !== 'rule' || (step.action.kind !== 'jump' && step.action.kind !== 'goto')) return true;
  if (!next) return endsInDoubt;
  return next.kind === 'rule' && next.chain === step.action.chain && leadsOn(steps, index + 1, endsInDoubt);
}

/** What a scene lacks, if that is why no packet of a family has a known end. */
export function lackWords({ side, mode }: Scene, family: Family): string | undefined {
  const missing = listMissing(side, mode, family);
  if (missing.length > 0)
    return `unknown: the dump lacks what ${joinWords(missing)} ${missing.length === 1 ? 'prints' : 'print'}`;
  const unread = side.doubts.flatMap((doubt) => (doubt.kind === 'other-table' && !doubt.tables ? [doubt.table] : []));
  if (unread.length === 0) return undefined;
  return `unknown: kpc could not read all of table ${joinWords(unread)}, which may refuse, drop or change it`;
}

function verdictWords({ fate, target }: Trace, scene: Scene): string {
  switch (fate.verdict) {
    case 'delivered': {
      const reached = new Set(fate.endpoints.map(formatSocketAddress)).size;
      const lost = lostShare(fate);
      const rest = lost > 1e-9 ? `, but ${percent(lost)} of connections fail` : '';
      return `delivered to ${count(reached, 'endpoint')}${rest}:`;
    }
    case 'local':
      return `${endWords.local}${target.protocol === 'icmp' ? '' : ', if one listens there'}`;
    case 'unknown':
      return lackWords(scene, target.address.family) ?? endWords.unknown;
    default:
      return endWords[fate.verdict];
  }
}

const endWords = {
  refused: 'refused: the sender gets an error at once',
  dropped: 'dropped: the sender hears nothing, and waits until it gives up',
  local: 'reaches the node itself: no rule of a Service takes it, so a program on the node answers',
  forwarded: 'left to routing: no rule of a Service changes it',
  unknown: 'unknown: it depends on the last rule below, and kpc cannot tell what that does with this packet',
} as const;

function endpointWords(endpoint: ReachedEndpoint, { address }: Sender, scene: Scene): string {
  const { source, probability } = endpoint;
  const isLocal = isLocalEndpoint(scene, endpoint);
  const where = isLocal === undefined ? '' : isLocal ? ', on this node' : ', on another node';
  const isNode = source === 'masqueraded' || isUnknownOwn(source);
  const client = isNode ? "the node's address" : source.text === address?.text ? undefined : source.text;
  const sees = client === undefined ? "sees the client's own address" : `sees ${client} as the client`;
  return `${percent(probability).padStart(6)}  ${formatSocketAddress(endpoint)}${where}; ${sees}`;
}

/** What an operator asks next. */
function listNotes(trace: Trace, scene: Scene): readonly string[] {
  const { sender, target, fate } = trace;
  const { services } = scene.side;
  const port = portAt(trace, scene);
  const strays = fate.endpoints.some((end) => end.source !== 'masqueraded' && isLocalEndpoint(scene, end) === false);
  const notes = [
    healthCheckNote(trace, scene),
    services && explainUnserved(target, scene.objects, services),
    port && unservedNodePort(port, trace, scene),
    port && localPolicy(port, trace, scene),
    fate.endpoints.length > 1 && port?.affinitySeconds
      ? `session affinity: the chances are those of a new client, which then keeps its endpoint for ${port.affinitySeconds} s`
      : undefined,
    strays && sender.words === 'a client outside the cluster'
      ? "the client's address is kept on the way to an endpoint on another node, whose answers may not come back over this node: the connection then fails"
      : undefined,
    ...judgePolicies(trace, scene).map((finding) => policyWords(finding, fate)),
  ];
  return notes.filter((note) => note !== undefined);
}

/** The Service port that is asked for. */
function portAt({ target }: Trace, { ports }: Scene): ShownPort | undefined {
  return ports.find(({ port, nodePort, addresses, family, protocol }) => {
    if (family !== target.address.family || protocol.toLowerCase() !== target.protocol) return false;
    const isAddress = addresses.some(({ address }) => address === target.address.text);
    return (isAddress ? port : nodePort) === target.port;
  });
}

/** Why this address of the node serves no node port. */
function unservedNodePort({ name, nodePort }: ShownPort, { target, fate }: Trace, { mode, side }: Scene) {
  const { address, port } = target;
  if (!mode || nodePort !== port || fate.verdict === 'delivered') return undefined;
  const { title, loopbackNodePorts, defaultNodePortAddresses } = modeFacts[mode];
  if (isLoopback(address)) {
    const why = loopbackNodePorts.includes(address.family)
      ? 'node ports on loopback addresses need iptables.localhostNodePorts and net.ipv4.conf.all.route_localnet'
      : `${title} serves no node port on this loopback address`;
    return `${why}: ask at an address of the node instead`;
  }
  if (fate.verdict !== 'local') return undefined;
  const named = (side.services?.settings.nodePortAddresses ?? []).join(', ');
  const isUsual = named === '' || named === defaultNodePortAddresses.join(', ');
  const why =
    isUsual && defaultNodePortAddresses.includes('primary')
      ? `${title} serves node ports on the primary address of the node, unless nodePortAddresses names others`
      : `nodePortAddresses is ${named}`;
  return `${name} has node port ${port}, which this node does not serve at ${address.text}: ${why}`;
}

/** What policy Local makes of packets on a node without an endpoint of the Service. */
function localPolicy(port: ShownPort, { target, fate }: Trace, { mode, endpoints: known }: Scene) {
  const { name, endpoints = [] } = port;
  if (endpoints.length === 0) return `${name} has no ready endpoint`;
  const kind = port.addresses.find(({ address }) => address === target.address.text)?.kind;
  const policy = kind === 'cluster-ip' ? 'internalTrafficPolicy' : 'externalTrafficPolicy';
  const isElsewhere = endpoints.every(({ endpoint }) => known.get(endpoint)?.isLocal === false);
  if (!mode || port[policy] !== 'Local' || !isElsewhere) return undefined;
  const does = fate.verdict === 'delivered' ? `: ${modeFacts[mode].title} sends it to endpoints on other nodes` : '';
  return `${policy} is Local, and ${name} has no endpoint on this node${does}`;
}

function policyWords({ direction, verdict, policies, endpoints }: PolicyFinding, fate: Fate): string {
  const names = policies.map(({ name, place }) => `${name} (${place.file}:${place.line}:${place.column})`);
  const isOne = policies.length === 1;
  const all = new Set(fate.endpoints.map(formatSocketAddress)).size;
  const where = endpoints.size < all ? ` at ${joinWords([...endpoints.keys()], 'and')}` : '';
  const does = fate.verdict === 'delivered' ? 'kube-proxy delivers it' : 'the node forwards it';
  const who = `${isOne ? 'policy' : 'policies'} ${joinWords(names, 'and')}${direction === 'egress' ? ' on egress' : ''}`;
  if (verdict === 'unknown')
    return `${does}; ${who} may refuse it${where}: ${isOne ? 'it asks' : 'they ask'} for facts about Pods or Namespaces that the input lacks`;
  const seen = {
    refused: '',
    'refused-node': " and sees the node's address as the client",
    'refused-client': ' and sees the client before masquerading',
  };
  return `${does}; ${who} would refuse it${where}, if your network plugin enforces policies${seen[verdict]}`;
}

function describeStep(step: Step, { owners }: Scene): StepInWords {
  switch (step.kind) {
    case 'rule': {
      const own = step.tool === 'iptables' ? owners.ofRule(step.rule, step.chain) : undefined;
      return {
        hook: step.hook,
        where: `${step.tool} ${step.table} ${step.chain} rule ${step.position}`,
        what: actionWords(step),
        rule: ruleText(step),
        servicePort: step.origin?.servicePort ?? own,
        place: step.origin?.place?.locate(),
      };
    }
    case 'policy': {
      const where = `${step.tool} ${step.table} ${step.chain}`;
      return { hook: step.hook, where, what: 'no rule decides, and the policy is to drop' };
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
    case 'route':
      return { where: 'routing', what: routeWords(step) };
  }
}

/** As the tool writes it. */
function ruleText(step: RuleStep): string {
  if (step.tool === 'iptables') return formatIptablesRule(step.rule);
  return `${formatNftRule(step.rule)}${step.element ? ` → ${formatElement(step.element)}` : ''}`;
}

function routeWords({ decision, destination: { text } }: Step & { readonly kind: 'route' }): string {
  switch (decision.kind) {
    case 'local':
      return `${text} is an address of the node`;
    case 'out':
      return decision.interface === undefined
        ? `it leaves the node towards ${text}`
        : `it leaves towards ${text} by ${decision.interface}`;
    case 'not-forwarding':
      return 'the node does not forward packets (ip_forward is 0), and drops it';
    case 'loopback-outside':
      return 'loopback addresses do not pass between interfaces (route_localnet is 0): the kernel drops it';
    case 'own-address':
      return `${text} gets a packet from its own address, and cannot answer`;
  }
}

/** What a rule does, as the end of a sentence. */
function actionWords({ tool, rule, action }: RuleStep): string {
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
    case 'set-mark':
      return markWords[action.operation];
    case 'unknown':
      return tool === 'iptables' ? `meets ${action.text}` : 'meets a rule that kpc does not understand';
    default:
      return plainActions[action.kind];
  }
}

const plainActions = {
  return: 'leaves this chain',
  continue: 'matches',
  drop: 'is dropped',
  reject: 'is refused',
  masquerade: "gets the node's address as its source",
} as const;

/** kube-proxy marks packets to masquerade by a bit of the mark, and clears it when that is done. */
const markWords = { or: 'is marked for masquerading', xor: 'loses its mark', set: 'has its mark changed' } as const;

/** A trace for programs, to be written as JSON. */
export function traceJson(trace: Trace, scene: Scene): unknown {
  const { fate } = trace;
  const policies = judgePolicies(trace, scene).map(({ policies: own, endpoints, ...finding }) => ({
    ...finding,
    names: own.map(({ name }) => name),
    endpoints: [...endpoints.values()].map(({ address, port }) => ({ address: address.text, port })),
  }));
  return {
    verdict: fate.verdict,
    endpoints: endpointsJson(fate),
    sourceAfter: sourceText(fate.source),
    policies: policies.length === 0 ? undefined : policies,
    steps: fate.steps.map((each) => {
      const { place, ...step } = describeStep(each, scene);
      return { ...step, ...place };
    }),
  };
}

/** The endpoints that a packet may reach, for programs. They may see different sources, as with a pod that may reach itself. */
export function endpointsJson({ endpoints }: Fate) {
  return endpoints.map(({ address, port, probability, source }) => ({
    address: address.text,
    port,
    probability: Number(probability.toFixed(6)),
    sourceAfter: sourceText(source),
  }));
}

/** A line that names those of the values in some texts that kpc chose, as the input lacks them; none if there are none. */
export function assumedIn(texts: readonly string[], { services }: Side): readonly DescriptionLine[] {
  if (!services) return [];
  const { assumed, node } = services;
  const chosen = new Set([
    ...assumed.services.flatMap(assignedTexts),
    ...assumed.pods,
    ...(assumed.node ? [node.name, ...node.hostAddresses.map(({ text }) => text)] : []),
  ]);
  // An address with its port is one word, and an IPv6 address in brackets too.
  const words = texts.flatMap((text) => text.split(/[\s,()[\]/]+/));
  const parts = words.flatMap((word) => [word, ...(/^([^:]*):(\d+):?$/.exec(word)?.slice(1) ?? [])]);
  const named = [...new Set(parts)].filter((word) => chosen.has(word));
  return named.length === 0 ? [] : [line('dim', 1, `assumed: ${named.join(', ')}`)];
}

/** What kube-proxy answers a load balancer on the node: 200 with ready endpoints here, else 503 (healthcheck/service_health.go). */
export function healthCheckWords(
  { namespace, service, port, readyEndpoints }: ServiceHealthCheck,
  { services }: Pick<Side, 'services'>,
): string {
  const local = readyEndpoints.filter(({ nodeName }) => nodeName === services?.node.name).length;
  const status = local > 0 ? 200 : 503;
  return `health check of ${namespace}/${service} on port ${port}: kube-proxy answers ${status}, with ${count(local, 'ready endpoint')} on this node`;
}

/** The same of one address of the node: kube-proxy listens where it serves node ports (newServiceHealthServer). */
function healthCheckNote({ target: { address, port }, fate }: Trace, { side }: Scene): string | undefined {
  const { services } = side;
  const check = services?.cluster.healthChecks.find((each) => each.port === port);
  if (!services || !check || fate.verdict !== 'local') return undefined;
  const served = planNodePorts(services.settings, services.node, address.family).addresses;
  const listens = !served || served.some(({ text }) => text === address.text);
  return listens ? `this is the ${healthCheckWords(check, side)}` : undefined;
}
