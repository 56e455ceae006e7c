import { count, percent } from '../../base/printable.ts';
import type { Location } from '../../kernel/place.ts';
import { formatSocketAddress, type MarkChange } from '../../kernel/ports-and-marks.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import type { Hook, RuleStep, Step } from '../../packet/step.ts';
import { isUnknownOwn, type Fate } from '../../packet/packet.ts';
import { decisionWords, outerWords } from './connection.ts';
import type { Sender, Trace } from '../../ask/trace/question.ts';
import { ruleText, whereOf } from './reason.ts';
import { senderName } from './sender.ts';
import type { Scene } from '../../ask/trace/scene.ts';
import { joinHostPort } from '../../kernel/address.ts';
import type { Block } from '../lines.ts';

export interface StepInWords {
  readonly hook?: Hook;
  /** The step's place, such as "iptables nat KUBE-SERVICES rule 3". */
  readonly where: string;
  readonly what: string;
  /** The rule in the form in which its tool writes it. */
  readonly rule?: string;
  readonly servicePort?: string | undefined;
  readonly place?: Location | undefined;
}

/** A trace in words: the result, then each step. */
export interface TraceInWords {
  readonly heading: string;
  readonly verdict: string;
  readonly isGood: boolean;
  /** Further reasons why the verdict is unknown, and the outcome if these did not apply. */
  readonly doubts: readonly string[];
  readonly endpoints: readonly string[];
  readonly notes: readonly string[];
  readonly steps: readonly StepInWords[];
  /** The values in the trace that kpc chose because the input lacks them. */
  readonly assumed: Block;
}

export type RouteStep = Step & { readonly kind: 'route' };

const programs = { balancer: 'the balancer', 'kube-proxy': 'kube-proxy itself' } as const;

export function stepInWords(step: Step, { sender, fate }: Pick<Trace, 'sender' | 'fate'>, scene: Scene): StepInWords {
  const { owners } = scene.side;
  switch (step.kind) {
    case 'rule': {
      const own = step.tool === 'iptables' ? owners.ofRule(step.rule, step.chain) : undefined;
      return {
        hook: step.hook,
        where: whereOf(step),
        what: `${actionWords(step)}${isDoubted(step, fate) ? ', if the rule matches' : ''}`,
        rule: ruleText(step),
        servicePort: step.origin?.servicePort ?? own,
        place: step.origin?.place?.locate(),
      };
    }
    case 'policy': {
      const where = `${step.tool} ${step.table} ${step.chain}`;
      return { hook: step.hook, where, what: 'no rule decides, so the policy of the chain drops the packet' };
    }
    case 'virtual-server': {
      const { server, chosen, hook } = step;
      const open = server.realServers.filter(({ weight }) => weight > 0).length;
      return {
        hook,
        where: `virtual server ${server.protocol} ${formatSocketAddress(server)}`,
        what: chosen
          ? `IPVS sends the packet to ${formatSocketAddress(chosen)}, one of ${open}, chosen by scheduler ${server.scheduler}`
          : 'IPVS has no real server, so the packet is refused',
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
          : `${programs[server.program]} has no endpoint, so it closes the connection`,
        servicePort: server.origin?.servicePort,
        place: server.origin?.place?.locate(),
      };
    }
    case 'carrier':
      return { where: `tunnel ${step.link}`, what: `carries the packet in ${outerWords(step)}, which goes on` };
    case 'route':
      return { where: 'routing', what: routeWords(step, sender, scene) };
  }
}

function routeWords({ decision, destination }: RouteStep, { enters }: Sender, { side: { endpoints } }: Scene): string {
  if (decision.kind === 'local' && isUnknownOwn(destination)) return 'it is for the node itself';
  if (decision.kind !== 'out') return decisionWords(decision, destination);
  const by = decision.interface === undefined ? '' : ` by ${decision.interface}`;
  return `it is ${enters ? 'forwarded' : 'sent'} to ${destination.text}${by}${nodeClause(endpoints.at(destination.text)[0]?.isLocal)}${decision.isOpen ? ', unless the node has that address' : ''}`;
}

export function nodeClause(isLocal: boolean | undefined): string {
  return isLocal === undefined ? '' : isLocal ? ', on this node' : ', on another node';
}

/** Reports whether the packet's fate depends on whether the rule matches, and this is unknown. */
function isDoubted(step: RuleStep, { reasons }: Pick<Fate, 'reasons'>): boolean {
  const where = whereOf(step);
  return step.action.kind !== 'unknown' && reasons.some(({ rule }) => rule !== undefined && whereOf(rule) === where);
}

