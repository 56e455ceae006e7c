import { groupBy } from '../../cluster/grouping.ts';
import { type Address, type Family, familyNames, joinHostPort } from '../../kernel/address.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import type { CarrierProtocol } from '../../kernel/link/tunnel.ts';
import { ignoresEcho } from '../../kernel/sysctls-and-modules.ts';
import {
  isArrival,
  isOpen,
  isUndecided,
  sumOutcomes,
  type ArpSilence,
  type Connection,
  type Loss,
  type Outcome,
} from '../../packet/packet.ts';
import type { RouteDecision, Step } from '../../packet/step.ts';
import type { Losing } from '../../ask/equivalence/causes.ts';
import type { Trace } from '../../ask/trace/question.ts';
import { reasonSentence, reasonWords, ruleText, whereOf } from './reason.ts';
import type { Scene } from '../../ask/trace/scene.ts';
import { diversionIn, lastServiceChain } from '../../ask/trace/stop.ts';

interface Ended extends Pick<Trace, 'fate'> {
  readonly target: Pick<Trace['target'], 'address'>;
}

/** How a connection ends, with a clause that gives the reason. */
export interface ConnectionInWords {
  readonly kind: Connection['kind'];
  /** Undefined if the connection works. Also undefined if the end of its first packet already says why it fails. */
  readonly reason: string | undefined;
  /** Why some connections fail although their first packet ends like most first packets. */
  readonly failure: string | undefined;
  /** Why it is unknown whether the remaining connections work. */
  readonly doubt: string | undefined;
  /** Whether the outcome is unknown because of something that the input shows, such as a rule that only answers meet. */
  readonly isUndecided: boolean;
  /** Keyed by endpoint ("address:port"). Empty unless the endpoints differ. */
  readonly byEndpoint: ReadonlyMap<string, Connection['kind']>;
}

export function connectionWords({ fate, target }: Ended, scene: Scene): ConnectionInWords {
  if (fate.verdict === 'unknown') return { kind: 'unknown', isUndecided: false, byEndpoint: new Map(), ...noReason };
  const { kind, ways } = fate.connection();
  const { family } = target.address;
  const ofLikely = ways.filter(({ way }) => way.verdict === fate.verdict);
  const reasonOf = (own: Connection['ways']): string | undefined =>
    firstReasons(own.flatMap(({ outcome }) => outcomeWords(outcome, family, scene))) || undefined;
  const isMixed = new Set(ways.map(({ outcome }) => outcome.kind)).size > 1;
  const ofEndpoints = groupBy(isMixed ? ways.filter(({ way }) => way.endpoint) : [], ({ way: { endpoint } }) =>
    endpoint ? formatSocketAddress(endpoint) : '',
  );
  const byEndpoint = [...ofEndpoints].map(
    ([endpoint, own]) => [endpoint, sumOutcomes(own.map(({ outcome }) => outcome))] as const,
  );
  return {
    kind,
    reason: reasonOf(isArrival(fate.verdict) ? ways : ways.filter(({ way }) => isArrival(way.verdict))),
    failure: reasonOf(ofLikely.filter(({ outcome }) => outcome.kind === 'fails')),
    doubt: reasonOf(ofLikely.filter(({ outcome }) => isOpen(outcome))),
    isUndecided: ways.some(({ outcome }) => isUndecided(outcome)),
    byEndpoint: new Map(byEndpoint),
  };
}

const noReason = { reason: undefined, failure: undefined, doubt: undefined };

const mostReasons = 3;

function firstReasons(reasons: readonly string[]): string {
  return [...new Set(reasons)].slice(0, mostReasons).join('; ');
}

export function lossesWords(losses: readonly Losing[], family: Family): string {
  return firstReasons(losses.map(({ kind, loss }) => lossWords(loss, family, kind === 'fails')));
}

/** The words after "The connection" that say what it does. */
export const connectionDoes = {
  works: 'works',
  fails: 'fails',
  partial: 'works in some cases',
  depends: 'depends on more than the rules',
  unknown: 'is not known to work',
} as const;

export function outcomeWords(outcome: Outcome, family: Family, scene: Scene): readonly string[] {
  switch (outcome.kind) {
    case 'works':
      return [];
    case 'fails':
    case 'depends':
      return [lossesWords([outcome], family)];
    case 'unknown': {
      // Compiled inputs are not expected to show routes, so a doubt for lack of routes is left out.
      const isUsual = !isUndecided(outcome) && scene.side.kind !== 'dump';
      return isUsual ? [] : outcome.reasons.map((each) => reasonSentence(reasonWords(each, family, scene)));
    }
  }
}

