import type { ProxyMode } from '../../src/kube-proxy/modes.ts';

/** An object of a kernel: a chain, a set, a map, all virtual servers, … */
interface StateObject {
  /** What it is made with: type and family of a set, type and hook of a chain, a comment. */
  readonly head: string[];
  /** A chain's rules in order, or what else the object holds, sorted. */
  readonly lines: string[];
}

/** The name of an object ("ipv4 nat KUBE-SERVICES", "set KUBE-CLUSTER-IP") → what it is. */
export type State = ReadonlyMap<string, StateObject>;

type ObjectNamed = (name: string) => StateObject;

/**
 * Reads what a bundle or a recording programs, from its files by name. It asks no parser of kpc: what kpc writes is what is
 * tested. A line of another form than these files have throws.
 */
export function readState(files: ReadonlyMap<string, string>, mode: ProxyMode): State {
  const state = new Map<string, StateObject>();
  const objectNamed: ObjectNamed = (name) => {
    const object = state.get(name) ?? { head: [], lines: [] };
    state.set(name, object);
    return object;
  };
  for (const [file, read] of Object.entries(readers)) {
    const lines = (files.get(file) ?? '').split('\n').filter((line) => line.trim() !== '');
    if (lines.length > 0) read(lines, objectNamed);
  }
  for (const [name, { lines }] of state) sortUnordered(name, lines, mode);
  return state;
}

const readers: Readonly<Record<string, (lines: readonly string[], objectNamed: ObjectNamed) => void>> = {
  'iptables.restore': (lines, objectNamed) => readRules(lines, 'ipv4', objectNamed),
  'ip6tables.restore': (lines, objectNamed) => readRules(lines, 'ipv6', objectNamed),
  'ipset.restore': readSets,
  'nftables.nft': readTables,
  'ipvsadm.restore': (lines, objectNamed) => void objectNamed('virtual servers').lines.push(...lines),
  'ip.batch': (lines, objectNamed) => {
    const addresses = lines.filter((line) => line !== 'link add kube-ipvs0 type dummy');
    if (addresses.length > 0) objectNamed('addresses').lines.push(...addresses);
  },
  'sysctl.conf': (lines, objectNamed) => void objectNamed('sysctls').lines.push(...lines),
  balancer: (lines, objectNamed) => void objectNamed('balancer').lines.push(...lines),
  listeners: (lines, objectNamed) => void objectNamed('listeners').lines.push(...lines),
};

/** Rules for iptables-restore: a bundle inserts the jumps from built-in chains by their position, a recording lists them. */
function readRules(lines: readonly string[], family: string, objectNamed: ObjectNamed): void {
  let table = '';
  for (const line of lines) {
    const [, verb, chain = '', at, rule] = /^(?:(-A|-I|:)\s?)?(\S+)(?: (\d+)(?= ))?(?: (.*))?$/.exec(line) ?? [];
    const name = `${family} ${table} ${chain}`;
    if (verb === ':') objectNamed(name);
    else if (verb === '-A') objectNamed(name).lines.push(`-A ${chain} ${rule}`);
    else if (verb === '-I') objectNamed(name).lines.splice(Number(at) - 1, 0, `-A ${chain} ${rule}`);
    else if (line.startsWith('*')) table = line.slice(1);
    else if (line !== 'COMMIT') throw new Error(`no rule, chain or table: ${line}`);
  }
}

/** Lines for `ipset restore`. How large a set may get is not compared: docs/differences.md says why kpc's can be larger. */
function readSets(lines: readonly string[], objectNamed: ObjectNamed): void {
  for (const line of lines) {
    const [, verb, name, rest] = /^(create|add) (\S+) (.*?)(?: hashsize \d+ maxelem \d+)?$/.exec(line) ?? [];
    if (rest === undefined) throw new Error(`not of ipset: ${line}`);
    const { head, lines: entries } = objectNamed(`set ${name}`);
    (verb === 'create' ? head : entries).push(rest);
  }
}

/** Tables for `nft -f`, one thing a line, as `nft list table` lays them out. */
function readTables(lines: readonly string[], objectNamed: ObjectNamed): void {
  let table = '';
  let object: StateObject | undefined;
  let inElements = false;
  for (const line of lines.map((each) => each.trim())) {
    const [, kind, name] = /^(table|chain|set|map|counter) (.*) \{$/.exec(line) ?? [];
    if (inElements) {
      if (line === '}') inElements = false;
      else object?.lines.push(line);
    } else if (line === '}') object = undefined;
    else if (object === undefined && /^(delete )?table \S+ \S+$/.test(line)) continue;
    else if (kind === 'table') object = objectNamed((table = `${name}`));
    else if (kind !== undefined) object = objectNamed(`${table} ${kind} ${name}`);
    else if (line === 'elements = {') inElements = true;
    else if (object === undefined) throw new Error(`outside of a chain: ${line}`);
    else (/^(type|flags|timeout|comment) /.test(line) ? object.head : object.lines).push(withSortedLists(line));
  }
}

/** A rule with each list of its in one order. Only pairs ("{ 0 : goto …, 1 : goto … }") have an order that says something. */
function withSortedLists(rule: string): string {
  return rule.replaceAll(/\{ (\S.*?) \}/g, (_, list: string) => {
    const items = list.split(/ ?, ?/);
    return `{ ${(list.includes(' : ') ? items : items.toSorted()).join(', ')} }`;
  });
}

/** The chains of userspace mode, which it fills Service by Service; all rules of a Service port have its name. */
const filledByName = /^ipv4 \S+ KUBE-(PORTALS|NODEPORT)-/;

/** The chains that kube-proxy fills Service by Service, in the order of a map. */
const filledFromMaps = /^ipv[46] \S+ KUBE-(IPVS-OUT-FILTER|SERVICES|NODEPORTS|EXTERNAL-SERVICES|PROXY-FIREWALL)$/;

/**
 * Sorts the lines that have no order, and the rules that kube-proxy writes in the order of a map: by destination, so that the
 * rules of one destination keep their order. The recorder does the same (inOneOrder in recorder/write.go).
 */
function sortUnordered(name: string, lines: string[], mode: ProxyMode): void {
  if (!/^ip(v4|v6|6)? \S+( chain)? /.test(name) || / (set|map) /.test(name)) lines.sort();
  else if (name === 'ipv4 filter KUBE-NODEPORTS' || name === 'ipv6 filter KUBE-NODEPORTS') lines.sort();
  else if (filledByName.test(name)) {
    const nameIn = (rule: string): string => / --comment (\S+)/.exec(rule)?.[1] ?? '';
    lines.sort((a, b) => (nameIn(a) < nameIn(b) ? -1 : nameIn(a) > nameIn(b) ? 1 : 0));
  } else if (filledFromMaps.test(name) && (mode !== 'ipvs' || name.endsWith('KUBE-IPVS-OUT-FILTER'))) {
    const ordered = lines.map((rule) => ({ rule, key: destinationOf(rule, name) }));
    ordered.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    lines.splice(0, lines.length, ...ordered.map(({ rule }) => rule));
  }
}

function destinationOf(rule: string, chain: string): string {
  if (rule.includes('this must be the last rule')) return '~';
  const part = (flag: RegExp): string => flag.exec(rule)?.[1] ?? '';
  const to = chain.endsWith('KUBE-NODEPORTS') ? '' : part(/(?:-d|--vaddr) (\S+)/);
  return `${to} ${part(/(?:-p|--vproto) (\S+)/)} ${part(/(?:--dport|--vport) (\S+)/)}`;
}
