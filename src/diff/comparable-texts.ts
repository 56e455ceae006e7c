import { joinText } from '../base/chunks.ts';
import { freshTexts } from '../bundle/make-bundle.ts';
import { writeServices } from '../bundle/services-file.ts';
import { stateFileNames, stateFiles } from '../bundle/state-files.ts';
import { compareNamed, compareText } from '../kernel/compare-text.ts';
import { isBuiltInChain, tableNames, type Chain, type Tables } from '../kernel/iptables/iptables.ts';
import { actingRules, canonicalRule } from '../kernel/iptables/iptables-meaning.ts';
import { compareVirtualServers } from '../kernel/ipvs/ipvs.ts';
import { canonicalElement, canonicalRule as canonicalNftRule, elementMeaning } from '../kernel/nftables/nft-meaning.ts';
import { isLearned, type NftMap, type NftSet, type NftTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import { alignSides, nodeSettings } from './align-sides.ts';
import type { Side } from './compared-side.ts';
import { separate } from './foreign-items.ts';

/** A file of both sides, as text that can be compared line by line; '' if a side lacks it. */
export interface FilePair {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/**
 * The comparable part of both sides as a bundle's files, only those that differ. If a side is a dump, rules are
 * normalised and chains sorted by name: iptables-save neither writes rules as kube-proxy does nor keeps its order.
 */
export function filePairs(one: Side, other: Side): readonly FilePair[] {
  const { from, to } = alignSides(one, other);
  const { own, unshown } = separate(from, to);
  const isDumped = from.kind === 'dump' || to.kind === 'dump';
  const before = { ...writeFiles(own.from, unshown.from, isDumped), ...writeInputs(from, to) };
  const after = { ...writeFiles(own.to, unshown.to, isDumped), ...writeInputs(to, from) };
  return Object.entries(before)
    .map(([name, text]) => ({ name, from: text, to: after[name as keyof typeof after] }))
    .filter((pair) => pair.from !== pair.to);
}

/** What a side was compiled from, and what of that kpc-apply uses, if the other side was compiled too. */
function writeInputs({ services, state }: Side, other: Side) {
  if (!services || !other.services) return { 'manifest.json': '', 'services.json': '' };
  const timeouts = `ipvsTimeouts ${JSON.stringify(state.ipvsTimeouts ?? null)}\n`;
  const settings = [...nodeSettings(services.settings)].map(([name, value]) => `${name} ${value}\n`);
  return { 'manifest.json': [timeouts, ...settings].join(''), 'services.json': writeServices(services.cluster) };
}

/** Writes the files of a state, with the virtual servers that may be kube-proxy's. */
function writeFiles(own: KernelState, unshown: KernelState, isDumped: boolean): Readonly<Record<string, string>> {
  const servers = [...own.virtualServers, ...unshown.virtualServers];
  const virtualServers = isDumped ? servers.sort(compareVirtualServers) : servers;
  const state = { ...(isDumped ? canonicalState(own) : own), virtualServers };
  const texts = stateFileNames.map(
    (name) => [name, joinText(stateFiles[name].format(state, freshTexts) ?? '')] as const,
  );
  return Object.fromEntries(texts.map(([name, text]) => [name, isDumped ? withoutPositions(text) : text]));
}

/** Drops the positions of inserted rules: one missing rule would make all later ones differ. */
function withoutPositions(text: string): string {
  return text.replace(/^-I (\S+) \d+ /gm, '-A $1 ');
}

/** One form for all states with the same meaning, without what tools choose. For people, not for a kernel. */
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

/** Some versions of nft omit the flag dynamic, and print a size that was never set. */
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