const stoppedTurns = {
  answer: 'the answer does not come back',
  later: "it stalls, because the client's next packet is lost",
  data: 'it stalls, because packets after the handshake are lost',
} as const;

type StepLoss = Extract<Loss, { readonly kind: 'first-lost' | 'untaken' | 'stopped' }>;

function stepLossWords(loss: StepLoss, isSure: boolean): string {
  switch (loss.kind) {
    case 'first-lost': {
      const to = loss.endpoint ? ` to ${formatSocketAddress(loss.endpoint)}` : '';
      return `the first packet${to} is lost: ${endOfSteps(loss.steps)}`;
    }
    case 'untaken':
      return `${untakenWords(loss.steps)}: ${failsUnless} ${loss.end === 'local' ? 'a program on the node listens there' : 'another host answers there'}`;
    case 'stopped':
      return `${isSure ? '' : 'on one of its paths '}${stoppedTurns[loss.turn]}: ${endOfSteps(loss.steps)}`;
  }
}

function lossWords(loss: Loss, family: Family, isSure: boolean): string {
  switch (loss.kind) {
    case 'first-lost':
    case 'untaken':
    case 'stopped':
      return stepLossWords(loss, isSure);
    case 'untranslated':
      return untranslatedWords(loss, family);
    case 'other-way':
      return `the answer leaves${hopWords(loss.output, loss.gateway)}, but the client's packets come by ${loss.input}: ${failsUnless} the network behind ${loss.output} lets such answers pass`;
    case 'kept':
      return `the node itself has ${loss.address.text} and keeps the answer`;
    case 'elsewhere':
      return `packets that the client sends after the answer go to ${loss.destination.text}`;
    case 'other-hop':
      return `packets that the client sends after the answer leave${hopWords(loss.output, loss.gateway)}, unlike its first packet: ${failsUnless} they reach ${loss.destination.text} from there`;
    case 'service-address':
      if (loss.isHeld)
        return `this node itself holds ${loss.address.text}, the cluster IP of ${loss.service}: ${failsUnless} a program on the node listens there`;
      return `nothing answers: ${loss.address.text} is the cluster IP of ${loss.service}, which no pod has, and a connection is translated only once`;
    case 'shared-source': {
      const end = family === 'ipv4' ? 'drops packets from this address' : 'keeps answers to this address';
      const { text } = loss.address;
      return isSure
        ? `the packet comes from ${text}, which the endpoint's node has too: that node ${end}`
        : `the packet comes from ${text}, which every node has: the connection fails if the endpoint is on another node, which ${end}`;
    }
    case 'left':
      return `the node sends the packet on untranslated, to ${loss.isClusterIP ? 'the cluster IP' : 'an address'} of ${loss.service}: ${failsUnless} another ${loss.isClusterIP ? 'node' : 'host'} accepts packets to ${loss.address.text}`;
    case 'own-gateway':
      return `${loss.endpoint.text} sees the client's address and may answer it directly: ${failsUnless} the answer passes through this node`;
    case 'own-network':
    case 'sent-back':
    case 'closer-route':
      return detourWords(loss);
    case 'not-held':
      return `a route brings packets for ${loss.address.text} to this node, which does not have the address: ${failsUnless} a transparent proxy answers`;
    case 'unbound': {
      const { address, source, client } = loss;
      return `a program bound to all addresses may answer from ${source.text}, the source address of the route to ${client.text}, and no NAT corrects it: ${failsUnless} the program answers from ${address.text}`;
    }
    case 'no-arp':
    case 'no-neighbour':
      return neighbourWords(loss, family);
    case 'foreign-source':
      return `the answer goes to ${loss.address.text}, which the node does not have: ${failsUnless} the network delivers the answer to this node`;
  }
}

/** Returns a clause about the step at which a packet stops. */
export function endOfSteps(steps: readonly Step[]): string {
  const last = steps.at(-1);
  return last ? carrierWords(steps) + stoppedWords(last) : 'the node drops the packet';
}

