import { families, type Family } from '../kernel/family.ts';
import { tableNames, type Chain, type TableName, type Tables } from '../kernel/iptables/iptables.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import { compareVirtualServers, type VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { Link } from '../kernel/link/link.ts';
import { compareTables } from '../kernel/nftables/nft-delta.ts';
import { jumpChain } from '../kernel/restrict.ts';
import { classifyChain } from '../kube-proxy/chains.ts';
import { isKubeProxyTable, nftChains, nftSets } from '../kube-proxy/nft-names.ts';
import type { ArgumentsOf, DiagnosticCode } from '../diagnostics/codes.ts';
import { faultOf, type Fault } from '../diagnostics/diagnostic.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';
import type { Coverage } from './coverage.ts';
import type { OutputKind, ReadableKind } from './output-kinds.ts';
import type { ToolOutput } from './split-outputs.ts';
import { areApart, type Host } from './typed-commands.ts';

/** What a file of a dump is: the tool that printed it. */
export type DumpFileKind =
  Exclude<ReadableKind, 'rules'> | 'iptables-save' | 'ip6tables-save' | 'iptables -S' | 'ip6tables -S';

/** What was taken from a node, by kpc-apply dump or by hand. */
export interface Dump {
  readonly state: KernelState;
  readonly coverage: Coverage;
  /** Each output that was read, with the file it is in. */
  readonly files: readonly { readonly name: string; readonly kind: DumpFileKind }[];
  readonly faults: readonly DumpFault[];
  readonly doubts: readonly Doubt[];
}

/** Why a dump may hold more than was read of it. */
export type Doubt =
  | {
      readonly file: string;
      /** Lines that could not be read; no output at all, as from a tool that failed; or a last line that is cut off. */
      readonly kind: 'unread' | 'empty' | 'cut-line';
    }
  /** A table of another program in nftables, which is no part of a side's state: packets alone meet it. */
  | {
      readonly kind: 'other-table';
      /** "inet firewalld". */
      readonly table: string;
      /** Its rules for packets of IP: none in families such as arp. Undefined if not all of it could be read. */
      readonly tables: readonly NftTable[] | undefined;
    };

/** Why a file of a dump, or a part of it, is left out, or how it was read; without a line, of the whole file. */
export type DumpFault = Fault & { readonly file: string; readonly line: number | undefined };

/** A tool's output for each object, as text: equal texts mean equal objects. */
export type Listing = ReadonlyMap<string, string>;

/** Joins texts whose order means nothing. */
export function sorted(texts: readonly string[]): string {
  return texts.toSorted().join('\n');
}

/** A dump while its files are read: what is taken, and what there is to say about it. */
export class DumpDraft {
  readonly state = new DraftedState();
  readonly #files: Dump['files'][number][] = [];
  readonly #faults: DumpFault[] = [];
  readonly #doubts: Doubt[] = [];
  readonly #reported = new Set<string>();
  /** By reason and file: how many lines there are besides the first. */
  readonly #unread = new Map<string, { more: number }>();
  /** The first host of each kind: an address and a name may be of one node. */
  readonly #hosts = new Map<Host['kind'], Host>();
  /** By file and host: the outputs of other hosts. */
  readonly #ofOthers = new Map<string, OutputKind[]>();
  /** The first listing of each tool. */
  readonly #listings = new Map<DumpFileKind, { readonly items: Listing; readonly isWhole: boolean }>();

  /** Adds what is wrong with a file; what is wrong with it in the same way again is reported once. */
  fault<Code extends DiagnosticCode>(file: string, code: Code, details: ArgumentsOf<Code>, line?: number): void {
    const key = JSON.stringify([file, code, details]);
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#faults.push({ ...faultOf(code, details), file, line });
  }

  /** Adds why an output is not read, or not all of it: `reason` is a clause about it. */
  refuse(file: string, line: number, output: string, reason: string): void {
    this.fault(file, 'unread-output', { output, reason, isAll: false }, line);
  }

  doubt(doubt: Doubt): void {
    this.#doubts.push(doubt);
  }

