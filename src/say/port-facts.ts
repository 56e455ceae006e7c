import { uniqueBy } from '../cluster/grouping.ts';
import { count } from '../base/printable.ts';
import { portAddresses, type PortAddress, type ServiceInfo, type ShownPort } from '../cluster/model.ts';
import { skippingLabels } from '../kube-proxy/skipped.ts';
import { externalPolicyOf, internalPolicyOf } from '../cluster/plan-traffic.ts';
import { familyNames } from '../kernel/address.ts';
import { turn } from './changes.ts';
import { behaviourEnds, behaviourText } from './words/behaviours.ts';
import { faultWords, listenerWords, localhostWords } from './way/lack.ts';
import type { EndpointState, ServiceReason, Skip } from '../ask/diff/service-reasons.ts';

export const addressWords: { readonly [K in PortAddress['kind'] | 'node-port']: string } = {
  'cluster-ip': 'cluster IP',
  'external-ip': 'external IP',
  'load-balancer-ip': 'load balancer address',
  unknown: 'address',
  'node-port': 'node port',
};

/** Formats a Service port for the JSON of kpc describe and kpc diff, without undefined values. */
export function portJson(port: ShownPort, type?: ServiceInfo['type']) {
  const { forwarding } = port;
  return {
    family: port.family,
    protocol: port.protocol,
    port: port.port,
    type,
    addresses: portAddresses(port).map(({ kind, address }) => ({ kind, address: address.text })),
    nodePort: port.nodePort || undefined,
    internalTrafficPolicy: internalPolicyOf(port),
    externalTrafficPolicy: externalPolicyOf(port),
    affinitySeconds: port.affinitySeconds || undefined,
    sourceRanges: (port.sourceRanges ?? []).map(({ text }) => text),
    hidesSourceRanges: port.hidesSourceRanges,
    healthCheckNodePort: port.healthCheckNodePort || undefined,
    scheduler: port.scheduler || undefined,
    forwarding: forwarding === 'masquerade' ? undefined : forwarding,
    endpoints: port.endpoints?.length,
  };
}

/** A known fact about a Service port, in words. */
export interface Fact {
  readonly kind: 'type' | 'port' | 'node-port' | 'address' | 'policy' | 'endpoints';
  readonly text: string;
  /** Set if a Service has this value by default. */
  readonly isUsual?: boolean;
}

/** Lists the policies, session affinity, source ranges and health check, as far as they are known. */
export function listPolicies(port: ShownPort, write: WriteValue = String): readonly Fact[] {
  const ranges = (port.sourceRanges ?? []).map(({ text }) => text);
  const policies = [
    ['internalTrafficPolicy', internalPolicyOf(port)],
    ['externalTrafficPolicy', externalPolicyOf(port)],
  ] as const;
  const texts = [
    ...(port.affinitySeconds ? [`session affinity by client for ${port.affinitySeconds} s`] : []),
    ...(port.scheduler ? [`scheduler ${port.scheduler}`] : []),
    ...(ranges.length === 0 ? [] : [`load balancer for ${ranges.join(', ')} only`]),
    ...(port.hidesSourceRanges ? ['load balancer for some sources only (not shown)'] : []),
    ...(port.healthCheckNodePort ? [`health check node port ${write(String(port.healthCheckNodePort))}`] : []),
  ];
  return [
    ...policies.flatMap(([name, policy]): readonly Fact[] =>
      policy === undefined ? [] : [{ kind: 'policy', text: `${name} ${policy}`, isUsual: policy === 'Cluster' }],
    ),
    ...texts.map((text): Fact => ({ kind: 'policy', text })),
  ];
}

