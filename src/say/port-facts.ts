import { uniqueBy } from '../cluster/grouping.ts';
import { count } from '../base/printable.ts';
import { portAddresses, type PortAddress, type ServiceInfo, type ShownPort } from '../cluster/model.ts';
import { externalPolicyOf, internalPolicyOf } from '../cluster/plan-traffic.ts';
import { familyNames } from '../kernel/family.ts';

export const addressWords: { readonly [K in PortAddress['kind'] | 'node-port']: string } = {
  'cluster-ip': 'cluster IP',
  'external-ip': 'external IP',
  'load-balancer-ip': 'load balancer address',
  unknown: 'address',
  'node-port': 'node port',
};

/** A Service port in --output json of kpc describe and kpc diff. Undefined values are left out. */
export function portJson(port: ShownPort, type?: ServiceInfo['type']) {
  const { forwarding } = port;
  return {
    family: port.family,
    protocol: port.protocol,
    port: port.port,
    ...(type === undefined ? {} : { type }),
    addresses: portAddresses(port).map(({ kind, address }) => ({ kind, address: address.text })),
    nodePort: port.nodePort || undefined,
    internalTrafficPolicy: internalPolicyOf(port),
    externalTrafficPolicy: externalPolicyOf(port),
    affinitySeconds: port.affinitySeconds || undefined,
    sourceRanges: (port.sourceRanges ?? []).map(({ text }) => text),
    healthCheckNodePort: port.healthCheckNodePort || undefined,
    scheduler: port.scheduler || undefined,
    ...(forwarding === undefined || forwarding === 'masquerade' ? {} : { forwarding }),
    endpoints: port.endpoints?.length,
  };
}

/** A Service port that a kernel shows, for programs. */
export function kernelPortJson(port: ShownPort) {
  const { addresses, sourceRanges, endpoints, ...others } = portJson(port);
  return { ...others, addresses, sourceRanges, hidesSourceRanges: port.hidesSourceRanges, endpoints };
}

/** One known fact about a Service port, in words. */
export interface Fact {
  readonly kind: 'type' | 'port' | 'node-port' | 'address' | 'policy' | 'endpoints';
  readonly text: string;
  /** Set for defaults that a Service has without asking. */
  readonly isUsual?: boolean;
}

/** Policies, session affinity, source ranges and the health check, as far as they are known. */
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
    ...(port.hidesSourceRanges ? ['load balancer for some sources only, which are not shown'] : []),
    ...(port.healthCheckNodePort ? [`health check node port ${write(String(port.healthCheckNodePort))}`] : []),
  ];
  return [
    ...policies.flatMap(([name, policy]): readonly Fact[] =>
      policy === undefined ? [] : [{ kind: 'policy', text: `${name} ${policy}`, isUsual: policy === 'Cluster' }],
    ),
    ...texts.map((text): Fact => ({ kind: 'policy', text })),
  ];
}

/** All known facts about a Service port. Facts that both families share appear once. */
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

/** Explains the star at a value that kpc chose. */
export const assumedNote = '* assumed';

/** Writes a Service's value into a sentence, for example with a mark if kpc chose it. */
export type WriteValue = (value: string) => string;
