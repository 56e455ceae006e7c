import { isCutOff } from './nft-blocks.ts';
import type { ToolOutput } from './split-outputs.ts';
import { families } from '../kernel/family.ts';
import { nftFamily } from '../kernel/nftables/format.ts';
import { parseNftText } from '../kernel/nftables/parse-text.ts';
import type { Value } from '../kernel/nftables/element.ts';
import { isLearned, type NftTable } from '../kernel/nftables/table.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { isKubeProxyTable } from '../kube-proxy/nftables.ts';
import { isNftServiceName } from '../kube-proxy/nftables-names.ts';
import type { DumpDraft } from './dump-draft.ts';
import type { LossyOption } from './nftables-draft.ts';
import type { Reader } from './dump.ts';
import { readOtherTable } from './read-other-tables.ts';
import { listNftables } from './second-listings.ts';

/**
 * Reads one table that nft printed. Only kube-proxy's are read: nft prints those that iptables made in a form that tells less
 * of them than iptables-save.
 */
export function readNftTable(draft: DumpDraft, file: string, output: ToolOutput, read: Reader): void {
  const { text, command, firstLine } = output;
  if (isCutOff(text)) {
    draft.fault(file, 'cut-off-file', { expected: 'nft list ruleset' });
    return;
  }
  const at = { file, line: firstLine, output: 'nft list ruleset' } as const;
  const [, family = '', name = ''] = /^\s*table (\S+) (\S+)/.exec(text) ?? [];
  const table = `${family} ${name}`;
  // Nothing but the whole ruleset holds tables of other names.
  const isRuleset = command?.tool === 'nft' ? !command.isPart : /ruleset/i.test(file) || !isKubeProxyTable(name);
  const scope = isRuleset ? 'ruleset' : 'unknown';
  if (!nftFamilies.has(family) || !isKubeProxyTable(name)) {
    draft.kinds.nftables.add([], scope);
    if (!isOfIptables(table)) draft.doubt({ kind: 'other-table', table, tables: readOtherTable(family, text) });
    if (!ofIptables.test(text)) return;
    draft.refuse(
      file,
      firstLine,
      at.output,
      'shows the rules of iptables mode in other words: print iptables-save instead',
    );
    return;
  }
  const isAsleep = isDormant(text);
  const parsed = parseNftText(text);
  const { tables } = read({
    tables: isAsleep ? [] : parsed.tables,
    unread: parsed.unread.filter(({ text: line }) => !isAsleep || !dormantFlag.test(line)),
  });
  if (isAsleep) {
    const reason = `shows that table ${table} is dormant: no packet comes to it, and none of its Services works`;
    draft.refuse(file, firstLine, at.output, reason);
  }
  const lack = tables.map(findLack).find((each) => each !== undefined);
  if (lack) draft.refuse(file, firstLine, lack.output, lack.reason);
  else if (draft.isSecond(at, listNftables(tables), false)) return;
  draft.kinds.nftables.add(tables, scope, lack?.output);
}

/** The chain of iptables mode that packets come through first. */
const ofIptables = new RegExp(`[\\s"]${baseChains.services}[\\s"]`);

const dormantFlag = /^\s*flags\b[^{\n]*\bdormant\b/;

/** Whether a program has put a table to sleep: it is there, and the kernel passes it over. */
function isDormant(text: string): boolean {
  const [, flags = ''] = /^\s*table \S+ \S+ \{.*\n(?:\s*(?:comment|#).*\n)*(\s*flags .*)/.exec(text) ?? [];
  return dormantFlag.test(flags);
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

const nftFamilies: ReadonlySet<string> = new Set(families.map((family) => nftFamily[family]));

/** Tables that iptables keeps its rules in have these names, and iptables-save shows them. */
function isOfIptables(table: string): boolean {
  return /^ip6? (?:nat|filter|mangle|raw|security)$/.test(table);
}
