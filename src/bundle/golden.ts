import { indexCluster } from '../cluster/address-index.ts';
import { goldenHead } from '../base/names.ts';
import {
  assignedLines,
  assumedHead,
  assumedLines,
  fields as fieldsCheck,
  manifest as manifestCheck,
  sourcesLines,
} from '#checks';
import { isSameValue } from '../base/json/same-value.ts';
import type { BundleFault } from '../base/findings/bundle.ts';
import { isObject, type JsonObject, parseChecked, readChecked } from '../base/json/check.ts';
import type { AssignedService } from '../cluster/assign-addresses.ts';
import type { AssumedWorkload, Cluster, ServiceInfo } from '../cluster/model.ts';
import { compareServicePorts } from '../cluster/build-cluster.ts';
import { compareText } from '../kernel/compare.ts';
import { kubeProxyVersions, releases } from '../kube-proxy/releases.ts';
import { defaultSettings } from '../settings/table.ts';
import { checkManifestValues, checkServiceValues } from './check-bundle.ts';
import {
  formatFile,
  makeBundle,
  writeServiceRanges,
  type BundleContent,
  type BundleFiles,
  type Compile,
} from './make-bundle.ts';
import type { AssumedHead } from './schemas.ts';
import { formatVersion, writeManifestNode, writeSettings, type Manifest } from './manifest.ts';
import {
  broken,
  findBroken,
  findUnfit,
  readServiceRanges,
  snapshotOfBundle,
  type BundleReading,
} from './read-bundle.ts';
import { compileParts, findEdited, goldenNodeFile } from './golden-rules.ts';
import { readServices } from './services-file.ts';
import {
  assignedSection,
  assumedSection,
  formatLines,
  formatSections,
  goldenServiceFile,
  isSameServiceFile,
  parseSections,
  readSectionLines,
  sourcesSection,
} from './golden-sections.ts';
import { changedSources, fullName, usualSources, type EndpointSources } from '../cluster/objects.ts';

function isGoldenServiceFile(name: string): boolean {
  return /^[a-z0-9-]{1,63}\.[a-z0-9-]{1,63}\.txt$/.test(name);
}

export function isGoldenFile(name: string): boolean {
  return name === goldenHead || name === goldenNodeFile || isGoldenServiceFile(name);
}

const goldenVersion = 1;

/** The content of golden.json: the settings that determine the golden. It depends neither on Services nor on kpc's version. */
interface GoldenHead extends Pick<Manifest, 'mode' | 'node' | 'families' | 'serviceCidrs'> {
  readonly goldenVersion: number;
  /** A release such as "1.36". Different patch releases make the same golden. */
  readonly kubernetesVersion: string;
  readonly settings: object;
  /** The values that kpc assumed. Undefined if all values were given. Older goldens lack this field. */
  readonly assumed?: AssumedHead | undefined;
}

/** kube-proxy's default settings. They must never change, because goldens leave out settings that have the default value. */
const usualSettings = defaultSettings('ipvs');

/**
 * Writes a bundle as files to keep in git: one for each Service with its endpoints and its lines from each tool's file, one for the node,
 * and one for settings. A Service's file holds the result of compiling the cluster without other Services, so branches that change
 * different Services do not touch the same file, unless two assumed addresses collide. No file contains counts, checksums or kpc's version.
 */
export function makeGolden(content: BundleContent, compile: Compile): BundleFiles {
  const { base, parts } = compileParts(content, compile);
  const files = new Map<string, string>([
    [goldenHead, formatHead(content)],
    [goldenNodeFile, formatSections(base)],
  ]);
  const assumed = content.assumedEndpoints ?? [];
  const assigned = new Map(content.assigned.map((each) => [each.service, each]));
  for (const { service, file, part, texts } of parts) {
    const chosen = assigned.get(fullName(service));
    const pods = assumed.filter((each) => isBehind(each, part.cluster));
    const sections = [
      ['services.json', formatFile('services.json', part) ?? ''],
      [sourcesSection, formatLines(service.sources ? [unusualSources(service.sources)] : [])],
      [assignedSection, formatLines(chosen ? [chosen] : [])],
      [assumedSection, formatLines(pods)],
      ...texts,
    ] as const;
    files.set(file, formatSections(sections));
  }
  return files;
}

