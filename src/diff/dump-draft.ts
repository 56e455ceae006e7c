import type { Family } from '../kernel/family.ts';
import { families } from '../kernel/family.ts';
import type { Chain, TableName, Tables } from '../kernel/iptables.ts';
import { tableNames } from '../kernel/iptables.ts';
import type { IpSet } from '../kernel/ipset.ts';
import type { IpvsTimeouts, VirtualServer } from '../kernel/ipvs.ts';
import { compareVirtualServers } from '../kernel/ipvs.ts';
import { virtualServerKey } from '../kernel/ipvs-delta.ts';
import type { Link } from '../kernel/link.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import { jumpChain } from '../kernel/restrict.ts';
import { emptyState } from '../kernel/state.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';
import { classifyChain } from '../kube-proxy/chains.ts';
import { NftDraft } from './nftables-draft.ts';
import type { NftScope } from './nftables-draft.ts';
import type { Dump, DumpFault, DumpFileKind } from './read-dump.ts';
import type { Doubt } from './side.ts';

/** A dump while its files are read. The same things may have been taken twice: the first telling counts. */
export class DumpDraft {
  readonly #iptables = new Map<Family, Map<TableName, Map<string, Chain>>>();
  readonly #toldTables = new Map<Family, Set<TableName>>();
  readonly #cutOff = new Set<Family>();
  readonly #excerpts = new Set<Family>();
  readonly #sets = new Map<string, IpSet>();
  readonly #servers = new Map<string, VirtualServer>();
  readonly #nftables = new NftDraft();
  readonly #links = new Map<string, Link>();
  readonly #sysctls = new Map<string, string>();
  #timeouts: IpvsTimeouts | undefined;
  /** The parts of which all is known, and those of which a part was printed. */
  readonly #parts = new Set<'sets' | 'virtualServers' | 'links' | 'sysctls'>();
  readonly #files: Dump['files'][number][] = [];
  readonly #faults: DumpFault[] = [];
  readonly #told = new Set<string>();
  /** By reason and file: the first line, and how many more there are. */
  readonly #unread = new Map<string, { more: number }>();
  readonly #doubts: Doubt[] = [];

  /** Adds what is wrong with a file; what is wrong with it in the same way again is told once. */
  fault(fault: DumpFault): void {
    const key = JSON.stringify({ ...fault, line: 0, count: 0 });
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.#faults.push(fault);
  }

  doubt(doubt: Doubt): void {
    this.#doubts.push(doubt);
  }

