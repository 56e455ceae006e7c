import { families, type Family, type Network } from '../kernel/address.ts';
import type { TrackedFlow } from '../kernel/conntrack.ts';
import { tableNames, type TableName, type Tables, type IptablesVariant } from '../kernel/iptables/iptables.ts';
import { isBaseOfIptables, withNativeRules } from '../kernel/iptables/native-rules.ts';
import { zonesSetBy } from '../kernel/iptables/other-targets.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import { entryKey } from '../kernel/ipset/set-entry.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import { compareVirtualServers, formatVirtualServer, type Unlisted, type VirtualServer } from '../kernel/ipvs/ipvs.ts';
import type { Link } from '../kernel/link/link.ts';
import { compareTables } from '../kernel/nftables/nft-delta.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { modeOfState } from '../kube-proxy/evidence.ts';
import { parseSetName } from '../kube-proxy/ipvs-objects.ts';
import { programs, type ProxyMode } from '../kube-proxy/modes.ts';
import {
  findEndlessChain,
  findUnlistedAddress,
  findUnlistedServer,
  findUnlistedSet,
  showsAllAddresses,
} from '../kube-proxy/unshown.ts';
import { isKubeProxyTable, isWholeNftTable } from '../kube-proxy/nft-table.ts';
import { findUnreadRules, withLostPorts } from '../kube-proxy/unread-rules.ts';
import type { ArgumentsOf, FindingCode } from '../base/findings/codes.ts';
import type { UnreadOutput } from '../base/findings/files.ts';
import { faultOf, type Fault } from '../base/findings/finding.ts';
import { nftFamily } from '../kernel/nftables/format.ts';
import type { NftChain, NftTable } from '../kernel/nftables/table.ts';
import { formatSocketAddress } from '../kernel/ports-and-marks.ts';
import type { KernelState } from '../kernel/state.ts';
import type { UnreadLine } from '../kernel/lines.ts';
import { ProxyLog } from './kube-proxy-log.ts';
import { DraftedRoutes, type KnownRoutes, type RoutingKind } from './read-ip.ts';
import type { Coverage, TableListing } from './coverage.ts';
import { objectsIn, type OutputKind, type ReadableKind } from './output-kinds.ts';
import { RuleListings } from './rule-listings.ts';
import type { ToolOutput } from './split-outputs.ts';

export type DumpFileKind =
  Exclude<ReadableKind, 'rules'> | 'ip6tables -L' | 'iptables-save' | 'ip6tables-save' | 'iptables -S' | 'ip6tables -S';

export interface Dump {
  readonly state: KernelState;
  readonly coverage: Coverage;
  readonly flows: readonly TrackedFlow[] | undefined;
  readonly routes: KnownRoutes;
  readonly log: ProxyLog | undefined;
  readonly files: readonly { readonly name: string; readonly kind: DumpFileKind }[];
  readonly faults: readonly DumpFault[];
  readonly doubts: readonly Doubt[];
}

/** Why a dump may contain more than kpc read, or more than the side's state contains. */
export type Doubt =
  | { readonly file: string; readonly kind: 'cut-line'; readonly output: OutputKind }
  /** Lines that kpc cannot read. `rules`: the family and the tables that these lines may belong to. */
  | {
      readonly file: string;
      readonly kind: 'unread';
      readonly output: OutputKind;
      readonly line: number;
      readonly rules?: { readonly family: Family; readonly tables: readonly TableName[] } | undefined;
    }
  | ({ readonly file: string; readonly kind: 'unlisted' } & Unlisted)
  /** An output that was skipped because it contradicts the first output of its kind. It must be from another node or time. */
  | { readonly file: string; readonly kind: 'second-listing'; readonly output: string }
  | ForeignDoubt;

/** Rules that packets pass, although they are not in the side's state. */
type ForeignDoubt =
  | ({ readonly kind: 'other-table' } & OtherTable)
  /** The tables of the other iptables variant (legacy or nft). They matter because the kernel runs both variants. */
  | { readonly kind: 'other-variant'; readonly family: Family; readonly tables: Tables }
  | { readonly file: string; readonly kind: 'legacy-tables'; readonly family: Family }
  /** A table that iptables-save does not show in full, because someone changed it with nft. nft's own listing shows the whole table. */
  | {
      readonly file: string;
      readonly kind: 'hidden-table';
      readonly family: Family;
      readonly table: TableName;
      readonly isPart: boolean;
    };

