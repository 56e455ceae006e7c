import { readShape, isObject, type Shape, type ShapeReading } from '../base/json-shape.ts';
import type { AssignedService } from '../cluster/assign-addresses.ts';
import type { AssumedWorkload } from '../cluster/assumed-workloads.ts';
import { compareServicePorts } from '../cluster/build-cluster.ts';
import { compareText } from '../kernel/compare-text.ts';
import type { Cluster, ServiceInfo } from '../cluster/model.ts';
import { releases } from '../kube-proxy/releases.ts';
import { formatVersion, writeSettings, assignedShape, assumedShape, manifestShape, type Manifest } from './manifest.ts';
import { checkManifestValues, checkServiceValues } from './check-values.ts';
import {
  assignedSection,
  assumedSection,
  goldenVersion,
  parseSections,
  type GoldenContext,
  type GoldenHead,
} from './golden.ts';
import { goldenHead } from '../base/file-names.ts';
import { goldenNodeFile, goldenServiceFile, isGoldenFile } from './golden-names.ts';
import { compileContent, makeBundle, type BundleFiles } from './make-bundle.ts';
import { findBroken, findConflicts, readServiceRanges, type BundleReading } from './read-bundle.ts';
import { readServices } from './services-file.ts';

/**
 * Reads a golden's files back: what it says of the node, the settings and the Services, compiled by this kpc. The lines of the
 * tools' files are not read: they follow from the rest, and --check compares them as text.
 */
export function readGolden(files: BundleFiles, context: GoldenContext, kpcVersion: string): BundleReading {
  const conflicts = findBroken(findConflicts(files, 'write it again with kpc compile --golden'));
  if (conflicts) return conflicts;
  const manifest = readHead(files.get(goldenHead), context, kpcVersion);
  const parts = [...files]
    .filter(([name]) => isGoldenFile(name) && name !== goldenHead && name !== goldenNodeFile)
    .map(([name, text]) => readPart(name, text));
  const broken = [manifest, ...parts].filter((part) => typeof part === 'string');
  if (typeof manifest === 'string' || broken.length > 0) return { kind: 'broken', problems: broken };
  const good = parts.filter((part) => typeof part !== 'string').sort(compareParts);
  const cluster: Cluster = {
    services: good.map(({ service }) => service),
    servicePorts: good.flatMap(({ servicePorts }) => servicePorts).sort(compareServicePorts),
    healthChecks: good.flatMap(({ healthChecks }) => healthChecks),
    serviceCidrs: readServiceRanges(manifest),
  };
  const strange = findBroken([...checkManifestValues(manifest), ...checkServiceValues(cluster, manifest)]);
  if (strange) return strange;
  const assigned = good.flatMap((part) => part.assigned);
  const content = compileContent(
    { ...manifest, assigned, assumedEndpoints: uniteAssumed(good) },
    cluster,
    context.compile,
  );
  return { kind: 'bundle', bundle: { manifest: makeBundle(content).manifest, state: content.state, cluster } };
}

/** What one Service's file says. */
interface GoldenPart extends Pick<Cluster, 'servicePorts' | 'healthChecks'> {
  readonly service: ServiceInfo;
  /** One, or none. */
  readonly assigned: readonly AssignedService[];
  readonly assumed: readonly AssumedWorkload[];
}

function compareParts({ service: a }: GoldenPart, { service: b }: GoldenPart): number {
  return compareText(a.namespace, b.namespace) || compareText(a.name, b.name);
}

/** A text is what is wrong with the file. */
function readPart(file: string, text: string): GoldenPart | string {
  const sections = parseSections(text);
  const cluster = readServices(sections.get('services.json') ?? '');
  if (typeof cluster === 'string') return `${file}: its services.json cannot be read: ${cluster}`;
  const [service, ...others] = cluster.services;
  const names = [...cluster.servicePorts, ...cluster.healthChecks].map(({ namespace, service: name }) =>
    goldenServiceFile(namespace, name),
  );
  if (!service || others.length > 0 || names.some((name) => name !== file)) {
    return `${file}: it is not the file of one Service`;
  }
  if (goldenServiceFile(service.namespace, service.name) !== file) return `${file}: it is the file of another Service`;
  const chosen = sections.get(assignedSection);
  const assigned = readEach(assignedShape, chosen === undefined ? [] : [chosen]);
  if ('wrong' in assigned) return `${file}: its ${assignedSection} cannot be read: ${assigned.wrong}`;
  const lines = (sections.get(assumedSection) ?? '').split('\n').filter((line) => line !== '');
  const assumed = readEach(assumedShape, lines);
  if ('wrong' in assumed) return `${file}: its ${assumedSection} cannot be read: ${assumed.wrong}`;
  return {
    service,
    servicePorts: cluster.servicePorts,
    healthChecks: cluster.healthChecks,
    assigned: assigned.value,
    assumed: assumed.value,
  };
}

/** Texts in JSON, all of one shape, or what is wrong with the first that is not. */
function readEach<T>(shape: Shape<T>, texts: readonly string[]): ShapeReading<readonly T[]> {
  const values: T[] = [];
  for (const text of texts) {
    const reading = readShape(shape, parseJson(text));
    if ('wrong' in reading) return reading;
    values.push(reading.value);
  }
  return { value: values };
}

/** A text is what is wrong with it. */
function readHead(text: string | undefined, { defaults }: GoldenContext, kpcVersion: string): Manifest | string {
  const value = parseJson(text ?? '');
  if (!isObject(value)) return `${goldenHead} is not a JSON object`;
  const {
    goldenVersion: found,
    kubernetesVersion,
    mode,
    node,
    families,
    settings,
    serviceCidrs,
  } = value as Partial<GoldenHead>;
  if (found !== goldenVersion) {
    const version = typeof found === 'number' ? found : 'none';
    return `${goldenHead}: its version is ${version}, but this kpc reads ${goldenVersion}: write it again with kpc compile --golden`;
  }
  const release = releases.find((each) => each === kubernetesVersion);
  if (release === undefined) return `${goldenHead}: kubernetesVersion must be one of ${releases.join(', ')}`;
  const usual = writeSettings({ ...defaults, release });
  const manifest = {
    formatVersion,
    kpcVersion,
    kubeProxyVersion: usual.kubeProxyVersion,
    mode,
    node,
    families,
    serviceCidrs,
    settings: { ...addDefaults(settings, usual.settings), mode },
    ipvsTimeouts: null,
    healthChecks: [],
    assigned: [],
    tools: {},
    counts: {},
    files: {},
  };
  const reading = readShape(manifestShape, manifest);
  return 'value' in reading ? reading.value : `${goldenHead}: ${reading.wrong}`;
}

function addDefaults(settings: unknown, defaults: object): object {
  if (!isObject(settings)) return defaults;
  const known = defaults as Readonly<Record<string, unknown>>;
  const merged = Object.entries(settings).map(([key, value]) => {
    const usual = known[key];
    const isGroup = isObject(value) && isObject(usual) && !('mode' in value);
    return [key, isGroup ? addDefaults(value, usual) : value] as const;
  });
  return { ...defaults, ...Object.fromEntries(merged) };
}

/** Undefined for what is not JSON: no shape takes it. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Each workload once, though its Pods may be endpoints of several Services; undefined for none, as in a bundle. */
function uniteAssumed(parts: readonly GoldenPart[]): readonly AssumedWorkload[] | undefined {
  const united = new Map(parts.flatMap(({ assumed }) => assumed.map((each) => [each.workload, each] as const)));
  const workloads = [...united.values()].sort((a, b) => compareText(a.workload, b.workload));
  return workloads.length > 0 ? workloads : undefined;
}
