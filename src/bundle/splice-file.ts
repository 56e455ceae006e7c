import type { Cluster } from '../cluster/model.ts';
import { families } from '../kernel/family.ts';
import { compareEntries, parseEntry } from '../kernel/ipset/set-entry.ts';
import { compareElements } from '../kernel/nftables/compare-elements.ts';
import type { Element } from '../kernel/nftables/element.ts';
import { nftFamily } from '../kernel/nftables/format.ts';
import { parseNftText } from '../kernel/nftables/parse-text.ts';
import { serviceChainPattern } from '../kube-proxy/chains.ts';
import { nftPrefixes, nftSets, nftTableName } from '../kube-proxy/nftables.ts';
import { setName } from '../kube-proxy/sets.ts';
import type { Versions } from './certify-change.ts';
import type { StateFileName } from './state-files.ts';

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

/** A sorted list of the endpoints on the node, which all Service ports share: a line for each. */
interface SharedList {
  /** The lines that lead to it, each after the one before. The list is in the block of the last. */
  readonly inside: readonly string[];
  /** The lines around it, if there is any endpoint. */
  readonly around: readonly [head: string, tail: string];
  readonly lineStart: string;
  /** Finds address and port in a line. */
  readonly endpoint: RegExp;
  compare(a: string, b: string): number;
  /** A list with more lines is made in another way. */
  readonly most: number;
}

const sharedLists: { readonly [Name in StateFileName]?: readonly SharedList[] } = {
  'ipset.restore': families.map((family): SharedList => {
    const lineStart = `add ${setName('loopBack', family)} `;
    const entryOf = (line: string) => parseEntry(line.slice(lineStart.length, -1), 'hash:ip,port,ip');
    return {
      inside: [],
      around: ['', ''],
      lineStart,
      endpoint: /^add \S+ ([^,]+),\w+:(\d+),\S+\n$/,
      compare: (a, b) => compareEntries(entryOf(a), entryOf(b)),
      most: 65_536,
    };
  }),
  'nftables.nft': families.map((family): SharedList => ({
    inside: [`table ${nftFamily[family]} ${nftTableName} {\n`, `\tset ${nftSets.hairpinConnections} {\n`],
    around: ['\t\telements = {\n', '\t\t}\n'],
    lineStart: '\t\t\t',
    endpoint: /^\t\t\t(\S+) \. \S+ \. \S+ \. (\d+),\n$/,
    compare: (a, b) => compareElements(readElement(a), readElement(b)),
    most: Number.POSITIVE_INFINITY,
  })),
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
export function spliceFile(
  name: StateFileName,
  whole: string | undefined,
  part: Versions<string | undefined>,
  change: PortChange,
): string | undefined {
  if (whole === undefined || part.old === undefined || part.new === undefined) return undefined;
  let [result, old, now]: [string | undefined, string, string] = [whole, part.old, part.new];
  for (const list of sharedLists[name] ?? []) {
    const [before, after] = [cutList(old, list), cutList(now, list)];
    result = spliceList(result, list, { old: before.lines, new: after.lines }, change);
    if (result === undefined) return undefined;
    [old, now] = [before.rest, after.rest];
  }
  return spliceRuns(result, ownRuns[name], { old, new: now });
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
  return line.startsWith('-A KUBE-') ? line.split(' ', 2).join(' ') : line;
}

/** A text with a list cut out of it. */
interface CutList {
  readonly lines: readonly string[];
  /** Where the list was. */
  readonly at: number;
  readonly rest: string;
}

function cutList(text: string, { inside, around: [head, tail], lineStart }: SharedList): CutList {
  const none = { lines: [], at: -1, rest: text };
  let from = 0;
  for (const line of inside) {
    const at = text.indexOf(line, from);
    if (at < 0) return none;
    from = at + line.length;
  }
  const start = `\n${text}`.indexOf(`\n${head}${lineStart}`, from);
  const block = inside.length === 0 ? text.length : text.indexOf('\n\t}\n', from);
  if (start < 0 || start > block) return none;
  const lines: string[] = [];
  let end = start + head.length;
  while (text.startsWith(lineStart, end)) {
    const next = text.indexOf('\n', end) + 1;
    lines.push(text.slice(end, next));
    end = next;
  }
  return { lines, at: start, rest: text.slice(0, start) + text.slice(end + tail.length) };
}

/** Takes lines out of a list and puts others in, each in its place. */
function spliceList(
  whole: string,
  list: SharedList,
  part: Versions<readonly string[]>,
  change: PortChange,
): string | undefined {
  const removed = part.old.filter((line) => !part.new.includes(line));
  const added = part.new.filter((line) => !part.old.includes(line));
  if (removed.length === 0 && added.length === 0) return whole;
  if (![...removed, ...added].every((line) => isOfPort(line, list, change))) return undefined;
  const { lines, at, rest } = cutList(whole, list);
  const kept = lines.filter((line) => !removed.includes(line));
  if (lines.length === 0 || lines.length > list.most || kept.length !== lines.length - removed.length) return undefined;
  for (const line of added) kept.splice(findPlace(kept, line, list), 0, line);
  if (kept.length === 0 || kept.length > list.most) return undefined;
  const [head, tail] = list.around;
  return rest.slice(0, at) + head + kept.join('') + tail + rest.slice(at);
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
function isOfPort(line: string, { endpoint }: SharedList, { services, ports }: PortChange): boolean {
  const [, address, port] = endpoint.exec(line) ?? [];
  if (address === undefined) return false;
  return (['old', 'new'] as const).every((version) => {
    const [, ...rests] = services[version].split(`\n {"address":"${address}","port":${port}`);
    const own = ports[version].servicePorts.flatMap(({ endpoints }) => endpoints);
    return (
      rests.filter((rest) => /^[,}]/.test(rest)).length ===
      own.filter((each) => each.address.text === address && `${each.port}` === port).length
    );
  });
}
