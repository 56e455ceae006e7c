import { unplacedWords } from './way/assumed-values.ts';
import { joinWords } from '../base/printable.ts';
import { nameSome } from './words/rows.ts';
import { groupBy } from '../cluster/grouping.ts';
import type { Coverage } from '../dumps/coverage.ts';
import { families, type Family, familyNames } from '../kernel/address.ts';
import { unnamedMode } from './grounds.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { unlessEmpty } from './formats/json.ts';
import type { SnapshotJson } from './outputs/envelope.ts';
import { countValues } from './words/services.ts';

type SnapshotAssumed = NonNullable<SnapshotJson['assumed']>;

/** Formats snapshots for programs. Each snapshot appears once. */
export function snapshotsJson(sides: readonly Snapshot[]): readonly SnapshotJson[] {
  return [...new Set(sides)].map(snapshotWriter());
}

/** Returns a function that formats snapshots one by one. An assumption that nodes of an input share is only in the first of them. */
export function snapshotWriter(): (side: Snapshot) => SnapshotJson {
  const said = new Set<unknown>();
  const once = <T>(values: T): T | undefined => {
    if (said.has(values)) return undefined;
    said.add(values);
    return values;
  };
  return (side): SnapshotJson => {
    const { kind, name, nodeName, mode } = side;
    const node = nodeName === '' ? undefined : nodeName;
    if (side.kind === 'dump')
      return { name, kind, node, mode, release: side.release, families: shownFamilies(side.coverage) };
    const { settings, assumed, assigned, assumedEndpoints } = side;
    const values = { services: once(assigned), pods: once(assumedEndpoints), unplaced: once(assumed.unplaced) };
    const { clusterCIDRs, families: ofCluster } = assumed;
    const named = { mode: assumed.mode || undefined, node: assumed.node || undefined };
    const own = { ...named, clusterCIDRs, families: ofCluster, ...values };
    return { name, kind, node, mode, release: settings.release, families: side.families, assumed: assumedJson(own) };
  };
}

/** Returns the families that a dump shows. ipset and ipvsadm always print both families. */
function shownFamilies({ iptables, nftables, excerpts = [], sets, virtualServers }: Coverage): readonly Family[] {
  const isShown = (family: Family): boolean =>
    sets || virtualServers || iptables[family].length > 0 || nftables.includes(family) || excerpts.includes(family);
  return families.filter(isShown);
}

/** Formats what was assumed. Undefined if nothing was. */
function assumedJson({
  mode,
  node,
  services = [],
  pods = [],
  clusterCIDRs = [],
  families: ofCluster = [],
  unplaced = [],
}: AssumedParts): SnapshotAssumed | undefined {
  if (!mode && !node && [services, pods, clusterCIDRs, ofCluster, unplaced].every(({ length }) => length === 0))
    return undefined;
  return {
    mode,
    node,
    services: unlessEmpty(services),
    pods: unlessEmpty(pods),
    clusterCIDRs: unlessEmpty(clusterCIDRs),
    families: unlessEmpty(ofCluster),
    unplaced: unlessEmpty(unplaced),
  };
}

/**
 * Returns "assumed: node node-1, 2 cluster IPs, 1 Pod": one line about the values that kpc chose for snapshots. Undefined if kpc chose
 * none. Leaves out an assumed mode, which is marked where the mode is named.
 */
export function assumedSummary(snapshots: readonly SnapshotJson[]): string | undefined {
  const parts = assumedParts(snapshots);
  return parts.length === 0 ? undefined : `assumed: ${parts.join(', ')}`;
}

/** Returns what "no difference" applies to: the nodes, the modes, and the values that kpc chose. Leaves out dumps, which assume nothing. */
export function groundsOf(snapshots: readonly SnapshotJson[]): readonly string[] {
  const compiled = snapshots.filter(({ kind }) => kind !== 'dump');
  if (compiled.length === 0) return [];
  const nodes = [...new Set(compiled.flatMap(({ node }) => node ?? []))];
  const modes = [...groupBy(compiled, ({ mode = '' }) => mode).values()]
    .flatMap(tellingOf)
    .map(({ mode, assumed }) => `${mode}${assumed?.mode ? ` ${unnamedMode}` : ''}`);
  const where = nodes.length === 0 ? 'any node' : nameSome(nodes);
  const assumed = assumedSummary(snapshots);
  return [`compiled for ${where}, mode ${joinWords([...new Set(modes)])}`, ...(assumed === undefined ? [] : [assumed])];
}

