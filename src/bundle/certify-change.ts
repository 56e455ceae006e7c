import type { Cluster, ServicePort } from '../cluster/model.ts';
import { families, type Family } from '../kernel/family.ts';
import { nodeOfBundle, settingsOf, type Manifest } from './manifest.ts';
import { checkServiceValues } from './check-values.ts';
import { countState, formatFile, type BundleFiles, type Compile } from './make-bundle.ts';
import { openBundle, readListedManifest, type StoredBundle } from './read-bundle.ts';
import { readServices, writeServices } from './services-file.ts';
import type { ServicePortRecord } from './services-shape.ts';
import { spliceFile, type Versions } from './splice-file.ts';
import { stateFileNames, type StateFileName } from './state-files.ts';

/**
 * The bundle of these files, if it differs from one that is known to hold what kpc writes in nothing but endpoints
 * of Service ports, and in what results from these; undefined if that is not certain, which says nothing against it.
 *
 * The chains and real servers of a Service port result from that port and the settings alone. So each port that changed is
 * compiled by itself, as it was and as it is, and the one text is put in the place of the other in the known files. These
 * must then be the new files, to the byte. Whatever else differs is for the whole check.
 */
export function certifyChange(known: BundleFiles, files: BundleFiles, compile: Compile): StoredBundle | undefined {
  try {
    return certify(known, files, compile);
  } catch {
    // The whole check says what is wrong with it.
    return undefined;
  }
}

function certify(known: BundleFiles, files: BundleFiles, compile: Compile): StoredBundle | undefined {
  const manifest = readListedManifest(files);
  const before = JSON.parse(known.get('manifest.json') ?? 'null') as Manifest | null;
  if (!before || !manifest || !haveSameSettings(before, manifest)) return undefined;
  const services = { old: known.get('services.json') ?? '', new: files.get('services.json') ?? '' };
  const found = findChangedPorts(services);
  if (!found || found.changes.some((change) => checkServiceValues(change.new, manifest).length > 0)) return undefined;
  const expected = new Map(known);
  const counts = new Map(Object.entries(before.counts));
  for (const change of found.changes) {
    const parts = compileVersions(change, found.totals, manifest, compile);
    if (!parts) return undefined;
    for (const name of stateFileNames) {
      const part = { old: parts.old.files.get(name), new: parts.new.files.get(name) };
      if (part.old === part.new) continue;
      const spliced = spliceFile(name, expected.get(name), part, { services, ports: change });
      if (spliced === undefined) return undefined;
      expected.set(name, spliced);
    }
    for (const [name, count] of counts) {
      counts.set(name, count + (parts.new.counts[name] ?? 0) - (parts.old.counts[name] ?? 0));
    }
  }
  const isExpected =
    stateFileNames.every((name) => expected.get(name) === files.get(name)) &&
    JSON.stringify([...counts]) === JSON.stringify(Object.entries(manifest.counts));
  return isExpected ? openBundle(manifest, files) : undefined;
}

/** All but what a change of endpoints changes. */
function haveSameSettings(a: Manifest, b: Manifest): boolean {
  const rest = ({ files, counts: _, ...settings }: Manifest) => JSON.stringify([settings, Object.keys(files)]);
  return a.dumped === undefined && rest(a) === rest(b);
}

/** More are not worth a look one by one. */
const mostChangedPorts = 100;

/** The Service ports whose endpoints changed, each as a cluster of its own, and the endpoints of all. */
interface ChangedPorts {
  readonly changes: readonly Versions<Cluster>[];
  readonly totals: Versions<EndpointCounts>;
}

/** Undefined if anything else changed. */
function findChangedPorts(services: Versions<string>): ChangedPorts | undefined {
  const records = { old: cutRecords(services.old), new: cutRecords(services.new) };
  if (records.old.length !== records.new.length) return undefined;
  const places = [...records.new.keys()].filter((i) => records.old[i] !== records.new[i]);
  if (places.length > mostChangedPorts) return undefined;
  const ports = listPorts(records.new);
  const changes: Versions<Cluster>[] = [];
  for (const i of places) {
    const [was, is] = [cutPort(records.old[i] ?? ''), cutPort(records.new[i] ?? '')];
    if (was.head !== is.head || was.rest !== is.rest) return undefined;
    const [old, now] = [readPart(was.text, records.old), readPart(is.text, records.new)];
    const [port] = now?.servicePorts ?? [];
    if (!old || !now || !port || ports.filter((other) => claimSame(port, other.header)).length !== 1) return undefined;
    changes.push({ old, new: now });
  }
  return { changes, totals: countAll(changes, ports) };
}

/** How many endpoints all Service ports have, before the changes and after them. */
function countAll(changes: readonly Versions<Cluster>[], ports: readonly ListedPort[]): Versions<EndpointCounts> {
  let total = noEndpoints;
  for (const { header, endpoints } of ports) total = add(total, { ...noEndpoints, [header.family]: endpoints }, 1);
  const before = changes.reduce(
    (sum, change) => add(add(sum, countEndpoints(change.new), -1), countEndpoints(change.old), 1),
    total,
  );
  return { old: before, new: total };
}

