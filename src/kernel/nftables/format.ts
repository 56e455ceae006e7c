import { LongText } from '../long-text.ts';
import type { Family } from '../family.ts';
import { formatElement, formatRule, quote } from './format-expression.ts';
import type { BaseChain, NftChain, NftCounter, NftMap, NftSet, NftTable } from './table.ts';

export const nftFamily: { readonly [F in Family]: 'ip' | 'ip6' } = { ipv4: 'ip', ipv6: 'ip6' };

/**
 * The input of `nft -f` that replaces tables of these names with these, in one transaction. Each rule and element has a line of
 * its own. Chains, sets and elements keep their order. '' for no tables.
 */
export function formatTables(tables: readonly NftTable[]): string {
  return writeTables(tables, formatChain).join('');
}

/** formatTables in pieces, so that a long text is not joined. `formatOwn` is formatChain, or a cache of its results. */
export function writeTables(tables: readonly NftTable[], formatOwn: (chain: NftChain) => string): readonly string[] {
  const text = new LongText();
  for (const table of tables) {
    const name = `${nftFamily[table.family]} ${table.name}`;
    // Deleting a missing table would fail, so it is added first.
    text.add(`table ${name}\ndelete table ${name}\n`);
    addParts(text, table, [...table.chains.values()].map(formatOwn));
  }
  return text.pieces();
}

export type ChainlessTable = Omit<NftTable, 'chains' | 'strange'>;

/**
 * The input of `nft -f` that adds counters, sets, elements, chains and rules to a table, creating what does not exist. `chains`
 * are texts from formatChain.
 */
export function formatParts(table: ChainlessTable, chains: readonly string[]): string {
  const text = new LongText();
  addParts(text, table, chains);
  return text.toString();
}

function addParts(
  text: LongText,
  { family, name, comment, counters, sets }: ChainlessTable,
  chains: readonly string[],
): void {
  text.add(`table ${nftFamily[family]} ${name} {\n`);
  if (comment !== undefined) text.add(`\tcomment ${quote(comment)}\n`);
  for (const counter of counters.values()) text.add(formatCounter(counter));
  for (const set of sets.values()) addSet(text, set);
  chains.forEach((chain) => text.add(`\n${chain}`));
  text.add('}\n');
}

function formatCounter({ name, comment }: NftCounter): string {
  const inside = comment === undefined ? '' : `\t\tcomment ${quote(comment)}\n`;
  return `\n\tcounter ${name} {\n${inside}\t}\n`;
}

function addSet(text: LongText, set: NftSet | NftMap): void {
  text.add(`\n\t${set.kind} ${set.name} {\n`);
  for (const property of formatSetProperties(set)) text.add(`\t\t${property}\n`);
  if (set.elements.length > 0) {
    text.add('\t\telements = {\n');
    set.elements.forEach((element) => text.add(`\t\t\t${formatElement(element)},\n`));
    text.add('\t\t}\n');
  }
  text.add('\t}\n');
}

/** The properties of a set without its elements, one a text, without line ends. */
export function formatSetProperties(set: NftSet | NftMap): readonly string[] {
  const value = set.kind === 'map' ? ` : ${set.valueType.join(' . ')}` : '';
  const properties = [`type ${set.keyType.join(' . ')}${value}`];
  if (set.flags.length > 0) properties.push(`flags ${set.flags.join(', ')}`);
  if (set.timeoutSeconds !== undefined) properties.push(`timeout ${set.timeoutSeconds}s`);
  if (set.size !== undefined) properties.push(`size ${set.size}`);
  if (set.comment !== undefined) properties.push(`comment ${quote(set.comment)}`);
  return properties;
}

/** A chain with its rules, as it appears in a table. */
export function formatChain(chain: NftChain): string {
  let text = `\tchain ${chain.name} {\n`;
  if (chain.base) text += `\t\t${formatBaseChain(chain.base)}\n`;
  if (chain.comment !== undefined) text += `\t\tcomment ${quote(chain.comment)}\n`;
  chain.rules.forEach((rule) => {
    text += `\t\t${formatRule(rule)}\n`;
  });
  return `${text}\t}\n`;
}

/** The chain's hook, type, priority and policy, with nft's semicolons. */
export function formatBaseChain({ type, hook, devices, priority, policy }: BaseChain): string {
  const at = devices ? ` devices = { ${devices.map(quote).join(', ')} }` : '';
  return `type ${type} hook ${hook}${at} priority ${priority}; policy ${policy ?? 'accept'};`;
}
