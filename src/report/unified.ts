import { createTwoFilesPatch, formatPatch } from 'diff';
import { joinText } from '../base/chunks.ts';
import { printable, printableLines } from '../base/printable.ts';
import { freshTexts } from '../bundle/make-bundle.ts';
import { writeServices } from '../bundle/services-file.ts';
import { stateFileNames, stateFiles } from '../bundle/state-files.ts';
import { alignSides, nodeSettings } from '../diff/align-sides.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { separate } from '../diff/foreign-items.ts';
import { compareNamed, compareText } from '../kernel/compare-text.ts';
import { isBuiltInChain, tableNames, type Chain, type Tables } from '../kernel/iptables/iptables.ts';
import { actingRules, canonicalRule } from '../kernel/iptables/iptables-meaning.ts';
import { compareVirtualServers } from '../kernel/ipvs/ipvs.ts';
import { canonicalElement, canonicalRule as canonicalNftRule, elementMeaning } from '../kernel/nftables/nft-meaning.ts';
import { isLearned, type NftMap, type NftSet, type NftTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import type { CheckResult } from '../snapshot/files/check-folder.ts';

/**
 * The least difference of two very different files takes quadratic time: past this many lines, about four seconds, it
 * is not computed. A limit in seconds would make the output depend on the machine.
 */
const maxEditLength = 5000;

const headerOptions = { includeIndex: false, includeUnderline: false, includeFileHeaders: true };

/**
 * The unified diff of a file, with names as in diff -u; an absent side is /dev/null. Files too different to compare
 * line by line are shown as replaced whole. Characters that a terminal would act on become dots.
 */
export function formatUnifiedDiff(name: string, before: string | undefined, after: string | undefined): string {
  // git writes an absolute path as a/tmp/x: patch -p1 then takes it for one below the folder it runs in.
  const path = name.replace(/^\/+/, '');
  const from = before === undefined ? '/dev/null' : `a/${path}`;
  const to = after === undefined ? '/dev/null' : `b/${path}`;
  const patch =
    leastEdits(before ?? '', after ?? '') > maxEditLength
      ? undefined
      : createTwoFilesPatch(from, to, before ?? '', after ?? '', undefined, undefined, {
          context: 3,
          headerOptions,
          maxEditLength,
        });
  return printableLines(patch ?? replaceWhole(from, to, before ?? '', after ?? ''));
}

/** The unified diffs of a folder's files, and the names of files that no bundle has, as in diff -r. */
export function formatFileDiffs(
  folder: string,
  { pairs, strangers }: Extract<CheckResult, { readonly kind: 'differs' }>,
): string {
  const diffs = pairs.map(({ name, from, to }) => formatUnifiedDiff(`${folder}/${name}`, from, to));
  const others = strangers.map((name) => `${printable(`Only in ${folder}: ${name}`)}\n`);
  return [...diffs, ...others].join('');
}

/**
 * The unified diffs of two sides, in the form of a bundle's files. If a side is a dump, rules are normalised and chains
 * sorted by name: iptables-save neither writes rules as kube-proxy does nor keeps its order.
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

/**
 * A lower bound for the number of changed lines, regardless of order: finds files that are too different without
 * computing the difference.
 */
function leastEdits(before: string, after: string): number {
  const counts = new Map<string, number>();
  for (const line of lines(before)) counts.set(line, (counts.get(line) ?? 0) + 1);
  for (const line of lines(after)) counts.set(line, (counts.get(line) ?? 0) - 1);
  let edits = 0;
  for (const count of counts.values()) edits += Math.abs(count);
  return edits;
}

function replaceWhole(from: string, to: string, before: string, after: string): string {
  const [removed, added] = [lines(before), lines(after)];
  const hunk = {
    oldStart: 1,
    oldLines: removed.length,
    newStart: 1,
    newLines: added.length,
    lines: [...signed('-', removed, before), ...signed('+', added, after)],
  };
  const headers = { oldFileName: from, newFileName: to, oldHeader: undefined, newHeader: undefined };
  return formatPatch({ ...headers, hunks: [hunk] }, headerOptions);
}

function lines(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

function signed(sign: string, all: readonly string[], text: string): readonly string[] {
  const marked = all.map((line) => sign + line);
  return text === '' || text.endsWith('\n') ? marked : [...marked, '\\ No newline at end of file'];
}

/** What a side was compiled from; the parts that kpc-apply uses only if the other side was compiled too. */
function writeInputs({ cluster, settings, state }: Snapshot, other: Snapshot) {
  if (!cluster || !settings || other.kind === 'dump') return { 'manifest.json': '', 'services.json': '' };
  const timeouts = `ipvsTimeouts ${JSON.stringify(state.ipvsTimeouts ?? null)}\n`;
  const lists = [...nodeSettings(settings)].map(([name, value]) => `${name} ${value}\n`);
  return { 'manifest.json': [timeouts, ...lists].join(''), 'services.json': writeServices(cluster) };
}

/** Writes the files of a state, and the virtual servers that may be kube-proxy's. */
function writeFiles(own: KernelState, unshown: KernelState, isDumped: boolean): Readonly<Record<string, string>> {
  const servers = [...own.virtualServers, ...unshown.virtualServers];
  const virtualServers = isDumped ? servers.sort(compareVirtualServers) : servers;
  const state = { ...(isDumped ? canonicalState(own) : own), virtualServers };
  const texts = stateFileNames.map(
    (name) => [name, joinText(stateFiles[name].format(state, freshTexts) ?? '')] as const,
  );
  // One missing rule would give all later ones another position.
  const plain = (text: string): string => (isDumped ? text.replace(/^-I (\S+) \d+ /gm, '-A $1 ') : text);
  return Object.fromEntries(texts.map(([name, text]) => [name, plain(text)]));
}

/** Writes equal states alike, without what tools choose, such as hash sizes. For reading, not for loading. */
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
  // A node also shows tables that hold nothing of kube-proxy's.
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

/** Some versions of nft omit the flag dynamic, and print a size that nobody set. */
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
