import { isCutOff } from '../dumps/nft-blocks.ts';
import type { ToolOutput } from '../dumps/split-outputs.ts';
import { families } from '../kernel/family.ts';
import { nftFamily } from '../kernel/nftables/format.ts';
import { parseNftJson } from '../kernel/nftables/parse-json.ts';
import { parseNftText } from '../kernel/nftables/parse-text.ts';
import type { Value } from '../kernel/nftables/element.ts';
import { isLearned, type NftTable } from '../kernel/nftables/table.ts';
import { isKubeProxyTable } from '../kube-proxy/nftables.ts';
import { isNftServiceName } from '../kube-proxy/nftables-names.ts';
import type { DumpDraft } from './dump-draft.ts';
import type { LossyOption } from './nftables-draft.ts';
import type { Reader } from './dump.ts';
import { readOtherTables } from './read-other-tables.ts';
import { listNftables } from './second-listings.ts';

/**
 * Reads what nft printed: one table as text, or the JSON of them all. Only kube-proxy's are read: nft prints those that
 * iptables made in a form that tells less of them than iptables-save.
 */
export function readNftOutput(draft: DumpDraft, file: string, output: ToolOutput, read: Reader): void {
  const { text, command, firstLine } = output;
  const isJson = text.trimStart().startsWith('{');
  if (isCutOff(text)) {
    draft.fault({ kind: 'cut-off', file, expected: 'nft list ruleset' });
    return;
  }
  const wants = (_: unknown, name: string): boolean => isKubeProxyTable(name);
  const parsed = isJson ? parseNftJson(text, wants) : parseNftText(text, wants);
  const dormant = isJson ? dormantInJson(text) : dormantInText(text);
  const { tables } = read({
    tables: parsed.tables.filter((table) => !dormant.has(nameOf(table))),
    unread: parsed.unread.filter(({ text: line }) => dormant.size === 0 || !isDormantFlag.test(line)),
  });
  for (const table of dormant) {
    const reason = `shows that table ${table} is dormant: no packet comes to it, and none of its Services works`;
    draft.fault({ kind: 'refused', file, line: firstLine, output: 'nft list ruleset', reason });
  }
  const lack = tables.map(findLack).find((each) => each !== undefined);
  if (lack) draft.fault({ kind: 'refused', file, line: firstLine, ...lack });
  const others = otherTables(text, isJson);
  const foreign = [...new Set(others)].filter((table) => !isOfIptables(table));
  for (const [table, own] of readOtherTables(foreign, text, isJson))
    draft.doubt({ kind: 'other-table', table, tables: own });
  // Nothing but the whole ruleset holds tables of other names.
  const isRuleset =
    command?.tool === 'nft'
      ? !command.isPart
      : /ruleset/i.test(file) || others.some((table) => !isKubeProxyTable(table.split(' ')[1] ?? ''));
  const at = { file, line: firstLine, output: 'nft list ruleset' } as const;
  if (!lack && draft.isSecond(at, listNftables(tables), false)) return;
  draft.kinds.nftables.add(tables, isRuleset ? 'ruleset' : 'unknown', lack?.output);
  if (tables.length === 0 && /[\s"]KUBE-SERVICES[\s"]/.test(text)) {
    const reason = 'shows the rules of iptables mode in other words: print iptables-save instead';
    draft.fault({ kind: 'refused', file, line: firstLine, output: 'nft list ruleset', reason });
  }
}

const nameOf = ({ family, name }: NftTable): string => `${nftFamily[family]} ${name}`;

const isDormantFlag = /^\s*flags\b[^{\n]*\bdormant\b/;

/** kube-proxy's tables, as "ip kube-proxy", that a program has put to sleep: they are there, and the kernel passes them over. */
function dormantInText(text: string): ReadonlySet<string> {
  const [, family, name = '', ...lines] =
    /^\s*table (\S+) (\S+) \{.*\n(?:\s*(?:comment|#).*\n)*(\s*flags .*)/.exec(text) ?? [];
  return new Set(isKubeProxyTable(name) && isDormantFlag.test(lines.join('')) ? [`${family} ${name}`] : []);
}

function dormantInJson(text: string): ReadonlySet<string> {
  const dormant = [...text.matchAll(/\{\s*"table"\s*:\s*\{[^{}]*\}/g)].filter(([object]) => /"dormant"/.test(object));
  return new Set(
    dormant.flatMap(([object]) =>
      tablesInJson(object).flatMap(([family = '', name = '']) => (isKubeProxyTable(name) ? [`${family} ${name}`] : [])),
    ),
  );
}

interface Lack {
  readonly output: LossyOption;
  readonly reason: string;
}

/** What an option of nft took from a table of kube-proxy's: it still tells of Services, but too little to compare it. */
function findLack({ chains, sets }: NftTable): Lack | undefined {
  const elements = [...sets.values()].flatMap((set) => set.elements.map((element) => ({ set, element })));
  if (elements.some(({ set, element }) => element.key.some((value, i) => isPortName(value, set.keyType[i])))) {
    return { output: 'nft -S', reason: 'shows names of ports: print nft list ruleset without -S instead' };
  }
  const ownSets = [...sets.values()].filter((set) => !isLearned(set));
  const leadsNowhere = ownSets.length > 0 && ownSets.every((set) => set.elements.length === 0);
  // An address or a node port leads to the chain of a Service that has endpoints.
  if (leadsNowhere && [...chains.values()].some(({ name, rules }) => rules.length > 0 && isNftServiceName(name))) {
    return { output: 'nft -t', reason: 'shows no elements: print nft list ruleset without -t instead' };
  }
  return undefined;
}

function isPortName(value: Value, type: string | undefined): boolean {
  return type === 'inet_service' && value.kind === 'word' && /^[a-z]/i.test(value.text);
}

/** The tables of other programs, as "inet firewalld". */
function otherTables(text: string, isJson: boolean): readonly string[] {
  const tables = isJson ? tablesInJson(text) : [/^\s*table (\S+) (\S+)/.exec(text)?.slice(1) ?? []];
  return tables.flatMap(([family, name]) =>
    family === undefined || name === undefined || (nftFamilies.has(family) && isKubeProxyTable(name))
      ? []
      : [`${family} ${name}`],
  );
}

/** nft puts the family first; what another program writes may not. */
function tablesInJson(text: string): readonly (readonly (string | undefined)[])[] {
  return [...text.matchAll(/\{\s*"table"\s*:\s*(\{[^{}]*\})/g)].map(([, object = '']) =>
    ['family', 'name'].map((key) => new RegExp(`"${key}"\\s*:\\s*"([^"]*)"`).exec(object)?.[1]),
  );
}

const nftFamilies: ReadonlySet<string> = new Set(families.map((family) => nftFamily[family]));

/** Tables that iptables keeps its rules in have these names, and iptables-save shows them. */
function isOfIptables(table: string): boolean {
  return /^ip6? (?:nat|filter|mangle|raw|security)$/.test(table);
}
