import { joinWords } from '../base/join-words.ts';
import { isRefused, refusalOf, type OutputKind, type ReadableKind } from './output-kinds.ts';
import { placeRules } from './rules-without-table.ts';
import { splitOutputs, type ToolOutput } from './split-outputs.ts';
import { parseIpAddrText } from './ip-addr-text.ts';
import { tableNames, type TableName, type Tables } from '../kernel/iptables/iptables.ts';
import { parseIptablesSave, findHiddenTables } from '../kernel/iptables/parse-save.ts';
import { parseIpsetSave } from '../kernel/ipset/ipset.ts';
import { parseIpsetList } from './ipset-list.ts';
import { parseIpvsadm } from '../kernel/ipvs/ipvs.ts';
import { parseIpvsadmList } from './ipvs-list.ts';
import { parseIpAddrJson } from '../kernel/link/link.ts';
import { parseSysctls } from '../kernel/sysctl.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';
import { DumpDraft } from './dump-draft.ts';
import { readNftTable } from './read-nftables.ts';
import { listLinks, listRules, listServers, listSets, type Listing } from './listed-twice.ts';
import type { Dump, DumpFileKind, Reader } from './dump.ts';

const namePatterns: readonly (readonly [RegExp, DumpFileKind])[] = [
  [/^(ip6t|(?=.*tables).*?[-_.](ipv6|v6)\b)/i, 'ip6tables-save'],
  [/^iptables/i, 'iptables-save'],
  [/^nft/i, 'nft list ruleset'],
  [/^ipset/i, 'ipset save'],
  [/^ipvs/i, 'ipvsadm -Sn'],
  [/^ip[-_]?(j[-_]?)?a(ddr(ess(es)?)?)?\b.*(json|txt)?$/i, 'ip -j addr'],
  [/^sysctl/i, 'sysctl'],
];

/** The tool that a file of that name was printed by, if it is of a dump at all. */
export function expectDumpFile(name: string): DumpFileKind | undefined {
  return namePatterns.find(([pattern]) => pattern.test(name))?.[1];
}

/** Whether a file can be of nothing but a dump, by its name: "ipset-save". */
export function isDumpFileName(name: string): boolean {
  return /^((ip6?tables|ipset|ipvsadm)[-_.]save(\.txt)?|nft[-_.](list[-_.])?ruleset(\.(txt|json|nft))?)$/i.test(name);
}

/** Whether a text holds what a tool printed that tells of a node's kernel. */
export function holdsOutput(text: string): boolean {
  return splitOutputs(text).outputs.length > 0;
}

/** Reads the files of a dump; those that are not of one, by name and content, are left out. Takes any text. */
export function readDump(texts: ReadonlyMap<string, string>): Dump {
  const draft = new DumpDraft();
  for (const [name, text] of texts) readFile(draft, name, text);
  return draft.finish();
}

