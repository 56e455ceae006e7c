import { findChangedLines } from '../base/changed-lines.ts';
import { compareElements } from '../kernel/nftables/compare-elements.ts';
import type { Element } from '../kernel/nftables/element.ts';
import { parseNftText } from '../kernel/nftables/parse-text.ts';
import { isEndpointOfPart, type PartOfServices } from './certify-entries.ts';
import { lineAfter, lineBefore, type Versions } from './certify-lines.ts';

/**
 * Whether nftables.nft changed as the part did: in rules of chains that come of one Service port each, and in
 * the addresses that can reach themselves. These are in one set, where each must be in its place, and Service ports may share one.
 */
export function isOwnNftChange(
  whole: Versions<string>,
  part: Versions<string>,
  clusters: Versions<PartOfServices>,
): boolean {
  const [changed, own] = [listChanges(whole), listChanges(part)];
  if (!changed || !own || !isSameSet(changed.chains, own.chains)) return false;
  if (!isSameSet(changed.removed, own.removed) || !isSameSet(changed.added, own.added)) return false;
  const areChainsSame = [...changed.chains].every(
    (chain) =>
      findBlock(whole.old, chain) === findBlock(part.old, chain) &&
      findBlock(whole.new, chain) === findBlock(part.new, chain),
  );
  return areChainsSame && [...changed.removed, ...changed.added].every((element) => isOfPart(element, clusters));
}

/** What lines changed: of chains which, of the set of addresses that can reach themselves the elements. */
interface Changes {
  /** "table ip kube-proxy {\n\tchain service-… {". */
  readonly chains: Set<string>;
  /** "table ip kube-proxy {\n\tset hairpin-connections {\n\t\t\t10.0.0.1 . 10.0.0.1 . tcp . 80,". */
  readonly removed: Set<string>;
  readonly added: Set<string>;
}

const ownChain = /\tchain (?:service|local|external|firewall|endpoint)-[A-Z2-7]{8}-\S+ \{$/;
const sharedSet = /\tset hairpin-connections \{$/;

/** Undefined where anything else changed. */
function listChanges({ old, new: now }: Versions<string>): Changes | undefined {
  const found: Changes = { chains: new Set(), removed: new Set(), added: new Set() };
  const changes = findChangedLines(old, now);
  if (!changes) return undefined;
  for (const { at, newAt, removed, added } of changes) {
    const [was, is] = [placeOf(old, at), placeOf(now, newAt)];
    if (was === undefined || was !== is) return undefined;
    const lines = [...removed, ...added];
    if (ownChain.test(was) && lines.every((line) => /^\t\t[^\t]/.test(line))) found.chains.add(was);
    else if (!sharedSet.test(was) || !lines.every((line) => /^\t\t\t[^\t]/.test(line))) return undefined;
    else {
      if (added.length > 0 && !isInOrder(now, newAt, added)) return undefined;
      for (const line of removed) found.removed.add(`${was}\n${line}`);
      for (const line of added) found.added.add(`${was}\n${line}`);
    }
  }
  // One that others moved past is in the same set as before.
  for (const element of found.removed) {
    if (found.added.delete(element)) found.removed.delete(element);
  }
  return found;
}

/** The heads of the table and of the chain or set in which a line stands. */
function placeOf(text: string, at: number): string | undefined {
  const table = text.lastIndexOf('\ntable ', at - 1) + 1;
  const block = text.lastIndexOf('\n\n', at - 1) + 2;
  if (table === 0 || block < 2 || block < table || block > at) return undefined;
  const lineAt = (start: number) => text.slice(start, text.indexOf('\n', start));
  return `${lineAt(table)}\n${lineAt(block)}`;
}

function findBlock(text: string, place: string): string | undefined {
  const [table = '', head = ''] = place.split('\n');
  const start = text.indexOf(`\n${head}\n`, text.indexOf(`${table}\n`)) + 1;
  return start === 0 ? undefined : text.slice(start, text.indexOf('\n\t}\n', start));
}

/** Whether new elements stand where kpc writes them: in the list of elements, with those around them in order. */
function isInOrder(text: string, at: number, added: readonly string[]): boolean {
  const [before, after] = [lineBefore(text, at), lineAfter(text, at, added)];
  const isElement = (line: string) => line.startsWith('\t\t\t');
  const isInList = (isElement(before) || before === '\t\telements = {') && (isElement(after) || after === '\t\t}');
  if (!isInList) return false;
  const elements = readElements([before, ...added, after].filter(isElement));
  return elements.every((element, i) => {
    const next = elements[i + 1];
    return next === undefined || compareElements(element, next) < 0;
  });
}

function readElements(lines: readonly string[]): readonly Element[] {
  const type = 'type ipv4_addr . ipv4_addr . inet_proto . inet_service';
  const set = `\tset read {\n\t\t${type}\n\t\telements = {\n${lines.join('\n')}\n\t\t}\n\t}\n`;
  const [table] = parseNftText(`table ip read {\n${set}}\n`).tables;
  return table?.sets.get('read')?.elements ?? [];
}

/** Whether the endpoint that an element is of belongs to no Service port but those of the part. */
function isOfPart(element: string, clusters: Versions<PartOfServices>): boolean {
  const [, address, port] = /\n\t\t\t(\S+) \. \S+ \. \S+ \. (\d+),$/.exec(element) ?? [];
  return address !== undefined && isEndpointOfPart(address, Number(port), clusters);
}

function isSameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((item) => b.has(item));
}
