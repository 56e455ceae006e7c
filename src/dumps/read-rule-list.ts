import { parseIptablesList } from '../kernel/iptables/parse-list.ts';
import { tableNames, type TableName } from '../kernel/iptables/iptables.ts';
import type { DumpDraft } from './dump.ts';
import { familyOf, noteUnread, rulesKind, tableOfChain } from './read-rules.ts';
import type { ToolOutput } from './split-outputs.ts';

/** Reads what iptables -L printed of a table, unless the dump has the table from iptables-save, which shows more. */
export function readRuleList(draft: DumpDraft, file: string, output: ToolOutput): void {
  const { text, firstLine: line, command, isPart } = output;
  const family = familyOf(rulesKind(output, file));
  const kind = family === 'ipv6' ? 'ip6tables -L' : 'iptables -L';
  const table = tableOfList(file, output);
  if (draft.rulesOf(family).showsAll(table)) return;
  const { tables, unread, whole, showsInterfaces } = parseIptablesList(text, table);
  noteUnread(
    draft,
    file,
    family,
    line - 1,
    unread,
    unread.map(() => table),
  );
  const isWhole = whole && !isPart;
  if (!draft.addRules(family, tables, isWhole ? [table] : [], command?.variant, { file, line, kind })) return;
  if (!showsInterfaces) draft.fault(file, 'dump-reading', { problem: 'no-interfaces', command: kind }, line);
  else if (!isWhole && !isPart && unread.length === 0) {
    draft.fault(file, 'unread-file', { expected: kind, isCutOff: true });
    draft.rulesOf(family).isCutOff = true;
  }
}

/** The table of a list, which does not name it: from the command, else the file's name, else the built-in chains listed. */
function tableOfList(file: string, { text, command }: ToolOutput): TableName {
  const named = tableNames.find((each) => file.slice(file.lastIndexOf('/') + 1).includes(each));
  const table = command?.table ?? named;
  if (table !== undefined) return table;
  if (command?.tool === 'iptables' || command?.tool === 'ip6tables') return 'filter';
  const has = (chain: string): boolean => text.includes(`Chain ${chain} (policy `);
  if (has('FORWARD')) return has('PREROUTING') ? 'mangle' : 'filter';
  if (has('PREROUTING')) return has('POSTROUTING') ? 'nat' : 'raw';
  const names = [...text.matchAll(/^Chain (\S+) \(/gm)].flatMap(([, chain = '']) => tableOfChain(chain) ?? []);
  return names[0] ?? (has('POSTROUTING') ? 'nat' : 'filter');
}
