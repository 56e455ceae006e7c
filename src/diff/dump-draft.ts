import type { Family } from '../kernel/family.ts';
import { families } from '../kernel/family.ts';
import type { Chain, TableName, Tables } from '../kernel/iptables.ts';
import { tableNames } from '../kernel/iptables.ts';
import type { IpSet } from '../kernel/ipset.ts';
import type { IpvsTimeouts, VirtualServer } from '../kernel/ipvs.ts';
import { sortVirtualServers } from '../kernel/ipvs.ts';
import { virtualServerKey } from '../kernel/ipvs-delta.ts';
import type { Link } from '../kernel/link.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import { emptyState } from '../kernel/state.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';
import { classifyChain } from '../kube-proxy/chains.ts';
import { NftDraft, type NftScope } from './nftables-draft.ts';
import type { Dump, DumpFault, DumpFileKind } from './read-dump.ts';
import type { Doubt } from './side.ts';

/** So many lines of a file that cannot be read for one reason are told one by one. */
const mostUnread = 3;

/** A dump while its files are read. The same things may have been taken twice: the first telling counts. */
export class DumpDraft {
  readonly #iptables = new Map<Family, Map<TableName, Map<string, Chain>>>();
  readonly #toldTables = new Map<Family, Set<TableName>>();
  readonly #cutOff = new Set<Family>();
  readonly #sets = new Map<string, IpSet>();
  readonly #servers = new Map<string, VirtualServer>();
  readonly #nftables = new NftDraft();
  readonly #links = new Map<string, Link>();
  readonly #sysctls = new Map<string, string>();
  #timeouts: IpvsTimeouts | undefined;
  /** The parts of which all is known, and those of which a part was printed. */
  readonly #told = new Set<'sets' | 'virtualServers' | 'links' | 'sysctls'>();
  readonly #files: Dump['files'][number][] = [];
  readonly #faults: DumpFault[] = [];
  readonly #doubts: Doubt[] = [];

  fault(fault: DumpFault): void {
    this.#faults.push(fault);
  }

  doubt(doubt: Doubt): void {
    this.#doubts.push(doubt);
  }

  file(name: string, kind: DumpFileKind): void {
    if (this.#files.every((file) => file.name !== name || file.kind !== kind)) this.#files.push({ name, kind });
  }

  tell(part: 'sets' | 'virtualServers' | 'links' | 'sysctls'): void {
    this.#told.add(part);
  }

  /** Lines that could not be read; their numbers count from the line after `offset` of the file. */
  unread(file: string, lines: readonly UnreadLine[], offset: number): void {
    if (lines.length === 0) return;
    const counts = new Map<string, number>();
    for (const line of lines) {
      const count = (counts.get(line.reason) ?? 0) + 1;
      counts.set(line.reason, count);
      if (count > mostUnread) continue;
      this.fault({ kind: 'unread-line', file, line: { ...line, line: line.line + offset } });
    }
    for (const [reason, count] of counts) {
      if (count > mostUnread) this.fault({ kind: 'more-unread', file, reason, count: count - mostUnread });
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
    if (told === 'none') return;
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
        virtualServers: sortVirtualServers([...this.#servers.values()]),
        links: [...this.#links.values()],
        sysctls: this.#sysctls,
        ipvsTimeouts: this.#timeouts,
      },
      coverage: {
        iptables: { ipv4: this.#tablesTold('ipv4'), ipv6: this.#tablesTold('ipv6') },
        nftables: this.#nftables.told,
        families,
        sets: this.#told.has('sets'),
        virtualServers: this.#told.has('virtualServers'),
        links: this.#told.has('links'),
        sysctls: this.#told.has('sysctls'),
        ipvsTimeouts: this.#timeouts !== undefined,
        modules: false,
      },
      files: this.#files,
      faults: this.#faults,
      doubts: this.#doubts,
    };
  }

  /** kube-proxy works in nat and filter: where only one of them is there, with its chains, the other was not printed. */
  #tablesTold(family: Family): readonly TableName[] {
    if (this.#cutOff.has(family)) return [];
    const known = this.#iptables.get(family);
    const told = this.#toldTables.get(family) ?? new Set();
    const isUnprinted = (name: TableName, other: TableName): boolean => {
      const chains = known?.get(other);
      return !known?.has(name) && chains !== undefined && hasOwnChains(other, chains);
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

function addNew<T>(known: Map<string, T>, items: readonly T[], keyOf: (item: T) => string): void {
  for (const item of items) if (!known.has(keyOf(item))) known.set(keyOf(item), item);
}
