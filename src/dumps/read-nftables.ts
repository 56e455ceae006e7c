import { families } from '../kernel/family.ts';
import type { Value } from '../kernel/nftables/element.ts';
import { formatChain, nftFamily } from '../kernel/nftables/format.ts';
import { parseNftText } from '../kernel/nftables/parse-text.ts';
import { isLearned, type NftTable } from '../kernel/nftables/table.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { isKubeProxyTable, isNftServiceName } from '../kube-proxy/nft-names.ts';
import { sorted, type DumpDraft, type RuleText } from './dump.ts';
import { formatElement } from '../kernel/nftables/format-expression.ts';
import type { ToolOutput } from './split-outputs.ts';

const nftList = 'nft list ruleset';

/**
 * Reads one table that nft printed. Only kube-proxy's are read: nft prints those that iptables made in a form that says less
 * of them than iptables-save.
 */
export function readNftTable(draft: DumpDraft, file: string, output: ToolOutput): void {
  const { text, command, firstLine, isCutOff } = output;
  draft.file(file, nftList);
  if (isCutOff) return draft.fault(file, 'unread-file', { expected: nftList, isCutOff: true });
  const [, family = '', name = ''] = /^\s*table (\S+) (\S+)/.exec(text) ?? [];
  const table = `${family} ${name}`;
  // Nothing but the whole ruleset holds tables of other names.
  const isRuleset = command?.tool === 'nft' ? !command.isPart : /ruleset/i.test(file) || !isKubeProxyTable(name);
  if (!nftFamilies.has(family) || !isKubeProxyTable(name)) {
    draft.addNftables([], isRuleset);
    if (!isOfIptables(table)) draft.doubt({ kind: 'other-table', table, tables: readOtherTable(family, text) });
    if (!ofIptables.test(text)) return;
    const reason = 'shows the rules of iptables mode in other words: print iptables-save instead';
    return draft.refuse(file, firstLine, nftList, reason);
  }
  if (dormantFlag.test(text)) {
    const reason = `shows that table ${table} is dormant: no packet comes to it, and none of its Services works`;
    draft.refuse(file, firstLine, nftList, reason);
    return draft.addNftables([], isRuleset);
  }
  const { tables, unread } = parseNftText(text);
  draft.unread(file, unread, firstLine - 1);
  const lack = tables.map(findLack).find((each) => each !== undefined);
  if (lack) {
    draft.refuse(file, firstLine, lack.output, lack.reason);
    draft.isNftLossy = true;
  } else {
    const at = { file, line: firstLine, kind: nftList } as const;
    if (!draft.list(draft.rules[nftList], listNftables(tables), false, at)) return;
  }
  draft.addNftables(tables, isRuleset);
}

/** The rules and elements of kube-proxy's tables, without the clients that rules added. */
function listNftables(tables: readonly NftTable[]): readonly RuleText[] {
  const own = tables.filter(({ name }) => isKubeProxyTable(name));
  return own.flatMap(({ family, chains, sets }) => [
    ...[...chains.values()].map((chain) => [`${family} chain ${chain.name}`, () => formatChain(chain)] as const),
    ...[...sets.values()]
      .filter((set) => !isLearned(set))
      .map(({ name, elements }) => [`${family} ${name}`, () => sorted(elements.map(formatElement))] as const),
  ]);
}

/** The chain of iptables mode that packets come through first. */
const ofIptables = new RegExp(`[\\s"]${baseChains.services}[\\s"]`);

/** A program made the table dormant: it exists, but the kernel skips it. */
const dormantFlag = /^[ \t]*flags\b[^{\n\r\u2028\u2029]*\bdormant\b/m;

/** Finds what an option of nft left out of kube-proxy's table, which then shows Services, but too little to compare. */
function findLack({ chains, sets }: NftTable): { readonly output: string; readonly reason: string } | undefined {
  const elements = [...sets.values()].flatMap((set) => set.elements.map((element) => ({ set, element })));
  const isPortName = (value: Value, type: string | undefined): boolean =>
    type === 'inet_service' && value.kind === 'word' && /^[a-z]/i.test(value.text);
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

const nftFamilies: ReadonlySet<string> = new Set(families.map((family) => nftFamily[family]));

/** Tables that iptables keeps its rules in have these names, and iptables-save shows them. */
function isOfIptables(table: string): boolean {
  return /^ip6? (?:nat|filter|mangle|raw|security)$/.test(table);
}

/**
 * Another program's table, such as "inet firewalld", as packets meet it: one of the family inet sees those of both families.
 * What kpc does not read of a rule is an unknown expression. Undefined for a table of which more than that could not be read.
 */
function readOtherTable(family: string, text: string): readonly NftTable[] | undefined {
  if (dormantFlag.test(text)) return [];
  const seenAs = family === 'inet' ? families : families.filter((each) => nftFamily[each] === family);
  const read = seenAs.map((each) => parseNftText(textAs(text, nftFamily[each])));
  if (read.some(({ unread }) => unread.some(({ text: line, reason }) => !isHarmless(line, reason)))) return undefined;
  return read.flatMap(({ tables }) => tables);
}

/** Objects that only rules use, which are unknown then, and properties that change no lookup. */
function isHarmless(line: string, reason: string): boolean {
  if (reason === 'a property that is not known') return /^\s*(?:auto-merge|gc-interval|policy|counter)\b/.test(line);
  if (reason === 'neither a chain, a set, a map nor a counter') return true;
  return reason === 'not a part of a table' && /^\s*flags (?:owner|persist)/.test(line);
}

/** Without counters and logging, which change nothing for packets, and with lists of states in the form of sets. */
function textAs(text: string, family: string): string {
  const [head = '', ...lines] = text.trimStart().split('\n');
  return [head.replace(/^(\s*table )\S+/, `$1${family}`), ...lines.map(plainLine)].join('\n');
}

function plainLine(line: string): string {
  const plain = line
    .replaceAll(/[ \t]counter packets \d+ bytes \d+/g, '')
    .replaceAll(logging, '')
    .replaceAll(/[ \t]ct state (!= )?([a-z]+(?:,[a-z]+)+)/g, (_, not: string | undefined, states: string) => {
      return ` ct state ${not ?? ''}{ ${states.replaceAll(',', ', ')} }`;
    });
  // A rule that does nothing else still counts.
  return plain.trim() === '' && line.trim() !== '' ? 'continue' : plain;
}

const logging =
  /(?<!jump|goto|chain)[ \t]log(?![\w-])(?: (?:prefix "[^"]*"|level [a-z]+|flags [a-z]+|tcp [a-z,]+|ip options|group \d+|snaplen \d+))*/g;