/** Returns what assumedSummary does, but as a list and with an assumed mode: "mode ipvs (nothing names a mode)". */
export function assumedWithMode(snapshots: readonly SnapshotJson[]): readonly string[] {
  const modes = assumedOf(snapshots, ({ mode, assumed }) => ({ among: mode, value: assumed?.mode && mode }));
  return [...modes.map((mode) => `mode ${mode} ${unnamedMode}`), ...assumedParts(snapshots)];
}

/** Returns the values that kpc assumed, each once. Names a value's sides, unless all sides with the same `among` have it. */
function assumedOf(
  snapshots: readonly SnapshotJson[],
  read: (snapshot: SnapshotJson) => { readonly among?: string | undefined; readonly value: string | undefined },
): readonly string[] {
  const all = snapshots.map((each) => ({ kind: each.kind, name: each.name, ...read(each) }));
  return [...groupBy(all, ({ among = '' }) => among).values()].map(tellingOf).flatMap((own) => {
    const every = new Set(own.map(({ name }) => name)).size;
    return [...groupBy(own, ({ value = '' }) => value)].flatMap(([value, having]) => {
      const names = [...new Set(having.map(({ name }) => name))];
      if (value === '') return [];
      return names.length < every ? `${value} of ${joinWords(names)}` : value;
    });
  });
}

/** Returns the sides that are manifests, or all sides if none is. Bundles record no assumptions, and a golden may be out of date. */
function tellingOf<Side extends Pick<SnapshotJson, 'kind'>>(sides: readonly Side[]): readonly Side[] {
  const fresh = sides.filter(({ kind }) => kind === 'manifests');
  return fresh.length > 0 ? fresh : sides;
}

function assumedParts(snapshots: readonly SnapshotJson[]): readonly string[] {
  const all = snapshots.flatMap(({ assumed }) => assumed ?? []);
  const services = all.flatMap((each) => each.services ?? []);
  const workloads = all.flatMap((each) => each.pods ?? []);
  const own = workloads.flatMap(({ workload, pods: each }) => each.map(({ name }) => `${workload} ${name}`));
  const pods = new Set(own);
  const nodes = assumedOf(snapshots, ({ node, assumed }) => ({ among: node, value: assumed?.node && node }));
  const clusters = assumedOf(snapshots, ({ assumed }) => ({
    value: assumed?.families && clusterWords(assumed.families),
  }));
  const unplaced = [...new Set(all.flatMap((each) => each.unplaced ?? []))];
  const cidrs = assumedOf(snapshots, ({ assumed }) => ({ value: assumed?.clusterCIDRs?.join(', ') }));
  // If both sides assume the same value, it counts once.
  const sum = (valuesOf: (service: (typeof services)[number]) => string | number | readonly (string | number)[]) =>
    new Set(services.flatMap((each) => [valuesOf(each)].flat().map((value) => `${each.service} ${value}`))).size;
  const counts = [
    [sum(({ clusterIPs }) => clusterIPs), 'clusterIP'],
    [sum(({ nodePorts }) => Object.entries(nodePorts).map(String)), 'nodePort'],
    [sum(({ healthCheckNodePort = [] }) => healthCheckNodePort), 'healthCheckNodePort'],
    [sum(({ loadBalancerIPs = [] }) => loadBalancerIPs), 'loadBalancerIP'],
    [pods.size, 'readyPod'],
  ] as const;
  return [
    ...(nodes.length === 0 ? [] : [`node ${nameSome(nodes)}`]),
    ...counts.flatMap(([number, what]) => (number === 0 ? [] : [countValues(what, number)])),
    ...clusters,
    ...(cidrs.length === 0 ? [] : [`clusterCIDR ${cidrs.join(', ')}`]),
    ...unplacedWords(unplaced),
  ];
}

function clusterWords(ofCluster: readonly Family[]): string {
  return ofCluster.length === families.length
    ? 'a dual-stack cluster'
    : `an ${ofCluster.map((family) => familyNames[family]).join()} cluster`;
}

type AssumedParts = { readonly [Kind in keyof SnapshotAssumed]: SnapshotAssumed[Kind] | undefined };
