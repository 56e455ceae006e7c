import { ruleMeaning } from '../kernel/iptables/iptables-meaning.ts';
import {
  tableNames,
  type Chain,
  type TableName,
  type Tables,
  type IptablesVariant,
} from '../kernel/iptables/iptables.ts';
import { jumpChain } from '../kernel/state.ts';
import { classifyChain } from '../kube-proxy/chains.ts';

interface ListedTable {
  variant: IptablesVariant | undefined;
  chains: Map<string, Chain>;
  isWhole: boolean;
}

interface GivenListing {
  readonly variant: IptablesVariant | undefined;
  readonly chains: ReadonlyMap<string, Chain>;
  readonly isWhole: boolean;
}

interface MatchedListing {
  readonly known: ListedTable;
  readonly differences: readonly string[];
}

export class RuleListings {
  readonly #listed = new Map<TableName, ListedTable[]>();
  readonly #whole = new Set<TableName>();
  /** The tables that iptables-save reports as hidden. */
  readonly hidden = new Set<TableName>();
  isCutOff = false;
  hasLegacy = false;

  /** Adds printed tables. `whole`: the complete tables. If one contradicts an earlier listing, adds nothing and returns the differences. */
  add(tables: Tables, whole: readonly TableName[], variant: IptablesVariant | undefined): readonly string[] {
    const given = tableNames.flatMap((name) => {
      const chains = tables[name];
      const table = chains && { variant, chains, isWhole: whole.includes(name) };
      return table ? [{ name, table, ...this.#match(name, table) }] : [];
    });
    const differences = given.flatMap((each) => each.differences ?? []);
    if (differences.length > 0) return differences;
    for (const { name, table, known } of given) this.#take(name, table, known);
    for (const name of whole) this.#whole.add(name);
    this.hasLegacy ||= variant === 'legacy';
    return [];
  }

  /**
   * Finds the known table that a listing repeats or completes, and the differences between the two. If only one of the two names its
   * variant, the other is assumed to be of the same variant. The exception is a legacy table that differs, because a node with
   * iptables-legacy also has iptables-nft.
   */
  #match(name: TableName, given: GivenListing): Partial<MatchedListing> {
    const listed = (this.#listed.get(name) ?? []).map((known) => {
      return { known, differences: differencesOf(name, known, given) };
    });
    const ofOne = listed.filter(({ known, differences }) => {
      const isOpen = known.variant === undefined || given.variant === undefined;
      const agrees = differences.length === 0 || (known.variant ?? given.variant) === 'nft';
      return known.variant === given.variant || (isOpen && agrees);
    });
    return ofOne.find(({ differences }) => differences.length === 0) ?? ofOne[0] ?? {};
  }