/** Lists all known facts about a Service port, without repeating facts that both families share. */
export function listFacts(
  families: readonly ShownPort[],
  type: ServiceInfo['type'] | undefined,
  write: WriteValue = String,
): readonly Fact[] {
  const facts = [
    ...families.flatMap(({ port, nodePort, protocol }): readonly Fact[] => [
      ...(type === undefined ? [] : [{ kind: 'type', text: `type ${type}` } as const]),
      ...(port === undefined ? [] : [{ kind: 'port', text: `port ${port}/${protocol}` } as const]),
      ...(nodePort ? [{ kind: 'node-port', text: `node port ${write(String(nodePort))}/${protocol}` } as const] : []),
    ]),
    ...families.flatMap((port) =>
      portAddresses(port).map(({ kind, address }): Fact => {
        return { kind: 'address', text: `${addressWords[kind]} ${write(address.text)}` };
      }),
    ),
    ...families.flatMap((port) => listPolicies(port, write)),
  ];
  const counts = families.flatMap(({ family, endpoints }): readonly Fact[] => {
    if (endpoints === undefined) return [];
    const number = endpoints.length;
    const what = `${families.length === 1 ? '' : `${familyNames[family]} `}endpoint`;
    return [{ kind: 'endpoints', text: number === 0 ? `no ${what}s` : count(number, what) }];
  });
  return [...uniqueBy(facts, ({ text }) => text), ...counts];
}

/** Explains the star, which marks a value that kpc chose. */
export const assumedNote = '* assumed';

/** Formats a Service's value for a sentence. May add a mark if kpc chose the value. */
export type WriteValue = (value: string) => string;

/** Describes a reason in Kubernetes' own terms, on one line. */
export function serviceReasonWords(reason: ServiceReason, write: WriteValue = String): string {
  switch (reason.kind) {
    case 'service-added':
    case 'service-removed':
    case 'port-added':
    case 'port-removed':
      return wholeWords[reason.kind];
    case 'programmed':
      return `${skipWords(reason.from)} → ${skipWords(reason.to)}`;
    case 'port-renamed':
      return `port renamed: ${turn(reason.from, reason.to)}`;
    case 'field':
      return reason.field === 'sessionAffinity'
        ? `${reason.field} ${affinityWords(reason.from)} → ${affinityWords(reason.to)}`
        : `${reason.field} ${turn(write(reason.from), write(reason.to))}`;
    case 'node-port':
      return `${nodePortField(reason, write)} ${turn(...listenerEnds(reason))}`;
    case 'list': {
      const items = [
        ...reason.added.map((item) => `+ ${write(item)}`),
        ...reason.removed.map((item) => `− ${write(item)}`),
      ];
      return `${listNames.get(reason.field) ?? reason.field}: ${items.join(', ')}`;
    }
    case 'scaled':
      return `endpoints ${reason.from} → ${reason.to}`;
    case 'endpoint-added':
      return `endpoint ${reason.endpoint} ${addedWords(reason.state)}`;
    case 'endpoint-removed': {
      const { node, condition } = reason.state;
      if (condition === 'draining') return `endpoint ${reason.endpoint} removed (it was draining)`;
      return `endpoint ${reason.endpoint} ${node === undefined ? 'removed' : `removed (was on ${node})`}`;
    }
    case 'endpoint-changed':
      return `endpoint ${reason.endpoint} ${changedWords(reason.from, reason.to).join(', ')}`;
    case 'fault':
      return faultWords(reason.fault);
    case 'behaviour':
      return behaviourText(reason);
    case 'facts':
      return listFacts(reason.ports, reason.type, write)
        .map(({ text }) => text)
        .join(', ');
  }
}

export function affinityWords(seconds: string | number = ''): string {
  return seconds === '' ? 'None' : `ClientIP for ${seconds} s`;
}

const listNames: ReadonlyMap<string, string> = new Map([
  ['hostnames', 'host names in DNS'],
  ['loadBalancerIPs', 'load balancer addresses'],
]);

/** A reason for programs. Its kind determines the other fields. */
export interface ReasonJson {
  readonly kind: Exclude<ServiceReason['kind'], 'node-port'>;
  readonly text: string;
  readonly [field: string]: unknown;
}

