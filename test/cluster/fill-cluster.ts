import {
  endpointsByHand,
  nodeStatuses,
  nodes,
  placedPods,
  podOf,
  podStatusOf,
  policies,
  serviceStatuses,
  services,
} from './objects.ts';
import type { RuleMode } from './kube-proxy.ts';
import { apply, kubectl, setStatus, waitFor, type ClusterFiles } from './start-cluster.ts';

/** Creates all objects, and waits until the controllers have made the slices of each Service. Does nothing the second time. */
export async function fillCluster(cluster: ClusterFiles): Promise<void> {
  if (kubectl(cluster, ['get', 'nodes', '-o', 'name']).trim() !== '') return;
  apply(cluster, nodes);
  setStatus(cluster, nodeStatuses);
  apply(cluster, [...services, ...endpointsByHand, ...policies, ...placedPods.map(podOf)]);
  setStatus(cluster, [...serviceStatuses, ...placedPods.map(podStatusOf)]);
  kubectl(cluster, ['delete', 'pod', 'draining-1', 'draining-2', '--wait=false', '--grace-period=3600']);
  await waitFor('the EndpointSlices of all Services', () => isSettled(cluster));
}

interface Slice {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
  readonly endpoints?: readonly { readonly conditions?: Readonly<Record<string, boolean>> }[] | null;
}

function isSettled(cluster: ClusterFiles): boolean {
  const { items } = JSON.parse(kubectl(cluster, ['get', 'endpointslices', '-A', '-o', 'json'])) as { items: Slice[] };
  const endpointsOf = (service: string) =>
    items.flatMap(({ metadata, endpoints }) =>
      metadata.labels?.['kubernetes.io/service-name'] === service ? (endpoints ?? []) : [],
    );
  const draining = endpointsOf('draining');
  return (
    endpointsOf('web').length === 4 &&
    endpointsOf('dual').length === 8 &&
    endpointsOf('published').length === 1 &&
    endpointsOf('mirrored').length === 1 &&
    endpointsOf('same-node').length === 4 &&
    endpointsOf('host').length === 1 &&
    draining.length === 2 &&
    draining.every(({ conditions }) => conditions?.['terminating'] === true)
  );
}

/** Settings of kube-proxy, as the tests change them. */
export interface ProxyConfig {
  readonly mode: RuleMode;
  readonly clusterCIDR?: string;
  readonly masqueradeAll?: boolean;
  readonly localhostNodePorts?: boolean;
  readonly detectLocalMode?: 'InterfaceNamePrefix' | 'NodeCIDR';
  readonly nodePortAddresses?: readonly string[];
}

/** Writes kube-proxy's ConfigMap as kubeadm names it, and returns the configuration in it. */
export function writeConfigMap(cluster: ClusterFiles, config: ProxyConfig): string {
  const text = configOf(config);
  const metadata = { name: 'kube-proxy', namespace: 'kube-system' };
  apply(cluster, [{ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'config.conf': text } }]);
  return text;
}

function configOf(config: ProxyConfig): string {
  const { mode, clusterCIDR = '', masqueradeAll = false, detectLocalMode = 'ClusterCIDR', nodePortAddresses } = config;
  // A network namespace may not change the sysctls of the machine.
  return `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: ${mode}
clientConnection:
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
clusterCIDR: "${clusterCIDR}"
detectLocalMode: ${detectLocalMode}
detectLocal:
  interfaceNamePrefix: "${detectLocalMode === 'InterfaceNamePrefix' ? 'veth' : ''}"
nodePortAddresses: ${JSON.stringify(nodePortAddresses ?? null)}
conntrack:
  maxPerCore: 0
  min: 0
  tcpCloseWaitTimeout: 0s
  tcpEstablishedTimeout: 0s
iptables:
  masqueradeAll: ${masqueradeAll}
  localhostNodePorts: ${config.localhostNodePorts ?? true}
nftables:
  masqueradeAll: ${masqueradeAll}
`;
}
