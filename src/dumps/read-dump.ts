import { isReadable, recognisers } from './output-kinds.ts';
import { splitOutputs, type ToolOutput } from './split-outputs.ts';
import { parseIpAddrText } from './ip-addr-text.ts';
import { tableNames } from '../kernel/iptables/iptables.ts';
import { parseIpsetSave } from '../kernel/ipset/ipset.ts';
import { parseIpvsadm, type VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { parseIpAddrJson } from '../kernel/link/link.ts';
import { parseSysctls } from '../kernel/sysctl.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';
import { DumpDraft, type Dump, type DumpFileKind } from './dump.ts';
import { saveIpsetList, saveIpvsadmList } from './ipvsadm-and-ipset-lists.ts';
import { readNftTable } from './read-nftables.ts';
import { familyOf, noteHidden, readRules, rulesKind } from './read-rules.ts';

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

/** Whether a text holds what a tool printed that shows a node's kernel. */
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
  const last = outputs.at(-1);
  if (!last) {
    const expected = expectDumpFile(name);
    if (expected !== undefined) readNothing(draft, name, expected, text);
    return;
  }
  const [firstStray] = strays;
  if (firstStray !== undefined)
    draft.fault(name, 'dump-reading', { problem: 'stray-lines', lines: strays.length }, firstStray);
  if (/^# Warning: ip6?tables-legacy tables present/m.test(text))
    draft.fault(name, 'dump-reading', { problem: 'legacy-tables' });
  // It is before or after the tables that are shown: in a file of both families nothing shows its family.
  const ofRules = outputs.filter(({ kind }) => kind === 'rules');
  for (const kind of new Set(ofRules.map((output) => rulesKind(output, name)))) noteHidden(draft, name, kind, text);
  for (const output of outputs) if (!draft.isOfOtherHost(name, output)) readOutput(draft, name, output);
  // What a list lacks whose end is cut off, nothing shows.
  if (/^(ipset|ipvsadm|sysctl)/.test(last.kind) && !text.endsWith('\n')) draft.doubt({ file: name, kind: 'cut-line' });
}

/** Reads a file without any output: a tool that has nothing to print prints nothing. */
function readNothing(draft: DumpDraft, file: string, kind: DumpFileKind, text: string): void {
  const isEmpty = text.split('\n').every((line) => line.trim() === '' || line.startsWith('#'));
  // Every network has a loopback link, and every kernel sysctls.
  if (!isEmpty || kind === 'ip -j addr' || kind === 'sysctl') {
    draft.fault(file, 'unread-file', { expected: kind });
    return;
  }
  if (kind === 'iptables-save' || kind === 'ip6tables-save') {
    noteHidden(draft, file, kind, text);
    draft.addRules(familyOf(kind), {}, tableNames);
  } else if (kind === 'nft list ruleset') draft.addNftables([], true);
  else draft[kind === 'ipset save' ? 'sets' : 'virtualServers'].add([], true);
  draft.file(file, kind);
  draft.doubt({ file, kind: 'empty' });
}

function readOutput(draft: DumpDraft, file: string, output: ToolOutput): void {
  const { kind, firstLine: line, text } = output;
  if (!isReadable(kind)) return draft.refuse(file, line, kind, recognisers[kind].refusal ?? '');
  if (kind === 'rules') return readRules(draft, file, output);
  if (kind === 'nft list ruleset') return readNftTable(draft, file, output);
  const isWhole = !output.isPart;
  const at = { file, line, kind };
  const reportUnread = (unread: readonly UnreadLine[]): void => draft.unread(file, unread, line - 1);
  switch (kind) {
    case 'ipset save':
    case 'ipset list': {
      const { saved, unread, lacks } = kind === 'ipset list' ? saveIpsetList(text) : asSaved(text);
      const read = parseIpsetSave(saved);
      reportUnread([...unread, ...read.unread]);
      if (lacks === 'members') {
        return draft.refuse(file, line, 'ipset list -t', 'shows no members: print ipset save instead');
      }
      // kube-proxy makes the same sets on all nodes: lists of others are of one.
      const isAll = isWhole && lacks === undefined && !draft.sets.isCompletedBy(read.sets);
      draft.list(draft.sets, read.sets, isAll, at);
      if (lacks === 'end') draft.fault(file, 'unread-file', { expected: kind, isCutOff: true });
      return;
    }
    case 'ipvsadm -Sn':
    case 'ipvsadm -Ln': {
      const { saved, unread } = kind === 'ipvsadm -Ln' ? saveIpvsadmList(text) : asSaved(text);
      const { virtualServers, ...read } = parseIpvsadm(saved);
      reportUnread([...unread, ...read.unread]);
      draft.list(draft.virtualServers, virtualServers, isWhole && isWholeList(output, file, virtualServers), at);
      return;
    }
    case 'ip -j addr':
    case 'ip addr': {
      const { links, unread } = kind === 'ip addr' ? parseIpAddrText(text) : parseIpAddrJson(text);
      if (links.length === 0) return draft.fault(file, 'unread-file', { expected: kind });
      reportUnread(unread);
      // All links of two nodes have lo in common: `ip addr show eth0` beside `ip addr show kube-ipvs0` is of one.
      draft.list(draft.links, links, isWhole && !draft.links.isCompletedBy(links), at);
      return;
    }
    case 'sysctl': {
      const { sysctls, unread } = parseSysctls(text);
      reportUnread(unread);
      draft.list(draft.sysctls, sysctls, false, at);
      return;
    }
    default:
      return kind satisfies never;
  }
}

function asSaved(text: string) {
  return { saved: text, unread: [], lacks: undefined };
}

/**
 * Whether virtual servers are all of a node's. Where neither a command nor the file's name says so, a list without its titles is a
 * part, and so is a single virtual server.
 */
function isWholeList({ kind, text, command }: ToolOutput, file: string, servers: readonly VirtualServer[]): boolean {
  if ((command !== undefined && command.tool !== 'other') || isDumpFileName(file.slice(file.lastIndexOf('/') + 1)))
    return true;
  return kind === 'ipvsadm -Sn' ? servers.length > 1 : /^(?:IP|Prot) /m.test(text);
}
