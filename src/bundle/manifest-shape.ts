import {
  amount,
  listOf,
  mapOf,
  nullable,
  objectOf,
  oneOf,
  optional,
  text,
  textThat,
  wholeNumber,
} from '../base/json-shape.ts';
import type { AssumedPod, AssumedWorkload } from '../cluster/assumed-workloads.ts';
import type { IpvsTimeouts } from '../kernel/ipvs/ipvs.ts';
import { proxyModes } from '../kube-proxy/modes.ts';
import { newestRelease, releases } from '../kube-proxy/releases.ts';
import { settingsShape } from '../kube-proxy/settings/values.ts';
import { address, network, port } from './stored-address.ts';
import {
  readKubeProxyVersion,
  type BundleFileName,
  type HealthCheck,
  type Manifest,
  type StoredRange,
} from './manifest.ts';

const checksum = textThat('a SHA-256 in hex', (value) => /^[0-9a-f]{64}$/.test(value));
const kubeProxyVersion = textThat(
  `the version of a kube-proxy of Kubernetes ${releases[0]} to ${newestRelease}`,
  (value) => readKubeProxyVersion(value) !== undefined,
);
const mode = oneOf(...proxyModes);

/** The addresses and ports that kpc chose for one Service. */
export const assignedShape = objectOf<Manifest['assigned'][number]>({
  service: text,
  clusterIPs: listOf(address),
  nodePorts: mapOf(port),
  healthCheckNodePort: optional(port),
  loadBalancerIPs: optional(listOf(address)),
});

/** The Pods that kpc assumes of one workload. */
export const assumedShape = objectOf<AssumedWorkload>({
  workload: text,
  pods: listOf(objectOf<AssumedPod>({ name: text, node: optional(text), addresses: listOf(address) })),
});

/** What manifest.json must be like: nothing that reads a Manifest looks at its fields again. */
export const manifestShape = objectOf<Manifest>({
  formatVersion: wholeNumber(1),
  kpcVersion: text,
  kubeProxyVersion,
  mode,
  dumped: optional(oneOf(true)),
  node: objectOf<Manifest['node']>({
    name: text,
    zone: text,
    podCIDRs: listOf(network),
    nodeIPs: objectOf<Manifest['node']['nodeIPs']>({ ipv4: address, ipv6: address }),
    hostAddresses: listOf(address),
  }),
  families: listOf(oneOf('ipv4', 'ipv6')),
  settings: settingsShape,
  serviceCidrs: optional(
    listOf(objectOf<StoredRange>({ cidr: network, from: oneOf('ServiceCIDR', '--service-cluster-ip-range') })),
  ),
  ipvsTimeouts: nullable(objectOf<IpvsTimeouts>({ tcp: amount, tcpFin: amount, udp: amount })),
  healthChecks: listOf(
    objectOf<HealthCheck>({
      port,
      service: text,
      localEndpoints: objectOf<HealthCheck['localEndpoints']>({
        ipv4: optional(wholeNumber(0)),
        ipv6: optional(wholeNumber(0)),
      }),
    }),
  ),
  assigned: listOf(assignedShape),
  assumedEndpoints: optional(listOf(assumedShape)),
  tools: mapOf(text),
  counts: mapOf(wholeNumber(0)),
  files: mapOf<string, BundleFileName>(checksum),
});
