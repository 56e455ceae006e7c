import { isReadable, recognisers } from './output-kinds.ts';
import { splitOutputs, type ToolOutput } from './split-outputs.ts';
import { parseIpAddrText } from './ip-addr-text.ts';
import { tableNames } from '../kernel/iptables/iptables.ts';
import { parseIpsetSave, type IpSet } from '../kernel/ipset/ipset.ts';
import { formatVirtualServer, parseIpvsadm, type VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { parseIpAddrJson, type Link } from '../kernel/link/link.ts';
import { parseSysctls } from '../kernel/sysctl.ts';
import { DumpDraft, sorted, type Dump, type DumpFileKind, type Listing } from './dump.ts';
import { saveIpsetList, saveIpvsadmList } from './ipvsadm-and-ipset-lists.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import { entryKey } from '../kernel/ipset/set-entry.ts';
import { isKubeProxySet } from '../kube-proxy/ipvs-sets.ts';
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
  for (const output of outputs) {
    if (!draft.isOfOtherHost(name, output)) readOutput(draft, name, output);
  }
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
    draft.state.addRules(familyOf(kind), {}, tableNames);
  } else if (kind === 'nft list ruleset') draft.state.addNftables([], true);
  else draft.state[kind === 'ipset save' ? 'sets' : 'virtualServers'].add([], true);
  draft.file(file, kind);
  draft.doubt({ file, kind: 'empty' });
}

function readOutput(draft: DumpDraft, file: string, output: ToolOutput): void {
  const { kind, firstLine, text, command } = output;
  if (!isReadable(kind)) {
    draft.refuse(file, firstLine, kind, recognisers[kind].refusal ?? '');
    return;
  }
  if (kind === 'rules') return readRules(draft, file, output);
  if (kind === 'nft list ruleset') return readNftTable(draft, file, output);
  const { state } = draft;
  const isWhole = !output.isPart;
  const isSecond = (items: Listing, whole = isWhole): boolean => draft.isSecond(file, firstLine, kind, items, whole);
  // Whether nothing but the list itself says that it is all of it.
  const isTakenWhole = isWhole && command === undefined && !isDumpFileName(file.slice(file.lastIndexOf('/') + 1));
  switch (kind) {
    case 'ipset save':
    case 'ipset list': {
      const list = kind === 'ipset list' ? saveIpsetList(text) : { saved: text, unread: [], lacks: undefined };
      const { sets, unread } = parseIpsetSave(list.saved);
      draft.unread(file, [...list.unread, ...unread], firstLine - 1);
      if (list.lacks === undefined && isSecond(listSets(sets))) return;
      state.sets.add(sets, isWhole && list.lacks === undefined);
      if (list.lacks === 'end') draft.fault(file, 'unread-file', { expected: kind, isCutOff: true });
      if (list.lacks === 'members') {
        draft.refuse(file, firstLine, 'ipset list -t', 'shows no members: print ipset save instead');
      }
      break;
    }
    case 'ipvsadm -Sn':
    case 'ipvsadm -Ln': {
      const isSaved = kind === 'ipvsadm -Sn';
      const list = isSaved ? { saved: text, unread: [] } : saveIpvsadmList(text);
      const { virtualServers, unread } = parseIpvsadm(list.saved);
      draft.unread(file, [...list.unread, ...unread], firstLine - 1);
      if (isSecond(listServers(virtualServers))) return;
      state.virtualServers.add(virtualServers, isWhole);
      const mayBePart = isSaved ? virtualServers.length === 1 : !/^(?:IP|Prot) /m.test(text);
      if (isTakenWhole && mayBePart) draft.fault(file, 'dump-reading', { problem: 'taken-whole' }, firstLine);
      break;
    }
    case 'ipvsadm --timeout': {
      const [tcp = 0, tcpFin = 0, udp = 0] = text.match(/\d+/g)?.map(Number) ?? [];
      if (isSecond(new Map([['timeouts', `${tcp} ${tcpFin} ${udp}`]]))) return;
      state.ipvsTimeouts = { tcp, tcpFin, udp };
      break;
    }
    case 'ip -j addr':
    case 'ip addr': {
      const { links, unread } = kind === 'ip addr' ? parseIpAddrText(text) : parseIpAddrJson(text);
      if (links.length === 0) {
        draft.fault(file, 'unread-file', { expected: kind });
        return;
      }
      if (isSecond(listLinks(links), false)) return;
      draft.unread(file, unread, firstLine - 1);
      state.links.add(links, isWhole);
      break;
    }
    case 'sysctl': {
      const { sysctls, unread } = parseSysctls(text);
      draft.unread(file, unread, firstLine - 1);
      if (isSecond(sysctls, false)) return;
      state.sysctls = new Map([...(state.sysctls ?? []), ...sysctls]);
      break;
    }
    default:
      kind satisfies never;
  }
  draft.file(file, kind);
}

/** Lists virtual servers with the weights of their real servers, which differ between nodes. */
function listServers(servers: readonly VirtualServer[]): Listing {
  return new Map(servers.map((server) => [virtualServerKey(server), formatVirtualServer(server)]));
}

/** The entries of kube-proxy's sets. */
function listSets(sets: readonly IpSet[]): Listing {
  const own = sets.filter(({ name }) => isKubeProxySet(name));
  return new Map(own.map(({ name, entries }) => [`set ${name}`, sorted(entries.map(entryKey))]));
}

/** The addresses of links. */
function listLinks(links: readonly Link[]): Listing {
  return new Map(
    links.map(({ name, addresses }) => [`link ${name}`, sorted(addresses.map(({ address }) => address.text))]),
  );
}
