import { baseName } from '../base/names.ts';
import { families, type Family, parseNetwork } from '../kernel/address.ts';
import { isLearned, type Value, type NftTable } from '../kernel/nftables/table.ts';
import { formatChain, nftFamily, formatElement } from '../kernel/nftables/format.ts';
import { parseNftText } from '../kernel/nftables/parse-text.ts';
import { linesOf, type LineFault } from '../kernel/lines.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { isKubeProxyTable, isNftServiceName } from '../kube-proxy/nft-table.ts';
import { sorted, withoutHooks, type DumpDraft, type HookedInterfaces, type RuleText } from './dump.ts';
import type { ToolOutput } from './split-outputs.ts';

const nftList = 'nft list ruleset';

/** Reads any table. Skips the rules in tables that iptables made, because iptables-save shows those rules in more detail. */
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
  // If tables were printed one by one, the order in which they were created is unknown.
  const listing = command?.tool === 'nft' && command.isPart ? `${file} ${firstLine}` : file;
  draft.place(familiesOfTable(family), qualifyTableName(family, name), listing);
  // Only a listing of the whole ruleset has tables with different names.
  const isRuleset =
    command?.tool === 'nft' ? !command.isPart : /ruleset/i.test(baseName(file)) || draft.hasOther(listing, name);
  if (!nftFamilies.has(family) || !isKubeProxyTable(name)) {
    const { tables, unread } = readOtherTable(family, text);
    const [lost, ...others] = unread;
    if (lost)
      draft.fault(
        file,
        'unread-line',
        { reason: lost.reason, of: nftList, more: others.length },
        firstLine - 1 + lost.line,
      );
    // nft's listings of one iptables table differ in details, so they are not compared.
    const listed = isOfIptables.test(text) ? [] : listNftables(tables ?? []);
    if (!draft.list(draft.nftRules, listed, false, at)) return;
    draft.addNftables([], isRuleset);
    if (!tables || tables.length === 0 || tables.some(({ chains }) => chains.size > 0))
      draft.addOtherTable({ table, tables, hooked: findHooked(family, text) });
    if (ofIptables.test(text)) draft.ofIptables.push({ table, file, line: firstLine });
    return;
  }
  if (dormantFlag.test(text)) {
    draft.refuse(file, firstLine, { problem: 'dormant', table });
    const tables = readOwnTable(text, isCutOff).tables.map((each) => withoutHooks(each));
    draft.addOtherTable({ table, tables, hooked: [] });
    for (const each of isCutOff ? [] : familiesOfTable(family)) draft.dormant.add(each);
    return draft.addNftables([], isRuleset);
  }
  const { tables, unread } = readOwnTable(text, isCutOff);
  draft.unread(file, nftList, unread, firstLine - 1);
  if (isCutOff || unread.some(({ reason }) => reason === 'elided')) {
    for (const each of familiesOfTable(family)) draft.nftParts.add(each);
  }
  const lack = tables.map(findLack).find((each) => each !== undefined);
  if (lack) {
    draft.refuse(file, firstLine, { problem: lack });
    for (const each of families) draft.nftParts.add(each);
  } else {
    if (!draft.list(draft.nftRules, listNftables(tables), false, at)) return;
  }
  draft.addNftables(tables, isRuleset);
}

function readOwnTable(text: string, isCutOff: boolean): ReturnType<typeof parseNftText> {
  const { tables, unread } = parseNftText(markElided(text));
  const isOfCut = (reason: LineFault): boolean => isCutOff && (reason === 'open-brace' || reason === 'open-quote');
  return { tables, unread: unread.filter(({ reason }) => !isOfCut(reason)) };
}

/** Replaces text that nft does not print, such as marks for omitted lines. Otherwise it would be read as a comment or as words of nft. */
function markElided(text: string): string {
  let [marked, from, at] = ['', 0, 0];
  for (const line of linesOf(text)) {
    if (notOfNft.test(line)) {
      marked += `${text.slice(from, at)}...`;
      from = at + line.length;
    }
    at += line.length + 1;
  }
  return (marked + text.slice(from)).replaceAll(controls, ' ... ');
}

// oxlint-disable-next-line no-control-regex
const controls = /\0|\r(?!\n)/g;

