import type { Manifest } from '../bundle/manifest.ts';
import { parseRelease } from '../kube-proxy/releases.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { SnapshotJson } from './outputs/envelope.ts';

type Assumed = NonNullable<SnapshotJson['assumed']>;

/** Snapshots for programs, each once. */
export function snapshotsJson(sides: readonly Snapshot[]): readonly SnapshotJson[] {
  return [...new Set(sides)].map(snapshotWriter());
}

/** Writes snapshots one after the other. What several nodes of one input have assumed alike stands with the first of them. */
export function snapshotWriter(): (side: Snapshot) => SnapshotJson {
  const said = new Set<unknown>();
  const once = <T>(values: T): T | undefined => {
    if (said.has(values)) return undefined;
    said.add(values);
    return values;
  };
  return (side): SnapshotJson => {
    const { kind, name, nodeName, mode, families } = side;
    const node = nodeName === '' ? undefined : nodeName;
    if (side.kind === 'dump') return { name, kind, node, mode, release: side.release, families };
    const { settings, assumed, assigned, assumedEndpoints } = side;
    const values = { services: once(assigned), pods: once(assumedEndpoints) };
    const { clusterCIDRs } = assumed;
    const own = { mode: assumed.mode || undefined, node: assumed.node || undefined, clusterCIDRs, ...values };
    return { name, kind, node, mode, release: settings.release, families, assumed: assumedJson(own) };
  };
}

/** A bundle, of which no more than its manifest is read. */
export function bundleJson(name: string, manifest: Manifest): SnapshotJson {
  const { node, mode, kubeProxyVersion, families, assigned, assumedEndpoints } = manifest;
  return {
    name,
    kind: 'bundle',
    node: node.name === '' ? undefined : node.name,
    mode,
    release: parseRelease(kubeProxyVersion),
    families,
    assumed: assumedJson({ services: assigned, pods: assumedEndpoints }),
  };
}

/** Undefined if nothing is. */
function assumedJson({ mode, node, services = [], pods = [], clusterCIDRs = [] }: AssumedValues): Assumed | undefined {
  if (!mode && !node && services.length + pods.length + clusterCIDRs.length === 0) return undefined;
  return {
    mode,
    node,
    services: services.length > 0 ? services : undefined,
    pods: pods.length > 0 ? pods : undefined,
    clusterCIDRs: clusterCIDRs.length > 0 ? clusterCIDRs : undefined,
  };
}

type AssumedValues = { readonly [Kind in keyof Assumed]: Assumed[Kind] | undefined };
