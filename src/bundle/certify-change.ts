import { findChangedLines } from '../base/changed-lines.ts';
import type { Cluster, ServicePort } from '../cluster/model.ts';
import { families, type Family } from '../kernel/family.ts';
import { nodeOfBundle } from './bundle-node.ts';
import { isOwnEntryChange, type PartOfServices } from './certify-entries.ts';
import { areSameLines, lineBefore, type Versions } from './certify-lines.ts';
import { isOwnNftChange } from './certify-nftables.ts';
import { isOwnServerChange } from './certify-servers.ts';
import type { Compile } from './check-forms.ts';
import { checkServiceValues } from './check-values.ts';
import { countState, formatFile, type BundleFiles } from './make-bundle.ts';
import { bundleFileNames, settingsOf, type BundleFileName, type Manifest } from './manifest.ts';
import { openBundle, readListedManifest, type StoredBundle } from './read-bundle.ts';
import { readServices, writeServices } from './services-file.ts';
import type { ServicePortRecord } from './services-shape.ts';

/**
 * The bundle of these files, where it differs from one that is known to hold what kpc writes in nothing but endpoints
 * of Service ports, and in what comes of these; undefined where that cannot be told so, which says nothing against it.
 *
 * The chains and real servers of a Service port come of that port and the settings alone. So the ports
 * that changed are compiled by themselves, as they were and as they are: what is new in each file must be what is new in
 * theirs, line by line and at the same place. Whatever else differs, be it one character, is for checkForms to look at.
 */
export function certifyChange(known: BundleFiles, files: BundleFiles, compile: Compile): StoredBundle | undefined {
  try {
    return certify(known, files, compile);
  } catch {
    // checkForms says what is wrong with it.
    return undefined;
  }
}

function certify(known: BundleFiles, files: BundleFiles, compile: Compile): StoredBundle | undefined {
  const manifest = readListedManifest(files);
  const before = JSON.parse(known.get('manifest.json') ?? 'null') as Manifest | null;
  if (!before || !manifest || !haveSameSettings(before, manifest)) return undefined;
  const services = { old: known.get('services.json') ?? '', new: files.get('services.json') ?? '' };
  const change = findChangedPorts(services.old, services.new);
  if (!change || checkServiceValues(change.new, manifest).length > 0) return undefined;
  const parts = { old: compilePart(change.old, manifest, compile), new: compilePart(change.new, manifest, compile) };
  if (!haveSameCounts(before, manifest, parts)) return undefined;
  if (!standAlone(change, parts, (cluster) => compilePart(cluster, manifest, compile))) return undefined;
  const clusters = {
    old: { services: services.old, part: change.old },
    new: { services: services.new, part: change.new },
  };
  for (const name of bundleFileNames) {
    if (name === 'services.json') continue;
    const whole = { old: known.get(name), new: files.get(name) };
    const part = { old: parts.old.files.get(name), new: parts.new.files.get(name) };
    if (!isOwnChange(name, whole, part, clusters)) return undefined;
  }
  return openBundle(manifest, files);
}

/** All but what a change of endpoints changes. */
function haveSameSettings(a: Manifest, b: Manifest): boolean {
  const rest = ({ files, counts: _, ...settings }: Manifest) => JSON.stringify([settings, Object.keys(files)]);
  return a.dumped === undefined && rest(a) === rest(b);
}

const endpointStart = ' {"address":"';

/** The Service ports that changed, as they were and as they are; undefined where anything else did. */
function findChangedPorts(old: string, now: string): Versions<Cluster> | undefined {
  const changes = findChangedLines(old, now);
  if (!changes || !changes.every(({ removed, added }) => [...removed, ...added].every(isEndpoint))) return undefined;
  const blocks = { old: new Set<string>(), new: new Set<string>() };
  for (const { at, newAt } of changes) {
    const [was, is] = [findBlock(old, at), findBlock(now, newAt)];
    if (was === undefined || is === undefined || headerOf(was) !== headerOf(is)) return undefined;
    blocks.old.add(was);
    blocks.new.add(is);
  }
  const ports = listPorts(now);
  const clusters = { old: readPart(old, [...blocks.old]), new: readPart(now, [...blocks.new]) };
  if (!ports || !clusters.old || !clusters.new) return undefined;
  const isAlone = clusters.new.servicePorts.every(
    (port) => ports.filter((other) => claimSame(port, other.header)).length === 1,
  );
  if (!isAlone) return undefined;
  // Only endpoints of these Service ports differ, so there are as many besides as there were.
  const endpointsElsewhere = countElsewhere(ports, clusters.new);
  return { old: { ...clusters.old, endpointsElsewhere }, new: { ...clusters.new, endpointsElsewhere } };
}

