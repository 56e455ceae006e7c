import type { AssignedService } from '../cluster/assign-addresses.ts';
import type { Cluster, ServiceRange } from '../cluster/model.ts';
import type { AssumedWorkload } from '../cluster/assumed-workloads.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import type { Family } from '../kernel/family.ts';
import type { IpvsTimeouts } from '../kernel/ipvs/ipvs.ts';
import { kubeProxyVersions, parseRelease, type Release } from '../kube-proxy/releases.ts';
import { stateFileNames, type StateFileName } from './state-files.ts';

/** The version of the bundle's format: kpc-apply refuses one it does not know. */
export const formatVersion = 1;

/** A file that a bundle may hold besides manifest.json. */
export type BundleFileName = StateFileName | 'services.json';

/** All of them, in the order in which they are to be read. */
export const bundleFileNames: readonly BundleFileName[] = [...stateFileNames, 'services.json'];

/** manifest.json: what the bundle is, for kpc-apply and for people. Keys are written in this order. */
export interface Manifest {
  readonly formatVersion: number;
  readonly kpcVersion: string;
  /** The kube-proxy whose state this is: "v1.36.3". It says the release that the settings leave out. */
  readonly kubeProxyVersion: string;
  readonly mode: ProxySettings['mode'];
  /** Only where the state was read from a node (kpc-apply dump): there are no Services that it was compiled from. */
  readonly dumped?: true | undefined;
  /** Name '' where no node was given. */
  readonly node: {
    readonly name: string;
    readonly zone: string;
    readonly podCIDRs: readonly string[];
    readonly nodeIPs: { readonly [F in Family]: string };
    readonly hostAddresses: readonly string[];
  };
  readonly families: readonly Family[];
  /** The settings that shaped the state. conntrack and conn_reuse_mode are decided on the node, from these. */
  readonly settings: Omit<ProxySettings, 'release'>;
  /**
   * The networks whose unused addresses get no answer, and what tells them: the flag, where the input had no ServiceCIDR.
   * Only in a mode that looks at them.
   */
  readonly serviceCidrs?: readonly StoredRange[] | undefined;
  /** Seconds, for `ipvsadm --set`; null where kube-proxy would leave them alone. */
  readonly ipvsTimeouts: IpvsTimeouts | null;
  /** Sorted by port. */
  readonly healthChecks: readonly HealthCheck[];
  /** Addresses and ports that kpc chose itself, because the manifests had none. */
  readonly assigned: readonly AssignedService[];
  /** Only where endpoints stand for Pods that no input held: kpc took the workloads to have them. */
  readonly assumedEndpoints?: readonly AssumedWorkload[] | undefined;
  /** Least versions of the tools that read the files. */
  readonly tools: Readonly<Record<string, string>>;
  readonly counts: Readonly<Record<string, number>>;
  /** File name → SHA-256 in hex, of each other file. */
  readonly files: { readonly [Name in BundleFileName]?: string };
}

export interface StoredRange {
  readonly cidr: string;
  readonly from: ServiceRange['from'];
}

export function writeServiceCidrs({ serviceCidrs }: Pick<Cluster, 'serviceCidrs'>): readonly StoredRange[] {
  return serviceCidrs.map(({ network, from }) => ({ cidr: network.text, from }));
}

/**
 * A Service's health check node port, and how many ready endpoints it has on this node. kube-proxy answers for each
 * family on that family's addresses with that family's number.
 */
export interface HealthCheck {
  readonly port: number;
  /** "namespace/name". */
  readonly service: string;
  readonly localEndpoints: { readonly [F in Family]?: number };
}

/** The release whose kube-proxy a manifest names; undefined where kpc does not follow it. */
export function readKubeProxyVersion(text: string): Release | undefined {
  const reading = parseRelease(text);
  return reading.kind === 'release' ? reading.release : undefined;
}

/** The settings of a manifest that was checked, with the release that its kube-proxy is of. */
export function settingsOf({ settings, kubeProxyVersion }: Manifest): ProxySettings {
  const release = readKubeProxyVersion(kubeProxyVersion);
  if (release === undefined) throw new TypeError(`manifest.json: no such kube-proxy: ${kubeProxyVersion}`);
  return { ...settings, release };
}

/** What a manifest says of settings, in two fields. */
export function writeSettings(settings: ProxySettings): Pick<Manifest, 'kubeProxyVersion' | 'settings'> {
  const { release, ...written } = settings;
  return { kubeProxyVersion: kubeProxyVersions[release], settings: written };
}
