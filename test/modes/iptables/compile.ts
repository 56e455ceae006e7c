import { indexCluster } from '../../../src/cluster/address-index.ts';
import { newestRelease } from '../../../src/kube-proxy/releases.ts';
import { defaultSettings } from '../../../src/settings/table.ts';
import {
  servicePortLabel,
  type Cluster,
  type Endpoint,
  type NodeContext,
  type ServicePort,
} from '../../../src/cluster/model.ts';
import type { EndpointStatus, ProxySettings } from '../../../src/cluster/objects.ts';
import { compileIptables } from '../../../src/modes/iptables/compile-iptables.ts';
import {
  type Address,
  families,
  type Family,
  joinHostPort,
  parseAddress,
  parseNetwork,
} from '../../../src/kernel/address.ts';
import { formatRule } from '../../../src/kernel/iptables/iptables.ts';
import type { KernelState } from '../../../src/kernel/state.ts';

export function address(text: string): Address {
  const parsed = parseAddress(text);
  if (!parsed) throw new Error(`not an address: ${text}`);
  return parsed;
}

export function network(text: string) {
  const parsed = parseNetwork(text);
  if (!parsed) throw new Error(`not a network: ${text}`);
  return parsed;
}

/** The node of all tests: worker-1 in zone-a, with one address of each family besides loopback. */
export const worker: NodeContext = {
  name: 'worker-1',
  zone: 'zone-a',
  podCIDRs: [network('10.244.1.0/24')],
  nodeIPs: { ipv4: address('192.168.0.1'), ipv6: address('fd00::1') },
  hostAddresses: ['127.0.0.1', '192.168.0.1', '::1', 'fd00::1'].map(address),
};

/** kube-proxy's defaults, with a cluster CIDR to tell pods by. */
export const defaults: ProxySettings = {
  ...defaultSettings('iptables'),
  release: newestRelease,
  clusterCIDRs: ['10.244.0.0/16'],
};

/** What may be different of an endpoint in a test. */
type EndpointFields = Partial<EndpointStatus> & { readonly port?: number };

/** A ready endpoint on worker-1, at port 8080. */
export function endpoint(ip: string, { port = 8080, ...status }: EndpointFields = {}): Endpoint {
  return {
    address: address(ip),
    port,
    label: joinHostPort(ip, port),
    status: {
      nodeName: 'worker-1',
      zone: 'zone-a',
      ready: true,
      serving: true,
      terminating: false,
      zoneHints: [],
      nodeHints: [],
      ...status,
    },
  };
}

/** An endpoint on another node. */
export function remote(ip: string, fields: EndpointFields = {}): Endpoint {
  return endpoint(ip, { nodeName: 'worker-2', ...fields });
}

/** The state of an endpoint that still answers but is about to go. */
export const goingAway = { ready: false, serving: true, terminating: true } as const;

/** Port 80 of the Service shop/web: TCP, policy Cluster on both sides, with one endpoint on worker-1. */
export function servicePort(fields: Partial<ServicePort> = {}): ServicePort {
  const base = { namespace: 'shop', service: 'web', portName: '', ...fields };
  return {
    ...base,
    protocol: 'TCP',
    family: 'ipv4',
    label: servicePortLabel(base.namespace, base.service, base.portName),
    clusterIP: address('10.96.0.10'),
    port: 80,
    nodePort: 0,
    externalIPs: [],
    loadBalancerIPs: [],
    sourceRanges: [],
    affinitySeconds: 0,
    internalPolicyLocal: false,
    externalPolicyLocal: false,
    healthCheckNodePort: 0,
    scheduler: '',
    forwarding: 'masquerade',
    endpoints: [endpoint('10.244.1.5')],
    ...fields,
  };
}

export function clusterOf(...servicePorts: readonly ServicePort[]): Cluster {
  return indexCluster({ services: [], servicePorts, healthChecks: [], serviceCidrs: [] });
}

/** Compiles the ports for worker-1. */
export function compile(
  ports: readonly ServicePort[],
  settings: Partial<ProxySettings> = {},
  node: NodeContext = worker,
): KernelState {
  return compileIptables(clusterOf(...ports), node, { ...defaults, ...settings }, families);
}

/**
 * The rules of a chain as they are written, except for hashes: KUBE-SVC-… is KUBE-SVC, and KUBE-SEP-… has its endpoint
 * for a hash: KUBE-SEP(10.244.1.5:8080). A chain with a hash is named so, too. Undefined if there is no such chain.
 */
export function rules(
  state: KernelState,
  table: 'nat' | 'filter',
  chain: string,
  family: Family = 'ipv4',
): readonly string[] | undefined {
  const chains = [...(state.iptables[family]?.[table]?.values() ?? [])];
  const readable = (text: string) => text.replace(hashedName, (name) => readableName(state, family, name));
  const found = chains.filter(({ name }) => readable(name) === chain);
  if (found.length > 1) throw new Error(`more than one chain ${chain}`);
  return found[0]?.rules.map((rule) => readable(formatRule(rule)));
}

/** The names of the chains in a table, in order. */
export function chainNames(state: KernelState, table: 'nat' | 'filter', family: Family = 'ipv4'): readonly string[] {
  return [...(state.iptables[family]?.[table]?.keys() ?? [])];
}

/** The prefixes of the Service ports' own chains, in order: ['KUBE-SVC', 'KUBE-SEP']. */
export function serviceChainPrefixes(state: KernelState, family: Family = 'ipv4'): readonly string[] {
  return chainNames(state, 'nat', family).flatMap((name) => /^(KUBE-(?:SVC|SVL|EXT|FW|SEP))-/.exec(name)?.[1] ?? []);
}

const hashedName = /\b(KUBE-(?:SVC|SVL|EXT|FW|SEP))-[A-Z2-7]{16}\b/g;

function readableName(state: KernelState, family: Family, name: string): string {
  const prefix = name.slice(0, name.lastIndexOf('-'));
  const args = state.iptables[family]?.nat?.get(name)?.rules.flatMap((rule) => rule.args) ?? [];
  const endpoints = args.flatMap((arg) =>
    arg.kind === 'jump' && arg.target.kind === 'dnat'
      ? [joinHostPort(arg.target.address.text, arg.target.port ?? 0)]
      : [],
  );
  return prefix === 'KUBE-SEP' ? `${prefix}(${endpoints.join()})` : prefix;
}
