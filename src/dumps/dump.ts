import { families, type Family } from '../kernel/family.ts';
import { tableNames, type Chain, type TableName, type Tables } from '../kernel/iptables/iptables.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import { entryKey } from '../kernel/ipset/set-entry.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import { compareVirtualServers, formatVirtualServer, type VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { Link } from '../kernel/link/link.ts';
import { compareTables } from '../kernel/nftables/nft-delta.ts';
import { jumpChain } from '../kernel/restrict.ts';
import { classifyChain } from '../kube-proxy/chains.ts';
import { isKubeProxySet } from '../kube-proxy/ipvs-sets.ts';
import { isKubeProxyTable, nftChains, nftSets } from '../kube-proxy/nft-names.ts';
import type { ArgumentsOf, DiagnosticCode } from '../diagnostics/codes.ts';
import { faultOf, type Fault } from '../diagnostics/diagnostic.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';
import type { Coverage } from './coverage.ts';
import type { ReadableKind } from './output-kinds.ts';
import type { ToolOutput } from './split-outputs.ts';

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

/** Joins texts whose order means nothing. */
export function sorted(texts: readonly string[]): string {
  return texts.toSorted().join('\n');
}

/** Where an output was printed: its file, the line that it begins with, and what kind of output it is. */
interface Printed {
  readonly file: string;
  readonly line: number;
  readonly kind: DumpFileKind;
}

/** A dump while its files are read: what is taken, and what there is to say about it. If something was dumped twice, the first counts. */
export class DumpDraft {
  readonly sets = new Listed<IpSet>(
    ({ name }) => `set ${name}`,
    ({ name, entries }) => (isKubeProxySet(name) ? sorted(entries.map(entryKey)) : undefined),
  );
  /** With the weights of their real servers, which differ between nodes. */
  readonly virtualServers = new Listed<VirtualServer>(virtualServerKey, formatVirtualServer);
  readonly links = new Listed<Link>(
    ({ name }) => `link ${name}`,
    ({ addresses }) => sorted(addresses.map(({ address }) => address.text)),
  );
  readonly sysctls = new Listed<readonly [name: string, value: string]>(
    ([name]) => name,
    ([, value]) => value,
  );
  /** The texts of chains, sets and maps, by which a second listing of rules is found. */
  readonly rules: { readonly [K in 'iptables-save' | 'ip6tables-save' | 'nft list ruleset']: Listed<RuleText> } = {
    'iptables-save': listedRules(),
    'ip6tables-save': listedRules(),
    'nft list ruleset': listedRules(),
  };
  /** Whether nft ran with an option that leaves out too much. */
  isNftLossy = false;
  readonly #tables: { [F in Family]?: DraftedRules } = {};
  readonly #nftables = new Map<string, NftTable>();
  #isRuleset = false;
  readonly #files: Dump['files'][number][] = [];
  /** By what they say: what is wrong with a file in the same way again is reported once. */
  readonly #faults = new Map<string, DumpFault>();
  readonly #doubts: Doubt[] = [];
  /** By reason and file: how many lines there are besides the first. */
  readonly #unread = new Map<string, { more: number }>();
  #host: string | undefined;

  /** Adds what is wrong with a file. */
  fault<Code extends DiagnosticCode>(file: string, code: Code, details: ArgumentsOf<Code>, line?: number): void {
    const key = JSON.stringify([file, code, details]);
    if (!this.#faults.has(key)) this.#faults.set(key, { ...faultOf(code, details), file, line });
  }

  /** Whether an output is of another host than the first one, which is then reported: a dump is of one node. */
  isOfOtherHost(file: string, { kind, command, firstLine }: ToolOutput): boolean {
    const host = command?.host;
    this.#host ??= host;
    if (host === undefined || host === this.#host) return false;
    const output = kind === 'rules' ? (command?.tool ?? 'iptables') : kind;
    this.fault(file, 'second-listing', { output, differences: [`the host: ${host}`] }, firstLine);
    return true;
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

  /**
   * Takes what an output lists. Returns whether it did: an output of another node or another time than the first of its kind
   * is reported instead, because two states are not taken for one.
   */
  list<T>(listed: Listed<T>, items: Iterable<T>, isWhole: boolean, { file, line, kind }: Printed): boolean {
    const differences = listed.add([...items], isWhole);
    if (differences.length > 0) this.fault(file, 'second-listing', { output: kind, differences }, line);
    else this.file(file, kind);
    return differences.length === 0;
  }

  /** Returns the rules of one family, which counts as given from then on. */
  rulesOf(family: Family): DraftedRules {
    const none = { tables: new Map(), whole: new Set<TableName>(), hidden: new Set<TableName>() };
    return (this.#tables[family] ??= { ...none, isCutOff: false, isExcerpt: false });
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

  finish(): Dump {
    const { sets, virtualServers, links, sysctls } = this;
    const rules = families.flatMap((family) => (this.#tables[family] ? [[family, this.#tables[family]] as const] : []));
    return {
      state: {
        iptables: Object.fromEntries(rules.map(([family, { tables }]) => [family, Object.fromEntries(tables)])),
        nftables: [...this.#nftables.values()].sort(compareTables),
        sets: sets.items,
        virtualServers: virtualServers.items.toSorted(compareVirtualServers),
        links: links.items,
        sysctls: new Map(sysctls.items),
        ipvsTimeouts: undefined,
        modules: [],
      },
      coverage: {
        iptables: { ipv4: wholeTables(this.#tables.ipv4), ipv6: wholeTables(this.#tables.ipv6) },
        nftables: families.filter((family) => this.#showsNftables(family)),
        sets: sets.isWhole,
        virtualServers: virtualServers.isWhole,
        links: links.isWhole,
        sysctls: sysctls.items.length > 0,
        // A dump shows no timeouts, and no modules: what needs one is in the kernel only with it.
        ipvsTimeouts: false,
        modules: false,
        families,
        excerpts: rules.flatMap(([family, { isExcerpt, isCutOff }]) => (isExcerpt && !isCutOff ? [family] : [])),
      },
      files: this.#files,
      faults: [...this.#faults.values()],
      doubts: this.#doubts,
    };
  }

  /** Whether all of kube-proxy's nftables objects are known. */
  #showsNftables(family: Family): boolean {
    const own = [...this.#nftables.values()].filter((table) => table.family === family && isKubeProxyTable(table.name));
    return !this.isNftLossy && (own.length === 0 ? this.#isRuleset : own.every(isWholeTable));
  }
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

/** What a tool lists, whole or in part. */
class Listed<T> {
  readonly #items = new Map<string, T>();
  readonly #keyOf: (item: T) => string;
  readonly #textOf: (item: T) => string | undefined;
  #isGiven = false;
  isWhole = false;

  /** `textOf`: equal texts mean equal items; undefined for an item that is not compared. */
  constructor(keyOf: (item: T) => string, textOf: (item: T) => string | undefined) {
    this.#keyOf = keyOf;
    this.#textOf = textOf;
  }

  /**
   * Adds a listing, unless it is of another node or time than an earlier one. Returns what shows that it is: common items that
   * differ, or, if both are whole, items that only one has.
   */
  add(items: readonly T[], isWhole: boolean): readonly string[] {
    const fresh = new Map(items.toReversed().map((item) => [this.#keyOf(item), item]));
    const keys = this.#isGiven ? new Set([...this.#items.keys(), ...fresh.keys()]) : [];
    const differences = [...keys].filter((key) => {
      const [one, other] = [this.#items.get(key), fresh.get(key)];
      if (one === undefined || other === undefined) return isWhole && this.isWhole;
      return this.#textOf(one) !== this.#textOf(other);
    });
    if (differences.length > 0) return differences;
    for (const item of items) {
      const key = this.#keyOf(item);
      if (!this.#items.has(key)) this.#items.set(key, item);
    }
    this.#isGiven = true;
    this.isWhole ||= isWhole;
    return [];
  }

  /** Whether a listing has nothing that was listed before. */
  isCompletedBy(items: readonly T[]): boolean {
    return this.#isGiven && items.every((item) => !this.#items.has(this.#keyOf(item)));
  }

  get items(): readonly T[] {
    return [...this.#items.values()];
  }
}

/** A chain, set or map, and all that is in it as text. */
export type RuleText = readonly [name: string, text: () => string];

function listedRules(): Listed<RuleText> {
  return new Listed(
    ([name]) => name,
    ([, text]) => text(),
  );
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
