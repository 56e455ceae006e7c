import { joinWords } from '../../base/join-words.ts';
import { count } from '../../base/format-count.ts';
import { line, type DescriptionLine } from '../../describe/describe-words.ts';
import { describeElsewhere, findElsewhere } from '../../describe/unserved-address.ts';
import { isLoopback, type Address, joinHostPort } from '../../kernel/address.ts';
import { formatRule as formatIptablesRule } from '../../kernel/iptables/iptables.ts';
import { formatElement, formatRule as formatNftRule } from '../../kernel/nftables/format-expression.ts';
import type { Location } from '../../kernel/place.ts';
import { serviceLink } from '../../kube-proxy/service-link.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import {
  sourceText,
  type Fate,
  type Hook,
  type ReachedEndpoint,
  type RouteDecision,
  type RuleStep,
  type Step,
} from '../packet.ts';
import { isUnknownOwn } from '../routing.ts';
import { percent } from './expectation.ts';
import { judgePolicies, type PolicyFinding } from './network-policies.ts';
import type { Sender, Trace } from './question.ts';
import { listMissing, type KnownPort, type Scene } from './scene.ts';
import { assignedTexts } from '../../cluster/assign-addresses.ts';
import type { Side } from '../../diff/compared-side.ts';
import type { ServiceHealthCheck } from '../../cluster/model.ts';
import { planNodePorts } from '../../cluster/node-port-addresses.ts';
import { formatSocketAddress } from '../../kernel/socket-address.ts';

/** A step in words. */
interface ToldStep {
  readonly hook: Hook | undefined;
  /** "iptables nat KUBE-SERVICES rule 3". */
  readonly where: string;
  readonly what: string;
  /** As the tool writes it. */
  readonly rule: string | undefined;
  readonly servicePort: string | undefined;
  readonly place: Location | undefined;
}

/** A trace in words: what comes out, then how, step by step. */
export interface ToldTrace {
  readonly heading: string;
  readonly verdict: string;
  readonly isGood: boolean;
  readonly endpoints: readonly string[];
  readonly notes: readonly string[];
  readonly steps: readonly ToldStep[];
}

export function tellTrace(trace: Trace, scene: Scene): ToldTrace {
  const { sender, target, fate } = trace;
  const { side, mode } = scene;
  const name = side.services?.node.name ?? '';
  const node = name === '' ? side.name : `node ${name}`;
  const to = target.label === undefined ? '' : ` (${target.label})`;
  const from = sender.address === undefined ? sender.words : `${sender.words} (${sender.address.text})`;
  const where =
    target.protocol === 'icmp'
      ? `ping to ${target.address.text}`
      : `${target.protocol} to ${formatSocketAddress(target)}`;
  return {
    heading: `${where}${to} from ${from}, on ${node}${mode ? ` in ${modeFacts[mode].title}` : ''}`,
    verdict: verdictWords(trace, scene),
    isGood: goodVerdicts.has(fate.verdict),
    endpoints: fate.endpoints.map((endpoint) => endpointWords(endpoint, sender, scene)),
    notes: listNotes(trace, scene),
    steps: tellSteps(fate.steps.filter(leadsOn), scene).filter(isNews),
  };
}

export function explainTrace({
  heading,
  verdict,
  isGood,
  endpoints,
  notes,
  steps,
}: ToldTrace): readonly DescriptionLine[] {
  return [
    line('heading', 0, heading),
    line(isGood ? 'good' : 'bad', 1, verdict),
    ...endpoints.map((endpoint) => line('plain', 2, endpoint)),
    ...notes.map((note) => line('plain', 1, note)),
    line('heading', 1, 'how'),
    ...steps.flatMap((step, i) => stepLines(step, i + 1)),
  ];
}

/** Routing may decide the same twice, as before and after a hook where nothing happens. */
function isNews({ hook, what }: ToldStep, index: number, steps: readonly ToldStep[]): boolean {
  const before = steps[index - 1];
  return hook !== undefined || before?.hook !== undefined || before?.what !== what;
}

