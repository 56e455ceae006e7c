import { isReadable } from './output-kinds.ts';
import { splitOutputs, type ToolOutput } from './split-outputs.ts';
import { parseIpAddrText, isRoutingKind } from './read-ip.ts';
import { parseConntrack } from '../kernel/conntrack.ts';
import { tableNames } from '../kernel/iptables/iptables.ts';
import { parseIpsetSave, parseIpsetList } from '../kernel/ipset/ipset.ts';
import { parseIpvsadmList, withAddresses } from '../kernel/ipvs/ipvsadm-list.ts';
import { parseIpvsadm } from '../kernel/ipvs/ipvs.ts';
import { parseIpAddrJson } from '../kernel/link/link.ts';
import { countLines, linesOf, type UnreadLine } from '../kernel/lines.ts';
import { parseSysctls } from '../kernel/sysctls-and-modules.ts';
import { DumpDraft, type Dump, type DumpFileKind, type Printed } from './dump.ts';
import { readNftTable } from './read-nftables.ts';
import { readRuleList, familyOfFile, noteHidden, readRules, rulesKind } from './read-rules.ts';

const namePatterns: readonly (readonly [RegExp, DumpFileKind])[] = [
  [/^(ip6t|(?=.*tables).*?[-_.](ipv6|v6)\b)/i, 'ip6tables-save'],
  [/^iptables/i, 'iptables-save'],
  [/^nft/i, 'nft list ruleset'],
  [/^ipset/i, 'ipset save'],
  [/^ipvs/i, 'ipvsadm -Sn'],
  [/^ip[-_]?(j[-_]?)?a(ddr(ess(es)?)?)?\b.*(json|txt)?$/i, 'ip -j addr'],
  [/^ip[-_]?(6[-_]?)?(j[-_]?)?ro?u?t?e?s?\b/i, 'ip route'],
  [/^ip[-_]?(6[-_]?)?(j[-_]?)?rules?\b/i, 'ip rule'],
  [/^sysctl/i, 'sysctl'],
];

/** Returns the kind of output that a file's name suggests. Undefined for files that are not part of a dump. */
export function expectDumpFile(name: string): DumpFileKind | undefined {
  return namePatterns.find(([pattern]) => pattern.test(name))?.[1];
}

/** Reports whether a file's name alone, such as "ipset-save", shows that the file is part of a dump. */
export function isDumpFileName(name: string): boolean {
  return /^((ip6?tables|ipset|ipvsadm)[-_.]save(\.txt)?|nft[-_.](list[-_.])?ruleset(\.(txt|json|nft))?)$/i.test(name);
}

/** Reads any texts. Skips a text if its name and content show clearly that it is not part of a dump. */
export function readDump(texts: ReadonlyMap<string, string>): Dump {
  const draft = new DumpDraft();
  // iptables -L shows less than iptables-save, so all output of iptables-save is read first.
  const lists: (() => void)[] = [];
  for (const [name, text] of texts) readFile(draft, name, text, lists);
  for (const read of lists) read();
  return draft.finish();
}

