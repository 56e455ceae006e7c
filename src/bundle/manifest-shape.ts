import type { AssumedPod, AssumedWorkload } from '../cluster/assumed.ts';
import type { DetectLocal, ProxySettings } from '../cluster/objects.ts';
import { parseAddress, parseNetwork } from '../kernel/address.ts';
import type { IpvsTimeouts } from '../kernel/ipvs.ts';
import { proxyModes } from '../kube-proxy/modes.ts';
import { newestRelease, releases } from '../kube-proxy/releases.ts';
import type { HealthCheck, Manifest, StoredRange } from './manifest.ts';
import { readKubeProxyVersion } from './manifest.ts';
import {
  amount,
  boolean,
  listOf,
  mapOf,
  nullable,
  objectOf,
  oneOf,
  optional,
  shape,
  text,
  variantOf,
  wholeNumber,
} from './shape.ts';

const address = shape('an IP address', (value) => typeof value === 'string' && Boolean(parseAddress(value)));
const network = shape('a CIDR', (value) => typeof value === 'string' && Boolean(parseNetwork(value)));
const port = wholeNumber(1, 65_535);
const checksum = shape('a SHA-256 in hex', (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value));
const kubeProxyVersion = shape(
  `the version of a kube-proxy of Kubernetes ${releases[0]} to ${newestRelease}`,
  (value) => typeof value === 'string' && readKubeProxyVersion(value) !== undefined,
);
const mode = oneOf(...proxyModes);

const detectLocal = variantOf('mode', {
  ClusterCIDR: objectOf<object>({}),
  NodeCIDR: objectOf<object>({}),
  BridgeInterface: objectOf<Omit<DetectLocal & { readonly mode: 'BridgeInterface' }, 'mode'>>({
    bridgeInterface: text,
  }),
  InterfaceNamePrefix: objectOf<Omit<DetectLocal & { readonly mode: 'InterfaceNamePrefix' }, 'mode'>>({
    interfaceNamePrefix: text,
  }),
});

const settings = objectOf<Omit<ProxySettings, 'release'>>({
  mode,
  hostnameOverride: text,
  bindAddress: text,
  clusterCIDRs: listOf(text),
  detectLocal,
  nodePortAddresses: listOf(text),
  ignoresExternalIPs: optional(oneOf(true)),
  masqueradeAll: boolean,
  masqueradeBit: wholeNumber(0, 31),
  localhostNodePorts: boolean,
  ipvs: objectOf<ProxySettings['ipvs']>({
    scheduler: text,
    strictARP: boolean,
    excludeCIDRs: listOf(network),
    tcpTimeout: amount,
    tcpFinTimeout: amount,
    udpTimeout: amount,
  }),
  conntrack: objectOf<ProxySettings['conntrack']>({
    maxPerCore: wholeNumber(0),
    min: wholeNumber(0),
    tcpEstablishedTimeout: amount,
    tcpCloseWaitTimeout: amount,
    tcpBeLiberal: boolean,
    udpTimeout: amount,
    udpStreamTimeout: amount,
  }),
});

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
  settings,
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
  files: mapOf(checksum),
});
