import type { CauseId, CauseReason, LostRules, ModeOfSide, Situation } from '../../ask/equivalence/causes.ts';
import type { Divergence } from '../../ask/equivalence/effects.ts';
import { decisionWords, lossesWords, stopperWords } from '../way/connection.ts';
import { nameOfSide } from '../way/fate.ts';
import { modeFacts, type ProxyMode } from '../../kube-proxy/modes.ts';
import type { Behaviour } from '../../kube-proxy/releases.ts';
import { behaviourText } from './behaviours.ts';
import { count, formatCount } from '../../base/printable.ts';
import { describeKernelChange, tableWords } from '../changes.ts';
import { affinityWords, serviceReasonWords } from '../port-facts.ts';

interface CauseWords {
  readonly title: string;
  /** What each mode does, in words that follow the mode's name. */
  readonly modes?: { readonly [M in ProxyMode]: string | ReleaseWords };
  /** Advice for an operator, if there is any. It may depend on the sender and on the new side. */
  readonly advice?: string | ((at: Situation) => string | undefined);
}

interface ReleaseWords {
  readonly behaviour: Behaviour;
  readonly without: string;
  readonly with: string;
}

const ipvsBinds = 'binds the address to kube-ipvs0, so the node itself answers packets that match no virtual server';

const answersEverywhere = 'answers on every address of the node, unless nodePortAddresses picks some';

const answersOnPrimary = "answers on the node's primary address only, unless nodePortAddresses picks others";

const dropsFromOutside =
  'sends packets from pods and the node itself to all endpoints, and drops packets from outside if this node has no endpoint';

const ignoresPolicy = 'ignores the policy, and sends every client to all endpoints';

const dropsWithoutEndpoint = 'drops packets from clients on a node without endpoints';

const routesPings = 'leaves pings to routing';

const routesOthers = 'leaves such packets to routing';

const routesUnused = 'leaves unused addresses of the Service network to routing';

const masqueradesHere = "masquerades the pod's packets only if the pod is on this node";

const masqueradesEverywhere = "masquerades the pod's packets on every node they pass";