/** A table that belongs to another program or to iptables-nft, or a dormant table of kube-proxy. */
export interface OtherTable {
  readonly table: string;
  /** The table's rules for IP packets. Empty for families such as arp. Undefined if the table could not be read in full. */
  readonly tables: readonly NftTable[] | undefined;
  readonly hooked: readonly HookedInterfaces[];
}

export function isForeignDoubt(doubt: Doubt): doubt is ForeignDoubt {
  return foreign.has(doubt.kind);
}

const foreign: ReadonlySet<Doubt['kind']> = new Set<ForeignDoubt['kind']>([
  'other-table',
  'other-variant',
  'legacy-tables',
  'hidden-table',
]);

/** Interfaces whose packets or frames pass rules for ingress, egress, bridge or arp. */
export interface HookedInterfaces {
  readonly end: 'input' | 'output';
  readonly isRead: boolean;
  /** Names of interfaces. A trailing `*` matches any suffix. */
  readonly interfaces: readonly string[];
  /** The addresses that rules of family arp match. Undefined if rules match any address. */
  readonly addresses?: readonly Network[] | undefined;
}

/** Why a dump file, or a part of it, was skipped, or how it was read. If there is no line, the fault is about the whole file. */
export type DumpFault = Fault & { readonly file: string; readonly line: number | undefined };

export function sorted(texts: readonly string[]): string {
  return texts.toSorted().join('\n');
}

export interface Printed {
  readonly file: string;
  readonly line: number;
  readonly kind: DumpFileKind;
}

/** Collects the outputs of a dump. If the dump has an object twice, the first one counts. */
export class DumpDraft {
  readonly sets = new Listed<IpSet>(
    ({ name }) => `set ${name}`,
    ({ name, entries }) => (parseSetName(name) ? sorted(entries.map(entryKey)) : undefined),
  );
  /** Comparisons of two listings include the weights of real servers, because weights differ between nodes. */
  readonly virtualServers = new Listed<VirtualServer>(virtualServerKey, formatVirtualServer);
  /** Each family has its own list, because ip addr may list links for only one family. */
  readonly #links: { readonly [F in Family]: Listed<Link> } = { ipv4: listedLinks(), ipv6: listedLinks() };
  readonly #linkKinds = new Map<string, Omit<Link, 'name' | 'addresses'>>();
  readonly #routes = new DraftedRoutes();
  readonly sysctls = new Listed<readonly [name: string, value: string]>(
    ([name]) => name,
    ([, value]) => value,
  );
  readonly flows = new Listed<TrackedFlow>(
    ({ protocol, source, destination, zone }) =>
      `${protocol} src=${formatSocketAddress(source)} dst=${formatSocketAddress(destination)} zone=${zone}`,
    ({ answers }) => formatSocketAddress(answers),
  );
  /** The texts of nftables chains, sets and maps. They help to recognise a second listing. */
  readonly nftRules = new Listed<RuleText>(
    ([name]) => name,
    ([, text]) => text(),
  );
  allAddresses: readonly Family[] | undefined;
  readonly #empty: { readonly kind: DumpFileKind; readonly file: string }[] = [];
  /** Families for which part of kube-proxy's table is missing: an nft option or the person who pasted it left this part out. */
  readonly nftParts = new Set<Family>();
  readonly dormant = new Set<Family>();
  /** Whether nft's output is cut off at either end. Some tables may then be missing. */
  isNftCut = false;
  readonly endsOfServers: VirtualServer[] = [];
  readonly endsOfSets: string[] = [];
  isNftPart = false;
  /** Tables of iptables that hold kube-proxy's rules, as nft lists them. */
  readonly ofIptables: { readonly table: string; readonly file: string; readonly line: number }[] = [];
  readonly #rules: { [F in Family]?: RuleListings } = {};
  readonly #nftables = new Map<string, NftTable>();
  readonly #otherTables = new Map<string, OtherTable>();
  #isRuleset = false;
  readonly #listed = new Map<string, TableListing>();
  readonly #namesIn = new Map<string, Set<string>>();
  readonly #files: Dump['files'][number][] = [];
  /** Keyed by text, so that each fault in a file is reported only once. */
  readonly #faults = new Map<string, DumpFault>();
  readonly #doubts: Doubt[] = [];
  readonly #unread = new Map<string, { more: number }>();
  #host: string | undefined;
  readonly #log = new ProxyLog();

