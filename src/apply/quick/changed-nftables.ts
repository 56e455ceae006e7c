import { findChangedLines } from '../../base/changed-lines.ts';
import { families, type Family } from '../../kernel/family.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { nftTableName } from '../../kube-proxy/nftables.ts';

/** The tables of a bundle's nftables.nft, as text. '' for a family that has none. */
export type NftTexts = { readonly [F in Family]: string };

/** What of two versions of nftables.nft must be looked at: what differs, and the sets that it looks up. */
export interface NftFocus {
  /** The new version with what is in sight. */
  readonly bundle: string;
  /** The same of a node's tables; undefined where these are neither the old version nor the new one. */
  readonly node: (tables: NftTexts) => NftTexts | undefined;
}

/** A chain or set that is in sight, and of a set the elements that are. */
interface Part {
  readonly family: Family;
  /** "chain services". */
  readonly head: string;
  readonly elements: Set<string>;
}

type Parts = Map<string, Part>;

/**
 * Both versions as kpc writes them. Undefined where they differ too much, in more than what tables hold, or in what a set
 * is.
 */
export function focusOnNftTables(old: string, now: string): NftFocus | undefined {
  const [before, after] = [splitTables(old), splitTables(now)];
  const sight: Parts = new Map();
  for (const family of families) {
    const changes = findChangedLines(before[family], after[family]);
    if (!changes) return undefined;
    for (const { at, newAt, removed, added } of changes) {
      if (!see(sight, family, before[family], at, removed) || !see(sight, family, after[family], newAt, added)) {
        return undefined;
      }
    }
  }
  if ([...sight.values()].some((part) => isRemade(part, before, after))) return undefined;
  for (const { family, head } of sight.values()) {
    if (!head.startsWith('chain ')) continue;
    for (const text of [before[family], after[family]]) {
      for (const [, set = ''] of (findBlock(text, head) ?? '').matchAll(/@(\S+)/g)) {
        for (const kind of ['set', 'map']) put(sight, family, `${kind} ${set}`);
      }
    }
  }
  const picked = { before: pickTables(sight, before), after: pickTables(sight, after) };
  return {
    bundle: picked.after.ipv4 + picked.after.ipv6,
    node: (tables) => {
      const texts = families.map((family) => {
        if (tables[family] === before[family]) return picked.before[family];
        return tables[family] === after[family] ? picked.after[family] : undefined;
      });
      const [ipv4, ipv6] = texts;
      return ipv4 === undefined || ipv6 === undefined ? undefined : { ipv4, ipv6 };
    },
  };
}

/** The tables that a bundle's nftables.nft has, family by family. */
export function splitTables(text: string): NftTexts {
  const start = `table ${nftFamily.ipv6} ${nftTableName}\n`;
  const at = text.startsWith(start) ? 0 : text.indexOf(`\n${start}`) + 1 || text.length;
  return at === 0 ? { ipv4: '', ipv6: text } : { ipv4: text.slice(0, at), ipv6: text.slice(at) };
}

/** Takes into sight what some lines of a text belong to. False where that is no chain and no set. */
function see(sight: Parts, family: Family, text: string, at: number, lines: readonly string[]): boolean {
  let part = lines.length === 0 ? undefined : partAround(sight, family, text, at);
  for (const line of lines) {
    const head = headOf(line);
    if (head !== undefined) part = put(sight, family, head);
    else if (line === '') part = undefined;
    else if (!part || !line.startsWith('\t')) return false;
    else if (line.startsWith('\t\t\t')) part.elements.add(line);
  }
  return true;
}

function put(sight: Parts, family: Family, head: string): Part {
  const key = `${family} ${head}`;
  const part = sight.get(key) ?? { family, head, elements: new Set() };
  sight.set(key, part);
  return part;
}

/** The chain or set in whose block the line there stands. A block ends with a line that is empty. */
function partAround(sight: Parts, family: Family, text: string, at: number): Part | undefined {
  const start = text.lastIndexOf('\n\n', at - 1) + 2;
  const head = start < 2 ? undefined : headOf(text.slice(start, text.indexOf('\n', start)));
  return head === undefined || start > at ? undefined : put(sight, family, head);
}

/** "\tchain services {" → "chain services". */
function headOf(line: string): string | undefined {
  return /^\t((?:chain|set|map) \S+) \{$/.exec(line)?.[1];
}

/**
 * Whether a set is of another kind than it was, as where the timeout of session affinity changes: to make it anew, the rules
 * of all chains that use it have to go first, and all its elements come again.
 */
function isRemade(part: Part, before: NftTexts, after: NftTexts): boolean {
  if (part.head.startsWith('chain ')) return false;
  const bare = { ...part, elements: new Set<string>() };
  const [was, is] = [pickPart(bare, before), pickPart(bare, after)];
  return was !== '' && is !== '' && was !== is;
}

function findBlock(text: string, head: string): string | undefined {
  const at = text.indexOf(`\n\t${head} {\n`) + 1;
  return at === 0 ? undefined : text.slice(at, text.indexOf('\n\t}\n', at) + '\n\t}\n'.length);
}

function pickTables(sight: Parts, texts: NftTexts): NftTexts {
  const pick = (family: Family): string => {
    if (texts[family] === '') return '';
    const blocks = [...sight.values()].filter((part) => part.family === family).map((part) => pickPart(part, texts));
    return `table ${nftFamily[family]} ${nftTableName} {\n${blocks.join('')}}\n`;
  };
  return { ipv4: pick('ipv4'), ipv6: pick('ipv6') };
}

/** '' where this version has no such part. */
function pickPart({ family, head, elements }: Part, texts: NftTexts): string {
  const block = findBlock(texts[family], head) ?? '';
  const start = block.indexOf('\n\t\telements = {\n');
  if (start < 0) return block;
  const own = [...elements].filter((line) => block.includes(`\n${line}\n`));
  const kept = own.length === 0 ? '' : `\t\telements = {\n${own.join('\n')}\n\t\t}\n`;
  return `${block.slice(0, start + 1)}${kept}\t}\n`;
}