/** The records of all lists of services.json, in the order of the file. No text in it has a line end. */
function cutRecords(services: string): readonly string[] {
  return services.split('\n{');
}

/** A record of a Service port with endpoints: its first line, all of it, and what follows it. */
function cutPort(record: string): { readonly head: string; readonly text: string; readonly rest: string } {
  const end = record.indexOf('\n]}') + '\n]}'.length;
  const head = record.slice(0, record.indexOf('\n'));
  return { head, text: record.slice(0, end), rest: record.slice(end) };
}

/** A Service port without its endpoints, and how many these are. */
interface ListedPort {
  readonly header: ServicePortRecord;
  readonly endpoints: number;
}

function listPorts(records: readonly string[]): readonly ListedPort[] {
  const start = records.findIndex((record) => record.endsWith('\n"servicePorts": [')) + 1;
  const end = records.findIndex((record) => record.includes('\n"healthChecks": ['));
  return records.slice(start, end + 1).map((record) => {
    const [header = '', ...endpoints] = record.split('\n {');
    const fields = header.slice(0, header.lastIndexOf(',"endpoints":['));
    return { header: JSON.parse(`{${fields}}`) as ServicePortRecord, endpoints: endpoints.length };
  });
}

type EndpointCounts = { readonly [F in Family]: number };

const noEndpoints: EndpointCounts = { ipv4: 0, ipv6: 0 };

function countEndpoints({ servicePorts }: Cluster): EndpointCounts {
  const counts = { ...noEndpoints };
  for (const { family, endpoints } of servicePorts) counts[family] += endpoints.length;
  return counts;
}

function add(a: EndpointCounts, b: EndpointCounts, times: 1 | -1): EndpointCounts {
  return { ipv4: a.ipv4 + times * b.ipv4, ipv6: a.ipv6 + times * b.ipv6 };
}

/** Whether both could have one virtual server or one chain: only a port that no other claims can be compiled alone. */
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

/** A Service port as a cluster, if it is written as kpc writes it. */
function readPart(port: string, records: readonly string[]): Cluster | undefined {
  const { namespace, service } = JSON.parse(`{${port}`) as ServicePortRecord;
  const start = `${JSON.stringify({ namespace, name: service }).slice(1, -1)},`;
  const found = records.find((record) => record.startsWith(start));
  if (found === undefined) return undefined;
  const [line = ''] = found.split(/,?\n|,$/, 1);
  const part = `{\n"services": [\n{${line}\n],\n"servicePorts": [\n{${port}\n],\n"healthChecks": [\n]\n}\n`;
  const stored = readServices(part);
  if (typeof stored === 'string') return undefined;
  // What networks there are shapes only rules of all Services.
  const cluster: Cluster = { ...stored, serviceCidrs: [] };
  return writeServices(cluster) === part ? cluster : undefined;
}

interface CompiledPart {
  readonly files: ReadonlyMap<StateFileName, string | undefined>;
  readonly counts: Readonly<Record<string, number>>;
}

function compilePart(cluster: Cluster, manifest: Manifest, compile: Compile): CompiledPart {
  const { families: chosen, assigned, kpcVersion } = manifest;
  const [settings, node] = [settingsOf(manifest), nodeOfBundle(manifest)];
  const state = compile(cluster, node, settings, chosen);
  const content = { state, cluster, node, settings, families: chosen, assigned, kpcVersion };
  return {
    files: new Map(stateFileNames.map((name) => [name, formatFile(name, content)])),
    counts: countState(state),
  };
}

/**
 * Both versions compiled. Undefined if either would be another with as many endpoints in the cluster as the other has: then the
 * rules of all other Service ports change too, as in iptables mode past some number of them.
 */
function compileVersions(
  change: Versions<Cluster>,
  totals: Versions<EndpointCounts>,
  manifest: Manifest,
  compile: Compile,
): Versions<CompiledPart> | undefined {
  const compileOne = (cluster: Cluster, total: EndpointCounts): CompiledPart => {
    const endpointsElsewhere = add(total, countEndpoints(cluster), -1);
    return compilePart({ ...cluster, endpointsElsewhere }, manifest, compile);
  };
  const parts = { old: compileOne(change.old, totals.old), new: compileOne(change.new, totals.new) };
  if (families.every((family) => totals.old[family] === totals.new[family])) return parts;
  const isSteady = (version: 'old' | 'new', total: EndpointCounts): boolean => {
    const { files } = compileOne(change[version], total);
    return stateFileNames.every((name) => files.get(name) === parts[version].files.get(name));
  };
  return isSteady('old', totals.new) && isSteady('new', totals.old) ? parts : undefined;
}
