import { joinText } from '../base/chunks.ts';
import { compareNamed, compareText } from '../kernel/compare-text.ts';
import { freshTexts } from '../bundle/make-bundle.ts';
import { writeServices } from '../bundle/services-file.ts';
import { stateFileNames, stateFiles, type StateFileName } from '../bundle/state-files.ts';
import {
  formatDeclaration,
  formatWord,
  isBuiltInChain,
  tableNames,
  type Chain,
  type TableName,
  type Tables,
} from '../kernel/iptables/iptables.ts';
import { actingRules, ruleMeaning } from '../kernel/iptables/iptables-meaning.ts';
import { compareVirtualServers } from '../kernel/ipvs/ipvs.ts';
import type { KernelState } from '../kernel/state.ts';
import { alignSides, nodeSettings } from './align-sides.ts';
import { separate } from './foreign-items.ts';
import type { Side } from './compared-side.ts';
import { formatBaseChain, formatSetProperties, nftFamily } from '../kernel/nftables/format.ts';
import { elementMeaning, ruleMeaning as nftRuleMeaning } from '../kernel/nftables/nft-meaning.ts';
import { isLearned, type NftChain, type NftMap, type NftSet, type NftTable } from '../kernel/nftables/table.ts';

/** A file of both sides, as text that can be compared line by line; '' if a side lacks it. */
export interface FilePair {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/**
 * The comparable part of both sides in the files that a bundle has, those that differ. Next to a dump, rules are written
 * by their meaning and chains by name, since iptables-save neither writes rules as kube-proxy does nor keeps the order.
 */
export function filePairs(one: Side, other: Side): readonly FilePair[] {
  const { from, to } = alignSides(one, other);
  const { own, unshown } = separate(from, to);
  const byMeaning = from.kind === 'dump' || to.kind === 'dump';
  const before = { ...writeFiles(joinServers(own.from, unshown.from), byMeaning), ...writeInputs(from, to) };
  const after = { ...writeFiles(joinServers(own.to, unshown.to), byMeaning), ...writeInputs(to, from) };
  return Object.entries(before)
    .map(([name, text]) => ({ name, from: text, to: after[name as keyof typeof after] }))
    .filter((pair) => pair.from !== pair.to);
}

/** With the virtual servers that may be kube-proxy's. */
function joinServers(own: KernelState, unshown: KernelState): KernelState {
  return unshown.virtualServers.length === 0
    ? own
    : { ...own, virtualServers: [...own.virtualServers, ...unshown.virtualServers].sort(compareVirtualServers) };
}

/** What a side was compiled from, and what of that kpc-apply uses, if the other side was compiled too. */
function writeInputs({ services, state }: Side, other: Side) {
  if (!services || !other.services) return { 'manifest.json': '', 'services.json': '' };
  const timeouts = `ipvsTimeouts ${JSON.stringify(state.ipvsTimeouts ?? null)}\n`;
  const settings = [...nodeSettings(services.settings)].map(([name, value]) => `${name} ${value}\n`);
  return { 'manifest.json': [timeouts, ...settings].join(''), 'services.json': writeServices(services.cluster) };
}

function writeFiles(state: KernelState, byMeaning: boolean): Readonly<Record<string, string>> {
  const comparable = byMeaning ? withoutForm(state) : state;
  return Object.fromEntries(
    stateFileNames.map((name) => {
      const write = (byMeaning ? meanings[name] : undefined) ?? ((each) => stateFiles[name].format(each, freshTexts));
      return [name, joinText(write(comparable) ?? '')];
    }),
  );
}

/** A state without what a tool chooses itself. */
function withoutForm(state: KernelState): KernelState {
  return {
    ...state,
    sets: state.sets.map(({ hashSize: _, ...set }) => set).toSorted(compareNamed),
    links: state.links.map((link) => ({ ...link, kind: 'dummy' })),
  };
}

/** Files whose form says less than what is in them. */
const meanings: { readonly [N in StateFileName]?: (state: KernelState) => string } = {
  'iptables.restore': ({ iptables }) => formatMeanings(iptables.ipv4 ?? {}),
  'ip6tables.restore': ({ iptables }) => formatMeanings(iptables.ipv6 ?? {}),
  'nftables.nft': ({ nftables }) => formatNftMeanings(nftables),
};

function formatMeanings(tables: Tables): string {
  return tableNames
    .flatMap((table) => {
      const chains = [...(tables[table]?.values() ?? [])].toSorted(compareNamed);
      return chains.length === 0 ? [] : [`*${table}`, ...chains.flatMap((chain) => chainLines(table, chain)), 'COMMIT'];
    })
    .map((line) => `${line}\n`)
    .join('');
}

function chainLines(table: TableName, chain: Chain): readonly string[] {
  const rules = actingRules(chain.rules).map((rule) => `-A ${formatWord(chain.name)} ${ruleMeaning(rule)}`);
  return isBuiltInChain(table, chain.name) ? rules : [formatDeclaration(chain.name), ...rules];
}

/**
 * Tables as text whose lines are the same where they mean the same: sets, chains and elements by name and key, without
 * what a comparison ignores. It is for people, not for nft.
 */
function formatNftMeanings(tables: readonly NftTable[]): string {
  return tables
    .flatMap(({ family, name, sets, chains }) => [
      `table ${nftFamily[family]} ${name} {`,
      ...[...sets.values()].toSorted(compareNamed).flatMap(setLines),
      ...[...chains.values()].toSorted(compareNamed).flatMap(nftChainLines),
      '}',
    ])
    .map((line) => `${line}\n`)
    .join('');
}

function setLines(set: NftSet | NftMap): readonly string[] {
  const elements = isLearned(set) ? [] : set.elements.map(elementMeaning).toSorted(compareText);
  return [
    `\t${set.kind} ${set.name} {`,
    // Some versions of nft leave out the flag dynamic, and print a size that nothing asked for.
    ...formatSetProperties(
      isLearned(set)
        ? { ...set, comment: undefined, size: undefined, flags: set.flags.filter((flag) => flag !== 'dynamic') }
        : { ...set, comment: undefined },
    ).map((property) => `\t\t${property}`),
    ...elements.map((element) => `\t\t${element}`),
    '\t}',
  ];
}

function nftChainLines(chain: NftChain): readonly string[] {
  return [
    `\tchain ${chain.name} {`,
    ...(chain.base ? [`\t\t${formatBaseChain(chain.base)}`] : []),
    ...chain.rules.map((rule) => `\t\t${nftRuleMeaning(rule)}`),
    '\t}',
  ];
}