export const causeWords: { readonly [C in CauseId]: CauseWords } = {
  'lost-jump': {
    title: "One side has lost kube-proxy's rules, or the jumps to them",
    advice: 'restart kube-proxy, and find out which program removed the rules',
  },
  'one-sided': { title: 'Only one side has the Service port' },
  'service-addresses': { title: 'The Services have different addresses or ports' },
  'node-addresses': {
    title: 'The node has different addresses on the two sides',
    advice: 'let clients use an address that the node has on both sides',
  },
  'foreign-rules': {
    title: 'Rules of other programs stop packets on one side only',
    advice:
      'compare the rules and chain policies of other programs, such as a firewall, on both sides, and make them accept these packets',
  },
  kernel: {
    title: "The kernel's settings or routes are not the same on both sides",
    advice: 'compare the sysctls and routes of both sides',
  },
  rules: {
    title: "kube-proxy's rules are not the same on both sides",
    advice: 'compare the rules with kpc diff, and restart kube-proxy, which then writes all of its rules again',
  },
  'service-fields': { title: 'The Services have different policies' },
  'service-endpoints': { title: 'The Services have different endpoints' },
  behaviour: { title: 'The two kube-proxies choose different endpoints' },
  'node-port-addresses': {
    title: 'Node ports do not answer on the same addresses of the node',
    modes: {
      ipvs: answersEverywhere,
      iptables: answersEverywhere,
      nftables: answersOnPrimary,
      userspace: 'answers on every address of the node',
    },
    advice: 'set nodePortAddresses to the networks of the addresses that clients use (0.0.0.0/0 and ::/0 for all)',
  },
  'node-port-loopback': {
    title: 'Node ports on loopback addresses behave differently',
    modes: {
      ipvs: 'serves no node ports on loopback addresses',
      iptables: 'serves node ports on IPv4 loopback addresses, unless iptables.localhostNodePorts is false',
      nftables: {
        behaviour: 'localhost-node-ports',
        without: 'has no rules for loopback addresses',
        with: 'rejects packets to node ports on localhost, except to TCP ports that kube-proxy itself serves there',
      },
      userspace: 'serves node ports on IPv4 loopback addresses',
    },
    advice:
      "have programs on the node connect to the node's own address or the cluster IP; or, for TCP in nftables mode, name localhost in nodePortAddresses (from Kubernetes 1.38 on, in 1.37 with the feature gate KubeProxyNFTablesLocalhostNodePorts)",
  },
  'external-ips': {
    title: 'Only one side programs externalIPs',
    advice: 'give the Services another address, such as that of a load balancer',
  },
  'external-policy-local': {
    title: 'externalTrafficPolicy Local does not choose the same endpoints',
    modes: {
      ipvs: 'sends every client to the endpoints on this node, or to all endpoints if this node has none',
      iptables: dropsFromOutside,
      nftables: dropsFromOutside,
      userspace: ignoresPolicy,
    },
    advice: adviceOnExternalLocal,
  },
  'internal-policy-local': {
    title: 'internalTrafficPolicy Local does not choose the same endpoints',
    modes: {
      ipvs: 'refuses clients on a node without endpoints, unless the Service has a node port or an external address: then it sends them to all endpoints',
      iptables: dropsWithoutEndpoint,
      nftables: dropsWithoutEndpoint,
      userspace: ignoresPolicy,
    },
    advice: 'run the endpoints on every node that has clients, as a DaemonSet does',
  },
  'source-ranges': {
    title: 'loadBalancerSourceRanges does not admit the same clients',
    advice: 'compare the ranges with the source addresses that clients have when they reach the node',
  },
  connection: {
    title: 'First packets fare the same on both sides, but later packets or answers do not',
    advice: 'make answers, and the packets that clients send after them, take the same paths as before',
  },
  'no-endpoints': { title: 'Services without endpoints fail differently' },
  hairpin: {
    title: 'A pod that reaches itself through its Service is treated differently',
    modes: {
      ipvs: masqueradesHere,
      iptables: masqueradesEverywhere,
      nftables: { behaviour: 'hairpin-set', without: masqueradesEverywhere, with: masqueradesHere },
      userspace: 'connects to the pod from the node, as for every client',
    },
    advice:
      'check that pods reach Services through their own node, as with common network plugins: then nothing changes for them',
  },
  masquerade: {
    title: 'Endpoints do not see the same source address',
    advice:
      'check masqueradeAll, clusterCIDR and detectLocalMode on both sides, and the programs that read client addresses',
  },
  endpoints: { title: 'Different endpoints are chosen, or the same endpoints with different probabilities' },
  'health-check': {
    title: 'A health check node port answers differently',
    modes: {
      ipvs: `${answersEverywhere}; kube-ipvs0 has the addresses of Services, too`,
      iptables: answersEverywhere,
      nftables: answersOnPrimary,
      userspace: 'answers no health checks',
    },
    advice: 'let load balancers check the primary address of each node; for its other addresses, set nodePortAddresses',
  },
  'unserved-port': {
    title: 'Other ports of a Service address are answered differently',
    modes: {
      ipvs: ipvsBinds,
      iptables: `${routesOthers}, which may send them back out by the default route`,
      nftables: 'rejects other ports of cluster IPs, and leaves ports of other addresses to routing',
      userspace: routesOthers,
    },
    advice: 'check programs that expect an answer there, such as port scans and health checks of a load balancer',
  },
  ping: {
    title: 'Pings to a Service address are answered differently',
    modes: {
      ipvs: ipvsBinds,
      iptables: routesPings,
      nftables: 'rejects pings to cluster IPs, and leaves other pings to routing',
      userspace: routesPings,
    },
    advice: 'let monitoring probe a port of the Service instead',
  },
  'unserved-address': {
    title: 'Addresses that no Service has are treated differently',
    modes: {
      ipvs: routesUnused,
      iptables: routesUnused,
      nftables: 'drops packets to unused addresses of the Service network, if it knows the network',
      userspace: routesUnused,
    },
  },
  'proxy-port': {
    title: 'The port on the node that accepts connections to Services differs or is missing',
    advice:
      'check whether a firewall or a program names this port; clients are unaffected, because they use the addresses of Services',
  },
  'ungiven-endpoints': {
    title: 'Services or workloads changed, and no input gives the endpoints of both sides',
  },
  'not-understood': {
    title: 'The outcome depends on something that the input does not show',
  },
  other: { title: 'Packets are treated differently' },
};

/** Gives advice on externalTrafficPolicy Local. kube-proxy treats Pods that it cannot recognise as outside clients (issue 131765). */
function adviceOnExternalLocal({ place, detectsPods, isChecked }: Situation): string | undefined {
  if (place === 'pod' && !detectsPods) {
    return 'set clusterCIDR to a network with all pods, or choose another detectLocalMode, before the change: otherwise kube-proxy treats pods as clients outside the cluster';
  }
  if (place === 'other-node') return 'let pods and nodes of the cluster use the cluster IP';
  if (place !== 'outside') return undefined;
  const [senders, having] = isChecked
    ? ['load balancers', 'whose health check node port reports']
    : ['clients', 'with'];
  return `let ${senders} send only to nodes ${having} an endpoint`;
}

