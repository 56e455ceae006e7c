import { baseName } from '../base/names.ts';
import { parseNetwork } from '../kernel/address.ts';
import { families, type Family } from '../kernel/family.ts';
import { isLearned, type Value, type NftTable } from '../kernel/nftables/table.ts';
import { formatChain, nftFamily, formatElement } from '../kernel/nftables/format.ts';
import { notOfNft, openBrace, openQuote, parseNftText, unreadElement } from '../kernel/nftables/parse-text.ts';
import { linesOf } from '../kernel/lines.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { isKubeProxyTable, isNftServiceName } from '../kube-proxy/nft-table.ts';
import { sorted, type DumpDraft, type HookedInterfaces, type RuleText } from './dump.ts';
import { isEllipsis, type ToolOutput } from './split-outputs.ts';

const nftList = 'nft list ruleset';

/** Reads any table, kube-proxy's or not. Omits rules of tables made by iptables, because iptables-save shows more of them. */
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
  draft.isNftPart ||= command?.tool === 'nft' && command.isPart;
  // For tables that were printed one by one, the order of creation is unknown.
  const listing = command?.tool === 'nft' && command.isPart ? `${file} ${firstLine}` : file;
  draft.place(familiesOfTable(family), qualifyTableName(family, name), listing);
  // Only the whole ruleset contains tables of several names.
  const isRuleset =
    command?.tool === 'nft' ? !command.isPart : /ruleset/i.test(baseName(file)) || draft.hasOther(listing, name);
  if (!nftFamilies.has(family) || !isKubeProxyTable(name)) {
    const { tables, unread } = readOtherTable(family, text);
    const [lost, ...others] = unread;
    if (lost) draft.fault(file, 'unread-line', { reason: lost.reason, more: others.length }, firstLine - 1 + lost.line);
    // nft's listings of a table made by iptables differ in detail.
    const listed = isOfIptables.test(text) ? [] : listNftables(tables ?? []);
    if (!draft.list(draft.nftRules, listed, false, at)) return;
    draft.addNftables([], isRuleset);
    draft.addOtherTable({ table, tables, hooked: findHooked(family, text) });
    if (!ofIptables.test(text)) return;
    const reason = 'shows the rules of iptables mode in other words: print iptables-save instead';
    return draft.refuse(file, firstLine, nftList, reason);
  }
  if (dormantFlag.test(text)) {
    const reason = `shows that table ${table} is dormant: no packet comes to it, and none of its Services works`;
    draft.refuse(file, firstLine, nftList, reason);
    const tables = readOwnTable(text, isCutOff).tables.map(withoutHooks);
    draft.addOtherTable({ table, tables, hooked: [] });
    for (const each of isCutOff ? [] : familiesOfTable(family)) draft.dormant.add(each);
    return draft.addNftables([], isRuleset);
  }
  const { tables, unread } = readOwnTable(text, isCutOff);
  draft.unread(file, nftList, unread, firstLine - 1);
  if (isCutOff || unread.some(({ reason }) => reason === notOfNft || reason === unreadElement)) {
    for (const each of familiesOfTable(family)) draft.nftParts.add(each);
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

function readOwnTable(text: string, isCutOff: boolean): ReturnType<typeof parseNftText> {
  const { tables, unread } = parseNftText(markElided(text));
  const isOfCut = (reason: string): boolean => isCutOff && (reason === openBrace || reason === openQuote);
  return { tables, unread: unread.filter(({ reason }) => !isOfCut(reason)) };
}

/** A dormant table as packets see it. */
function withoutHooks(table: NftTable): NftTable {
  const chains = [...table.chains].map(([name, chain]) => [name, { ...chain, base: undefined }] as const);
  return { ...table, chains: new Map(chains) };
}

/** Recognises marks that people write in place of omitted lines, so that they are not read as words of nft. */
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

/** Drops the last line of a listing that is cut off within it. */
function withoutCutLine(text: string): string {
  return text.endsWith('\n\n') ? text : text.slice(0, text.trimEnd().lastIndexOf('\n') + 1);
}

/** Without the clients that rules added. */
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

/** The chain that packets enter first in iptables mode. */
const ofIptables = new RegExp(`[\\s"]${baseChains.services}[\\s"]`);

/** The flag dormant: the table exists, but the kernel skips it. */
const dormantFlag = /^[ \t]*flags\b[^{\n\r\u2028\u2029]*\bdormant\b/m;

/** Finds the parts of kube-proxy's table that an nft option omitted: the rest shows Services, but is too little to compare. */
function findLack({ chains, sets }: NftTable): { readonly output: string; readonly reason: string } | undefined {
  const elements = [...sets.values()].flatMap((set) => set.elements.map((element) => ({ set, element })));
  const isPortName = (value: Value, type: string | undefined): boolean =>
    type === 'inet_service' && value.kind === 'word' && /^[a-z]/i.test(value.text);
  if (elements.some(({ set, element }) => element.key.some((value, i) => isPortName(value, set.keyType[i])))) {
    return { output: 'nft -S', reason: 'shows names of ports: print nft list ruleset without -S instead' };
  }
  const ownSets = [...sets.values()].filter((set) => !isLearned(set) && !set.isPart);
  const leadsNowhere = ownSets.length > 0 && ownSets.every((set) => set.elements.length === 0);
  // If a Service has endpoints, an address or node port leads to its chain.
  if (leadsNowhere && [...chains.values()].some(({ name, rules }) => rules.length > 0 && isNftServiceName(name))) {
    return { output: 'nft -t', reason: 'shows no elements: print nft list ruleset without -t instead' };
  }
  return undefined;
}

const nftFamilies: ReadonlySet<string> = new Set(families.map((family) => nftFamily[family]));

/** A table's name within a packet family: "ip filter" and "inet filter" are two tables. */
function qualifyTableName(family: string, name: string): string {
  return family === 'inet' || family === 'netdev' ? `${family} ${name}` : name;
}

function familiesOfTable(family: string): readonly Family[] {
  return family === 'inet' ? families : families.filter((each) => nftFamily[each] === family);
}

/**
 * Another program's table, such as "inet firewalld", for each family that it applies to: both for inet. Unreadable
 * parts of rules become unknown expressions; if more is unreadable, there are no tables, only those lines.
 */
function readOtherTable(family: string, text: string) {
  if (dormantFlag.test(text)) return { tables: [], unread: [] };
  const whole = isOfIptables.test(text) ? text.replaceAll(lostTarget, '$1 xt target "lost"') : text;
  const seen = family === 'netdev' ? families : familiesOfTable(family);
  const read = seen.map((each) => parseNftText(markElided(textAs(whole, nftFamily[each]))));
  // Both families read the same lines.
  const unread = (read[0]?.unread ?? []).filter((line) => !isHarmless(line.text, line.reason));
  if (unread.length > 0) return { tables: undefined, unread };
  const tables = read.flatMap((each) =>
    each.tables.map((table) => ({ ...table, name: qualifyTableName(family, table.name) })),
  );
  return { tables, unread };
}

/** A base chain: its hook, its devices and priority, its policy, and whether it has no rules (`idle`). */
const baseChain = /\btype \w+ hook (?<hook>\w+) (?<rest>[^;\n]*);?[ \t]*(?<policy>policy \w+;)?(?<idle>\s*\})?/g;

/** Except rules of chains that let everything pass. From tables for IP packets, takes only chains at devices. */
function findHooked(family: string, text: string): readonly HookedInterfaces[] {
  if (dormantFlag.test(text)) return [];
  const bases = [...text.matchAll(baseChain)];
  const isOpen = bases.length > 0 && bases.every(({ groups }) => groups?.['policy'] !== 'policy drop;');
  if (family === 'arp' && isOpen) return seenByRequests(text);
  return bases.flatMap(({ groups = {} }): readonly HookedInterfaces[] => {
    if (groups['idle'] !== undefined && groups['policy'] !== 'policy drop;') return [];
    if (family === 'bridge' || family === 'arp') return seenByFrames;
    if (groups['hook'] !== 'ingress' && groups['hook'] !== 'egress') return [];
    const [, devices = ''] = /^devices? (.*)$/.exec(groups['rest']?.split(' priority ', 1)[0] ?? '') ?? [];
    const interfaces = devices.match(/[^\s"{},=]+/g) ?? [];
    const isIngress = groups['hook'] === 'ingress';
    const isRead = isIngress && groups['policy'] !== 'policy drop;';
    return [{ end: isIngress ? 'input' : 'output', isRead, interfaces }];
  });
}

/** Rules of families bridge and arp see frames of links that their listing does not name. */
const seenByFrames: readonly HookedInterfaces[] = (['input', 'output'] as const).map((end) => {
  return { end, isRead: false, interfaces: [] };
});

/** As seenByFrames, for each rule of family arp that does not accept: with what it asks for, if that is positive and listed. */
function seenByRequests(text: string): readonly HookedInterfaces[] {
  const rules = Array.from(linesOf(text), (line) => line.trim()).filter((line) => !idleInArp.test(line));
  return rules.flatMap((rule) => {
    const [, link] = /^[io]if(?:name)? "([^"\s]+)"/.exec(rule) ?? [];
    const [, listed = ''] = /\barp [sd]addr ip (\{[^{}]*\}|[\d./]+)(?: |$)/.exec(rule) ?? [];
    const asked = listed.match(/[^\s{},]+/g)?.map((each) => parseNetwork(each.includes('/') ? each : `${each}/32`));
    const addresses = asked?.every((each) => each !== undefined) === true ? asked : undefined;
    return seenByFrames.map((each) => ({ ...each, interfaces: link === undefined ? [] : [link], addresses }));
  });
}

const idleInArp = /^(?:$|[{}]|table |chain |type |comment |.*\baccept$|.*\}$)/;