  file(name: string, kind: DumpFileKind): void {
    if (this.#files.every((file) => file.name !== name || file.kind !== kind)) this.#files.push({ name, kind });
  }

  tell(part: 'sets' | 'virtualServers' | 'links' | 'sysctls'): void {
    this.#parts.add(part);
  }

  /** Lines that could not be read; their numbers count from the line after `offset` of the file. */
  unread(file: string, lines: readonly UnreadLine[], offset: number): void {
    if (lines.length === 0) return;
    for (const line of lines) {
      const key = `${line.reason} ${file}`;
      const known = this.#unread.get(key);
      if (known) known.more++;
      else {
        const draft = { kind: 'unread-line' as const, file, line: { ...line, line: line.line + offset }, more: 0 };
        this.#unread.set(key, draft);
        this.#faults.push(draft);
      }
    }
    if (this.#doubts.every((doubt) => doubt.file !== file || doubt.kind !== 'unread')) {
      this.doubt({ file, kind: 'unread' });
    }
  }

  /**
   * Adds the rules of one family. `told` are the tables that are known whole; 'all' of what iptables-save prints without a
   * table named. Of a table that was taken twice, by iptables-legacy-save and iptables-nft-save, the one that kube-proxy
   * works in counts; of parts that were printed one by one, all.
   */
  addTables(family: Family, tables: Tables, told: readonly TableName[] | 'all' | 'none'): void {
    const known = this.#iptables.get(family) ?? new Map<TableName, Map<string, Chain>>();
    this.#iptables.set(family, known);
    for (const name of tableNames) {
      const chains = tables[name];
      if (!chains) continue;
      const before = known.get(name);
      if (!before || (told !== 'none' && !hasOwnChains(name, before) && hasOwnChains(name, chains))) {
        known.set(name, new Map(chains));
      } else if (told === 'none') {
        for (const [chain, rules] of chains) if (!before.has(chain)) before.set(chain, rules);
      }
    }
    if (told === 'none') {
      this.#excerpts.add(family);
      return;
    }
    const names = this.#toldTables.get(family) ?? new Set<TableName>();
    for (const name of told === 'all' ? tableNames : told) names.add(name);
    this.#toldTables.set(family, names);
  }

  cutOff(family: Family): void {
    this.#cutOff.add(family);
  }

  addSets(sets: readonly IpSet[], isWhole: boolean): void {
    addNew(this.#sets, sets, ({ name }) => name);
    if (isWhole) this.tell('sets');
  }

  addServers(servers: readonly VirtualServer[], isWhole: boolean): void {
    addNew(this.#servers, servers, virtualServerKey);
    if (isWhole) this.tell('virtualServers');
  }

  addLinks(links: readonly Link[], isWhole: boolean): void {
    addNew(this.#links, links, ({ name }) => name);
    if (isWhole) this.tell('links');
  }

  addNftables(tables: readonly NftTable[], scope: NftScope): void {
    this.#nftables.add(tables, scope);
  }

  addSysctls(sysctls: ReadonlyMap<string, string>): void {
    for (const [key, value] of sysctls) this.#sysctls.set(key, value);
    this.tell('sysctls');
  }

  addTimeouts(timeouts: IpvsTimeouts): void {
    this.#timeouts = timeouts;
  }

  finish(): Dump {
    const iptables: { [F in Family]?: Tables } = {};
    for (const [family, tables] of this.#iptables) iptables[family] = Object.fromEntries(tables);
    return {
      state: {
        ...emptyState,
        iptables,
        nftables: this.#nftables.tables,
        sets: [...this.#sets.values()],
        virtualServers: [...this.#servers.values()].sort(compareVirtualServers),
        links: [...this.#links.values()],
        sysctls: this.#sysctls,
        ipvsTimeouts: this.#timeouts,
      },
      coverage: {
        iptables: { ipv4: this.#tablesTold('ipv4'), ipv6: this.#tablesTold('ipv6') },
        excerpts: families.filter((family) => this.#excerpts.has(family) && !this.#cutOff.has(family)),
        nftables: this.#nftables.told,
        families,
        sets: this.#parts.has('sets'),
        virtualServers: this.#parts.has('virtualServers'),
        links: this.#parts.has('links'),
        sysctls: this.#parts.has('sysctls'),
        ipvsTimeouts: this.#timeouts !== undefined,
        modules: false,
      },
      files: this.#files,
      faults: this.#faults,
      doubts: this.#doubts,
    };
  }

  /**
   * kube-proxy works in nat and filter: where only one of them is there, with its chains or with jumps to them, the other was
   * not printed.
   */
  #tablesTold(family: Family): readonly TableName[] {
    if (this.#cutOff.has(family)) return [];
    const known = this.#iptables.get(family);
    const told = this.#toldTables.get(family) ?? new Set();
    const isUnprinted = (name: TableName, other: TableName): boolean => {
      const chains = known?.get(other);
      return !known?.has(name) && chains !== undefined && (hasOwnChains(other, chains) || jumpsToOwn(other, chains));
    };
    return tableNames.filter(
      (name) =>
        told.has(name) &&
        !(name === 'filter' && isUnprinted('filter', 'nat')) &&
        !(name === 'nat' && isUnprinted('nat', 'filter')),
    );
  }
}

function hasOwnChains(table: TableName, chains: ReadonlyMap<string, Chain>): boolean {
  for (const name of chains.keys()) {
    const kind = classifyChain(table, name);
    if (kind === 'service' || kind === 'fixed') return true;
  }
  return false;
}

/** Whether rules lead to kube-proxy's chains, be those there or not. */
function jumpsToOwn(table: TableName, chains: ReadonlyMap<string, Chain>): boolean {
  for (const { rules } of chains.values()) {
    for (const rule of rules) {
      const target = jumpChain(rule);
      const kind = target === undefined ? undefined : classifyChain(table, target);
      if (kind === 'service' || kind === 'fixed') return true;
    }
  }
  return false;
}

function addNew<T>(known: Map<string, T>, items: readonly T[], keyOf: (item: T) => string): void {
  for (const item of items) if (!known.has(keyOf(item))) known.set(keyOf(item), item);
}
