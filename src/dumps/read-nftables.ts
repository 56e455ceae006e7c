import { families, type Family } from '../kernel/family.ts';
import type { Value } from '../kernel/nftables/element.ts';
import { formatChain, nftFamily } from '../kernel/nftables/format.ts';
import { notOfNft, openBrace, openQuote, parseNftText, unreadElement } from '../kernel/nftables/parse-text.ts';
import { linesOf } from '../kernel/lines.ts';
import { isLearned, type NftTable } from '../kernel/nftables/table.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { isKubeProxyTable, isNftServiceName } from '../kube-proxy/nft-names.ts';
import { sorted, type DumpDraft, type HookedInterfaces, type RuleText } from './dump.ts';
import { formatElement } from '../kernel/nftables/format-expression.ts';
import { isEllipsis, type ToolOutput } from './split-outputs.ts';

const nftList = 'nft list ruleset';

/**
 * Reads one table that nft printed. Only kube-proxy's are read: nft prints those that iptables made in a form that says less
 * of them than iptables-save.
 */
export function readNftTable(draft: DumpDraft, file: string, output: ToolOutput): void {
  const { text: printed, command, firstLine, isCutOff } = output;
  const at = { file, line: firstLine, kind: nftList } as const;
  draft.file(file, nftList);
  const text = isCutOff ? withoutCutLine(printed) : printed;
  if (isCutOff) {
    draft.fault(file, 'unread-file', { expected: nftList, isCutOff: true });
    draft.isNftCut = true;
  }
  const [, family = '', name = ''] = /^\s*table (\S+) (\S+)/.exec(text) ?? [];
  const table = `${family} ${name}`;
  // Nothing but the whole ruleset holds tables of other names.
  const isRuleset = command?.tool === 'nft' ? !command.isPart : /ruleset/i.test(file) || !isKubeProxyTable(name);
  draft.isNftPart ||= command?.tool === 'nft' && command.isPart;
  // Of tables that were printed one by one, nothing shows which was made first.
  draft.place(
    familiesOf(family),
    nameOf(family, name),
    command?.tool === 'nft' && command.isPart ? `${file} ${firstLine}` : file,
  );
  if (!nftFamilies.has(family) || !isKubeProxyTable(name)) {
    const tables = readOtherTable(family, text);
    // Of a table of iptables nft prints more in one listing than in another.
    const listed = isOfIptables.test(text) ? [] : listNftables(tables ?? []);
    if (!draft.list(draft.nftRules, listed, false, at)) return;
    draft.addNftables([], isRuleset);
    draft.addOtherTable({ table, tables, hooked: findHooked(text) });
    if (!ofIptables.test(text)) return;
    const reason = 'shows the rules of iptables mode in other words: print iptables-save instead';
    return draft.refuse(file, firstLine, nftList, reason);
  }
  if (dormantFlag.test(text)) {
    const reason = `shows that table ${table} is dormant: no packet comes to it, and none of its Services works`;
    draft.refuse(file, firstLine, nftList, reason);
    const tables = readOwnTable(text, isCutOff).tables.map(withoutHooks);
    draft.addOtherTable({ table, tables, hooked: [] });
    for (const each of isCutOff ? [] : familiesOf(family)) draft.dormant.add(each);
    return draft.addNftables([], isRuleset);
  }
  const { tables, unread } = readOwnTable(text, isCutOff);
  draft.unread(file, nftList, unread, firstLine - 1);
  if (isCutOff || unread.some(({ reason }) => reason === notOfNft || reason === unreadElement)) {
    for (const each of familiesOf(family)) draft.nftParts.add(each);
  }
  const lack = tables.map(findLack).find((each) => each !== undefined);
  if (lack) {
    draft.refuse(file, firstLine, lack.output, lack.reason);
    for (const each of families) draft.nftParts.add(each);
  } else {
    if (!draft.list(draft.nftRules, listNftables(tables), false, at)) return;
  }
  draft.addNftables(tables, isRuleset);
}

/** What is read of a table, as far as the paste goes. */
function readOwnTable(text: string, isCutOff: boolean): ReturnType<typeof parseNftText> {
  const { tables, unread } = parseNftText(markElided(text));
  const isOfCut = (reason: string): boolean => isCutOff && (reason === openBrace || reason === openQuote);
  return { tables, unread: unread.filter(({ reason }) => !isOfCut(reason)) };
}

/** A dormant table as packets meet it. */
function withoutHooks(table: NftTable): NftTable {
  const chains = [...table.chains].map(([name, chain]) => [name, { ...chain, base: undefined }] as const);
  return { ...table, chains: new Map(chains) };
}

/** What a person writes in the place of lines, in a form that is no word of nft's. */
function markElided(text: string): string {
  let [marked, from, at] = ['', 0, 0];
  for (const line of linesOf(text)) {
    if (line !== '' && isEllipsis(line.trim())) {
      marked += `${text.slice(from, at)}...`;
      from = at + line.length;
    }
    at += line.length + 1;
  }
  return marked + text.slice(from);
}

