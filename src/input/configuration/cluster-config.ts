import type { Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { InputSource } from '../documents/document.ts';
import { flagKey } from '../../kube-proxy/settings/setting.ts';
import type { ProxyFlags } from '../../kube-proxy/settings/table.ts';
import type { RangeFlags } from './assignment-ranges.ts';

/** What another program's configuration says of a cluster, in terms of flags. */
export interface ClusterFacts {
  readonly ranges: RangeFlags;
  /** How kube-proxy is set up; what a KubeProxyConfiguration says counts more. */
  readonly proxy: ProxyFlags;
  /** Whether it says how kube-proxy is set up at all. */
  readonly configures: boolean;
  readonly place: Diagnostic['place'];
}

type Mapping = Readonly<Record<string, unknown>>;

/** kube-apiserver's own default. */
const defaultNodePorts = '30000-32767';

/**
 * What a document tells of the cluster's ranges: a ClusterConfiguration of kubeadm, a cluster of kind, the configuration of
 * k3s or RKE2, or the Pod of a kube-apiserver. Undefined for any other.
 */
export function readClusterFacts(value: Mapping, source: InputSource): ClusterFacts | undefined {
  const { apiVersion, kind } = value;
  if (kind === 'Pod') return readApiServer(value, source.place([]));
  if (kind === 'ClusterConfiguration') {
    return startsWith(apiVersion, 'kubeadm.k8s.io/') ? readKubeadm(value, source.place([])) : undefined;
  }
  if (kind === 'Cluster')
    return startsWith(apiVersion, 'kind.x-k8s.io/') ? readKind(value, source.place([])) : undefined;
  const isBare = kind === undefined && apiVersion === undefined;
  return isBare && isK3s(value) ? readK3s(value, source.place([])) : undefined;
}

function readKubeadm(value: Mapping, place: Diagnostic['place']): ClusterFacts {
  const networking = fieldsOf(value['networking']);
  const apiServer = argumentsOf(fieldsOf(value['apiServer'])['extraArgs']);
  return {
    ranges: {
      serviceClusterIpRange: textOf(networking['serviceSubnet']) ?? '10.96.0.0/12',
      serviceNodePortRange: apiServer.get('service-node-port-range') ?? defaultNodePorts,
    },
    proxy: { proxyMode: 'iptables', clusterCidr: textOf(networking['podSubnet']) },
    configures: true,
    place,
  };
}

function readKind(value: Mapping, place: Diagnostic['place']): ClusterFacts {
  const networking = fieldsOf(value['networking']);
  const family = textOf(networking['ipFamily']) ?? 'ipv4';
  const pick = (v4: string, v6: string): string => {
    if (family === 'dual') return `${v4},${v6}`;
    return family === 'ipv6' ? v6 : v4;
  };
  const mode = textOf(networking['kubeProxyMode']) ?? 'iptables';
  return {
    ranges: {
      serviceClusterIpRange: textOf(networking['serviceSubnet']) ?? pick('10.96.0.0/16', 'fd00:10:96::/112'),
      serviceNodePortRange: defaultNodePorts,
    },
    proxy: {
      ...(mode === 'none' ? {} : { proxyMode: mode }),
      clusterCidr: textOf(networking['podSubnet']) ?? pick('10.244.0.0/16', 'fd00:10:244::/56'),
    },
    configures: true,
    place,
  };
}

/** Names that only the configuration of k3s and RKE2 has. */
const k3sNames = [
  'cluster-cidr',
  'service-cidr',
  'kube-proxy-arg',
  'kube-apiserver-arg',
  'service-node-port-range',
  'write-kubeconfig-mode',
  'flannel-backend',
  'cluster-init',
  'disable-kube-proxy',
];

function isK3s(value: Mapping): boolean {
  return k3sNames.some((name) => Object.hasOwn(value, name));
}

function readK3s(value: Mapping, place: Diagnostic['place']): ClusterFacts {
  const apiServer = argumentsOf(value['kube-apiserver-arg']);
  const proxy = argumentsOf(value['kube-proxy-arg']);
  const flags = [...proxy].map(([name, text]) => [flagKey(name), text] as const);
  return {
    ranges: {
      serviceClusterIpRange: listOf(value['service-cidr']) ?? '10.43.0.0/16',
      serviceNodePortRange:
        textOf(value['service-node-port-range']) ?? apiServer.get('service-node-port-range') ?? defaultNodePorts,
    },
    proxy: {
      proxyMode: 'iptables',
      clusterCidr: listOf(value['cluster-cidr']) ?? '10.42.0.0/16',
      ...(Object.fromEntries(flags) as ProxyFlags),
    },
    configures: true,
    place,
  };
}

function readApiServer(value: Mapping, place: Diagnostic['place']): ClusterFacts | undefined {
  const { containers } = fieldsOf(value['spec']);
  for (const container of Array.isArray(containers) ? containers : []) {
    const { command, args } = fieldsOf(container);
    const words = [command, args]
      .flatMap((list) => (Array.isArray(list) ? list : []))
      .flatMap((word: unknown) => {
        return typeof word === 'string' ? word.split(/\s+/) : [];
      });
    if (!words.some((word) => /(?:^|\/)kube-apiserver$/.test(word))) continue;
    const flags = argumentsOf(words);
    const clusterIPs = flags.get('service-cluster-ip-range');
    if (clusterIPs === undefined) continue;
    const nodePorts = flags.get('service-node-port-range') ?? defaultNodePorts;
    const ranges = { serviceClusterIpRange: clusterIPs, serviceNodePortRange: nodePorts };
    return { ranges, proxy: {}, configures: false, place };
  }
  return undefined;
}

/** Arguments by name: "--name=value" or "name=value" in a list, { name, value } in a list, or a mapping. */
function argumentsOf(value: unknown): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  if (!Array.isArray(value)) {
    for (const [name, each] of Object.entries(fieldsOf(typeof value === 'string' ? {} : value))) {
      const text = textOf(each);
      if (text !== undefined) found.set(name, text);
    }
    return typeof value === 'string' ? argumentsOf([value]) : found;
  }
  for (const [i, item] of value.entries()) {
    const { name, value: given } = fieldsOf(item);
    if (typeof name === 'string') found.set(name, textOf(given) ?? '');
    if (typeof item !== 'string') continue;
    const [, flag, text] = /^(?:--)?([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(item) ?? [];
    const next: unknown = value[i + 1];
    if (flag === undefined) continue;
    if (text !== undefined) found.set(flag, text);
    else if (item.startsWith('--') && typeof next === 'string' && !next.startsWith('-')) found.set(flag, next);
  }
  return found;
}

function startsWith(value: unknown, start: string): boolean {
  return typeof value === 'string' && value.startsWith(start);
}

function fieldsOf(value: unknown): Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Mapping) : {};
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A text, or a list of them. */
function listOf(value: unknown): string | undefined {
  return Array.isArray(value) ? value.map((item) => textOf(item) ?? '').join(',') : textOf(value);
}