/** Returns a clause that says why no rule of a Service translates a packet. */
function untakenWords(steps: readonly Step[]): string {
  const diversion = diversionIn(steps);
  if (diversion) return `${whereOf(diversion)} keeps the packet from kube-proxy's rules`;
  const chain = lastServiceChain(steps);
  return chain === undefined ? 'no rule of a Service matches the packet' : `nothing in ${chain} leads to an endpoint`;
}

/** Describes packets that the node sends to a router that may be no nearer to the destination. */
function detourWords(loss: Loss & { readonly kind: 'own-network' | 'sent-back' | 'closer-route' }): string {
  switch (loss.kind) {
    case 'own-network': {
      const { destination, inside, gateway, output = '' } = loss;
      const what = inside === undefined ? 'its own address' : `in the network of its ${inside}`;
      return `the node sends packets for ${destination.text}, which is ${what}, to ${gateway.text} by ${output}: the connection fails ${inside === undefined ? 'unless' : 'if'} they come back from there`;
    }
    case 'sent-back': {
      const { destination, gateway, output = '' } = loss;
      return `the node sends packets for ${destination.text} back to ${gateway.text} by ${output}, from where they came: the connection fails if ${gateway.text} sends them here again`;
    }
    case 'closer-route': {
      const { destination, taken, closer } = loss;
      return `the node sends packets for ${destination.text}${hopWords(taken.link, taken.gateway)}, although another table has a closer route${hopWords(closer.link, closer.gateway)}: ${failsUnless} ${taken.gateway?.text} delivers them`;
    }
  }
}

const failsUnless = 'the connection fails unless';

const silenceWords = {
  arp_ignore: 'arp_ignore',
  arp_filter: 'arp_filter',
  rp_filter: 'rp_filter',
  'on-no-link': 'no interface has it',
  'on-another-link': 'another interface has it',
} as const satisfies Record<Exclude<ArpSilence, 'NOARP' | 'port' | 'no-port' | 'tentative'>, string>;

/** Says why neighbours do not learn each other's link addresses. */
function neighbourWords(loss: Loss & { readonly kind: 'no-arp' | 'no-neighbour' }, family: Family): string {
  if (loss.kind === 'no-neighbour') {
    return `neighbour solicitations for ${loss.address.text} are lost on ${loss.link} (${endOfSteps(loss.steps)}): ${failsUnless} the sender already knows its link address`;
  }
  const { address, link, why } = loss;
  if (why === 'NOARP')
    return `${link} does no neighbour discovery (NOARP): ${failsUnless} both sides know each other's link address`;
  if (why === 'port')
    return `${link} does no neighbour discovery, because it is a port of another interface, which takes all packets that it receives: ${failsUnless} both sides know each other's link address`;
  if (why === 'no-port')
    return `bridge ${link} has no port, so no host behind it has ${address.text}: ${failsUnless} a port is added`;
  if (why === 'tentative')
    return `${address.text} is still tentative on the node, which therefore ignores neighbour advertisements for it: ${failsUnless} the node already knows the link address`;
  const request = family === 'ipv4' ? 'ARP request' : 'neighbour solicitation';
  return `the node answers no ${request} for ${address.text} on ${link} (${silenceWords[why]}): ${failsUnless} another program answers, or the sender already knows the link address`;
}

function hopWords(link: string | undefined, gateway: Address | undefined): string {
  return `${link === undefined ? '' : ` by ${link}`}${gateway ? ` via ${gateway.text}` : ''}`;
}

function untranslatedWords({ source, port, why, link }: Loss & { kind: 'untranslated' }, family: Family): string {
  const from = port === undefined ? source.text : joinHostPort(source.text, port);
  const wrong = `the answer comes from ${from}, not from the address that the client sent to, so the client does not accept it`;
  switch (why) {
    case 'bridge': {
      const sysctl = `net.bridge.bridge-nf-call-${family === 'ipv4' ? 'iptables' : 'ip6tables'}`;
      return `the answer crosses bridge ${link ?? ''} untranslated, because ${sysctl} is 0: ${wrong}; set ${sysctl} to 1`;
    }
    case 'past':
      return link === undefined
        ? `the endpoint is on another node and answers the client directly, because nothing masquerades: ${wrong}`
        : `the answer bypasses this node, because client and endpoint are both behind ${link} and nothing masquerades: ${wrong}`;
    case 'untracked':
      return `a rule keeps the answer out of connection tracking, so that nothing translates it: ${wrong}`;
    case 'zone':
      return `a rule puts the answer into another connection tracking zone, so nothing translates it: ${wrong}`;
  }
}