function readFile(draft: DumpDraft, name: string, text: string): void {
  const { outputs, strays } = splitOutputs(text);
  const expected = expectDumpFile(name);
  if (outputs.length === 0) {
    if (expected === undefined) return;
    // A tool that has nothing to print prints nothing.
    if (text.split('\n').every((line) => line.trim() === '' || line.startsWith('#')))
      readNothing(draft, name, expected, text);
    else draft.fault(name, 'unread-file', { problem: 'other-content', expected });
    return;
  }
  const [firstStray] = strays;
  if (firstStray !== undefined) {
    draft.fault(name, 'stray-lines', { count: strays.length }, firstStray);
  }
  if (/^# Warning: ip6?tables-legacy tables present/m.test(text)) draft.fault(name, 'legacy-tables', {});
  // It stands before or behind the tables that are shown: in a file of both families nothing tells of which it is.
  const ofRules = outputs.filter(({ kind }) => kind === 'rules');
  for (const kind of new Set(ofRules.map((output) => nameOf('rules', output, name))))
    noteHidden(draft, name, kind, text);
  for (const output of outputs) {
    if (!draft.isOfOtherHost(name, output)) readOutput(draft, name, output);
  }
  const last = outputs.at(-1);
  if (last && isList(last.kind) && !text.endsWith('\n')) draft.doubt({ file: name, kind: 'cut-line' });
}

/** What a list lacks whose end is cut off, nothing shows. */
function isList(kind: OutputKind): boolean {
  return /^(ipset|ipvsadm|sysctl)/.test(kind);
}

function readNothing(draft: DumpDraft, file: string, kind: DumpFileKind, text: string): void {
  switch (kind) {
    case 'iptables-save':
    case 'ip6tables-save':
      noteHidden(draft, file, kind, text);
      draft.kinds.iptables.add(familyOf(kind), {}, 'all');
      break;
    case 'ip -j addr':
    case 'sysctl':
      // Every network has a loopback link, and every kernel sysctls.
      draft.fault(file, 'unread-file', { problem: 'other-content', expected: kind });
      return;
    case 'nft list ruleset':
      draft.kinds.nftables.add([], 'ruleset');
      break;
    default:
      draft.kinds[kind.startsWith('ipset') ? 'sets' : 'virtualServers'].add([], true);
  }
  draft.file(file, kind);
  draft.doubt({ file, kind: 'empty' });
}

function readOutput(draft: DumpDraft, file: string, output: ToolOutput): void {
  const { kind, firstLine, text } = output;
  if (isRefused(kind)) {
    draft.refuse(file, firstLine, kind, refusalOf(kind) ?? '');
    return;
  }
  const read = <T extends { readonly unread: readonly UnreadLine[] }>(result: T): T => {
    draft.unread(file, result.unread, firstLine - 1);
    return result;
  };
  const cutOff = (): void => draft.fault(file, 'cut-off-file', { expected: nameOf(kind, output) });
  const isWhole = !output.isPart;
  const isSecond = (items: Listing, whole = isWhole): boolean =>
    draft.isSecond({ file, line: firstLine, output: nameOf(kind, output, file) }, items, whole);
  const isNamed = output.command !== undefined || isDumpFileName(file.slice(file.lastIndexOf('/') + 1));
  switch (kind) {
    case 'rules':
      readRules(draft, file, output, read);
      return;
    case 'ipset save': {
      const { sets } = read(parseIpsetSave(text));
      if (isSecond(listSets(sets))) return;
      draft.kinds.sets.add(sets, isWhole);
      break;
    }
    case 'ipset list': {
      const { sets, lacks } = read(parseIpsetList(text));
      if (lacks === undefined && isSecond(listSets(sets))) return;
      draft.kinds.sets.add(sets, isWhole && lacks === undefined);
      if (lacks === 'end') cutOff();
      if (lacks === 'members') {
        draft.refuse(file, firstLine, 'ipset list -t', 'shows no members: print ipset save instead');
      }
      break;
    }
    case 'ipvsadm -Sn': {
      const { virtualServers } = read(parseIpvsadm(text));
      if (isSecond(listServers(virtualServers))) return;
      draft.kinds.virtualServers.add(virtualServers, isWhole);
      if (isWhole && !isNamed && virtualServers.length === 1) draft.fault(file, 'taken-whole', {}, firstLine);
      break;
    }
    case 'ipvsadm -Ln': {
      const { virtualServers, lacks } = read(parseIpvsadmList(text));
      if (isSecond(listServers(virtualServers))) return;
      draft.kinds.virtualServers.add(virtualServers, isWhole);
      if (isWhole && !isNamed && !/^(?:IP|Prot) /m.test(text)) draft.fault(file, 'taken-whole', {}, firstLine);
      if (lacks.has('forwarding')) draft.doubt({ file, kind: 'no-forwarding' });
      break;
    }
    case 'ipvsadm --timeout': {
      const [tcp = 0, tcpFin = 0, udp = 0] = text.match(/\d+/g)?.map(Number) ?? [];
      if (isSecond(new Map([['timeouts', `${tcp} ${tcpFin} ${udp}`]]))) return;
      draft.kinds.ipvsTimeouts.set({ tcp, tcpFin, udp });
      break;
    }
    case 'ip -j addr':
    case 'ip addr': {
      const result = kind === 'ip addr' ? parseIpAddrText(text) : parseIpAddrJson(text);
      if (result.links.length === 0) {
        draft.fault(file, 'unread-file', { problem: 'other-content', expected: kind });
        return;
      }
      if (isSecond(listLinks(result.links), false)) return;
      draft.kinds.links.add(read(result).links, isWhole);
      break;
    }
    case 'nft list ruleset':
      readNftTable(draft, file, output, read);
      break;
    case 'sysctl': {
      const { sysctls } = read(parseSysctls(text));
      if (isSecond(sysctls, false)) return;
      draft.kinds.sysctls.set(new Map([...draft.kinds.sysctls.objects, ...sysctls]));
      break;
    }
    default:
      kind satisfies never;
  }
  draft.file(file, kind);
}

function readRules(draft: DumpDraft, file: string, output: ToolOutput, read: Reader): void {
  const { text, firstLine, command } = output;
  const kind = nameOf('rules', output, file);
  const family = familyOf(kind);
  draft.file(file, kind);
  if (/^\*/m.test(text)) {
    const { tables, complete } = read(parseIptablesSave(text));
    const { isPart } = output;
    const isWhole = complete && !isPart;
    const listing = listRules(tables, tableNames);
    if (isWhole && draft.isSecond({ file, line: firstLine, output: kind }, listing, false)) return;
    draft.kinds.iptables.add(family, tables, isPart || !complete ? 'none' : command?.table ? [command.table] : 'all');
    if (complete || isPart) return;
    draft.fault(file, 'cut-off-file', { expected: kind });
    draft.kinds.iptables.cutOff(family);
    return;
  }
  const { tables: texts, isWhole } = placeRules(text, command?.table);
  const names = tableNames.filter((name) => texts.has(name));
  const tables: { [T in TableName]?: NonNullable<Tables[T]> } = {};
  for (const name of names) {
    // The line that names the table takes the place of none of the text.
    const { tables: placed, unread } = parseIptablesSave(`*${name}\n${texts.get(name)}\nCOMMIT\n`);
    tables[name] = placed[name] ?? new Map();
    draft.unread(file, unread, firstLine - 2);
  }
  if (names.length > 0 && !isWhole && command?.table === undefined) {
    draft.fault(file, 'no-table', { tables: names }, firstLine);
  }
  draft.kinds.iptables.add(family, tables, isWhole && !output.isPart ? names : 'none');
}

/** Notes the tables that iptables-save leaves out, and says so: others wrote into them by nft what it does not know. */
function noteHidden(draft: DumpDraft, file: string, kind: DumpFileKind, text: string): void {
  const found = findHiddenTables(text);
  const hidden = tableNames.filter((name) => found.has(name));
  const line = hidden[0] && found.get(hidden[0]);
  if (line === undefined) return;
  const those = hidden.length === 1 ? 'the table' : 'the tables';
  draft.refuse(file, line, kind, `leaves out ${those} ${joinWords(hidden)}: others put there what only nft reads`);
  draft.kinds.iptables.hide(familyOf(kind), hidden);
}

/** What an output is called: rules are of one of two families. */
function nameOf(kind: ReadableKind, { text, command }: ToolOutput, file = ''): DumpFileKind {
  if (kind !== 'rules') return kind;
  const isSaved = /^\*/m.test(text);
  if (isIpv6Rules(file, text, command?.tool)) return isSaved ? 'ip6tables-save' : 'ip6tables -S';
  return isSaved ? 'iptables-save' : 'iptables -S';
}

function familyOf(kind: DumpFileKind): 'ipv4' | 'ipv6' {
  return kind.startsWith('ip6') ? 'ipv6' : 'ipv4';
}

/** The families of the tools that print rules of one. */
const familiesOfTools: ReadonlyMap<string, 'ipv4' | 'ipv6'> = new Map([
  ['iptables', 'ipv4'],
  ['ip6tables', 'ipv6'],
]);

function isIpv6Rules(name: string, text: string, tool: string | undefined): boolean {
  if (/^# Generated by ip6tables/m.test(text)) return true;
  if (/^# Generated by iptables/m.test(text)) return false;
  const family = tool === undefined ? undefined : familiesOfTools.get(tool);
  if (family !== undefined) return family === 'ipv6';
  if (/ip6|v6/i.test(name)) return true;
  return /(^| )(::1?\/|[0-9a-f]{1,4}:[0-9a-f:]+\/)\d+ /m.test(text) || / --reject-with icmp6-/.test(text);
}