  file(name: string, kind: DumpFileKind): void {
    if (this.#files.every((file) => file.name !== name || file.kind !== kind)) this.#files.push({ name, kind });
  }

  /** Whether an output is of another host than the first one, which is then reported: a dump is of one node. */
  isOfOtherHost(file: string, { host, kind, firstLine }: ToolOutput): boolean {
    if (!host) return false;
    const first = this.#hosts.get(host.kind) ?? host;
    this.#hosts.set(host.kind, first);
    if (!areApart(first, host)) return false;
    const key = `${host.name} ${file}`;
    const outputs = this.#ofOthers.get(key);
    if (!outputs) {
      const others = [kind];
      this.#ofOthers.set(key, others);
      this.fault(file, 'other-host', { outputs: others, host, first }, firstLine);
    } else if (!outputs.includes(kind)) outputs.push(kind);
    return true;
  }

  /**
   * Whether a listing is of another node or another time than the first of its tool, which is then reported: two states are not
   * taken for one.
   */
  isSecond(file: string, line: number, output: DumpFileKind, items: Listing, isWhole: boolean): boolean {
    const first = this.#listings.get(output);
    const differences = first ? findDifferences(first.items, items, isWhole && first.isWhole) : [];
    if (differences.length > 0) {
      this.fault(file, 'second-listing', { output, differences }, line);
      return true;
    }
    this.#listings.set(output, {
      items: new Map([...(first?.items ?? []), ...items]),
      isWhole: isWhole || first?.isWhole === true,
    });
    return false;
  }

  /** Reports lines that could not be read, one for each reason; their numbers count from the line after `offset`. */
  unread(file: string, lines: readonly UnreadLine[], offset: number): void {
    for (const { reason, line } of lines) {
      const key = `${reason} ${file}`;
      const known = this.#unread.get(key);
      if (known) known.more++;
      else {
        const details = { reason, more: 0 };
        this.#unread.set(key, details);
        this.fault(file, 'unread-line', details, line + offset);
      }
    }
    const isKnown = this.#doubts.some((doubt) => doubt.kind === 'unread' && doubt.file === file);
    if (lines.length > 0 && !isKnown) this.doubt({ file, kind: 'unread' });
  }

  finish(): Dump {
    return { ...this.state.finish(), files: this.#files, faults: this.#faults, doubts: this.#doubts };
  }
}

/**
 * Returns what shows that two listings of one tool are of different nodes or times: common items that differ, or, if
 * both are whole, items that only one has. Listings without a common item complete each other, unless one is empty.
 */
function findDifferences(first: Listing, second: Listing, areWhole: boolean): readonly string[] {
  const common = [...second.keys()].filter((key) => first.has(key));
  const unlike = common.filter((key) => first.get(key) !== second.get(key));
  const isOneEmpty = (first.size === 0) !== (second.size === 0);
  if (unlike.length > 0 || !areWhole || (common.length === 0 && !isOneEmpty)) return unlike;
  return [
    ...[...first.keys()].filter((key) => !second.has(key)),
    ...[...second.keys()].filter((key) => !first.has(key)),
  ];
}

/** The rules of one family. */
interface DraftedRules {
  readonly tables: Map<TableName, Map<string, Chain>>;
  /** The tables known to be complete. */
  readonly whole: Set<TableName>;
  /** The tables that iptables-save reports it cannot show. */
  readonly hidden: Set<TableName>;
  isCutOff: boolean;
  isExcerpt: boolean;
}

/** The state of a kernel while the files of a dump are read. If something was dumped twice, the first counts. */
class DraftedState {
  readonly sets = new Listed<IpSet>(({ name }) => name);
  readonly virtualServers = new Listed<VirtualServer>(virtualServerKey);
  readonly links = new Listed<Link>(({ name }) => name);
  sysctls: KernelState['sysctls'] | undefined;
  ipvsTimeouts: KernelState['ipvsTimeouts'];
  /** Whether nft ran with an option that leaves out too much. */
  isNftLossy = false;
  readonly #rules: { [F in Family]?: DraftedRules } = {};
  readonly #nftables = new Map<string, NftTable>();
  #isRuleset = false;