function isEndpoint(line: string): boolean {
  return line.startsWith(endpointStart);
}

/** The Service port in whose endpoints a place is. */
function findBlock(text: string, at: number): string | undefined {
  // What differs is a line of an endpoint, so its Service port begins before.
  const start = text.lastIndexOf('\n{', at - 1) + 1;
  const end = text.indexOf('\n]}', at - 1);
  const block = text.slice(start, end + '\n]}'.length);
  const lines = block.split('\n');
  const isWhole = end >= 0 && isHeader(lines[0] ?? '') && lines.slice(1, -1).every(isEndpoint);
  return isWhole ? block : undefined;
}

function headerOf(block: string): string {
  return block.slice(0, block.indexOf('\n'));
}

function isHeader(line: string): boolean {
  return line.startsWith('{"namespace":"') && line.endsWith(',"endpoints":[');
}

/** A Service port without its endpoints, and how many these are. */
interface ListedPort {
  readonly header: ServicePortRecord;
  readonly endpoints: number;
}

/** All Service ports. The text is long: it is cut where they begin and where their endpoints do, and not searched further. */
function listPorts(text: string): readonly ListedPort[] | undefined {
  const [, ...blocks] = text.slice(text.indexOf('\n"servicePorts": [')).split('\n{"namespace":"');
  try {
    return blocks.map((block) => {
      const [header = '', ...endpoints] = block.split(`\n${endpointStart}`);
      const end = header.lastIndexOf(',"endpoints":[');
      const record = JSON.parse(`{"namespace":"${header.slice(0, end)}}`) as ServicePortRecord;
      return { header: record, endpoints: endpoints.length };
    });
  } catch {
    return undefined;
  }
}

/** Whether both could have one virtual server or one chain: only a part that no other claims can be compiled alone. */
function claimSame(port: ServicePort, other: ServicePortRecord): boolean {
  if (port.protocol !== other.protocol || port.family !== other.family) return false;
  const isOneService = port.namespace === other.namespace && port.service === other.service;
  if (isOneService && port.portName === other.port) return true;
  if (port.nodePort !== 0 && port.nodePort === other.nodePort) return true;
  // A node port is of all addresses of the node, and external addresses of the other may be among them.
  if (port.nodePort === other.number || port.port === other.nodePort) return true;
  if (port.port !== other.number) return false;
  const own = new Set([port.clusterIP, ...port.externalIPs, ...port.loadBalancerIPs].map(({ text }) => text));
  const others = [other.clusterIP, ...(other.externalIPs ?? []), ...(other.loadBalancerIPs ?? [])];
  return others.some((text) => own.has(text));
}

/** These Service ports as a cluster, where they are written as kpc writes them. */
function readPart(text: string, blocks: readonly string[]): Cluster | undefined {
  const services = new Set<string>();
  const end = text.indexOf('\n"servicePorts": [');
  for (const block of blocks) {
    const { namespace, service } = JSON.parse(block) as ServicePortRecord;
    const at = text.indexOf(`\n${JSON.stringify({ namespace, name: service }).slice(0, -1)},`) + 1;
    if (at === 0 || at > end) return undefined;
    services.add(text.slice(at, text.indexOf('\n', at)).replace(/,$/, ''));
  }
  const list = (items: readonly string[]) => (items.length === 0 ? '[\n]' : `[\n${items.join(',\n')}\n]`);
  const part = `{\n"services": ${list([...services])},\n"servicePorts": ${list(blocks)},\n"healthChecks": [\n]\n}\n`;
  const stored = readServices(part);
  if (typeof stored === 'string') return undefined;
  // What networks there are shapes only rules of all Services.
  const cluster: Cluster = { ...stored, serviceCidrs: [] };
  return writeServices(cluster) === part ? cluster : undefined;
}

type EndpointCounts = { readonly [F in Family]: number };

const noEndpoints: EndpointCounts = { ipv4: 0, ipv6: 0 };

/** Endpoints of Service ports besides these. */
function countElsewhere(ports: readonly ListedPort[], part: Cluster): EndpointCounts {
  const counts = { ...noEndpoints };
  for (const { header, endpoints } of ports) counts[header.family] += endpoints;
  for (const port of part.servicePorts) counts[port.family] -= port.endpoints.length;
  return counts;
}

