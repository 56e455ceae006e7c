import type { Cluster, ServicePort } from '../cluster/model.ts';
import { families, type Family } from '../kernel/family.ts';
import { compareEntries, parseEntry } from '../kernel/ipset/set-entry.ts';
import { compareElements } from '../kernel/nftables/compare-elements.ts';
import type { Element } from '../kernel/nftables/element.ts';
import { parseNftText } from '../kernel/nftables/parse-text.ts';
import { serviceChainPattern } from '../kube-proxy/chains.ts';
import { nftPrefixes } from '../kube-proxy/nft-names.ts';
import { setName } from '../kube-proxy/ipvs-sets.ts';
import { checkServiceValues } from './check-values.ts';
import { compileContent, countState, formatFile, type BundleFiles, type Compile } from './make-bundle.ts';
import type { Manifest } from './manifest.ts';
import { openBundle, readListedManifest, type StoredBundle } from './read-bundle.ts';
import { readServices, writeServices, type ServicePortRecord } from './services-file.ts';
import { stateFileNames, type StateFileName } from './state-files.ts';

/** The same before a change and after it. */
interface Versions<T> {
  readonly old: T;
  readonly new: T;
}

/**
 * The bundle of these files, if it differs from one that is known to hold what kpc writes in nothing but endpoints
 * of Service ports, and in what results from these; undefined if that is not certain: it may still be right.
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
  if (!found || found.changes.some((ports) => checkServiceValues(ports.new, manifest).length > 0)) return undefined;
  const expected = new Map(known);
  const counts = new Map(Object.entries(before.counts));
  for (const ports of found.changes) {
    const parts = compileVersions(ports, found.totals, manifest, compile);
    if (!parts) return undefined;
    for (const name of stateFileNames) {
      const part = { old: parts.old.files[name], new: parts.new.files[name] };
      if (part.old === part.new) continue;
      const spliced = spliceFile(name, expected.get(name), part, { services, ports });
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

/** More are not worth a look one by one: the whole check is quicker. */
const mostChangedPorts = 100;
const mostChangedEndpoints = 100;

type EndpointCounts = { readonly [F in Family]: number };

/**
 * Returns the Service ports whose endpoints changed, each as its own cluster, and how many endpoints all ports have.
 * Undefined if anything else changed.
 */
function findChangedPorts(services: Versions<string>) {
  // The records of all lists, in the order of the file. No text in it has a line end.
  const records = { old: services.old.split('\n{'), new: services.new.split('\n{') };
  if (records.old.length !== records.new.length) return undefined;
  const places = [...records.new.keys()].filter((i) => records.old[i] !== records.new[i]);
  if (places.length > mostChangedPorts) return undefined;
  const ports = listPorts(records.new);
  const totals = { old: { ipv4: 0, ipv6: 0 }, new: { ipv4: 0, ipv6: 0 } };
  for (const { header, endpoints } of ports) totals.new[header.family] += endpoints;
  Object.assign(totals.old, totals.new);
  const changes: Versions<Cluster>[] = [];
  let changed = 0;
  for (const i of places) {
    const [was, is] = [cutPort(records.old[i] ?? ''), cutPort(records.new[i] ?? '')];
    const lines = findChanged({ old: was.text.split('\n'), new: is.text.split('\n') });
    changed += lines.removed.length + lines.added.length;
    if (was.head !== is.head || was.rest !== is.rest || changed > mostChangedEndpoints) return undefined;
    const [old, now] = [readPart(was.text, records.old), readPart(is.text, records.new)];
    const [port] = now?.servicePorts ?? [];
    if (!old || !now || !port || ports.filter((other) => claimSame(port, other.header)).length !== 1) return undefined;
    changes.push({ old, new: now });
    totals.old[port.family] += endpointsOf(old).length - endpointsOf(now).length;
  }
  return { changes, totals };
}

/** The lines that only one of the versions has. */
function findChanged(lines: Versions<readonly string[]>) {
  const [before, after] = [new Set(lines.old), new Set(lines.new)];
  return {
    removed: lines.old.filter((line) => !after.has(line)),
    added: lines.new.filter((line) => !before.has(line)),
  };
}

/** A record of a Service port with endpoints: its first line, all of it, and what follows it. */
function cutPort(record: string): { readonly head: string; readonly text: string; readonly rest: string } {
  const end = record.indexOf('\n]}') + '\n]}'.length;
  const head = record.slice(0, record.indexOf('\n'));
  return { head, text: record.slice(0, end), rest: record.slice(end) };
}