export function reasonJson(reason: ServiceReason): ReasonJson {
  const text = serviceReasonWords(reason);
  switch (reason.kind) {
    case 'node-port': {
      const [from, to] = listenerEnds(reason);
      return { kind: 'field', field: nodePortField(reason), from, to, text };
    }
    case 'behaviour':
      return { kind: reason.kind, behaviour: reason.behaviour, ...behaviourEnds(reason), text };
    case 'facts': {
      const { kind, ports, type } = reason;
      return {
        kind,
        families: ports.map((port) => portJson(port, type)),
        text,
      };
    }
    case 'fault':
      return { kind: reason.kind, code: reason.fault.code, fault: text, text };
    default:
      return { ...reason, text };
  }
}

const wholeWords = {
  'service-added': 'Service added',
  'service-removed': 'Service removed',
  'port-added': 'port added to the Service',
  'port-removed': 'port removed from the Service',
} as const;

function skipWords(skip: Skip): string {
  switch (skip) {
    case undefined:
      return 'programmed by kube-proxy';
    case 'headless':
      return 'headless (clusterIP: None)';
    case 'external-name':
      return 'type ExternalName';
    case 'other-proxy':
      return `left to another proxy (label ${skippingLabels[skip]})`;
    case 'headless-label':
      return `ignored by kube-proxy (label ${skippingLabels[skip]})`;
    case 'no-cluster-ip':
      return 'without a cluster IP';
    case 'absent':
      return 'absent';
  }
}

/** Returns "IPv4 node port 30080 listens on". */
function nodePortField(
  { family, port, at }: ServiceReason & { readonly kind: 'node-port' },
  write: WriteValue = String,
): string {
  const what = at === 'addresses' ? 'listens on' : 'on localhost:';
  return `${family === undefined ? '' : `${familyNames[family]} `}node port ${write(String(port))} ${what}`;
}

function listenerEnds(reason: ServiceReason & { readonly kind: 'node-port' }): [from: string, to: string] {
  return reason.at === 'addresses'
    ? [listenerWords(reason.from), listenerWords(reason.to)]
    : [localhostWords[reason.from], localhostWords[reason.to]];
}

function addedWords(state: EndpointState): string {
  const { condition, node, used } = state;
  if (condition === 'draining') return 'drains: its real server has weight 0 and gets no new connections';
  const parts = [
    ...(condition === 'ready' ? [] : [condition]),
    ...(node === undefined ? [] : [`on ${node}`]),
    ...(used || condition !== 'ready' ? [] : [`not used ${unusedWhere(state)}`]),
  ];
  return parts.length === 0 ? 'added' : `added (${parts.join(', ')})`;
}

function changedWords(from: EndpointState, to: EndpointState): readonly string[] {
  const hints = turn(from.hints.join(' '), to.hints.join(' '));
  // An endpoint that becomes ready is also used from then on, and one that is no longer ready is no longer used.
  const isImplied = from.condition !== to.condition && to.used === (to.condition === 'ready');
  return [
    ...(from.condition === to.condition ? [] : [`${to.condition} (was ${from.condition})`]),
    ...(from.node === to.node ? [] : [`now on ${to.node ?? 'no node'} (was on ${from.node ?? 'no node'})`]),
    ...(from.zone === to.zone ? [] : [`zone ${turn(from.zone ?? '', to.zone ?? '')}`]),
    ...(from.hints.join() === to.hints.join() ? [] : [`hints ${hints}`]),
    ...(from.used === to.used || isImplied
      ? []
      : [to.used ? `now used ${unusedWhere(from)}` : `no longer used ${unusedWhere(to)}`]),
  ];
}

function unusedWhere({ usedByOwnNode }: EndpointState): string {
  return usedByOwnNode ? 'on nodes without it' : 'on this node';
}