/** A listing that ends within a line: what that line says is not known. */
function withoutCutLine(text: string): string {
  return text.endsWith('\n\n') ? text : text.slice(0, text.trimEnd().lastIndexOf('\n') + 1);
}

/** The rules and elements of tables, without the clients that rules added. */
function listNftables(tables: readonly NftTable[]): readonly RuleText[] {
  return tables.flatMap(({ family, name: table, chains, sets }) => {
    const where = isKubeProxyTable(table) ? family : `${family} ${table}`;
    return [
      ...[...chains.values()].map((chain) => [`${where} chain ${chain.name}`, () => formatChain(chain)] as const),
      ...[...sets.values()]
        .filter((set) => !isLearned(set) && !set.isPart)
        .map(({ name, elements }) => [`${where} ${name}`, () => sorted(elements.map(formatElement))] as const),
    ];
  });
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
  const ownSets = [...sets.values()].filter((set) => !isLearned(set) && !set.isPart);
  const leadsNowhere = ownSets.length > 0 && ownSets.every((set) => set.elements.length === 0);
  // An address or a node port leads to the chain of a Service that has endpoints.
  if (leadsNowhere && [...chains.values()].some(({ name, rules }) => rules.length > 0 && isNftServiceName(name))) {
    return { output: 'nft -t', reason: 'shows no elements: print nft list ruleset without -t instead' };
  }
  return undefined;
}

const nftFamilies: ReadonlySet<string> = new Set(families.map((family) => nftFamily[family]));

/** What a table is called among those of one family of packets: "ip filter" and "inet filter" are two. */
function nameOf(family: string, name: string): string {
  return family === 'inet' ? `inet ${name}` : name;
}

/** The families whose packets a table of nftables sees. */
function familiesOf(family: string): readonly Family[] {
  return family === 'inet' ? families : families.filter((each) => nftFamily[each] === family);
}

/**
 * Another program's table, such as "inet firewalld", as packets meet it: one of the family inet sees those of both families.
 * What kpc does not read of a rule is an unknown expression. Undefined for a table of which more than that could not be read.
 */
function readOtherTable(family: string, text: string): readonly NftTable[] | undefined {
  if (dormantFlag.test(text)) return [];
  const whole = isOfIptables.test(text) ? text.replaceAll(lostTarget, '$1 xt target "lost"') : text;
  const read = familiesOf(family).map((each) => parseNftText(markElided(textAs(whole, nftFamily[each]))));
  if (read.some(({ unread }) => unread.some(({ text: line, reason }) => !isHarmless(line, reason)))) return undefined;
  return read.flatMap(({ tables }) => tables.map((table) => ({ ...table, name: nameOf(family, table.name) })));
}

/** A chain of the hooks ingress or egress: its devices and priority, its policy, and whether it has no rules (`idle`). */
const deviceHook =
  /\btype \w+ hook (?<hook>ingress|egress) devices? (?<rest>[^;\n]*);?[ \t]*(?<policy>policy \w+;)?(?<idle>\s*\})?/g;

/** The interfaces at which chains of a table see packets, but for chains that let all pass. */
function findHooked(text: string): readonly HookedInterfaces[] {
  if (dormantFlag.test(text)) return [];
  return [...text.matchAll(deviceHook)].flatMap(({ groups = {} }): readonly HookedInterfaces[] => {
    if (groups['idle'] !== undefined && groups['policy'] !== 'policy drop;') return [];
    const [devices = ''] = groups['rest']?.split(' priority ') ?? [];
    const interfaces = devices.match(/[^\s"{},=]+/g) ?? [];
    return [{ end: groups['hook'] === 'ingress' ? 'input' : 'output', interfaces }];
  });
}

/** Objects that only rules use, which are unknown then, and properties that change no lookup. */
function isHarmless(line: string, reason: string): boolean {
  if (reason === 'a property that is not known') return /^\s*(?:auto-merge|gc-interval|policy|counter)\b/.test(line);
  // What sees packets at an interface is found by itself.
  if (reason === 'a hook or priority that is not known') return /\bhook (?:ingress|egress)\b/.test(line);
  if (reason === 'neither a chain, a set, a map nor a counter') return true;
  return reason === 'not a part of a table' && /^\s*flags (?:owner|persist)/.test(line);
}

/** Tables that iptables keeps its rules in. */
const isOfIptables = /^\s*table ip6? (?:nat|filter|mangle|raw|security) /;

/**
 * A rule that ends with what it has counted: nft prints nothing in the place of targets such as DNAT in the family that it did
 * not list first.
 */
const lostTarget = /(counter packets \d+ bytes \d+)(?=[ \t]*$)/gm;

/** The table as one of that family, without what rules have counted. */
function textAs(text: string, family: string): string {
  return (
    text
      .replace(/^(\s*table )\S+/, `$1${family}`)
      .replaceAll(/[ \t]counter packets \d+ bytes \d+(?=[ \t]+\S)/g, '')
      // Versions of nft without the library of iptables print a match of it as a comment.
      .replaceAll(/# xt_(\w+)/g, 'xt match "$1"')
  );
}
