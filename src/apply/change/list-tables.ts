// What nft lists of other programs, for a dump.
import { families } from '../../kernel/family.ts';
import { tableNames, type TableName } from '../../kernel/iptables/iptables.ts';
import { familyOfPlace, rulesPlaces } from '../../kernel/iptables/iptables-delta.ts';
import { isBaseOfIptables } from '../../kernel/iptables/native-rules.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { parseBaseChain } from '../../kernel/nftables/parse-text.ts';
import type { KernelState } from '../../kernel/state.ts';
import { isKubeProxyTable } from '../../kube-proxy/nft-table.ts';
import type { Host, ToolCommand } from '../node/host.ts';
import { Room } from '../node/output.ts';
import { faultOfLines, readWith, variantOfPlace, type Variants } from '../node/tools.ts';

/** Limit on each tool's output, in bytes. A node with all Internet routes prints more, but none of these routes leads to a pod. */
export const mostListed = 8 * 2 ** 20;

const listRuleset = ['-s', 'list', 'ruleset'];

/**
 * Lists the nftables tables in the kernel's order. Those that are kube-proxy's or in the output of iptables-nft-save stay empty, unless nft
 * put there what iptables-save does not show, or misprints.
 */
export async function listOtherTables(
  host: Host,
  iptables: KernelState['iptables'],
  variants: Variants,
): Promise<string> {
  const savedAs = (word: string, name: string): TableName | undefined => {
    const family = families.find((each) => nftFamily[each] === word);
    const table = tableNames.find((each) => each === name);
    const place = rulesPlaces.find(
      (each) => familyOfPlace(each) === family && variantOfPlace(each, variants) === 'nft',
    );
    return table && place && iptables[place]?.[table] && table;
  };
  const changed = new Set<string>();
  const list = (looks: boolean): Promise<string> => {
    let [isKept, table, chain] = [false, '', ''];
    let saved: TableName | undefined;
    const keeps = (line: string): boolean => {
      const [, word, name] = /^table (\S+) (\S+) \{/.exec(line) ?? [];
      if (word !== undefined && name !== undefined) {
        table = `${word} ${name}`;
        saved = savedAs(word, name);
        isKept = changed.has(table) || !(saved ?? (isKubeProxyTable(name) && ownFamilies.has(word)));
      }
      chain = /^\tchain (\S+) \{/.exec(line)?.[1] ?? chain;
      if (looks && saved && isOfNftOnly(saved, chain, line)) changed.add(table);
      return isKept || word !== undefined || line === '}';
    };
    return listWith(host, { tool: 'nft', args: listRuleset, keeps }, linesOfTable);
  };
  const first = await list(true);
  const text = changed.size === 0 ? first : await list(false);
  return text.split('\n').map(withoutComments).join('\n');
}

const ownFamilies: ReadonlySet<string> = new Set(families.map((family) => nftFamily[family]));

/** Reports whether iptables-save does not show a line of a chain, or may misprint it: a base chain of nft's, a set, a map or a range. */
function isOfNftOnly(table: TableName, chain: string, line: string): boolean {
  if (!/^\t\ttype \w+ hook /.test(line)) return /^\t\t.*(?:[@{]|\d-\d)/.test(withoutComments(line));
  return !isBaseOfIptables(table, { name: chain, base: parseBaseChain(line) });
}

export function listWith(host: Host, command: Omit<ToolCommand, 'room'>, expected: RegExp): Promise<string> {
  const findFault = (printed: string) => faultOfLines(printed.split('\n'), expected);
  return readWith(host, { ...command, room: new Room(mostListed) }, findFault);
}

/** Removes comments. Replaces the line with "..." if its quotes do not pair up, because nft does not escape quotes. */
function withoutComments(line: string): string {
  const [first = '', ...others] = line.split(/[ \t]comment "/);
  const plain = [first, ...others.map((each) => each.slice(each.indexOf('"') + 1))].join('');
  const isPlain = others.every((each) => each.includes('"')) && plain.split('"').length % 2 === 1;
  return isPlain ? plain : `${/^\t*/.exec(line)?.[0] ?? ''}...`;
}

const linesOfTable = /^(?:table (?:ip6?|inet|arp|bridge|netdev) \S+ \{.*|\t.*|\})?$/;
