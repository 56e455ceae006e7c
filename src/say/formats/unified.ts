import { createTwoFilesPatch, formatPatch } from 'diff';
import { mostLines } from '../../base/bounds.ts';
import { joinText } from '../../base/chunks.ts';
import { printable, printableLines } from '../../base/printable.ts';
import { freshTexts } from '../../bundle/make-bundle.ts';
import { sourcesSection } from '../../bundle/golden-sections.ts';
import { fullName } from '../../cluster/objects.ts';
import { writeServices } from '../../bundle/services-file.ts';
import { stateFileNames, stateFiles } from '../../bundle/state-files.ts';
import { alignSides, nodeSettings } from '../../ask/diff/align-sides.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { separate } from '../../ask/diff/foreign-items.ts';
import { compareNamed, compareText } from '../../kernel/compare.ts';
import { isBuiltInChain, tableNames, type Chain, type Tables } from '../../kernel/iptables/iptables.ts';
import { actingRules, canonicalRule } from '../../kernel/iptables/iptables-meaning.ts';
import { compareVirtualServers } from '../../kernel/ipvs/ipvs.ts';
import { canonicalElement, canonicalNftRule, elementMeaning } from '../../kernel/nftables/nft-delta.ts';
import { isLearned, type NftMap, type NftSet, type NftTable } from '../../kernel/nftables/table.ts';
import type { KernelState } from '../../kernel/state.ts';
import type { CheckResult } from '../../snapshot/files/check-folder.ts';

/**
 * kpc gives up a comparison after this many changed lines, which takes about four seconds. To find the smallest difference between two very
 * different files takes quadratic time. A limit in seconds would make the output depend on the machine.
 */
const maxEditLength = 5000;

/** The most lines (including empty ones) and characters that both files may have together. A diff may repeat all lines of both files. */
const longest = { lines: mostLines, characters: 2 ** 27 };

const headerOptions = { includeIndex: false, includeUnderline: false, includeFileHeaders: true };

/**
 * Returns the unified diff of a file, with names as in diff -u. If a side lacks the file, its name is /dev/null. Files that are too
 * different to compare line by line are shown as replaced whole. If a file is too long for a diff, one line says so. Characters that a
 * terminal would act on become dots. Test: diff/unified-diff.test.ts.
 */
export function formatUnifiedDiff(
  name: string,
  before: string | undefined,
  after: string | undefined,
  most = longest,
): string {
  // git writes an absolute path as a/tmp/x, which patch -p1 reads as a path below the current folder.
  const path = name.replace(/^\/+/, '');
  const from: DiffedText = { path: before === undefined ? '/dev/null' : `a/${path}`, ...measureText(before ?? '') };
  const to: DiffedText = { path: after === undefined ? '/dev/null' : `b/${path}`, ...measureText(after ?? '') };
  if (from.lines + to.lines > most.lines || from.text.length + to.text.length > most.characters)
    return printableLines(`Files ${from.path} and ${to.path} differ: too long for a diff\n`);
  return printableLines(compareLines(from, to) ?? replaceWhole(from, to));
}

interface DiffedText {
  readonly path: string;
  readonly text: string;
  readonly lines: number;
}

function measureText(text: string): Omit<DiffedText, 'path'> {
  let lines = 0;
  for (let at = 0; at < text.length; at = endOfLine(text, at)) lines++;
  return { text, lines };
}

function endOfLine(text: string, start: number): number {
  return text.indexOf('\n', start) + 1 || text.length;
}

/** Returns the diff of two files. Undefined if the files are too different to compare line by line. */
function compareLines(from: DiffedText, to: DiffedText): string | undefined {
  if (!mayBeAlike(from, to)) return undefined;
  const options = { context: 3, headerOptions, maxEditLength };
  return createTwoFilesPatch(from.path, to.path, from.text, to.text, undefined, undefined, options);
}

/** Returns the unified diffs of a folder's files. Also names the files that do not belong in a bundle, in the form that diff -r uses. */
export function formatFileDiffs(
  folder: string,
  { pairs, strangers }: Extract<CheckResult, { readonly kind: 'differs' }>,
): string {
  const diffs = pairs.map(({ name, from, to }) => formatUnifiedDiff(`${folder}/${name}`, from, to));
  const others = strangers.map((name) => `${printable(`Only in ${folder}: ${name}`)}\n`);
  return [...diffs, ...others].join('');
}

/**
 * Returns the unified diffs of two sides, in the form of a bundle's files. If a side is a dump, also normalises the rules and sorts the
 * chains by name, because iptables-save writes rules in another form and order than kube-proxy.
 */
export function formatSideDiffs(one: Snapshot, other: Snapshot): string {
  const { from, to } = alignSides(one, other);
  const { own, unshown } = separate(from, to);
  const isDumped = from.kind === 'dump' || to.kind === 'dump';
  const before = { ...writeFiles(own.from, unshown.from, isDumped), ...writeInputs(from, to) };
  const after: Readonly<Record<string, string>> = {
    ...writeFiles(own.to, unshown.to, isDumped),
    ...writeInputs(to, from),
  };
  return Object.entries(before)
    .map(([name, text]) => (text === after[name] ? '' : formatUnifiedDiff(name, text, after[name] ?? '')))
    .join('');
}

/** Estimates quickly whether few enough lines changed for an exact comparison. Ignores the order of lines. */
function mayBeAlike(from: DiffedText, to: DiffedText): boolean {
  const difference = Math.abs(from.lines - to.lines);
  if (difference > maxEditLength) return false;
  const counts = new Map<string, number>();
  for (const line of linesOfSide(from)) counts.set(line, (counts.get(line) ?? 0) + 1);
  // Counts the lines that only file `to` has. Their number and the difference in length give the number of lines that only `from` has.
  let added = 0;
  for (const line of linesOfSide(to)) {
    const count = counts.get(line) ?? 0;
    if (count > 0) counts.set(line, count - 1);
    else added++;
  }
  return 2 * added + from.lines - to.lines <= maxEditLength;
}