/** Whether something happens in the chain that a step goes on to. Most chains let most packets be. */
function leadsOn(step: Step, index: number, steps: readonly Step[]): boolean {
  const next = nextChain(step);
  if (next === undefined) return true;
  const following = steps[index + 1];
  return following?.kind === 'rule' && following.chain === next && leadsOn(following, index + 1, steps);
}

function nextChain(step: Step): string | undefined {
  if (step.kind !== 'rule') return undefined;
  const { action } = step;
  return action.kind === 'jump' || action.kind === 'goto' ? action.chain : undefined;
}

const goodVerdicts: ReadonlySet<Fate['verdict']> = new Set(['delivered', 'local', 'forwarded']);

function verdictWords({ fate, target }: Trace, { side, mode }: Scene): string {
  const unread = side.doubts.flatMap((doubt) => (doubt.kind === 'other-table' && !doubt.tables ? [doubt.table] : []));
  switch (fate.verdict) {
    case 'delivered': {
      const reached = new Set(fate.endpoints.map(formatSocketAddress)).size;
      const lost = fate.ways.reduce((sum, way) => sum + (way.verdict === 'delivered' ? 0 : way.probability), 0);
      const rest = lost > 1e-9 ? `, but ${percent(lost)} of connections fail` : '';
      return `delivered to ${count(reached, 'endpoint')}${rest}:`;
    }
    case 'refused':
      return 'refused: the sender gets an error at once';
    case 'dropped':
      return 'dropped: the sender hears nothing, and waits until it gives up';
    case 'local':
      return `reaches the node itself: no rule of a Service takes it, so a program on the node answers${target.protocol === 'icmp' ? '' : ', if one listens there'}`;
    case 'forwarded':
      return 'left to routing: no rule of a Service changes it';
    case 'unknown': {
      const missing = listMissing(side, mode, target.address.family);
      if (missing.length > 0)
        return `unknown: the dump lacks what ${joinWords(missing)} ${missing.length === 1 ? 'prints' : 'print'}`;
      return unread.length === 0
        ? 'unknown: it depends on a rule that kpc does not understand, the last one below'
        : `unknown: kpc could not read all of table ${joinWords(unread)}, which may refuse, drop or change it`;
    }
  }
}

function endpointWords(endpoint: ReachedEndpoint, { address }: Sender, { ports }: Scene): string {
  const { source, probability } = endpoint;
  const known = ports
    .flatMap(({ endpoints }) => endpoints)
    .find((each) => formatSocketAddress(each) === formatSocketAddress(endpoint));
  const where = known?.isLocal === undefined ? '' : known.isLocal ? ', on this node' : ', on another node';
  const kept = source === 'masqueraded' || isUnknownOwn(source) ? undefined : source.text;
  const sees =
    kept === undefined
      ? "sees the node's address as the client"
      : kept === address?.text
        ? "sees the client's own address"
        : `sees ${kept} as the client`;
  return `${percent(probability).padStart(6)}  ${formatSocketAddress(endpoint)}${where}; ${sees}`;
}