  fault<Code extends FindingCode>(file: string, code: Code, details: ArgumentsOf<Code>, line?: number): void {
    const key = JSON.stringify([file, code, details]);
    if (!this.#faults.has(key)) this.#faults.set(key, { ...faultOf(code, details), file, line });
  }

  /** Reports an output that is from another host than the first, because a dump must be from one node. Returns true for such an output. */
  isOfOtherHost(file: string, { kind, command, firstLine }: ToolOutput): boolean {
    const host = command?.host;
    this.#host ??= host;
    if (host === undefined || host === this.#host) return false;
    const output = kind === 'rules' ? (command?.tool ?? 'iptables') : kind;
    this.skip(file, { output, from: host }, firstLine);
    return true;
  }

  skip(file: string, details: ArgumentsOf<'second-listing'>, line: number): void {
    const { output } = details;
    this.fault(file, 'second-listing', details, line);
    const isKnown = this.#doubts.some(
      (each) => each.kind === 'second-listing' && each.file === file && each.output === output,
    );
    if (!isKnown) this.doubt({ file, kind: 'second-listing', output });
  }

  refuse(file: string, line: number, details: UnreadOutput): void {
    this.fault(file, 'unread-output', { ...details, isAll: false }, line);
  }

  doubt(doubt: Doubt): void {
    this.#doubts.push(doubt);
  }

  file(name: string, kind: DumpFileKind): void {
    if (this.#files.every((file) => file.name !== name || file.kind !== kind)) this.#files.push({ name, kind });
  }

  /** Reports an empty file. Its listing counts as not given. */
  emptyFile(file: string, kind: DumpFileKind): void {
    this.#empty.push({ kind, file });
  }

  /** Reports lines that kpc cannot read, once for each reason. `rules`: the tables that these lines may belong to. */
  unread(
    file: string,
    output: OutputKind,
    lines: readonly UnreadLine[],
    offset: number,
    rules?: { readonly family: Family; readonly tables: readonly TableName[] },
  ): void {
    for (const { reason, line, more = 0 } of lines) {
      const key = `${reason} ${file}`;
      const known = this.#unread.get(key);
      if (known) known.more += 1 + more;
      else {
        const details = { reason, of: output, more };
        this.#unread.set(key, details);
        this.fault(file, 'unread-line', details, line + offset);
      }
    }
    const [first] = lines;
    const keyOf = (...parts: readonly unknown[]): string => JSON.stringify(parts);
    const isKnown = this.#doubts.some(
      (doubt) => doubt.kind === 'unread' && keyOf(doubt.file, doubt.output, doubt.rules) === keyOf(file, output, rules),
    );
    if (first && !isKnown) this.doubt({ file, kind: 'unread', output, line: first.line + offset, rules });
  }

  /**
   * Adds the items of an output. If the output is from another node or time, reports a fault and returns false, because two states must not
   * be mixed.
   */
  list<T>(listed: Listed<T>, items: Iterable<T>, isWhole: boolean, { file, line, kind }: Printed): boolean {
    const differences = listed.add(Array.isArray(items) ? (items as readonly T[]) : [...items], isWhole);
    if (differences.length > 0) this.skip(file, { output: kind, differences }, line);
    else this.file(file, kind);
    return differences.length === 0;
  }

  /** Adds the links that ip addr printed, as `list` does. A listing without addresses of a family does not count for that family. */
  listLinks(links: readonly Link[], isWhole: boolean, printed: Printed): boolean {
    const ofFamily = (family: Family): readonly Link[] =>
      links.flatMap((link) => {
        const addresses = link.addresses.filter((each) => each.family === family);
        return addresses.length > 0 ? [{ ...link, addresses }] : [];
      });
    const isTaken = families.every((family) => {
      const own = ofFamily(family);
      const listed = this.#links[family];
      // Listings of two nodes would both have lo. Listings with no link in common, such as eth0's and kube-ipvs0's, are from one node.
      return own.length === 0 || this.list(listed, own, isWhole && !listed.isCompletedBy(own), printed);
    });
    if (isTaken) this.file(printed.file, printed.kind);
    for (const { name, kind, master, traits, tunnel } of isTaken ? links : []) {
      const known = this.#linkKinds.get(name);
      const ofLink = {
        kind: known?.kind ?? kind,
        master: known?.master ?? master,
        tunnel: known?.tunnel ?? tunnel,
      };
      this.#linkKinds.set(name, { ...ofLink, traits: { ...traits, ...known?.traits } });
    }
    return isTaken;
  }

  #takenLinks(): readonly Link[] {
    const listed = families.flatMap((family) => this.#links[family].items);
    return Array.from(this.#linkKinds, ([name, { kind, master, traits, tunnel }]) => {
      return {
        name,
        kind,
        ...(master === undefined ? {} : { master }),
        traits,
        ...(tunnel === undefined ? {} : { tunnel }),
        addresses: listed.flatMap((link) => (link.name === name ? link.addresses : [])),
      };
    });
  }

