import type { Shaped } from '../base/json/schema.ts';
import { parseAddress, parseNetwork, type Address, type Network } from '../kernel/address.ts';
import type { Cluster, NodeContext } from '../cluster/model.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import { kubeProxyVersions, parseRelease } from '../kube-proxy/releases.ts';
import type { healthCheckSchema, manifestSchema } from './schemas.ts';

/** The version of the bundle's format. kpc-apply refuses a version that it does not know. */
export const formatVersion = 1;

/** A Service's health check node port. On the addresses of each family, kube-proxy answers with the number of endpoints in that family. */
export type HealthCheck = Shaped<typeof healthCheckSchema>;

export type Manifest = Shaped<typeof manifestSchema>;

/** Reads an address in canonical form. Throws a TypeError for any other text. */
export function readAddress(value: string): Address {
  const parsed = parseAddress(value);
  if (!parsed) throw new TypeError(value);
  return parsed;
}

/** Reads a network in canonical form. Throws a TypeError for any other text. */
export function requireNetwork(value: string): Network {
  const parsed = parseNetwork(value);
  if (!parsed) throw new TypeError(value);
  return parsed;
}

export function nodeOfBundle({ node }: Pick<Manifest, 'node'>): NodeContext {
  return {
    name: node.name,
    zone: node.zone,
    podCIDRs: node.podCIDRs.map(requireNetwork),
    nodeIPs: { ipv4: readAddress(node.nodeIPs.ipv4), ipv6: readAddress(node.nodeIPs.ipv6) },
    hostAddresses: node.hostAddresses.map(readAddress),
  };
}

export function writeManifestNode(node: NodeContext): Manifest['node'] {
  return {
    name: node.name,
    zone: node.zone,
    podCIDRs: node.podCIDRs.map((network) => network.text),
    nodeIPs: { ipv4: node.nodeIPs.ipv4.text, ipv6: node.nodeIPs.ipv6.text },
    hostAddresses: node.hostAddresses.map((address) => address.text),
  };
}

export function writeServiceCidrs({ serviceCidrs }: Pick<Cluster, 'serviceCidrs'>) {
  return serviceCidrs.map(({ network, from }) => ({ cidr: network.text, from }));
}

/** Returns the manifest's settings, together with the release of its kube-proxy. */
export function settingsOf({ settings, kubeProxyVersion }: Manifest): ProxySettings {
  const release = parseRelease(kubeProxyVersion);
  if (release === undefined) throw new TypeError(`manifest.json: no such kube-proxy: ${kubeProxyVersion}`);
  return { ...settings, release };
}

export function writeSettings(settings: ProxySettings): Pick<Manifest, 'kubeProxyVersion' | 'settings'> {
  const { release, ...written } = settings;
  return { kubeProxyVersion: kubeProxyVersions[release], settings: written };
}