/** What an operator asks next. */
function listNotes(trace: Trace, scene: Scene): readonly string[] {
  const { sender, target, fate } = trace;
  const { ports, healthChecks, side } = scene;
  const notes: string[] = [];
  const check = fate.verdict === 'local' && healthChecks.find(({ port }) => port === target.port);
  if (check) notes.push(healthCheckNote(check, target.address, side));
  const elsewhere = side.services && findElsewhere(target, scene.objects, side.services);
  if (elsewhere) notes.push(describeElsewhere(elsewhere));
  notes.push(...unservedNodePort(trace, scene), ...localPolicy(trace, scene), ...ownServiceAddress(trace, scene));
  const sticky = fate.endpoints.length > 1 && portAt(trace, ports)?.affinitySeconds;
  if (sticky) {
    notes.push(
      `session affinity: the chances are those of a new client, which then keeps its endpoint for ${sticky} s`,
    );
  }
  const scheduled = fate.steps.find((step) => step.kind === 'virtual-server');
  const habit = scheduled && schedulerHabits[scheduled.server.scheduler];
  if (habit !== undefined && fate.endpoints.length > 1)
    notes.push(`scheduler ${scheduled?.server.scheduler}: ${habit}`);
  const strays = fate.endpoints.some(({ source, ...endpoint }) => {
    const known = ports
      .flatMap(({ endpoints }) => endpoints)
      .find((each) => formatSocketAddress(each) === formatSocketAddress(endpoint));
    return source !== 'masqueraded' && known?.isLocal === false && sender.words === 'a client outside the cluster';
  });
  if (strays) {
    notes.push(
      "the client's address is kept on the way to an endpoint on another node, whose answers may not come back over this node: the connection then fails",
    );
  }
  return [...notes, ...judgePolicies(trace, scene).map((finding) => policyWords(finding, fate))];
}

/** What schedulers of IPVS do that shares do not show. */
const schedulerHabits: Readonly<Record<string, string>> = {
  sh: 'each client always goes to the same one of them',
  mh: 'each client always goes to the same one of them',
  dh: 'all clients of this address go to the same one of them',
  fo: 'all clients go to one of them, as long as it is there',
  ovf: 'all clients go to one of them, until it is full',
};

/** The Service port that is asked for. */
function portAt({ target }: Pick<Trace, 'target'>, ports: readonly KnownPort[]): KnownPort | undefined {
  return ports.find(({ port, nodePort, addresses, family, protocol }) => {
    if (family !== target.address.family || protocol.toLowerCase() !== target.protocol) return false;
    return addresses.some(({ address }) => address.text === target.address.text)
      ? port === target.port
      : nodePort === target.port;
  });
}

/** Why this address of the node serves no node port. */
function unservedNodePort(trace: Trace, { ports, mode, side }: Scene): readonly string[] {
  const { address, port } = trace.target;
  const found = portAt(trace, ports);
  if (!mode || found?.nodePort !== port || trace.fate.verdict === 'delivered') return [];
  const { title, loopbackNodePorts, defaultNodePortAddresses } = modeFacts[mode];
  if (isLoopback(address)) {
    return loopbackNodePorts.includes(address.family)
      ? [
          'node ports on loopback addresses need iptables.localhostNodePorts and net.ipv4.conf.all.route_localnet: ask at an address of the node instead',
        ]
      : [`${title} serves no node port on this loopback address: ask at an address of the node instead`];
  }
  if (trace.fate.verdict !== 'local') return [];
  const served = defaultNodePortAddresses.includes('primary')
    ? `${title} serves node ports on the primary address of the node, unless nodePortAddresses names others`
    : 'nodePortAddresses leaves it out';
  const named = side.services?.settings.nodePortAddresses ?? [];
  const isUsual = named.length === 0 || named.join() === defaultNodePortAddresses.join();
  const why = isUsual ? served : `nodePortAddresses is ${named.join(', ')}`;
  return [`${found.label} has node port ${port}, which this node does not serve at ${address.text}: ${why}`];
}

/** What policy Local makes of packets on a node without an endpoint of the Service. */
function localPolicy({ target, fate }: Trace, { ports, mode }: Scene): readonly string[] {
  const port = portAt({ target }, ports);
  const isClusterIP = port?.addresses.some(
    ({ kind, address }) => kind === 'cluster-ip' && address.text === target.address.text,
  );
  const isLocal = isClusterIP ? port?.policies?.internalLocal : port?.policies?.externalLocal;
  if (port?.endpoints.length === 0) return [`${port.label} has no ready endpoint`];
  if (!mode || !port || !isLocal) return [];
  if (port.endpoints.some((endpoint) => endpoint.isLocal !== false)) return [];
  const does = fate.verdict === 'delivered' ? `: ${modeFacts[mode].title} sends it to endpoints on other nodes` : '';
  const policy = isClusterIP ? 'internalTrafficPolicy' : 'externalTrafficPolicy';
  return [`${policy} is Local, and ${port.label} has no endpoint on this node${does}`];
}

