import { tableNames, type TableName } from './iptables.ts';

/**
 * The tables that iptables-save says it cannot show, in the order in which it does, and in which line of the text. Where
 * iptables keeps its rules in nftables, others can write into its tables what iptables does not know: it then leaves out the
 * whole table, and reports success.
 */
export function findHiddenTables(text: string): ReadonlyMap<TableName, number> {
  const hidden = new Map<TableName, number>();
  for (const { 1: said, index } of text.matchAll(/^[ \t]*# Table `(\w+)' is incompatible/gm)) {
    const table = tableNames.find((name) => name === said);
    if (table && !hidden.has(table)) hidden.set(table, text.slice(0, index).split('\n').length);
  }
  return hidden;
}
