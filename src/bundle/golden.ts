import { isObject } from '../base/json-shape.ts';
import type { AssumedWorkload } from '../cluster/assumed-workloads.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { Cluster } from '../cluster/model.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import { writeNode, writeSettings, type BundleFileName, type Manifest } from './manifest.ts';
import { goldenHead } from '../base/file-names.ts';
import { goldenNodeFile, goldenServiceFile } from './golden-names.ts';
import { formatFile, writeServiceRanges, type BundleContent, type BundleFiles, type Compile } from './make-bundle.ts';

/** The version of the golden's format. */
export const goldenVersion = 1;

/** golden.json: what shaped the golden. Nothing in it changes with the Services, or with the version of kpc. */
export interface GoldenHead extends Pick<Manifest, 'mode' | 'node' | 'families' | 'serviceCidrs'> {
  readonly goldenVersion: number;
  /** "1.36": of a patch release nothing changes here. */
  readonly kubernetesVersion: string;
  /** Those that are not at their default. */
  readonly settings: object;
}

/** What kpc needs to write goldens and to read them back. */
export interface GoldenContext {
  readonly compile: Compile;
  /** What the settings of kube-proxy are where nothing says otherwise. */
  readonly defaults: ProxySettings;
}

/** The files of tools in the order in which people want to see them: what a Service becomes first. */
const toolFiles = Object.keys({
  'nftables.nft': true,
  'ipvsadm.restore': true,
  'ip.batch': true,
  'ipset.restore': true,
  'iptables.restore': true,
  'ip6tables.restore': true,
  'sysctl.conf': true,
  'modules.conf': true,
} satisfies Record<Exclude<BundleFileName, 'services.json'>, true>) as readonly BundleFileName[];

/**
 * Writes what a bundle means as files to keep in git: one for each Service, with its endpoints and its lines of each tool's
 * file, one for what the node has anyway, and one for the settings. A Service's file holds what its cluster would compile to
 * if there were no other Service, so it changes with that Service alone: two branches that change two Services never touch
 * the same file. Nothing counts, sums up or names a version of kpc.
 */
export function makeGolden(content: BundleContent, { compile, defaults }: GoldenContext): BundleFiles {
  const { node, settings, families } = content;
  const partOf = (cluster: Cluster) => ({ ...content, cluster, state: compile(cluster, node, settings, families) });
  const { serviceCidrs } = content.cluster;
  const base = partOf({ services: [], servicePorts: [], healthChecks: [], serviceCidrs });
  const baseTexts = toolFiles.map((name) => [name, formatFile(name, base) ?? ''] as const);
  const known = new Map(baseTexts.map(([name, text]) => [name, new Set(placeLines(text).map(({ place }) => place))]));
  const files = new Map<string, string>([
    [goldenHead, formatHead(content, defaults)],
    [goldenNodeFile, formatSections(baseTexts)],
  ]);
  const assumed = content.assumedEndpoints ?? [];
  const assigned = new Map(content.assigned.map((each) => [each.service, each]));
  for (const { service, cluster } of splitCluster(content.cluster)) {
    const part = partOf(cluster);
    const chosen = assigned.get(`${service.namespace}/${service.name}`);
    const pods = assumed.filter((each) => isBehind(each, cluster));
    const sections = [
      ['services.json', formatFile('services.json', part) ?? ''],
      [assignedSection, formatLines(chosen ? [chosen] : [])],
      [assumedSection, formatLines(pods)],
      ...toolFiles.map((name) => [name, cutLines(formatFile(name, part) ?? '', known.get(name) ?? new Set())] as const),
    ] as const;
    files.set(goldenServiceFile(service.namespace, service.name), formatSections(sections));
  }
  return files;
}

/** Whether a line of a tool's file opens a table or a block in it, such as "*nat" or "table ip kube-proxy {". */
const opens = (line: string): boolean => line.startsWith('*') || line.endsWith('{');
const closes = (line: string): boolean => line === 'COMMIT' || line.trim() === '}';