/** Whether the node itself asks with an address of a Service, which it has as one of its own. */
function ownServiceAddress({ sender, fate }: Trace, { side, mode }: Scene): readonly string[] {
  const source = sender.address ?? fate.source;
  if (!mode || sender.enters || source === 'masqueraded') return [];
  const held = side.state.links.find(({ name }) => name === serviceLink)?.addresses ?? [];
  if (!held.some(({ address }) => address.text === source.text)) return [];
  return [
    `the source is the address of the Service itself: ${modeFacts[mode].title} gives ${source.text} to the node, on ${serviceLink}`,
  ];
}

function policyWords({ direction, verdict, policies, endpoints }: PolicyFinding, fate: Fate): string {
  const names = joinWords(
    policies.map(({ name, place }) => `${name} (${place.file}:${place.line}:${place.column})`),
    'and',
  );
  const isOne = policies.length === 1;
  const what = `${isOne ? 'policy' : 'policies'} ${names}${direction === 'egress' ? ' on egress' : ''}`;
  const all = new Set(fate.endpoints.map(formatSocketAddress)).size;
  const where = endpoints.length < all ? ` at ${joinWords(endpoints.map(formatSocketAddress), 'and')}` : '';
  const does = fate.verdict === 'delivered' ? 'kube-proxy delivers it' : 'the node forwards it';
  switch (verdict) {
    case 'refused':
      return `${does}; ${what} would refuse it${where}, if your network plugin enforces policies`;
    case 'refused-node':
      return `${does}; ${what} would refuse it${where}, if your network plugin enforces policies and sees the node's address as the client`;
    case 'refused-client':
      return `${does}; ${what} would refuse it${where}, if your network plugin enforces policies and sees the client before masquerading`;
    case 'unknown':
      return `${does}; ${what} may refuse it${where}: ${isOne ? 'it asks' : 'they ask'} for facts about Pods or Namespaces that the input lacks`;
  }
}

function stepLines(step: ToldStep, number: number): readonly DescriptionLine[] {
  const { hook, where, what, rule, servicePort, place } = step;
  const owner = servicePort === undefined ? '' : ` [${servicePort}]`;
  const from = place ? `  (${place.file}:${place.line}:${place.column})` : '';
  return [
    line('plain', 2, `${String(number).padStart(2)}. ${hook === undefined ? '' : `${hook}: `}${what}${owner}${from}`),
    line('dim', 4, rule === undefined ? where : `${where}: ${rule}`),
  ];
}

/** The steps, with the Services that they belong to. */
function tellSteps(steps: readonly Step[], scene: Scene): readonly ToldStep[] {
  return steps.map((step) => tellStep(step, scene));
}

function tellStep(step: Step, { owners }: Scene): ToldStep {
  switch (step.kind) {
    case 'rule':
      return {
        hook: step.hook,
        where: `${step.tool} ${step.table} ${step.chain} rule ${step.position}`,
        ...tellRule(step),
        servicePort: step.origin?.servicePort ?? (step.tool === 'iptables' ? owners.ofRule(step.rule) : undefined),
        place: step.origin?.place?.locate(),
      };
    case 'policy':
      return plain(step.hook, `${step.tool} ${step.table} ${step.chain}`, 'no rule decides, and the policy is to drop');
    case 'virtual-server': {
      const { server, chosen, hook } = step;
      const chance = server.realServers.filter(({ weight }) => weight > 0).length;
      const what = chosen
        ? `IPVS sends it to ${formatSocketAddress(chosen)}, one of ${chance} by scheduler ${server.scheduler}`
        : 'IPVS has no real server for it, and refuses it';
      return {
        hook,
        where: `virtual server ${server.protocol} ${formatSocketAddress(server)}`,
        what,
        rule: undefined,
        servicePort: server.origin?.servicePort ?? owners.ofServer(server),
        place: server.origin?.place?.locate(),
      };
    }
    case 'route':
      return plain(undefined, 'routing', routeWords(step.decision, step.destination));
  }
}