/** Returns sentences that say what each side does. */
export function reasonsOf({ cause, reasons, served }: Divergence): readonly string[] {
  return [
    ...new Set(reasons.flatMap((reason) => causeReason(causeWords[cause], reason))),
    ...(['old', 'new'] as const).flatMap((side) =>
      served[side].length === 0
        ? []
        : [
            `Here only the ${side} side ${cause === 'health-check' ? 'answers' : 'serves node ports'} on ${served[side].join(', ')}.`,
          ],
    ),
  ];
}

function causeReason({ modes }: CauseWords, reason: CauseReason): readonly string[] {
  switch (reason.kind) {
    case 'modes':
      return modes ? modesWords(modes, reason) : [];
    case 'behaviour':
      return [`${behaviourText(reason)}.`];
    case 'fields':
      return [`${fieldsWords(reason.from)} → ${fieldsWords(reason.to)}.`];
    case 'service':
      return [`${reason.service}: ${serviceReasonWords(reason.reason)}.`];
    case 'lost-jump':
      return [`${reason.side}: nothing in ${reason.from} leads to ${reason.to ?? 'an endpoint'}.`];
    case 'stop': {
      const { side, stop } = reason;
      const words = stop.kind === 'stranger' ? stopperWords(stop.step) : decisionWords(stop.decision, stop.destination);
      return [`${nameOfSide(side)}: ${words}.`];
    }
    case 'sysctl':
      return [`${reason.name}: ${reason.from} → ${reason.to}.`];
    case 'lost-rules':
      return [`${nameOfSide(reason.side)} lacks ${lostWords(reason)}.`];
    case 'losses':
      return [`${nameOfSide(reason.side)}: ${lossesWords(reason.losses, reason.family)}.`];
  }
}

function lostWords({ lost, more }: LostRules): string {
  const words = lost.map((change) => {
    if (change.kind !== 'chain' || change.change !== 'changed') return describeKernelChange(change);
    const { family, table, chain, added, removed } = change.fields;
    const [rule = '', ...others] = [...added, ...removed];
    const rest = others.length === 0 ? '' : ` and ${count(others.length, 'more rule')}`;
    return `-A ${chain} ${rule}${rest} (${tableWords(family, table)})`;
  });
  return [...words, ...(more > 0 ? [`and ${formatCount(more)} more`] : [])].join('; ');
}

/** Returns what each side's mode does. Empty if both modes do the same, because that does not explain a difference. */
function modesWords(
  modes: NonNullable<CauseWords['modes']>,
  { from, to }: Extract<CauseReason, { readonly kind: 'modes' }>,
): readonly string[] {
  const clauses = [from, to].map((side) => side && modeClause(modes[side.mode], side));
  if (clauses[0] === clauses[1]) return [];
  return [from, to].flatMap((side, at) => {
    const [clause, release] = [clauses[at], from?.mode === to?.mode ? side?.by?.release : undefined];
    if (!side || clause === undefined) return [];
    const by = release === undefined ? '' : ` of Kubernetes ${release}`;
    return [`${modeFacts[side.mode].title}${by} ${clause}.`];
  });
}

/** Undefined if the clause depends on the release and the release is unknown. */
function modeClause(words: string | ReleaseWords, { by }: ModeOfSide): string | undefined {
  if (typeof words === 'string') return words;
  return by && (by.does.includes(words.behaviour) ? words.with : words.without);
}

type Fields = Extract<CauseReason, { readonly kind: 'fields' }>['from'];

function fieldsWords(fields: Fields): string {
  return fields
    .map(({ field, value }) => `${field} ${field === 'sessionAffinity' ? affinityWords(value) : (value ?? 'unset')}`)
    .join(', ');
}

/** Returns sentences that say what to do. Empty if nothing that works is lost or changed. */
export function adviceOn({ cause, situations }: Divergence): readonly string[] {
  const { advice } = causeWords[cause];
  if (advice === undefined || situations.length === 0) return [];
  const texts = typeof advice === 'string' ? [advice] : situations.flatMap((each) => advice(each) ?? []);
  return [...new Set(texts)];
}
