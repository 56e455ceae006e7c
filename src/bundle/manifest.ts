import {
  textThat,
  wholeNumber,
  amount,
  listOf,
  mapOf,
  nullable,
  objectOf,
  oneOf,
  optional,
  text,
  type Shaped,
} from '../base/json-shape.ts';
import { isName } from '../base/object-names.ts';
import { printable } from '../base/printable.ts';
import { parseAddress, parseNetwork, type Address, type Network } from '../kernel/address.ts';
import type { AssignedService } from '../cluster/assign-addresses.ts';
import type { AssumedPod, AssumedWorkload } from '../cluster/assumed-workloads.ts';
import type { Cluster, NodeContext, ServiceRange } from '../cluster/model.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import type { IpvsTimeouts } from '../kernel/ipvs/ipvs.ts';
import { proxyModes } from '../kube-proxy/modes.ts';
import { kubeProxyVersions, parseRelease, releaseRange } from '../kube-proxy/releases.ts';
import { settingsShape } from '../settings/table.ts';
import { stateFileNames, type StateFileName } from './state-files.ts';

/** The version of the bundle's format: kpc-apply refuses one it does not know. */
export const formatVersion = 1;

/** A file that a bundle may hold besides manifest.json. */
export type BundleFileName = StateFileName | 'services.json' | 'network.txt';

/** In the order in which people should read them. */
export const bundleFileNames: readonly BundleFileName[] = [...stateFileNames, 'services.json', 'network.txt'];

/** An address of either family, however it is written. */
export const addressShape = textThat('an IP address', (value) => parseAddress(value) !== undefined);
/** An address with a prefix length. */
export const networkShape = textThat('a CIDR', (value) => parseNetwork(value) !== undefined);
export const nodeNameShape = textThat("a node's name", (value) => value === '' || isName(value, 'subdomain'));
export const portShape = wholeNumber(1, 65_535);

/** An address of a bundle's JSON, the shape of which was checked. Throws a TypeError for anything else. */
export function readAddress(value: string): Address {
  const parsed = parseAddress(value);
  if (!parsed) throw new TypeError(`"${value}" is not an address`);
  return parsed;
}

/** A network of a bundle's JSON, the shape of which was checked. Throws a TypeError for anything else. */
export function readNetwork(value: string): Network {
  const parsed = parseNetwork(value);
  if (!parsed) throw new TypeError(`"${value}" is not a network`);
  return parsed;
}

/** The addresses and ports that kpc chose for one Service. */
export const assignedShape = objectOf<AssignedService>({
  service: text,
  clusterIPs: listOf(addressShape),
  nodePorts: mapOf(portShape),
  healthCheckNodePort: optional(portShape),
  loadBalancerIPs: optional(listOf(addressShape)),
});

/** The Pods that kpc assumes of one workload. */
export const assumedShape = objectOf<AssumedWorkload>({
  workload: text,
  pods: listOf(objectOf<AssumedPod>({ name: text, node: optional(text), addresses: listOf(addressShape) })),
});

const healthCheckShape = objectOf({
  port: portShape,
  /** "namespace/name". */
  service: text,
  localEndpoints: objectOf({ ipv4: optional(wholeNumber(0)), ipv6: optional(wholeNumber(0)) }),
});

/**
 * A Service's health check node port, and how many ready endpoints it has on this node. kube-proxy answers for each
 * family on that family's addresses with that family's number.
 */
export type HealthCheck = Shaped<typeof healthCheckShape>;