/** Objects that only matter to rules (their rules become unknown), and properties that do not affect lookups. */
function isHarmless(line: string, reason: string): boolean {
  if (reason === 'a property that is not known') return /^\s*(?:auto-merge|gc-interval|policy|counter)\b/.test(line);
  // Chains that see packets at an interface are found separately.
  if (reason === 'a hook or priority that is not known') return /\bhook (?:ingress|egress)\b/.test(line);
  if (reason === 'neither a chain, a set, a map nor a counter') return true;
  return reason === 'not a part of a table' && /^\s*flags (?:owner|persist)/.test(line);
}

const isOfIptables = /^\s*table ip6? (?:nat|filter|mangle|raw|security) /;

/** A rule that ends after its counter: nft prints xt targets such as DNAT only in the first family that it lists. */
const lostTarget = /(counter packets \d+ bytes \d+)(?=[ \t]*$)/gm;

/** The table's text with that family, without counts. */
function textAs(text: string, family: string): string {
  return (
    text
      .replace(/^(\s*table )\S+/, `$1${family}`)
      .replaceAll(/[ \t]counter packets \d+ bytes \d+(?=[ \t]+\S)/g, '')
      // Versions of nft without iptables' library print its matches as comments.
      .replaceAll(/# xt_(\w+)/g, 'xt match "$1"')
  );
}