function tellRule(step: RuleStep): Pick<ToldStep, 'what' | 'rule'> {
  const what = actionWords(step);
  if (step.tool === 'iptables') return { what, rule: formatIptablesRule(step.rule) };
  const { rule, element } = step;
  return { what, rule: `${formatNftRule(rule)}${element ? ` → ${formatElement(element)}` : ''}` };
}

function plain(hook: Hook | undefined, where: string, what: string): ToldStep {
  return { hook, where, what, rule: undefined, servicePort: undefined, place: undefined };
}

function routeWords(decision: RouteDecision, { text }: Address): string {
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
    case 'return':
      return 'leaves this chain';
    case 'continue':
      return 'matches';
    case 'drop':
      return 'is dropped';
    case 'reject':
      return 'is refused';
    case 'masquerade':
      return "gets the node's address as its source";
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
  }
}

/** kube-proxy sets a bit of the mark on what is to be masqueraded, and clears it when that is done. */
const markWords = { or: 'is marked for masquerading', xor: 'loses its mark', set: 'has its mark changed' } as const;

/** A trace for programs, to be written as JSON. */
export function traceJson(trace: Trace, scene: Scene): unknown {
  const { fate } = trace;
  const policies = judgePolicies(trace, scene);
  // Endpoints may differ in the source that they see, as with a pod that may reach itself.
  const differ = new Set(fate.endpoints.map(({ source }) => sourceText(source))).size > 1;
  return {
    verdict: fate.verdict,
    endpoints: endpointsJson(fate).map((endpoint, i) => ({
      ...endpoint,
      sourceAfter: differ ? sourceText(fate.endpoints[i]?.source ?? fate.source) : undefined,
    })),
    sourceAfter: sourceText(fate.source),
    policies:
      policies.length === 0
        ? undefined
        : policies.map(({ direction, verdict, policies: own, endpoints }) => ({
            direction,
            verdict,
            names: own.map(({ name }) => name),
            endpoints: endpoints.map(({ address, port }) => ({ address: address.text, port })),
          })),
    steps: tellSteps(fate.steps, scene).map(({ place, ...step }) => ({ ...step, ...place })),
  };
}

/** The endpoints that a packet may reach, for programs. */
export function endpointsJson({ endpoints }: Fate) {
  return endpoints.map(({ address, port, probability }) => ({
    address: address.text,
    port,
    probability: Number(probability.toFixed(6)),
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
  // An address and a port are one word, and an IPv6 address in brackets too.
  const words = texts.flatMap((text) => text.split(/[\s,()[\]/]+/)).flatMap((word) => [word, ...splitPort(word)]);
  const named = [...new Set(words)].filter((word) => chosen.has(word));
  return named.length === 0 ? [] : [{ role: 'dim', depth: 1, text: `assumed: ${named.join(', ')}` }];
}

/** "10.0.0.1:80" as "10.0.0.1" and "80"; what is left of "[fd00::1]:80" is ":80". */
function splitPort(word: string): readonly string[] {
  const [, host = '', port = ''] = /^([^:]*):(\d+):?$/.exec(word) ?? [];
  return [host, port];
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
function healthCheckNote(check: ServiceHealthCheck, address: Address, side: Pick<Side, 'services'>): string {
  const { services } = side;
  const served = services && planNodePorts(services.settings, services.node, address.family).addresses;
  if (!served || served.some(({ text }) => text === address.text))
    return `this is the ${healthCheckWords(check, side)}`;
  const { namespace, service, port } = check;
  return `port ${port} is for the health check of ${namespace}/${service}, but kube-proxy does not listen at ${address.text}: nodePortAddresses leaves it out`;
}