/** Each Service port without its endpoints, and how many these are. */
function listPorts(
  records: readonly string[],
): readonly { readonly header: ServicePortRecord; readonly endpoints: number }[] {
  const start = records.findIndex((record) => record.endsWith('\n"servicePorts": [')) + 1;
  const end = records.findIndex((record) => record.includes('\n"healthChecks": ['));
  return records.slice(start, end + 1).map((record) => {
    const [header = '', ...endpoints] = record.split('\n {');
    const fields = header.slice(0, header.lastIndexOf(',"endpoints":['));
    return { header: JSON.parse(`{${fields}}`) as ServicePortRecord, endpoints: endpoints.length };
  });
}

function endpointsOf({ servicePorts }: Cluster): ServicePort['endpoints'] {
  return servicePorts.flatMap(({ endpoints }) => endpoints);
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

/**
 * Both versions compiled. Undefined if either would be another with as many endpoints in the cluster as the other has: then the
 * rules of all other Service ports change too, as in iptables mode past some number of them.
 */
function compileVersions(
  change: Versions<Cluster>,
  totals: Versions<EndpointCounts>,
  manifest: Manifest,
  compile: Compile,
) {
  const compileAmong = (cluster: Cluster, total: EndpointCounts) => {
    const endpointsElsewhere = { ...total };
    for (const { family, endpoints } of cluster.servicePorts) endpointsElsewhere[family] -= endpoints.length;
    const content = compileContent(manifest, { ...cluster, endpointsElsewhere }, compile);
    const files = stateFileNames.map((name) => [name, formatFile(name, content)] as const);
    const counts: Readonly<Record<string, number>> = countState(content.state);
    return { files: Object.fromEntries(files) as Partial<Record<StateFileName, string>>, counts };
  };
  const [parts, same] = [totals.old, totals.new].map((total) => ({
    old: compileAmong(change.old, total),
    new: compileAmong(change.new, total),
  }));
  return JSON.stringify(parts) === JSON.stringify(same) ? parts : undefined;
}

/** A change of one Service port, and services.json before and after it. */
interface PortChange {
  readonly services: Versions<string>;
  readonly ports: Versions<Cluster>;
}

const serviceChains = new RegExp(`^(?:(?::${serviceChainPattern} .*\\n)+|(?:-A ${serviceChainPattern} .*\\n)+)`, 'gm');
const ownNftChain = `\\tchain (?:${Object.values(nftPrefixes).join('|')})[A-Z2-7]{8}-\\S+ \\{\\n`;

/** The runs of lines that result from one Service port and from no other. */
const ownRuns: { readonly [Name in StateFileName]?: RegExp } = {
  'iptables.restore': serviceChains,
  'ip6tables.restore': serviceChains,
  'ipvsadm.restore': /^-A .*\n(?:-a .*\n)*/gm,
  'nftables.nft': new RegExp(`^${ownNftChain}(?:\\t\\t.*\\n)*\\t\\}\\n`, 'gm'),
};

/**
 * A sorted list of the endpoints on the node, which all Service ports share: a line for each, where `line` matches the
 * address and port. A list of more than `most` lines is made in another way.
 */
function sharedList(line: string, compare: (a: string, b: string) => number, most = Number.POSITIVE_INFINITY) {
  // Its lines follow each other in a file.
  return { line: new RegExp(`^${line}\n$`), any: new RegExp(`^${line}\n`, 'gm'), compare, most };
}

type SharedList = ReturnType<typeof sharedList>;

const nftAddress: { readonly [F in Family]: string } = { ipv4: '[\\d.]+', ipv6: '[\\da-f:]+' };

const sharedLists: { readonly [Name in StateFileName]?: readonly SharedList[] } = {
  'ipset.restore': families.map((family) => {
    const start = `add ${setName('loopBack', family)} `;
    const entryOf = (line: string) => parseEntry(line.slice(start.length, -1), 'hash:ip,port,ip');
    const compare = (a: string, b: string) => compareEntries(entryOf(a), entryOf(b));
    return sharedList(`${start}([^,]+),\\w+:(\\d+),\\S+`, compare, 65_536);
  }),
  // hairpin-connections. No other set has elements of four parts.
  'nftables.nft': families.map((family) =>
    sharedList(`\\t\\t\\t(${nftAddress[family]}) \\. \\S+ \\. \\S+ \\. (\\d+),`, (a, b) =>
      compareElements(readElement(a), readElement(b)),
    ),
  ),
};

/** A line of a set of nftables. */
function readElement(line: string): Element {
  const type = 'type ipv4_addr . ipv4_addr . inet_proto . inet_service';
  const [table] = parseNftText(
    `table ip read {\n\tset read {\n\t\t${type}\n\t\telements = {\n${line}\t\t}\n\t}\n}\n`,
  ).tables;
  const [element] = table?.sets.get('read')?.elements ?? [];
  if (!element) throw new TypeError(`no element: ${line}`);
  return element;
}

/**
 * A file of a whole bundle, with what it says of a Service port replaced. `part` is the same file of a bundle that has no other
 * Service port, before and after the change. Undefined if more than that Service port has part in what changes.
 */
function spliceFile(
  name: StateFileName,
  whole: string | undefined,
  part: Versions<string | undefined>,
  change: PortChange,
): string | undefined {
  if (whole === undefined || part.old === undefined || part.new === undefined) return undefined;
  let [result, old, now]: [string | undefined, string, string] = [whole, part.old, part.new];
  for (const list of sharedLists[name] ?? []) {
    const lines = { old: old.match(list.any) ?? [], new: now.match(list.any) ?? [] };
    result = spliceList(result, list, lines, change);
    if (result === undefined) return undefined;
    [old, now] = [withoutList(old, list), withoutList(now, list)];
  }
  return spliceRuns(result, ownRuns[name], { old, new: now });
}

/** nft has an empty set without a list. */
function withoutList(text: string, { any }: SharedList): string {
  return text.replace(any, '').replaceAll('\t\telements = {\n\t\t}\n', '');
}

/** Replaces each run of the part. All else in the part must have stayed as it was. */
function spliceRuns(whole: string, pattern: RegExp | undefined, part: Versions<string>): string | undefined {
  if (pattern === undefined) return part.old === part.new ? whole : undefined;
  const runs = { old: part.old.match(pattern) ?? [], new: part.new.match(pattern) ?? [] };
  if (runs.old.length !== runs.new.length) return undefined;
  if (part.old.replace(pattern, '') !== part.new.replace(pattern, '')) return undefined;
  let result = whole;
  for (const [i, old] of runs.old.entries()) {
    const now = runs.new[i] ?? '';
    if (old === now) continue;
    const at = result.indexOf(old);
    const isWhole = (at === 0 || result[at - 1] === '\n') && !result.startsWith('-a ', at + old.length);
    if (at < 0 || !isWhole || result.includes(old, at + 1) || headOf(old) !== headOf(now)) return undefined;
    result = result.slice(0, at) + now + result.slice(at + old.length);
  }
  return result;
}

/** What a run is about: its chain or its virtual server. */
function headOf(run: string): string {
  const [line = ''] = run.split('\n', 1);
  return line.startsWith('-A -') ? line : line.split(' ', 2).join(' ');
}

/** Takes lines out of a list and puts others in, each in its place. */
function spliceList(
  whole: string,
  list: SharedList,
  part: Versions<readonly string[]>,
  change: PortChange,
): string | undefined {
  const { removed, added } = findChanged(part);
  if (removed.length === 0 && added.length === 0) return whole;
  if (![...removed, ...added].every((line) => isOfPort(line, list, change))) return undefined;
  const lines = whole.match(list.any) ?? [];
  const all = lines.join('');
  const at = whole.indexOf(all);
  const kept = lines.filter((line) => !removed.includes(line));
  if (lines.length === 0 || at < 0 || lines.length > list.most) return undefined;
  if (kept.length !== lines.length - removed.length) return undefined;
  for (const line of added) kept.splice(findPlace(kept, line, list), 0, line);
  if (kept.length === 0 || kept.length > list.most) return undefined;
  return whole.slice(0, at) + kept.join('') + whole.slice(at + all.length);
}

/** How many lines of a list come before another line. */
function findPlace(lines: readonly string[], line: string, { compare }: SharedList): number {
  let [first, last] = [0, lines.length];
  while (first < last) {
    const middle = (first + last) >> 1;
    if (compare(lines[middle] ?? '', line) < 0) first = middle + 1;
    else last = middle;
  }
  return first;
}

/** Whether no other Service port has the endpoint of a line, before the change and after it. */
function isOfPort(text: string, { line }: SharedList, { services, ports }: PortChange): boolean {
  const [, address, port] = line.exec(text) ?? [];
  if (address === undefined) return false;
  return (['old', 'new'] as const).every((version) => {
    const [, ...rests] = services[version].split(`\n {"address":"${address}","port":${port}`);
    const own = endpointsOf(ports[version]).filter((each) => each.address.text === address && `${each.port}` === port);
    return rests.filter((rest) => /^[,}]/.test(rest)).length === own.length;
  });
}