/** Describes a rule's effect, as the end of a sentence. */
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
    case 'dnat':
      return `goes to ${formatSocketAddress(action.target)}${by}`;
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

/** Describes how a rule changes the mark. kube-proxy marks packets for masquerading with one bit, and flips that bit after masquerading. */
function markWords({ stays, start, flip }: MarkChange): string {
  if (start === undefined && (stays ^ flip) >>> 0 === 0xffffffff) return 'is marked for masquerading';
  return stays === 0xffffffff && flip !== 0 ? 'loses its mark' : 'has its mark changed';
}

/** The path of packets from one kind of sender to one address, in the form in which a picture shows it. */
export interface WayInWords {
  /** The heading names the question, the node and the mode. */
  readonly heading: string;
  /** Lines about the values that kpc chose because the input lacks them. */
  readonly assumed: readonly string[];
  readonly from: string;
  /** The destination, such as "10.96.0.10:80/tcp". */
  readonly to: string;
  readonly verdict: string;
  readonly isGood: boolean;
  /** Whether it is known how the packets end. */
  readonly isKnown: boolean;
  /** The chains and virtual servers on the path, in order. */
  readonly stations: readonly DrawnStation[];
  readonly endpoints: readonly WayEndpoint[];
}

interface DrawnStation {
  readonly name: string;
  readonly detail: string;
}

interface WayEndpoint {
  readonly name: string;
  /** The share of new connections, from 0 to 1. */
  readonly share: number;
  readonly note: string;
}

/** `rests`: further assumptions that the path depends on, as clauses. */
export function describeWay(
  trace: Trace,
  { heading, assumed, verdict, isGood }: TraceInWords,
  scene: Scene,
  rests: readonly string[] = [],
): WayInWords {
  const { sender, target, fate } = trace;
  const { steps, endpoints: ends } = fate.otherwise ?? fate;
  const endpoints = ends.map(({ address, port, probability, source }) => ({
    name: joinHostPort(address.text, port),
    share: probability,
    note: source === 'masqueraded' ? 'sees the node' : 'sees the client',
  }));
  return {
    heading,
    assumed: [...rests.map((clause) => `assumed: ${clause}`), ...assumed.map(({ text }) => text)],
    from: senderName(sender.who),
    to: `${joinHostPort(target.address.text, target.port)}/${target.protocol}`,
    verdict,
    isGood,
    isKnown: fate.verdict !== 'unknown',
    stations: stationsOnWay(steps, endpoints, trace, scene),
    endpoints,
  };
}

/** Returns the chains and virtual servers on the path whose steps change something. Leaves out repeats in a row. */
function stationsOnWay(
  steps: readonly Step[],
  endpoints: WayInWords['endpoints'],
  trace: Trace,
  scene: Scene,
): readonly DrawnStation[] {
  const stations: (DrawnStation & { readonly next: string | undefined })[] = [];
  for (const step of steps) {
    const name = placeOf(step);
    if (name === undefined) continue;
    // In each chain, the last step says more than the first, so it replaces the first.
    if (stations.at(-1)?.name === name) stations.pop();
    const { hook, what } = stepInWords(step, trace, scene);
    const next = step.kind === 'rule' && 'chain' in step.action ? step.action.chain : undefined;
    // The trace follows only one of several endpoints. That endpoint's chain represents the chains of all endpoints.
    const isOfOne = endpoints.length > 1 && step.kind === 'rule' && step.action.kind === 'dnat';
    const does = isOfOne ? `${what}; each endpoint has its own chain` : what;
    // A jump needs no detail of its own, because the next station is its target.
    const detail = [...(hook === undefined ? [] : [hook]), ...(next === undefined ? [does] : [])].join(': ');
    stations.push({ name, detail, next });
  }
  return stations.filter(({ next }, i) => next === undefined || stations[i + 1]?.name.endsWith(next) === true);
}

/** Returns the chain, virtual server or proxy port of a step. Undefined for a step that leads nowhere else. */
function placeOf(step: Step): string | undefined {
  switch (step.kind) {
    case 'rule':
      return step.action.kind === 'return' ? undefined : chainOfStep(step);
    case 'policy':
      return chainOfStep(step);
    case 'virtual-server':
      return `virtual server ${formatSocketAddress(step.server)}`;
    case 'listener':
      return `proxy port ${formatSocketAddress(step.server)}`;
    case 'route':
    case 'carrier':
      return undefined;
  }
}

function chainOfStep({ tool, table, chain }: Step & { readonly kind: 'rule' | 'policy' }): string {
  return tool === 'nftables' && table === 'kube-proxy' ? chain : `${table} ${chain}`;
}