interface CompiledPart {
  readonly files: ReadonlyMap<BundleFileName, string | undefined>;
  readonly counts: Readonly<Record<string, number>>;
}

function compilePart(cluster: Cluster, manifest: Manifest, compile: Compile): CompiledPart {
  const { families: chosen, assigned, kpcVersion } = manifest;
  const [settings, node] = [settingsOf(manifest), nodeOfBundle(manifest)];
  const state = compile(cluster, node, settings, chosen);
  const content = { state, cluster, node, settings, families: chosen, assigned, kpcVersion };
  return {
    files: new Map(bundleFileNames.map((name) => [name, formatFile(name, content)])),
    counts: countState(state),
  };
}

/**
 * Whether the parts would be the same with as many endpoints in the cluster as the other version has. Where they would not,
 * as for iptables mode past some number of them, the rules of all other Service ports change too.
 */
function standAlone(
  change: Versions<Cluster>,
  parts: Versions<CompiledPart>,
  recompile: (cluster: Cluster) => CompiledPart,
): boolean {
  const totals = { old: countAll(change.old), new: countAll(change.new) };
  if (families.every((family) => totals.old[family] === totals.new[family])) return true;
  const isSteady = (version: 'old' | 'new', total: EndpointCounts): boolean => {
    const { endpointsElsewhere = noEndpoints, ...cluster } = change[version];
    const more = (family: Family) => endpointsElsewhere[family] + total[family] - totals[version][family];
    const { files } = recompile({ ...cluster, endpointsElsewhere: { ipv4: more('ipv4'), ipv6: more('ipv6') } });
    return bundleFileNames.every((name) => files.get(name) === parts[version].files.get(name));
  };
  return isSteady('old', totals.new) && isSteady('new', totals.old);
}

function countAll({ servicePorts, endpointsElsewhere = noEndpoints }: Cluster): EndpointCounts {
  const counts = { ...endpointsElsewhere };
  for (const { family, endpoints } of servicePorts) counts[family] += endpoints.length;
  return counts;
}

function haveSameCounts(before: Manifest, after: Manifest, parts: Versions<CompiledPart>): boolean {
  const names = Object.keys(before.counts);
  if (names.join() !== Object.keys(after.counts).join()) return false;
  return names.every((name) => {
    const change = (parts.new.counts[name] ?? 0) - (parts.old.counts[name] ?? 0);
    return (before.counts[name] ?? 0) + change === after.counts[name];
  });
}

/** Whether a file changed as the part did, and only in lines that come of one Service port each. */
function isOwnChange(
  name: BundleFileName,
  whole: Versions<string | undefined>,
  part: Versions<string | undefined>,
  clusters: Versions<PartOfServices>,
): boolean {
  if (whole.old === whole.new && part.old === part.new) return true;
  if (!areThere(whole) || !areThere(part)) return false;
  if (name === 'ipset.restore') return isOwnEntryChange(whole, part, clusters);
  if (name === 'nftables.nft') return isOwnNftChange(whole, part, clusters);
  if (name === 'ipvsadm.restore') return isOwnServerChange(whole, part);
  const changes = findChangedLines(whole.old, whole.new);
  const own = findChangedLines(part.old, part.new);
  if (!changes || !own || changes.length !== own.length) return false;
  const isOwn = (line: string): boolean => ownLines[name]?.test(line) === true;
  return changes.every(({ at, removed, added }, i) => {
    const twin = own[i];
    if (!twin || !areSameLines(removed, twin.removed) || !areSameLines(added, twin.added)) return false;
    if (![...removed, ...added].every(isOwn)) return false;
    // What is nothing but new stands behind a line of the same Service port.
    const anchor = lineBefore(whole.old, at);
    return removed.length > 0 || (isOwn(anchor) && anchor === lineBefore(part.old, twin.at));
  });
}

function areThere(versions: Versions<string | undefined>): versions is Versions<string> {
  return versions.old !== undefined && versions.new !== undefined;
}

/** The lines that come of one Service port and of no other. Each is once in its file. */
const ownLines: { readonly [N in BundleFileName]?: RegExp } = {
  'iptables.restore': /^(?::|-A )KUBE-(?:SVC|SVL|SEP|EXT|FW)-[A-Z2-7]{16} /,
  'ip6tables.restore': /^(?::|-A )KUBE-(?:SVC|SVL|SEP|EXT|FW)-[A-Z2-7]{16} /,
};