export function stopperWords(step: Step & { readonly kind: 'rule' | 'policy' }): string {
  if (step.kind === 'policy') return `the policy of ${step.tool} ${step.table} ${step.chain} drops the packet`;
  return `${whereOf(step)} ${step.action.kind === 'reject' ? 'refuses' : 'drops'} the packet`;
}

/** If a tunnel's outer packet was stopped, returns the start of a clause that names the outer packet. */
export function carrierWords(steps: readonly Step[]): string {
  const carrier = steps.find(({ kind }) => kind === 'carrier');
  return carrier?.kind === 'carrier' ? `${carrier.link} carries it in ${outerWords(carrier)}, and ` : '';
}

const outerNames: { readonly [P in CarrierProtocol]: string } = { udp: 'UDP', ipencap: 'protocol 4', gre: 'GRE' };

export function outerWords({ protocol, port }: Step & { readonly kind: 'carrier' }): string {
  return port === undefined
    ? `a packet of ${outerNames[protocol]}`
    : `a packet to ${outerNames[protocol]} port ${port}`;
}

function stoppedWords(step: Step): string {
  switch (step.kind) {
    case 'rule':
      return `${stopperWords(step)}: ${ruleText(step)}`;
    case 'policy':
      return `${stopperWords(step)}, because no rule there accepts the packet`;
    case 'route':
      return decisionWords(step.decision, step.destination);
    case 'virtual-server':
    case 'listener':
    case 'carrier':
      return 'the node refuses the packet';
  }
}

export function decisionWords(decision: RouteDecision, { family, text: to }: Address): string {
  switch (decision.kind) {
    case 'local':
      return decision.isHeld
        ? `${to} is an address of the node`
        : `a route brings packets for ${to} to the node itself`;
    case 'out':
      return `it is forwarded to ${to}${decision.interface === undefined ? '' : ` by ${decision.interface}`}`;
    case 'not-forwarding':
      return `the node does not forward packets (${decision.sysctl} is 0), so it drops this one`;
    case 'loopback-outside':
      return 'loopback addresses do not pass between interfaces (route_localnet is 0)';
    case 'own-address':
      return `${to} gets a packet from its own address, so it cannot answer`;
    case 'encryption':
      return `a policy of IPsec blocks packets to ${to}`;
    case 'echo-ignored':
      return `the node answers no pings (${ignoresEcho[family]} is 1)`;
    case 'for-many':
      return `${to} is a broadcast, multicast or anycast address: the node forwards nothing to it, and no TCP connection goes there`;
    case 'own-next-hop':
      return `the next hop to ${to} is ${decision.gateway.text}, an address of the node itself, so nobody answers`;
    case 'loopback-source':
      return `${to} gets a packet from a loopback address, and hosts discard such packets if they arrive from outside`;
    case 'no-route':
      return `the node has no route to ${to}`;
    case 'blackhole':
    case 'unreachable':
    case 'prohibit':
      return `packets to ${to} match a route or routing rule of type ${decision.kind}`;
    case 'martian':
      return "the packet's source is an address of the node itself, and the kernel drops such packets if they arrive from outside";
    case 'reverse-path': {
      const { input, back } = decision;
      const way =
        back === undefined
          ? "no route leads back to the packet's source"
          : `the route back to the packet's source is ${back}`;
      return `the packet comes by ${input}, but ${way}: the reverse-path filter drops it (rp_filter; 2 is loose)`;
    }
    case 'isolated':
      return `the ports of bridge ${decision.bridge} are isolated, so it carries nothing between them`;
    case 'no-carrier':
      return `${decision.interface} has no carrier: packets that leave by it are lost`;
    case 'no-address':
      return `a rule sends the packet to the address of ${decision.interface}, which has no ${familyNames[family]} address`;
    case 'foreign-local':
      return `tunnel ${decision.link} sends from ${decision.local.text}, which the node does not have, so it sends nothing`;
    case 'not-neighbour':
      return "the packet's source is a link-local address, so it is forwarded to no other link";
    case 'no-hairpin':
      return `bridge ${decision.bridge} does not send a packet back by the port where it arrived (hairpin is off)`;
  }
}