function readFile(draft: DumpDraft, name: string, text: string, lists: (() => void)[]): void {
  for (const [, six] of text.matchAll(/^# Warning: ip(6?)tables-legacy tables present/gm)) {
    draft.doubt({ file: name, kind: 'legacy-tables', family: six === '6' ? 'ipv6' : 'ipv4' });
  }
  const { outputs, silent, strays } = splitOutputs(text);
  const last = outputs.at(-1);
  if (!last) {
    const expected = expectDumpFile(name.slice(name.lastIndexOf('/') + 1));
    if (expected !== undefined) readNothing(draft, { file: name, line: 1, kind: expected }, text);
    return;
  }
  for (const { tool, isPart, isTyped, routing, elsewhere } of silent) {
    if (elsewhere !== undefined) continue;
    if (routing?.isAll === true) draft.noRoutes(routing);
    // For a ruleset without tables, nft prints nothing. Without root, it prints an error.
    if (tool === 'nft' && isTyped === true && !isPart) draft.addNftables([], true);
  }
  const [firstStray] = strays;
  if (firstStray !== undefined)
    draft.fault(name, 'dump-reading', { problem: 'stray-lines', lines: strays.length }, firstStray);
  // iptables-save lists hidden tables in a comment, which is outside the tables. If the text has both families, it is unknown which family
  // the comment is about.
  const ofRules = outputs.filter(({ kind, command }) => kind === 'rules' && command?.elsewhere === undefined);
  for (const kind of new Set(ofRules.map((output) => rulesKind(output, name)))) noteHidden(draft, name, kind, text);
  for (const output of numbered(outputs)) {
    if (isElsewhere(draft, name, output) || draft.isOfOtherHost(name, output)) continue;
    noteGap(draft, name, output);
    if (output.kind === 'iptables -L') lists.push(() => readRuleList(draft, name, output));
    else readOutput(draft, name, output);
  }
  if (/^(ipset|ipvsadm|sysctl|iptables -L)/.test(last.kind) && endsWithin(text, last, strays))
    draft.doubt({ file: name, kind: 'cut-line', output: last.kind });
}

/** Reports an output if the command above it did not read this node's kernel. Returns true for such an output. */
function isElsewhere(draft: DumpDraft, file: string, { kind, command, firstLine }: ToolOutput): boolean {
  if (command?.elsewhere === undefined) return false;
  const { elsewhere } = command;
  draft.fault(file, 'dump-reading', { problem: 'elsewhere', output: kind, command: elsewhere }, firstLine);
  return true;
}

function noteGap(draft: DumpDraft, file: string, { kind, gap }: ToolOutput): void {
  if (gap === undefined) return;
  if (kind === 'nft list ruleset') draft.isNftCut = true;
  draft.doubt({ file, kind: 'unread', output: kind, line: gap });
}

/** Reports whether the text ends within its last output, or in a stray line. It is then unknown what the list lacks. */
function endsWithin(text: string, last: ToolOutput, strays: readonly number[]): boolean {
  if (text.endsWith('\n')) return false;
  const lines = countLines(text);
  const isOfLast = last.firstLine - 2 + countLines(last.text) === lines && !/(?:^|\n)\n$/.test(last.text.slice(-2));
  return isOfLast || strays.at(-1) === lines;
}

/** Replaces the names in the output of `ipvsadm -S` with the addresses in a list below that output. The list has no other use. */
function numbered(outputs: readonly ToolOutput[]): readonly ToolOutput[] {
  const list = outputs.find(({ kind }) => kind === 'ipvsadm --stats');
  const saved = outputs.find(({ kind }) => kind === 'ipvsadm -Sn');
  if (!list || !saved) return outputs;
  const lists = list.text.split('LocalAddress:Port').slice(0, 3);
  const text = lists.map((each) => withAddresses(saved.text, each)).find((each) => each !== undefined) ?? saved.text;
  const others = outputs.filter(({ kind }) => kind !== list.kind);
  return others.map((output) => (output === saved ? { ...saved, text } : output));
}

/** Reads a file without output. If a tool is not allowed to read the kernel, its file is empty and shows nothing of the kernel. */
function readNothing(draft: DumpDraft, at: Printed, text: string): void {
  const { file, kind } = at;
  const isOfRules = kind === 'iptables-save' || kind === 'ip6tables-save';
  if (text.trim() === '') draft.emptyFile(file, kind);
  else if (isOfRules && isOfComments(text)) {
    noteHidden(draft, file, kind, text);
    draft.addRules(familyOfFile(kind), {}, tableNames, undefined, at);
  } else draft.fault(file, 'unread-file', { expected: kind });
}

/** Reports whether a text has no lines but comments. */
export function isOfComments(text: string): boolean {
  for (const line of linesOf(text)) if (line.trim() !== '' && !line.startsWith('#')) return false;
  return true;
}

function readOutput(draft: DumpDraft, file: string, output: ToolOutput): void {
  const { kind, firstLine: line, text } = output;
  // A chain or map outside any table shows that the listing's start is cut off.
  if (kind === 'nft') draft.isNftCut = true;
  if (!isReadable(kind)) return draft.refuse(file, line, { problem: kind });
  if (kind === 'rules') return readRules(draft, file, output);
  if (kind === 'iptables -L') return readRuleList(draft, file, output);
  if (kind === 'nft list ruleset') return readNftTable(draft, file, output);
  if (isRoutingKind(kind)) return draft.unread(file, kind, draft.readRoutes(output, kind, file), line - 1);
  const at = { file, line, kind };
  const reportUnread = (unread: readonly UnreadLine[]): void => draft.unread(file, kind, unread, line - 1);
  switch (kind) {
    case 'ipset save':
    case 'ipset list':
      return readSets(draft, file, output, kind);
    case 'ipvsadm -Sn':
    case 'ipvsadm -Ln': {
      const { virtualServers, last, unread } = kind === 'ipvsadm -Ln' ? parseIpvsadmList(text) : parseIpvsadm(text);
      reportUnread(unread);
      if (last) draft.endsOfServers.push(last);
      // It is known what a virtual server for a firewall mark does, so the list still counts as read.
      const isRead = unread.every(({ reason }) => reason === 'mark-server');
      draft.list(draft.virtualServers, virtualServers, !output.isPart && isRead && isWholeList(output, file), at);
      return;
    }
    case 'ip -j addr':
    case 'ip addr':
      return readLinks(draft, file, output, kind);
    case 'conntrack -L': {
      const { flows, unread } = parseConntrack(text);
      reportUnread(unread);
      draft.list(draft.flows, flows, false, at);
      return;
    }
    case 'kube-proxy log':
      return draft.readLog(file, text, line);
    case 'sysctl': {
      const { sysctls, again, unread } = parseSysctls(text);
      reportUnread(unread);
      for (const each of [sysctls, again]) draft.list(draft.sysctls, each, false, at);
      return;
    }
    default:
      return kind satisfies never;
  }
}

function readSets(
  draft: DumpDraft,
  file: string,
  { text, isPart, firstLine: line }: ToolOutput,
  kind: 'ipset save' | 'ipset list',
): void {
  const listed = kind === 'ipset list' ? parseIpsetList(text) : undefined;
  const { sets, unread } = listed ?? parseIpsetSave(text);
  const lacks = listed?.lacks;
  draft.unread(file, kind, unread, line - 1);
  if (lacks === 'members') return draft.refuse(file, line, { problem: 'ipset list -t' });
  // kube-proxy makes the same sets on every node. A list of other sets therefore completes the first list and does not contradict it.
  const isAll = !isPart && unread.length === 0 && lacks === undefined && !draft.sets.isCompletedBy(sets);
  const last = sets.at(-1);
  if (last) draft.endsOfSets.push(last.name);
  draft.list(draft.sets, sets, isAll, { file, line, kind });
  if (lacks === undefined) return;
  draft.fault(file, 'unread-file', { expected: kind, isCutOff: true });
  draft.doubt({ file, kind: 'cut-line', output: kind });
}

function readLinks(draft: DumpDraft, file: string, output: ToolOutput, kind: 'ip -j addr' | 'ip addr'): void {
  const { text, isPart, command, firstLine: line } = output;
  const { links, unread } = kind === 'ip addr' ? parseIpAddrText(text) : parseIpAddrJson(text);
  if (links.length === 0) return draft.fault(file, 'unread-file', { expected: kind });
  draft.unread(file, kind, unread, line - 1);
  const isWhole = !isPart && unread.length === 0;
  const isTaken = draft.listLinks(links, isWhole, { file, line, kind });
  const all = isWhole && isTaken ? command?.allAddresses : undefined;
  if (all) draft.allAddresses = [...(draft.allAddresses ?? []), ...all];
}

/** Reports whether a list has all virtual servers of a node. A command, a title, several servers or the file's name show this. */
function isWholeList({ kind, text, command }: ToolOutput, file: string): boolean {
  if (command !== undefined && command.tool !== 'other') return true;
  if (kind === 'ipvsadm -Ln') return /^(?:IP|Prot) /m.test(text);
  const servers = text.match(/^-A /gm) ?? [];
  return servers.length > 1 || isDumpFileName(file.slice(file.lastIndexOf('/') + 1));
}