/** The lines of a tool's file, each also with the lines before it that open its block. */
function placeLines(text: string): readonly { readonly line: string; readonly place: string }[] {
  const inside: string[] = [];
  const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  return lines.map((line) => {
    if (closes(line)) inside.pop();
    const place = [...inside, line].join('\n');
    if (opens(line)) inside.push(line);
    return { line, place };
  });
}

/**
 * The lines of a tool's file that another text of the same file does not hold in the same place, with the lines around them
 * that open and close their table; '' where nothing is left.
 */
function cutLines(text: string, known: ReadonlySet<string>): string {
  const kept: string[] = [];
  for (const { line, place } of placeLines(text)) {
    // A table with nothing of its own in it is left out.
    if (closes(line) && opens(kept.at(-1) ?? '')) kept.pop();
    else if (opens(line) || closes(line) || !known.has(place)) kept.push(line);
  }
  return kept.map((line) => `${line}\n`).join('');
}

/** The section of a Service's file with the addresses and ports that kpc chose for it. */
export const assignedSection = 'assigned.json';

/** The section with the workloads that the Service's endpoints are assumed of, a line each. */
export const assumedSection = 'assumed.json';

/** Whether any Pod of a workload is an endpoint of a cluster's Services. */
function isBehind({ pods }: AssumedWorkload, { services, servicePorts }: Cluster): boolean {
  const addresses = new Set([
    ...servicePorts.flatMap(({ endpoints }) => endpoints.map(({ address }) => address.text)),
    ...services.flatMap(({ headlessEndpoints }) => headlessEndpoints.map(({ address }) => address)),
  ]);
  return pods.some((pod) => pod.addresses.some((address) => addresses.has(address)));
}

function formatLines(values: readonly object[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

/** Each text that is not empty under a heading with its name. */
function formatSections(sections: readonly (readonly [name: string, text: string])[]): string {
  return sections
    .filter(([, text]) => text !== '')
    .map(([name, text]) => `==> ${name} <==\n${text}`)
    .join('\n');
}

/** The texts of a file with headings, by name. */
export function parseSections(text: string): ReadonlyMap<string, string> {
  const sections = new Map<string, string>();
  for (const part of text.split(/^(?===> )/m)) {
    const [, name, body] = /^==> (\S+) <==\n([^]*)$/.exec(part) ?? [];
    if (name !== undefined && body !== undefined) sections.set(name, body);
  }
  return sections;
}

function formatHead(content: BundleContent, defaults: ProxySettings): string {
  const { node, families, settings } = content;
  const head: GoldenHead = {
    goldenVersion,
    kubernetesVersion: settings.release,
    mode: settings.mode,
    node: writeNode(node),
    families,
    serviceCidrs: writeServiceRanges(content),
    settings: omitDefaults(writeSettings(settings).settings, writeSettings(defaults).settings),
  };
  return `${JSON.stringify(head, undefined, 2)}\n`;
}

/** What a default is today stays out: settings that a later kpc adds do not show in older goldens. */
function omitDefaults(settings: object, defaults: object): object {
  const kept = Object.entries(settings).flatMap(([key, value]: [string, unknown]): [string, unknown][] => {
    const usual = (defaults as Readonly<Record<string, unknown>>)[key];
    // The head says it in a field of its own.
    if (key === 'mode' || JSON.stringify(value) === JSON.stringify(usual)) return [];
    // How local traffic is detected is one thing, whatever fields it takes.
    const isGroup = isObject(value) && isObject(usual) && !('mode' in value);
    return [[key, isGroup ? omitDefaults(value, usual) : value]];
  });
  return Object.fromEntries(kept);
}

/** The cluster as each Service alone would make it. */
function splitCluster({ services, servicePorts, healthChecks, serviceCidrs }: Cluster) {
  const portsOf = groupBy(servicePorts, ({ namespace, service }) => `${namespace}/${service}`);
  const checksOf = groupBy(healthChecks, ({ namespace, service }) => `${namespace}/${service}`);
  return services.map((service) => {
    const name = `${service.namespace}/${service.name}`;
    const own = { servicePorts: portsOf.get(name) ?? [], healthChecks: checksOf.get(name) ?? [] };
    return { service, cluster: { services: [service], ...own, serviceCidrs } };
  });
}