  #take(name: TableName, given: GivenListing, known: ListedTable | undefined): void {
    if (!known) {
      const listed = this.#listed.get(name) ?? [];
      this.#listed.set(name, [...listed, { ...given, chains: new Map(given.chains) }]);
      return;
    }
    known.variant ??= given.variant;
    if (known.isWhole) return;
    if (given.isWhole) {
      known.chains = new Map(given.chains);
      known.isWhole = true;
      return;
    }
    for (const [chain, part] of given.chains) known.chains.set(chain, mergeParts(known.chains.get(chain), part));
  }

  get tables(): Tables {
    return tablesFromListings([...this.#listed].flatMap(([name, listed]) => withTableName(name, mainOf(name, listed))));
  }

  get others(): Tables {
    return tablesFromListings(
      [...this.#listed].flatMap(([name, listed]) => {
        const main = mainOf(name, listed);
        return listed.filter((each) => each !== main).flatMap((each) => withTableName(name, each));
      }),
    );
  }

  /** Returns the chains of a table that iptables-nft made. nft lists these chains too. */
  savedByNft(name: TableName): ReadonlyMap<string, Chain> | undefined {
    return this.#listed.get(name)?.find(({ variant }) => variant !== 'legacy')?.chains;
  }

  /** Reports whether all rules of a table are known, from iptables-save or from a tool that shows as much. */
  showsAll(name: TableName): boolean {
    const listed = this.#listed.get(name);
    return this.#whole.has(name) && (!listed || mainOf(name, listed)?.isWhole === true);
  }

  /** Returns the chains of a table that was shown in full. A table of the other variant counts as another table. */
  savedAs(name: TableName, variant: IptablesVariant | undefined): ReadonlyMap<string, Chain> | undefined {
    const listed = this.#listed.get(name) ?? [];
    const isOf = (each: ListedTable): boolean => each.variant === variant || !each.variant || !variant;
    return this.showsAll(name) ? listed.find(isOf)?.chains : undefined;
  }

  get hasExcerpts(): boolean {
    return !this.isCutOff && [...this.#listed].some(([name, listed]) => mainOf(name, listed)?.isWhole === false);
  }

  /**
   * Returns the tables that are known in full. kube-proxy uses both nat and filter. If only one of these was printed and it has
   * kube-proxy's chains, the other was left out. `lacksLegacy`: there are legacy tables that the dump lacks, and they may have kube-proxy's
   * chains.
   */
  wholeTables(lacksLegacy: boolean): readonly TableName[] {
    const { tables } = this;
    if (this.isCutOff) return [];
    if (lacksLegacy && !tableNames.some((name) => hasOwnChains(name, tables[name]))) return [];
    const isUnprinted = (name: TableName): boolean => {
      if (tables[name] || (name !== 'nat' && name !== 'filter')) return false;
      const other = name === 'nat' ? 'filter' : 'nat';
      return hasOwnChains(other, tables[other]) || jumpsToOwn(other, tables[other] ?? new Map<string, Chain>());
    };
    const isHidden = (name: TableName): boolean => this.hidden.has(name) && !tables[name];
    return tableNames.filter((name) => this.showsAll(name) && !isHidden(name) && !isUnprinted(name));
  }
}

function withTableName(
  name: TableName,
  table: ListedTable | undefined,
): readonly (readonly [TableName, ListedTable])[] {
  return table ? [[name, table]] : [];
}

function tablesFromListings(listed: readonly (readonly [TableName, ListedTable])[]): Tables {
  return Object.fromEntries(listed.map(([name, { chains }]) => [name, chains]));
}

function mainOf(name: TableName, listed: readonly ListedTable[]): ListedTable | undefined {
  return listed.find(({ chains }) => hasOwnChains(name, chains)) ?? listed[0];
}

/** Finds chains that differ between two listings. A partial one differs only if it has a rule or chain that the complete one lacks. */
function differencesOf(name: TableName, known: GivenListing, given: GivenListing): readonly string[] {
  if (!known.isWhole && !given.isWhole) return [];
  const chains = new Set([...known.chains.keys(), ...given.chains.keys()]);
  return [...chains]
    .filter((chain) => !fitsListing(known, given, chain) || !fitsListing(given, known, chain))
    .map((chain) => `chain ${chain} (${name})`);
}

function fitsListing(one: GivenListing, other: GivenListing, name: string): boolean {
  const chain = one.chains.get(name);
  if (!chain || !other.isWhole) return true;
  const whole = other.chains.get(name);
  if (!whole) return chain.rules.length === 0 && !one.isWhole;
  if (chain.policy !== undefined && whole.policy !== undefined && chain.policy !== whole.policy) return false;
  const [part, all] = [chain.rules.map(ruleMeaning), whole.rules.map(ruleMeaning)];
  if (one.isWhole) return part.length === all.length && part.every((rule, i) => rule === all[i]);
  const rules = new Set(all);
  return part.every((rule) => rules.has(rule));
}

function mergeParts(known: Chain | undefined, part: Chain): Chain {
  if (!known) return part;
  const rules = new Set(known.rules.map(ruleMeaning));
  return { ...known, rules: [...known.rules, ...part.rules.filter((rule) => !rules.has(ruleMeaning(rule)))] };
}

export function isProxyChain(table: TableName, chain: string): boolean {
  const kind = classifyChain(table, chain);
  return kind === 'service' || kind === 'fixed';
}

function hasOwnChains(table: TableName, chains: ReadonlyMap<string, Chain> | undefined): boolean {
  return [...(chains?.keys() ?? [])].some((name) => isProxyChain(table, name));
}

/** Reports whether a rule jumps to one of kube-proxy's chains. The chain need not be listed. */
export function jumpsToOwn(table: TableName, chains: ReadonlyMap<string, Chain>): boolean {
  return [...chains.values()].some(({ rules }) => rules.some((rule) => isProxyChain(table, jumpChain(rule) ?? '')));
}
