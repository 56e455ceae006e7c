import { formatBaseChain, formatSetProperties, nftFamily } from '../kernel/nftables/format.ts';
import { elementMeaning, ruleMeaning } from '../kernel/nftables/meaning.ts';
import { isLearned, type NftChain, type NftMap, type NftSet, type NftTable } from '../kernel/nftables/table.ts';
import { compareNamed, compareText } from '../kernel/compare-text.ts';

/**
 * Tables as text whose lines are the same where they mean the same: sets, chains and elements by name and key, without
 * what takes no part in a comparison. It is for people, not for nft.
 */
export function formatNftMeanings(tables: readonly NftTable[]): string {
  return tables
    .flatMap(({ family, name, sets, chains }) => [
      `table ${nftFamily[family]} ${name} {`,
      ...[...sets.values()].toSorted(compareNamed).flatMap(setLines),
      ...[...chains.values()].toSorted(compareNamed).flatMap(chainLines),
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

function chainLines(chain: NftChain): readonly string[] {
  return [
    `\tchain ${chain.name} {`,
    ...(chain.base ? [`\t\t${formatBaseChain(chain.base)}`] : []),
    ...chain.rules.map((rule) => `\t\t${ruleMeaning(rule)}`),
    '\t}',
  ];
}