function* linesOfSide({ text }: DiffedText): Generator<string> {
  for (let at = 0, end: number; at < text.length; at = end) {
    end = endOfLine(text, at);
    yield text.slice(at, text[end - 1] === '\n' ? end - 1 : end);
  }
}

function replaceWhole(from: DiffedText, to: DiffedText): string {
  // The lines are added as one text, because an array of lines would need many times the memory.
  const hunk = { oldStart: 1, oldLines: from.lines, newStart: 1, newLines: to.lines, lines: [] };
  const names = { oldFileName: from.path, newFileName: to.path, oldHeader: undefined, newHeader: undefined };
  return formatPatch({ ...names, hunks: [hunk] }, headerOptions) + signed('-', from) + signed('+', to);
}

function signed(sign: string, { text }: DiffedText): string {
  if (text === '') return '';
  const marked = sign + text.replaceAll(/\n(?!$)/g, `\n${sign}`);
  return text.endsWith('\n') ? marked : `${marked}\n\\ No newline at end of file\n`;
}

/** Writes the inputs of a side. If the other side was compiled too, includes the inputs that only kpc-apply uses. */
function writeInputs({ cluster, settings, state }: Snapshot, other: Snapshot) {
  if (!cluster || !settings || other.kind === 'dump')
    return { 'manifest.json': '', 'services.json': '', [sourcesSection]: '' };
  const timeouts = `ipvsTimeouts ${JSON.stringify(state.ipvsTimeouts ?? null)}\n`;
  const lists = [...nodeSettings(settings)].map(([name, value]) => `${name} ${value}\n`);
  // A bundle does not record the sources of endpoints.
  const unknown = new Set(other.cluster?.services.flatMap((each) => (each.sources ? [] : fullName(each))));
  const sources = cluster.services.flatMap((each) =>
    each.sources && !unknown.has(fullName(each)) ? `${fullName(each)} ${JSON.stringify(each.sources)}\n` : [],
  );
  return {
    'manifest.json': [timeouts, ...lists].join(''),
    'services.json': writeServices(cluster),
    [sourcesSection]: sources.join(''),
  };
}

/** Writes the files of a state. Includes virtual servers that may belong to kube-proxy. */
function writeFiles(own: KernelState, unshown: KernelState, isDumped: boolean): Readonly<Record<string, string>> {
  const servers = [...own.virtualServers, ...unshown.virtualServers];
  const virtualServers = isDumped ? servers.sort(compareVirtualServers) : servers;
  const state = { ...(isDumped ? canonicalState(own) : own), virtualServers };
  const texts = stateFileNames.map(
    (name) => [name, joinText(stateFiles[name].format(state, freshTexts) ?? '')] as const,
  );
  // Leaves out the positions of rules, because one missing rule would shift all later positions.
  const plain = (text: string): string => (isDumped ? text.replace(/^-I (\S+) \d+ /gm, '-A $1 ') : text);
  return Object.fromEntries(texts.map(([name, text]) => [name, plain(text)]));
}

/** Writes equal states in the same way, without values that tools choose, such as hash sizes. For reading, not for loading. */
function canonicalState(state: KernelState): KernelState {
  const { ipv4, ipv6 } = state.iptables;
  return {
    ...state,
    iptables: { ...(ipv4 && { ipv4: canonicalTables(ipv4) }), ...(ipv6 && { ipv6: canonicalTables(ipv6) }) },
    nftables: state.nftables.map(canonicalTable),
    sets: state.sets.map(({ hashSize: _, ...set }) => set).toSorted(compareNamed),
    links: state.links.map((link) => ({ ...link, kind: 'dummy' })),
  };
}

function canonicalTables(tables: Tables): Tables {
  const canonical = ({ name, rules }: Chain): Chain => ({ name, rules: actingRules(rules).map(canonicalRule) });
  // A node's dump also has tables without any object of kube-proxy. These are left out.
  const shown = tableNames.filter((name) => {
    const chains = [...(tables[name]?.values() ?? [])];
    return chains.some((chain) => chain.rules.length > 0 || !isBuiltInChain(name, chain.name));
  });
  return Object.fromEntries(shown.map((name) => [name, sortNamed(tables[name] ?? new Map(), canonical)]));
}

function canonicalTable({ family, name, chains, sets, counters }: NftTable): NftTable {
  return {
    family,
    name,
    counters: sortNamed(counters, (counter) => ({ name: counter.name })),
    sets: sortNamed(sets, canonicalSet),
    chains: sortNamed(chains, (chain) => ({ ...chain, comment: undefined, rules: chain.rules.map(canonicalNftRule) })),
  };
}

/** Removes details that differ between versions of nft. Some versions omit the flag dynamic, or print a size that nobody set. */
function canonicalSet(set: NftSet | NftMap): NftSet | NftMap {
  if (isLearned(set)) {
    const flags = set.flags.filter((flag) => flag !== 'dynamic');
    return { ...set, comment: undefined, size: undefined, flags, elements: [] };
  }
  const elements = set.elements.map(canonicalElement);
  elements.sort((a, b) => compareText(elementMeaning(a), elementMeaning(b)));
  return { ...set, comment: undefined, elements };
}

function sortNamed<T extends { readonly name: string }>(
  items: ReadonlyMap<string, T>,
  canonical: (item: T) => T,
): ReadonlyMap<string, T> {
  return new Map([...items.values()].toSorted(compareNamed).map((item) => [item.name, canonical(item)]));
}
