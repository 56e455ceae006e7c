import { findChangedLines } from '../base/changed-lines.ts';
import type { Cluster } from '../cluster/model.ts';
import { families } from '../kernel/family.ts';
import { compareEntries, parseEntry, type SetEntry } from '../kernel/ipset/set-entry.ts';
import { setName } from '../kube-proxy/sets.ts';
import { areSameLines, lineAfter, lineBefore, type Versions } from './certify-lines.ts';

/** A text, and the Service ports of it that changed. */
export interface PartOfServices {
  readonly services: string;
  readonly part: Cluster;
}

/**
 * Whether the sets changed as those of the part did, and only in the entries of endpoints. Many Service ports share the
 * set that these are in, so they stand between those of others: each must be in its place. And one that another Service
 * port has as well does not come and go with the part.
 */
export function isOwnEntryChange(
  whole: Versions<string>,
  part: Versions<string>,
  clusters: Versions<PartOfServices>,
): boolean {
  const changes = findChangedLines(whole.old, whole.new);
  const own = findChangedLines(part.old, part.new);
  if (!changes || !own) return false;
  const linesOf = (side: 'removed' | 'added') => [changes, own].map((some) => some.flatMap((change) => change[side]));
  const [removed = [], ownRemoved = []] = linesOf('removed');
  const [added = [], ownAdded = []] = linesOf('added');
  // Both come from texts that are sorted.
  if (!areSameLines(removed, ownRemoved) || !areSameLines(added, ownAdded)) return false;
  if (![...removed, ...added].every((line) => isOfPart(line, clusters))) return false;
  if (endpointSets.some((name) => whole.new.includes(`\nadd ${name} `) && !hasUsualSize(whole.new, name))) return false;
  return changes.every(({ newAt, added: lines }) => lines.length === 0 || isInPlace(whole.new, newAt, lines));
}

/** The sets of endpoints on the node. */
const endpointSets = families.map((family) => setName('loopBack', family));
const endpointSetType = 'hash:ip,port,ip';

interface EntryLine {
  readonly set: string;
  readonly entry: SetEntry;
}

function readLine(line: string): EntryLine | undefined {
  const [command, set = '', text = '', ...rest] = line.split(' ');
  if (command !== 'add' || !endpointSets.includes(set) || rest.length > 0) return undefined;
  return { set, entry: parseEntry(text, endpointSetType) };
}

/** Whether a line is of an endpoint that no Service port has but those of the part. */
function isOfPart(line: string, clusters: Versions<PartOfServices>): boolean {
  const { address, port } = readLine(line)?.entry ?? {};
  return address !== undefined && port !== undefined && isEndpointOfPart(address.text, port, clusters);
}

/** Whether no Service port has an endpoint but those of the part. */
export function isEndpointOfPart(address: string, port: number, clusters: Versions<PartOfServices>): boolean {
  return [clusters.old, clusters.new].every(
    ({ services, part }) => countEndpoints(services, address, port) === countOfPart(part, address, port),
  );
}

function countEndpoints(services: string, address: string, port: number): number {
  const [, ...rests] = services.split(`\n {"address":"${address}","port":${port}`);
  return rests.filter((rest) => rest.startsWith(',') || rest.startsWith('}')).length;
}

function countOfPart({ servicePorts }: Cluster, address: string, number: number): number {
  const endpoints = servicePorts.flatMap((port) => port.endpoints);
  return endpoints.filter((each) => each.address.text === address && each.port === number).length;
}

/** Past this many entries a set is made for more of them, which a part of them does not tell. */
const usualElements = 65_536;

function hasUsualSize(text: string, name: string): boolean {
  const create = new RegExp(`^create ${name} .* maxelem ${usualElements}$`, 'm');
  return create.test(text) && text.split(`\nadd ${name} `).length - 1 <= usualElements;
}

/** Whether lines, and what stands before and after them, are of one set and in its order. */
function isInPlace(text: string, at: number, lines: readonly string[]): boolean {
  const [before, after] = [lineBefore(text, at), lineAfter(text, at, lines)];
  const [first] = lines.map(readLine);
  if (!first || (!before.startsWith(`create ${first.set} `) && readLine(before)?.set !== first.set)) return false;
  const row = [before, ...lines, after].flatMap((line) => readLine(line) ?? []).filter(({ set }) => set === first.set);
  if (row.length < lines.length) return false;
  return row.every(({ entry }, i) => {
    const next = row[i + 1];
    return !next || compareEntries(entry, next.entry) < 0;
  });
}