  readRoutes(output: ToolOutput, kind: RoutingKind, file: string): readonly UnreadLine[] {
    this.file(file, kind);
    const { unread, differences } = this.#routes.read(output, kind, file);
    if (differences.length > 0) this.skip(file, { output: kind, differences }, output.firstLine);
    return unread;
  }

  /** Records that a command that lists a family's routes printed none. */
  noRoutes({ family }: { readonly family: Family | undefined }): void {
    if (family) this.#routes.empty.add(family);
  }

  /** Reads the log of one pod or node, from one or more files. Skips a log without a known line, because another program wrote it. */
  readLog(file: string, text: string, firstLine: number): void {
    const other = this.#log.read(file, text, firstLine);
    if (!this.#log.isKnown) return;
    this.file(file, 'kube-proxy log');
    if (other) this.fault(file, 'second-listing', { output: 'kube-proxy log', from: other.from }, other.line);
  }

  rulesOf(family: Family): RuleListings {
    return (this.#rules[family] ??= new RuleListings());
  }

  /**
   * Adds rules like RuleListings.add. If that rejects rules, reports this and returns false. A table that looks filtered does not count as
   * complete.
   */
  addRules(
    family: Family,
    printed: Tables,
    whole: readonly TableName[],
    variant: IptablesVariant | undefined,
    at: Printed,
  ): boolean {
    const endless = whole.includes('nat') && printed.nat ? findEndlessChain(printed.nat) : undefined;
    const shown = endless === undefined ? whole : whole.filter((name) => name !== 'nat');
    if (endless !== undefined)
      this.fault(at.file, 'dump-reading', { problem: 'filtered', command: at.kind, chain: endless }, at.line);
    const tables = withLostPorts(printed);
    const unread = findUnreadRules(tables);
    if (unread) this.fault(at.file, 'dump-reading', { problem: 'unread-rules', ...unread }, at.line);
    const differences = this.rulesOf(family).add(tables, shown, variant);
    if (differences.length > 0) this.skip(at.file, { output: at.kind, differences }, at.line);
    else this.file(at.file, at.kind);
    return differences.length === 0;
  }

  place(seenBy: readonly Family[], name: string, listing: string): void {
    for (const family of seenBy) {
      const key = `${family} ${name}`;
      if (!this.#listed.has(key)) this.#listed.set(key, { listing, place: this.#listed.size });
    }
  }

  /** Records the name of a table in a listing. Returns whether the listing also has tables with other names. */
  hasOther(listing: string, name: string): boolean {
    const names = this.#namesIn.get(listing) ?? new Set<string>();
    this.#namesIn.set(listing, names.add(name));
    return names.size > 1;
  }

  addNftables(tables: readonly NftTable[], isRuleset: boolean): void {
    for (const table of tables) {
      const key = `${table.family} ${table.name}`;
      const known = this.#nftables.get(key);
      this.#nftables.set(key, known ? mergeTables(known, table) : table);
    }
    this.#isRuleset ||= isRuleset;
  }

  addOtherTable({ table, tables, hooked }: OtherTable): void {
    const known = this.#otherTables.get(table);
    const both = known && known.tables && tables ? mergeFamilies(known.tables, tables) : undefined;
    this.#otherTables.set(
      table,
      known ? { table, tables: both, hooked: [...known.hooked, ...hooked] } : { table, tables, hooked },
    );
  }

  finish(): Dump {
    const { sets, virtualServers, sysctls } = this;
    const others = [...this.#otherTables.values()].flatMap((each) => this.#beyondIptables(each));
    const doubts = [...this.#doubts.filter((doubt) => !this.#isShownOtherwise(doubt)), ...others];
    const lacksLegacy = doubts.flatMap((doubt) => (doubt.kind === 'legacy-tables' ? [doubt] : []));
    for (const { file } of lacksLegacy) this.fault(file, 'dump-reading', { problem: 'legacy-tables' });
    for (const { table, file, line } of this.ofIptables)
      if (!this.#savedAs(table)) this.refuse(file, line, { problem: 'iptables-as-nft' });
    const wholeOf = (family: Family): readonly TableName[] =>
      this.#rules[family]?.wholeTables(lacksLegacy.some((doubt) => doubt.family === family)) ?? [];
    const rules = families.flatMap((family) => (this.#rules[family] ? [[family, this.#rules[family]] as const] : []));
    const state: KernelState = {
      iptables: Object.fromEntries(rules.map(([family, { tables }]) => [family, tables])),
      nftables: [...this.#nftables.values()].sort(compareTables),
      sets: sets.items,
      virtualServers: virtualServers.items.toSorted(compareVirtualServers),
      proxyPorts: [],
      links: this.#takenLinks(),
      sysctls: new Map(sysctls.items),
      ipvsTimeouts: undefined,
      modules: [],
    };
    // Flows in other zones belong to programs such as Open vSwitch.
    const zones = new Set([0, ...rules.flatMap(([, { tables }]) => zonesSetBy(tables.raw))]);
    const coverage: Coverage = {
      iptables: { ipv4: wholeOf('ipv4'), ipv6: wholeOf('ipv6') },
      nftables: families.filter((family) => this.#showsNftables(family)),
      sets: sets.isWhole,
      virtualServers: virtualServers.isWhole,
      links: families.some((family) => this.#links[family].isWhole),
      sysctls: sysctls.items.length > 0,
      // A dump shows no timeouts, no balancer and no modules. If an object needs a module, the module is loaded.
      ipvsTimeouts: false,
      proxyPorts: false,
      modules: false,
      families,
      excerpts: rules.flatMap(([family, { hasExcerpts }]) => (hasExcerpts ? [family] : [])),
      listed: this.#listed,
      allAddresses: this.allAddresses,
      empty: new Map(this.#empty.map(({ kind, file }) => [kind, file])),
      lacksTables: this.isNftCut || (this.isNftPart && !this.#isRuleset),
    };
    return {
      state,
      coverage,
      log: this.#log.isKnown ? this.#log : undefined,
      flows: this.flows.isGiven ? this.flows.items.filter(({ zone }) => zones.has(zone)) : undefined,
      routes: this.#routes.known((family) => this.#hasNoAddress(family, state.links)),
      files: this.#files,
      faults: [...this.#faults.values(), ...this.#emptyFaults(modeOfState(state))],
      doubts: [...doubts, ...this.#unlisted(state, coverage), ...this.#otherVariants()],
    };
  }

  /** Reports empty files, except files for objects that the node's mode does not make. */
  #emptyFaults(mode: ProxyMode | undefined): readonly DumpFault[] {
    return this.#empty.flatMap(({ kind, file }) => {
      const made = objectsIn(kind);
      if (mode && made && !programs(mode, made)) return [];
      return { ...faultOf('unread-file', { expected: kind, isEmpty: true }), file, line: undefined };
    });
  }

  #hasNoAddress(family: Family, links: readonly Link[]): boolean {
    const isListed = links.length > 0 && this.allAddresses?.includes(family) === true;
    return isListed && !links.some(({ addresses }) => addresses.some((each) => each.family === family));
  }

  /** Finds objects that are missing from a list that seems complete, although another list names them. */
  #unlisted(state: KernelState, coverage: Coverage): readonly Doubt[] {
    const isShown = (family: Family): boolean => coverage.links && showsAllAddresses(coverage, state.links, family);
    const server = this.virtualServers.isWhole ? findUnlistedServer(state, this.endsOfServers) : undefined;
    const set = this.sets.isWhole ? findUnlistedSet(state, this.endsOfSets) : undefined;
    const found = [
      [server, /^ipvsadm/],
      [findUnlistedAddress(state, isShown), /^ip (?:-j )?addr/],
      [set, /^ipset/],
    ] as const;
    return found.flatMap(([unlisted, printed]) => {
      const file = this.#files.find(({ kind }) => printed.test(kind));
      return unlisted && file ? [{ file: file.name, kind: 'unlisted', ...unlisted } as const] : [];
    });
  }

  #isShownOtherwise(doubt: Doubt): boolean {
    if (doubt.kind === 'legacy-tables') return this.#rules[doubt.family]?.hasLegacy === true;
    if (doubt.kind !== 'hidden-table') return false;
    const { family, table, isPart } = doubt;
    // In a file with both families, it is unknown which one hides the table. The family that has a listing of the table shows it.
    const isOther = !isPart && this.#rules[family]?.savedByNft(table) !== undefined;
    return isOther || this.#otherTables.has(`${nftFamily[family]} ${table}`);
  }

  /**
   * Returns the parts of a table in nft's listing that iptables-save does not show: nft's own base chains and rules. Takes iptables' base
   * chains off their hooks. Packets already pass through these in iptables-save's listing.
   */
  #beyondIptables(listed: OtherTable): readonly ({ readonly kind: 'other-table' } & OtherTable)[] {
    const whole = { kind: 'other-table', ...listed } as const;
    const found = this.#savedAs(listed.table);
    if (!found) return [whole];
    const { name, family, saved } = found;
    const isHidden = this.#doubts.some(
      (doubt) => doubt.kind === 'hidden-table' && doubt.family === family && doubt.table === name,
    );
    if (!listed.tables) return isHidden ? [whole] : [];
    const isNative = (chain: NftChain): boolean => chain.base !== undefined && !isBaseOfIptables(name, chain);
    const hasOwn = (table: NftTable): boolean =>
      [...table.chains.values()].some(isNative) || withNativeRules(saved, table).natives.size > 0;
    const tables = listed.tables.filter(hasOwn).map((table) => withoutHooks(table, (chain) => !isNative(chain)));
    return tables.length > 0 ? [{ ...whole, tables }] : [];
  }

  /** Finds iptables-save's listing of a table that nft lists too. */
  #savedAs(table: string) {
    const [, word, printed] = /^(ip6?) (\S+)$/.exec(table) ?? [];
    const name = tableNames.find((each) => each === printed);
    const family: Family = word === 'ip6' ? 'ipv6' : 'ipv4';
    const saved = name && this.#rules[family]?.savedByNft(name);
    return saved && { name, family, saved };
  }

  #otherVariants(): readonly Doubt[] {
    return families.flatMap((family) => {
      const tables = this.#rules[family]?.others ?? {};
      return Object.keys(tables).length > 0 ? [{ kind: 'other-variant', family, tables } as const] : [];
    });
  }

  /** Reports whether nft's listing of iptables' nat table has kube-proxy's rules but lacks one of the chains that packets enter. */
  #lacksHooks(family: Family): boolean {
    const others = [...this.#otherTables.values()].flatMap(({ tables = [] }) => tables);
    const nat = others.find((table) => table.family === family && table.name === 'nat');
    return nat?.chains.has(baseChains.services) === true && !natHooks.every((name) => nat.chains.has(name));
  }

  #showsNftables(family: Family): boolean {
    const own = [...this.#nftables.values()].filter((table) => table.family === family && isKubeProxyTable(table.name));
    if (this.nftParts.has(family) || this.#lacksHooks(family)) return false;
    if (own.length === 0 && this.dormant.has(family)) return true;
    return own.length === 0 ? this.#isRuleset && !this.isNftCut : own.every(isWholeNftTable);
  }
}

/** The built-in nat chains that have jumps to kube-proxy's chains in every mode with iptables rules. */
const natHooks = ['PREROUTING', 'OUTPUT', 'POSTROUTING'];

export class Listed<T> {
  readonly #items = new Map<string, T>();
  readonly #keyOf: (item: T) => string;
  readonly #textOf: (item: T) => string | undefined;
  isGiven = false;
  isWhole = false;

  /** `textOf` returns the same text for equal items. It returns undefined for items that must not be compared. */
  constructor(keyOf: (item: T) => string, textOf: (item: T) => string | undefined) {
    this.#keyOf = keyOf;
    this.#textOf = textOf;
  }

  /** Adds a listing. If the listing contradicts an earlier one, adds nothing and returns the differences. */
  add(items: readonly T[], isWhole: boolean): readonly string[] {
    const differences = this.isGiven ? this.#differencesTo(items, isWhole) : [];
    if (differences.length > 0) return differences;
    for (const item of items) {
      const key = this.#keyOf(item);
      if (!this.#items.has(key)) this.#items.set(key, item);
    }
    this.isGiven = true;
    this.isWhole ||= isWhole;
    return [];
  }

  #differencesTo(items: readonly T[], isWhole: boolean): readonly string[] {
    const fresh = new Map(items.toReversed().map((item) => [this.#keyOf(item), item]));
    return [...new Set([...this.#items.keys(), ...fresh.keys()])].filter((key) => {
      const [one, other] = [this.#items.get(key), fresh.get(key)];
      if (one === undefined || other === undefined) return isWhole && this.isWhole;
      return this.#textOf(one) !== this.#textOf(other);
    });
  }

  isCompletedBy(items: readonly T[]): boolean {
    return this.isGiven && items.every((item) => !this.#items.has(this.#keyOf(item)));
  }

  get items(): readonly T[] {
    return [...this.#items.values()];
  }
}

function listedLinks(): Listed<Link> {
  return new Listed(
    ({ name }) => `link ${name}`,
    ({ addresses }) => sorted(addresses.map(({ address }) => address.text)),
  );
}

export type RuleText = readonly [name: string, text: () => string];

/** Takes chains off their hooks, so that no packet enters them in this table. */
export function withoutHooks(table: NftTable, isOff: (chain: NftChain) => boolean = () => true): NftTable {
  const chains = [...table.chains].map(
    ([name, chain]) => [name, isOff(chain) ? { ...chain, base: undefined } : chain] as const,
  );
  return { ...table, chains: new Map(chains) };
}

/** Merges two readings of a table. Each reading has one entry for each family whose packets the table sees. */
function mergeFamilies(known: readonly NftTable[], more: readonly NftTable[]): readonly NftTable[] {
  const isOf = ({ family }: NftTable, other: NftTable): boolean => other.family === family;
  return [
    ...known.map((table) => more.filter((each) => isOf(table, each)).reduce(mergeTables, table)),
    ...more.filter((table) => !known.some((each) => isOf(table, each))),
  ];
}

/** Merges listings of a table, because `nft list chain` prints a table with only one chain. Parts in both listings are equal. */
function mergeTables(known: NftTable, more: NftTable): NftTable {
  const wholeSets = [...more.sets].filter(([, { isPart }]) => !isPart);
  return {
    ...more,
    ...known,
    chains: new Map([...more.chains, ...known.chains]),
    sets: new Map([...more.sets, ...known.sets, ...wholeSets]),
    counters: new Map([...more.counters, ...known.counters]),
  };
}