  /** Returns the rules of one family, which counts as given from then on. */
  rulesOf(family: Family): DraftedRules {
    const none = { tables: new Map(), whole: new Set<TableName>(), hidden: new Set<TableName>() };
    return (this.#rules[family] ??= { ...none, isCutOff: false, isExcerpt: false });
  }

  /**
   * Adds the rules of one family. `whole` are the tables known to be complete, undefined for excerpts. If a table was
   * dumped twice, by iptables-legacy-save and iptables-nft-save, the one with kube-proxy's chains counts; excerpts are
   * merged.
   */
  addRules(family: Family, tables: Tables, whole: readonly TableName[] | undefined): void {
    const rules = this.rulesOf(family);
    for (const name of tableNames) {
      const chains = tables[name];
      if (!chains) continue;
      const known = rules.tables.get(name);
      if (!known || (whole && !hasOwnChains(name, known) && hasOwnChains(name, chains))) {
        rules.tables.set(name, new Map(chains));
      } else if (!whole) {
        for (const [chain, given] of chains) if (!known.has(chain)) known.set(chain, given);
      }
    }
    if (!whole) rules.isExcerpt = true;
    for (const name of whole ?? []) rules.whole.add(name);
  }

  /** Adds tables of nftables. `isRuleset`: nft was asked for all tables. */
  addNftables(tables: readonly NftTable[], isRuleset: boolean): void {
    for (const table of tables) {
      const key = `${table.family} ${table.name}`;
      const known = this.#nftables.get(key);
      if (!known || (!isWholeTable(known) && isWholeTable(table))) this.#nftables.set(key, table);
    }
    this.#isRuleset ||= isRuleset;
  }

  /** Returns the state as read, and which parts of it are known to be complete. */
  finish(): { readonly state: KernelState; readonly coverage: Coverage } {
    const { sets, virtualServers, links, sysctls, ipvsTimeouts } = this;
    const rules = families.flatMap((family) => (this.#rules[family] ? [[family, this.#rules[family]] as const] : []));
    return {
      state: {
        iptables: Object.fromEntries(rules.map(([family, { tables }]) => [family, Object.fromEntries(tables)])),
        nftables: [...this.#nftables.values()].sort(compareTables),
        sets: sets.items,
        virtualServers: virtualServers.items.toSorted(compareVirtualServers),
        links: links.items,
        sysctls: sysctls ?? new Map(),
        ipvsTimeouts,
        modules: [],
      },
      coverage: {
        iptables: { ipv4: wholeTables(this.#rules.ipv4), ipv6: wholeTables(this.#rules.ipv6) },
        nftables: families.filter((family) => this.#showsNftables(family)),
        sets: sets.isWhole,
        virtualServers: virtualServers.isWhole,
        links: links.isWhole,
        sysctls: sysctls !== undefined,
        ipvsTimeouts: ipvsTimeouts !== undefined,
        // A dump shows no modules: what needs one is in the kernel only with it.
        modules: false,
        families,
        excerpts: rules.flatMap(([family, { isExcerpt, isCutOff }]) => (isExcerpt && !isCutOff ? [family] : [])),
      },
    };
  }

  /** Whether all of kube-proxy's nftables objects are known. */
  #showsNftables(family: Family): boolean {
    const own = [...this.#nftables.values()].filter((table) => table.family === family && isKubeProxyTable(table.name));
    return !this.isNftLossy && (own.length === 0 ? this.#isRuleset : own.every(isWholeTable));
  }
}

/** What a tool lists, whole or in part. */
class Listed<T> {
  readonly #items = new Map<string, T>();
  readonly #keyOf: (item: T) => string;
  isWhole = false;

  constructor(keyOf: (item: T) => string) {
    this.#keyOf = keyOf;
  }

  add(items: readonly T[], isWhole: boolean): void {
    for (const item of items) {
      const key = this.#keyOf(item);
      if (!this.#items.has(key)) this.#items.set(key, item);
    }
    this.isWhole ||= isWhole;
  }

  get items(): readonly T[] {
    return [...this.#items.values()];
  }
}

/** `nft list chain` also prints a table, with only that chain. */
function isWholeTable({ chains, sets }: NftTable): boolean {
  return chains.has(nftChains.natPrerouting) && chains.has(nftChains.services) && sets.has(nftSets.serviceIPs);
}

/**
 * kube-proxy uses both nat and filter: if only one is there, with kube-proxy's chains or jumps to them, the other was
 * not printed.
 */
function wholeTables(rules: DraftedRules | undefined): readonly TableName[] {
  if (!rules || rules.isCutOff) return [];
  const { tables, whole, hidden } = rules;
  const isUnprinted = (name: TableName): boolean => {
    if (tables.has(name) || (name !== 'nat' && name !== 'filter')) return false;
    const other = name === 'nat' ? 'filter' : 'nat';
    const chains = tables.get(other) ?? new Map<string, Chain>();
    return hasOwnChains(other, chains) || jumpsToOwn(other, chains);
  };
  return tableNames.filter((name) => whole.has(name) && !hidden.has(name) && !isUnprinted(name));
}

/** Whether kube-proxy makes a chain of this name in that table. */
export function isOwnChain(table: TableName, chain: string): boolean {
  const kind = classifyChain(table, chain);
  return kind === 'service' || kind === 'fixed';
}

function hasOwnChains(table: TableName, chains: ReadonlyMap<string, Chain>): boolean {
  return [...chains.keys()].some((name) => isOwnChain(table, name));
}

/** Whether rules jump to kube-proxy's chains, present or not. */
function jumpsToOwn(table: TableName, chains: ReadonlyMap<string, Chain>): boolean {
  return [...chains.values()].some(({ rules }) => rules.some((rule) => isOwnChain(table, jumpChain(rule) ?? '')));
}