function unusualSources(sources: EndpointSources): Partial<EndpointSources> {
  return Object.fromEntries(changedSources(sources, usualSources).map((name) => [name, sources[name]]));
}

function isBehind({ pods }: AssumedWorkload, { services, servicePorts }: Cluster): boolean {
  const addresses = new Set([
    ...servicePorts.flatMap(({ endpoints }) => endpoints.map(({ address }) => address.text)),
    ...services.flatMap(({ headlessEndpoints }) => headlessEndpoints.map(({ address }) => address)),
  ]);
  return pods.some((pod) => pod.addresses.some((address) => addresses.has(address)));
}

function formatHead(content: BundleContent): string {
  const { node, families, settings } = content;
  const head: GoldenHead = {
    goldenVersion,
    kubernetesVersion: settings.release,
    mode: settings.mode,
    node: writeManifestNode(node),
    families,
    serviceCidrs: writeServiceRanges(content),
    settings: omitDefaults(writeSettings(settings).settings, usualSettings),
    assumed: headAssumed(content),
  };
  return `${JSON.stringify(head, undefined, 2)}\n`;
}

function headAssumed({ assumed }: BundleContent): AssumedHead | undefined {
  if (!assumed) return undefined;
  const { node, mode, clusterCIDRs, families } = assumed;
  const head = {
    node: node || undefined,
    mode: mode || undefined,
    clusterCIDRs: clusterCIDRs.length > 0 ? clusterCIDRs : undefined,
    families: families.length > 0 ? families : undefined,
  };
  return Object.values(head).some((value) => value !== undefined) ? head : undefined;
}

/**
 * Reports whether a file counts as the same in a check. Ignores the assumed values, which affect no rule, and hostnameOverride, because
 * older goldens record both differently.
 */
export function isSameInGolden(name: string, present: string | undefined, fresh: string | undefined): boolean {
  if (present === fresh) return true;
  if (present === undefined || fresh === undefined) return false;
  if (name !== goldenHead) return isGoldenServiceFile(name) && isSameServiceFile(present, fresh);
  const [old, now] = [parseChecked(fieldsCheck, present), parseChecked(fieldsCheck, fresh)];
  const shaping = (head: JsonObject): JsonObject => {
    const { settings } = head;
    const own = isObject(settings) ? omitDefaults(settings, {}) : settings;
    return { ...head, settings: own, assumed: undefined };
  };
  return 'value' in old && 'value' in now && isSameValue(shaping(old.value), shaping(now.value));
}

/** The settings that only decide other fields of the head: the mode and the node's name. They are left out. */
const headSettings: ReadonlySet<string> = new Set(['mode', 'hostnameOverride']);

/** Leaves out settings that have the default value. A golden then does not change when a later kpc adds a setting. */
function omitDefaults(settings: object, defaults: object): object {
  const kept = Object.entries(settings).flatMap(([key, value]: [string, unknown]): [string, unknown][] => {
    const usual = (defaults as Readonly<Record<string, unknown>>)[key];
    if (headSettings.has(key) || isSameValue(value, usual)) return [];
    // The settings that detect local traffic count as one value.
    const isGroup = isObject(value) && isObject(usual) && !('mode' in value);
    return [[key, isGroup ? omitDefaults(value, usual) : value]];
  });
  return Object.fromEntries(kept);
}

/** Reads a golden's node, settings and Services, and compiles them with this kpc. Only `edited` compares the tools' lines. */
export function readGolden(files: BundleFiles, compile: Compile, kpcVersion: string, path = ''): BundleReading {
  const unfit = findUnfit(files);
  if (unfit) return unfit;
  const head = readHead(files.get(goldenHead), kpcVersion);
  const parts = [...files]
    .filter(([name]) => isGoldenServiceFile(name))
    .map(([name, text]) => readGoldenPart(name, text));
  const faults = [head, ...parts].filter((part) => 'problem' in part);
  if ('problem' in head || faults.length > 0) return broken(faults);
  const { manifest, assumed } = head;
  const good = parts
    .filter((part) => 'service' in part)
    .sort(({ service: a }, { service: b }) => compareText(a.namespace, b.namespace) || compareText(a.name, b.name));
  const cluster = indexCluster({
    services: good.map(({ service }) => service),
    servicePorts: good.flatMap(({ servicePorts }) => servicePorts).sort(compareServicePorts),
    healthChecks: good.flatMap(({ healthChecks }) => healthChecks),
    serviceCidrs: readServiceRanges(manifest),
  });
  const strange = findBroken([...checkManifestValues(manifest), ...checkServiceValues(cluster, manifest)]);
  if (strange) return strange;
  const chosen = { assigned: good.flatMap((part) => part.assigned), assumedEndpoints: uniteAssumed(good) };
  const snapshot = snapshotOfBundle({ manifest: { ...manifest, ...chosen }, cluster }, compile, {
    name: path,
    assumed,
    edited: () => findEdited(files, snapshot, compile).map((file) => `${path.replace(/\/$/, '')}/${file}`),
  });
  return { kind: 'bundle', bundle: { manifest: makeBundle(snapshot).manifest, files, snapshot } };
}

