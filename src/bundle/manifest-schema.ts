import {
  closed,
  textThat,
  wholeNumber,
  amount,
  listOf,
  mapOf,
  matching,
  nullable,
  objectOf,
  oneOf,
  optional,
  text,
} from '../base/json/schema.ts';
import type { AssignedService } from '../cluster/assign-addresses.ts';
import type { AssumedPod, AssumedWorkload, ServiceRange } from '../cluster/model.ts';
import type { IpvsTimeouts } from '../kernel/ipvs/ipvs.ts';
import { proxyModes } from '../kube-proxy/modes.ts';
import { releaseRange } from '../kube-proxy/releases.ts';
import { settingsSchema } from '../settings/table.ts';
import type { BundleFileName } from './state-files.ts';

/** An address of either family, however it is written. */
export const addressSchema = textThat('an IP address', 'isAddress');
/** An address with a prefix length. */
export const networkSchema = textThat('a CIDR', 'isNetwork');
export const nodeNameSchema = textThat("a node's name", 'isNodeName');
export const portSchema = wholeNumber(1, 65_535);

/** The addresses and ports that kpc chose for one Service. */
export const assignedSchema = objectOf<AssignedService>({
  service: text,
  clusterIPs: listOf(addressSchema),
  nodePorts: mapOf(portSchema),
  healthCheckNodePort: optional(portSchema),
  loadBalancerIPs: optional(listOf(addressSchema)),
});

/** The Pods that kpc assumes of one workload. */
export const assumedSchema = objectOf<AssumedWorkload>({
  workload: text,
  pods: listOf(objectOf<AssumedPod>({ name: text, node: optional(text), addresses: listOf(addressSchema) })),
});

export const healthCheckSchema = objectOf({
  port: portSchema,
  /** "namespace/name". */
  service: text,
  localEndpoints: objectOf({ ipv4: optional(wholeNumber(0)), ipv6: optional(wholeNumber(0)) }),
});

/** What manifest.json must be like, with its keys in the order in which they are written: nothing that reads a Manifest looks at its fields again. */
export const manifestSchema = closed(
  objectOf({
    formatVersion: wholeNumber(1),
    kpcVersion: text,
    /** The kube-proxy whose state this is: "v1.36.3". It says the release that the settings leave out. */
    kubeProxyVersion: textThat(`the version of a kube-proxy of Kubernetes ${releaseRange}`, 'isKubeProxyVersion'),
    mode: oneOf(...proxyModes),
    /** Only if the state was read from a node (kpc-apply dump): there are no Services that it was compiled from. */
    dumped: optional(oneOf(true)),
    /** The name is '' if no node was given. A dump has the machine's own name, even "WORKER_1". */
    node: objectOf({
      name: textThat("a node's name", 'isPrintable'),
      zone: textThat('plain text', 'isPrintable'),
      podCIDRs: listOf(networkSchema),
      nodeIPs: objectOf({ ipv4: addressSchema, ipv6: addressSchema }),
      hostAddresses: listOf(addressSchema),
    }),
    families: listOf(oneOf('ipv4', 'ipv6')),
    /** The settings that shaped the state. conntrack and conn_reuse_mode are decided on the node, from these. */
    settings: settingsSchema,
    /**
     * The networks whose unused addresses get no answer, and their source: the flag, if the input had no ServiceCIDR.
     * Only in a mode that looks at them.
     */
    serviceCidrs: optional(
      listOf(
        objectOf<{ readonly cidr: string; readonly from: ServiceRange['from'] }>({
          cidr: networkSchema,
          from: oneOf('ServiceCIDR', '--service-cluster-ip-range'),
        }),
      ),
    ),
    /** Seconds, for `ipvsadm --set`; null where kube-proxy would leave them alone. */
    ipvsTimeouts: nullable(objectOf<IpvsTimeouts>({ tcp: amount, tcpFin: amount, udp: amount })),
    /** Sorted by port. */
    healthChecks: listOf(healthCheckSchema),
    /** Addresses and ports that kpc chose itself, because the manifests had none. */
    assigned: listOf(assignedSchema),
    /** Only if there are endpoints of assumed Pods: no input held these, and kpc assumed that the workloads have them. */
    assumedEndpoints: optional(listOf(assumedSchema)),
    /** Least versions of the tools that read the files. */
    tools: mapOf(text),
    counts: mapOf(wholeNumber(0)),
    /** File name → SHA-256 in hex, of each other file. */
    files: mapOf<string, BundleFileName>(matching('a SHA-256 in hex', /^[0-9a-f]{64}$/)),
  }),
);