const notOfNft = /^\s*(?!# Warning: )(?:[^\s\w"}@:\\]|:(?!:))[^{}"]*$/;

function withoutCutLine(text: string): string {
  return text.endsWith('\n\n') ? text : text.slice(0, text.trimEnd().lastIndexOf('\n') + 1);
}

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

/** Matches the first chain that kube-proxy makes in iptables mode. */
const ofIptables = new RegExp(`[\\s"]${baseChains.services}[\\s"]`);

/** Matches the flag dormant. The kernel skips a table with this flag. */
const dormantFlag = /^[ \t]*flags\b[^{\n\r\u2028\u2029]*\bdormant\b/m;

/** Finds parts of kube-proxy's table that an nft option left out. What is left shows Services but is not enough for a comparison. */
function findLack({ chains, sets }: NftTable): 'nft -S' | 'nft -t' | undefined {
  const elements = [...sets.values()].flatMap((set) => set.elements.map((element) => ({ set, element })));
  const isPortName = (value: Value, type: string | undefined): boolean =>
    type === 'inet_service' && value.kind === 'word' && /^[a-z]/i.test(value.text);
  if (elements.some(({ set, element }) => element.key.some((value, i) => isPortName(value, set.keyType[i])))) {
    return 'nft -S';
  }
  const ownSets = [...sets.values()].filter((set) => !isLearned(set) && !set.isPart);
  const leadsNowhere = ownSets.length > 0 && ownSets.every((set) => set.elements.length === 0);
  // A Service with endpoints has a chain, and an address or node port must lead to it.
  if (leadsNowhere && [...chains.values()].some(({ name, rules }) => rules.length > 0 && isNftServiceName(name))) {
    return 'nft -t';
  }
  return undefined;
}

const nftFamilies: ReadonlySet<string> = new Set(families.map((family) => nftFamily[family]));

function qualifyTableName(family: string, name: string): string {
  return family === 'inet' || family === 'netdev' ? `${family} ${name}` : name;
}

function familiesOfTable(family: string): readonly Family[] {
  return family === 'inet' ? families : families.filter((each) => nftFamily[each] === family);
}

/**
 * Reads another program's table, such as "inet firewalld", once for each family whose packets it sees. Parts of rules that kpc cannot read
 * become unknown expressions. If there is any other line that kpc cannot read, returns these lines and no tables.
 */
function readOtherTable(family: string, text: string) {
  if (dormantFlag.test(text)) return { tables: [], unread: [] };
  const whole = isOfIptables.test(text) ? text.replaceAll(lostTarget, '$1 xt target "lost"') : text;
  const seen = family === 'netdev' ? families : familiesOfTable(family);
  const read = seen.map((each) => parseNftText(markElided(textAs(whole, nftFamily[each]))));
  const unread = (read[0]?.unread ?? []).filter((line) => !isHarmless(line.text, line.reason));
  if (unread.length > 0) return { tables: undefined, unread };
  const tables = read.flatMap((each) =>
    each.tables.map((table) => ({ ...table, name: qualifyTableName(family, table.name) })),
  );
  return { tables, unread };
}

/** Matches a base chain. Captures its hook, its devices and priority (`rest`), its policy, and whether it has no rules (`idle`). */
const baseChain = /\btype \w+ hook (?<hook>\w+) (?<rest>[^;\n]*);?[ \t]*(?<policy>policy \w+;)?(?<idle>\s*\})?/g;

/** Finds the interfaces at which rules see frames or packets. Skips chains that have no rules and accept everything. */
function findHooked(family: string, text: string): readonly HookedInterfaces[] {
  if (dormantFlag.test(text)) return [];
  const bases = [...text.matchAll(baseChain)];
  const isOpen = bases.length > 0 && bases.every(({ groups }) => groups?.['policy'] !== 'policy drop;');
  const requests = isOpen && (family === 'arp' || family === 'bridge') ? seenByRequests(text) : undefined;
  if (requests && (family === 'arp' || requests.length === 0)) return requests;
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

const seenByFrames: readonly HookedInterfaces[] = (['input', 'output'] as const).map((end) => {
  return { end, isRead: false, interfaces: [] };
});

/** Like seenByFrames, but for each rule that does not accept, with the link and the addresses that the rule matches. */
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

/**
 * Reports whether it does not matter that a line could not be read. This holds for properties that do not affect lookups. It also holds for
 * objects that only rules use, because those rules become unknown.
 */
function isHarmless(line: string, reason: LineFault): boolean {
  if (reason === 'other-property') return /^\s*(?:auto-merge|gc-interval|policy|counter)\b/.test(line);
  if (reason === 'other-hook') return /\bhook (?:ingress|egress)\b/.test(line);
  if (reason === 'other-object') return true;
  return reason === 'other-part' && /^\s*flags (?:owner|persist)/.test(line);
}

const isOfIptables = /^\s*table ip6? (?:nat|filter|mangle|raw|security) /;

/** Matches a rule that ends after its counter. In all families except the first listed, nft leaves out xt targets such as DNAT. */
const lostTarget = /(counter packets \d+ bytes \d+)(?=[ \t]*$)/gm;

function textAs(text: string, family: string): string {
  return (
    text
      .replace(/^(\s*table )\S+/, `$1${family}`)
      .replaceAll(/[ \t]counter packets \d+ bytes \d+(?=[ \t]+\S)/g, '')
      // If nft lacks iptables' library, it prints xt matches as comments.
      .replaceAll(/# xt_(\w+)/g, 'xt match "$1"')
  );
}