interface GoldenPart extends Pick<Cluster, 'servicePorts' | 'healthChecks'> {
  readonly service: ServiceInfo;
  readonly assigned: readonly AssignedService[];
  readonly assumed: readonly AssumedWorkload[];
}

function readGoldenPart(file: string, text: string): GoldenPart | BundleFault {
  const sections = parseSections(text);
  const reading = readServices(sections.get('services.json') ?? '');
  if ('problems' in reading)
    return { problem: 'misnamed', ...reading.problems[0], file, line: undefined, column: undefined };
  const { services, servicePorts, healthChecks } = reading.value;
  const [service] = services;
  const owners = [
    ...services.map(({ namespace, name }) => goldenServiceFile(namespace, name)),
    ...[...servicePorts, ...healthChecks].map((each) => goldenServiceFile(each.namespace, each.service)),
  ];
  if (!service || services.length > 1 || owners.some((name) => name !== file)) {
    return { file, problem: 'misnamed' };
  }
  const sources = readSectionLines(sections, sourcesSection, sourcesLines);
  const assigned = readSectionLines(sections, assignedSection, assignedLines);
  const assumed = readSectionLines(sections, assumedSection, assumedLines);
  if ('wrong' in sources) return { file, ...sources.wrong };
  if ('wrong' in assigned) return { file, ...assigned.wrong };
  if ('wrong' in assumed) return { file, ...assumed.wrong };
  const [own] = sources.value;
  const made = own && { ...usualSources, ...own };
  return {
    service: { ...service, sources: made },
    servicePorts,
    healthChecks,
    assigned: assigned.value,
    assumed: assumed.value,
  };
}

function readHead(
  text: string | undefined,
  kpcVersion: string,
): { readonly manifest: Manifest; readonly assumed: AssumedHead } | BundleFault {
  const file = goldenHead;
  const head = parseChecked(fieldsCheck, text ?? '');
  if ('wrong' in head) return { file, ...head.wrong };
  const { goldenVersion: found, kubernetesVersion, settings, assumed = {}, ...said } = head.value;
  if (found !== goldenVersion) {
    return { file, problem: 'version', found: typeof found === 'number' ? found : undefined, reads: goldenVersion };
  }
  const release = releases.find((each) => each === kubernetesVersion);
  if (release === undefined)
    return { file, problem: 'wrong', at: 'kubernetesVersion', expected: releases.join(' or ') };
  const manifest = {
    ...said,
    formatVersion,
    kpcVersion,
    kubeProxyVersion: kubeProxyVersions[release],
    settings: { ...addDefaults(settings, usualSettings), mode: said['mode'] },
    ipvsTimeouts: null,
    healthChecks: [],
    assigned: [],
    tools: {},
    counts: {},
    files: {},
  };
  const reading = readChecked(manifestCheck, manifest);
  if ('wrong' in reading) return { file, ...reading.wrong };
  const chosen = readChecked(assumedHead, assumed, 'assumed');
  return 'wrong' in chosen ? { file, ...chosen.wrong } : { manifest: reading.value, assumed: chosen.value };
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

/** Returns each workload once, even if several Services select its Pods. Undefined if there are none, as in a bundle. */
function uniteAssumed(parts: readonly GoldenPart[]): readonly AssumedWorkload[] | undefined {
  const united = new Map(parts.flatMap(({ assumed }) => assumed.map((each) => [each.workload, each] as const)));
  const workloads = [...united.values()].sort((a, b) => compareText(a.workload, b.workload));
  return workloads.length > 0 ? workloads : undefined;
}