/** What manifest.json must be like, with its keys in the order in which they are written: nothing that reads a Manifest looks at its fields again. */
export const manifestShape = objectOf({
  formatVersion: wholeNumber(1),
  kpcVersion: text,
  /** The kube-proxy whose state this is: "v1.36.3". It says the release that the settings leave out. */
  kubeProxyVersion: textThat(
    `the version of a kube-proxy of Kubernetes ${releaseRange}`,
    (value) => parseRelease(value) !== undefined,
  ),
  mode: oneOf(...proxyModes),
  /** Only if the state was read from a node (kpc-apply dump): there are no Services that it was compiled from. */
  dumped: optional(oneOf(true)),
  /** The name is '' if no node was given. A dump has the machine's own name, even "WORKER_1". */
  node: objectOf({
    name: textThat("a node's name", (value) => printable(value) === value),
    zone: textThat('plain text', (value) => printable(value) === value),
    podCIDRs: listOf(networkShape),
    nodeIPs: objectOf({ ipv4: addressShape, ipv6: addressShape }),
    hostAddresses: listOf(addressShape),
  }),
  families: listOf(oneOf('ipv4', 'ipv6')),
  /** The settings that shaped the state. conntrack and conn_reuse_mode are decided on the node, from these. */
  settings: settingsShape,
  /**
   * The networks whose unused addresses get no answer, and their source: the flag, if the input had no ServiceCIDR.
   * Only in a mode that looks at them.
   */
  serviceCidrs: optional(
    listOf(
      objectOf<{ readonly cidr: string; readonly from: ServiceRange['from'] }>({
        cidr: networkShape,
        from: oneOf('ServiceCIDR', '--service-cluster-ip-range'),
      }),
    ),
  ),
  /** Seconds, for `ipvsadm --set`; null where kube-proxy would leave them alone. */
  ipvsTimeouts: nullable(objectOf<IpvsTimeouts>({ tcp: amount, tcpFin: amount, udp: amount })),
  /** Sorted by port. */
  healthChecks: listOf(healthCheckShape),
  /** Addresses and ports that kpc chose itself, because the manifests had none. */
  assigned: listOf(assignedShape),
  /** Only if there are endpoints of assumed Pods: no input held these, and kpc assumed that the workloads have them. */
  assumedEndpoints: optional(listOf(assumedShape)),
  /** Least versions of the tools that read the files. */
  tools: mapOf(text),
  counts: mapOf(wholeNumber(0)),
  /** File name → SHA-256 in hex, of each other file. */
  files: mapOf<string, BundleFileName>(textThat('a SHA-256 in hex', (value) => /^[0-9a-f]{64}$/.test(value))),
});

/** manifest.json: what the bundle is, for kpc-apply and for people. */
export type Manifest = Shaped<typeof manifestShape>;

/** The node that a bundle was compiled for. */
export function nodeOfBundle({ node }: Pick<Manifest, 'node'>): NodeContext {
  return {
    name: node.name,
    zone: node.zone,
    podCIDRs: node.podCIDRs.map(readNetwork),
    nodeIPs: { ipv4: readAddress(node.nodeIPs.ipv4), ipv6: readAddress(node.nodeIPs.ipv6) },
    hostAddresses: node.hostAddresses.map(readAddress),
  };
}

export function writeNode(node: NodeContext): Manifest['node'] {
  return {
    name: node.name,
    zone: node.zone,
    podCIDRs: node.podCIDRs.map((network) => network.text),
    nodeIPs: { ipv4: node.nodeIPs.ipv4.text, ipv6: node.nodeIPs.ipv6.text },
    hostAddresses: node.hostAddresses.map((address) => address.text),
  };
}

/** The manifest's form of the ranges of cluster IPs. */
export function writeServiceCidrs({ serviceCidrs }: Pick<Cluster, 'serviceCidrs'>) {
  return serviceCidrs.map(({ network, from }) => ({ cidr: network.text, from }));
}

/** The settings of a manifest that was checked, with the release that its kube-proxy is of. */
export function settingsOf({ settings, kubeProxyVersion }: Manifest): ProxySettings {
  const release = parseRelease(kubeProxyVersion);
  if (release === undefined) throw new TypeError(`manifest.json: no such kube-proxy: ${kubeProxyVersion}`);
  return { ...settings, release };
}

/** What a manifest says of settings, in two fields. */
export function writeSettings(settings: ProxySettings): Pick<Manifest, 'kubeProxyVersion' | 'settings'> {
  const { release, ...written } = settings;
  return { kubeProxyVersion: kubeProxyVersions[release], settings: written };
}
