import { equalRules } from '../../kernel/iptables/iptables-delta.ts';
import { families, type Family } from '../../kernel/family.ts';
import {
  isBuiltInChain,
  tableNames,
  type Chain,
  type Rule,
  type TableName,
  type Tables,
} from '../../kernel/iptables/iptables.ts';
import { jumpChain } from '../../kernel/restrict.ts';
import {
  classifyChain,
  isKubeProxyChain,
  isKubeProxyJump,
  isLocalnetRule,
  mayKubeletMake,
  sharedChain,
  traceKubelet,
  type KubeletTrace,
} from '../../kube-proxy/chains.ts';
import { chainKey, jumpKey } from '../state/belongings.ts';
import type { ShareDraft } from './share-draft.ts';

/** Divides chains, and the jumps to them from the kernel's own chains. */
export function shareRules(draft: ShareDraft): void {
  for (const key of draft.claims.owned.besideKubelet) draft.have('besideKubelet', key);
  const { present, wanted } = draft;
  const iptables: { [F in Family]?: Tables } = { ...wanted.iptables };
  for (const family of families) {
    iptables[family] = new FamilyRules(draft, family, present.iptables[family] ?? {}).divide(iptables[family] ?? {});
  }
  draft.wanted = { ...wanted, iptables };
}

type Chains = ReadonlyMap<string, Chain>;

const noChains: Chains = new Map();

/** The iptables rules of one family. */
class FamilyRules {
  readonly #draft: ShareDraft;
  readonly #family: Family;
  readonly #present: Tables;
  readonly #trace: KubeletTrace;
  /** Chains that would go, if nothing stays that needs them, by key. */
  readonly #candidates = new Map<string, { readonly table: TableName; readonly chain: Chain }>();
  /** Rules that stay, each with its table. */
  readonly #staying: { readonly table: TableName; readonly rule: Rule }[] = [];

  constructor(draft: ShareDraft, family: Family, present: Tables) {
    this.#draft = draft;
    this.#family = family;
    this.#present = present;
    this.#trace = traceKubelet(present);
  }

  /** Gives what is wanted, as far as it can be had: see #addToShared. */
  divide(wanted: Tables): Tables {
    const possible = this.#addToShared(wanted);
    for (const table of tableNames) {
      const [there, asked] = [this.#present[table] ?? noChains, possible[table] ?? noChains];
      const entries = listEntries(table, there);
      for (const chain of asked.values()) {
        if (!isBuiltInChain(table, chain.name)) this.#addWanted(table, chain, there.get(chain.name));
      }
      for (const chain of there.values()) {
        if (!isBuiltInChain(table, chain.name) && !asked.has(chain.name)) this.#addUnwanted(table, chain, entries);
      }
      for (const name of new Set([...asked.keys(), ...there.keys()])) {
        if (isBuiltInChain(table, name)) this.#addJumps(table, name, there, asked);
      }
    }
    this.#finish();
    return possible;
  }

  /**
   * KUBE-FIREWALL is kubelet's as well as kube-proxy's, and each adds its rule if it is missing (EnsureRule). In one
   * that is not ours, ours is only a rule that was missing: what else is in it stays. Up to 1.26, kubelet has
   * a second rule in it.
   */
  #addToShared(wanted: Tables): Tables {
    const table = 'filter';
    const { claims, touched, belongings } = this.#draft;
    const there = this.#present[table]?.get(sharedChain);
    const isMine = claims.adopt || this.#draft.owns('chains', this.#keyOf(table, sharedChain));
    if (!there || (isMine && !this.#isKubelets(table, there))) return wanted;
    const asked = wanted[table]?.get(sharedChain);
    const keyOf = (rule: Rule) => jumpKey(this.#family, table, sharedChain, rule);
    const known = new Set(there.rules.map(keyOf));
    const askedKeys = new Set(asked?.rules.map(keyOf));
    const isOurs = (key: string) => this.#ownsRule(key, mayKubeletMake(this.#trace, table, sharedChain));
    const staying = there.rules.filter((rule) => askedKeys.has(keyOf(rule)) || !isOurs(keyOf(rule)));
    const missing = (asked?.rules ?? []).filter((rule) => !known.has(keyOf(rule)));
    for (const key of askedKeys) {
      if (!known.has(key)) this.#noteKubelet(key, table, sharedChain);
      if (known.has(key) && !isOurs(key)) continue;
      touched.jumps.add(key);
      belongings.jumps.add(key);
    }
    if (!asked && staying.length === there.rules.length) return wanted;
    const merged = { ...there, rules: [...staying, ...missing] };
    return { ...wanted, [table]: new Map([...(wanted[table] ?? []), [sharedChain, merged]]) };
  }

  #addWanted(table: TableName, chain: Chain, twin: Chain | undefined): void {
    const draft = this.#draft;
    const key = this.#keyOf(table, chain.name);
    if (!twin) this.#noteKubelet(key, table, chain.name);
    const isKubeProxys = twin !== undefined && isKubeProxyChain(table, twin);
    if (!twin || draft.owns('chains', key) || (draft.claims.adopt && isKubeProxys)) return draft.have('chains', key);
    draft.ours.chains.add(key);
    if (equalRules(twin.rules, chain.rules)) return;
    if (classifyChain(table, chain.name) === 'shared') draft.touched.chains.add(key);
    else draft.conflicts.push({ kind: 'chain', name: key, adoptable: isKubeProxys });
  }

  /** `entries`: the chains that the kernel's own jump to. */
  #addUnwanted(table: TableName, chain: Chain, entries: ReadonlySet<string>): void {
    const draft = this.#draft;
    const key = this.#keyOf(table, chain.name);
    const isOwned = draft.owns('chains', key) && classifyChain(table, chain.name) !== undefined;
    const isKubeProxys = (isOwned || isKubeProxyChain(table, chain)) && !this.#isKubelets(table, chain);
    if (isKubeProxys && (draft.claims.adopt || isOwned)) {
      this.#candidates.set(key, { table, chain });
      return;
    }
    this.#stay(table, chain.rules);
    const isInEffect = chain.rules.length > 0 && entries.has(chain.name);
    if (isKubeProxys) draft.leftovers.push({ kind: 'chain', name: key, isInEffect });
  }

  /** A jump that is there as it is wanted, and not ours, is left out: it stays where it is. */
  #addJumps(table: TableName, chain: string, there: Chains, asked: Chains): void {
    const isOurs = (rule: Rule, key: string): boolean => {
      const name = jumpChain(rule) ?? '';
      const target = there.get(name);
      if (classifyChain(table, name) === undefined || !target) return false;
      if (this.#draft.owns('jumps', key)) {
        return this.#ownsRule(key, target.rules.length > 0 && mayKubeletMake(this.#trace, table, name));
      }
      if (!this.#draft.claims.adopt || !isKubeProxyJump(rule, table, chain)) return false;
      return isKubeProxyChain(table, target) && !this.#isKubelets(table, target);
    };
    const keyOf = (rule: Rule) => jumpKey(this.#family, table, chain, rule);
    const known = new Map(there.get(chain)?.rules.map((rule) => [keyOf(rule), rule]));
    const wanted = new Set<string>();
    for (const rule of asked.get(chain)?.rules ?? []) {
      const target = jumpChain(rule) ?? '';
      if (!asked.has(target)) continue;
      const key = keyOf(rule);
      wanted.add(key);
      const twin = known.get(key);
      if (!twin) this.#noteKubelet(key, table, target);
      if (!twin || isOurs(twin, key)) this.#draft.have('jumps', key);
    }
    for (const [key, rule] of known) {
      if (wanted.has(key)) continue;
      if (isOurs(rule, key)) this.#draft.letGo('jumps', key);
      else this.#stay(table, [rule]);
    }
  }

  #finish(): void {
    const draft = this.#draft;
    // The list grows while it is walked: a chain that stays keeps those that it jumps to.
    for (const { table, rule } of this.#staying) {
      draft.staying.push(rule);
      const key = this.#keyOf(table, jumpChain(rule) ?? '');
      const candidate = this.#candidates.get(key);
      if (!candidate) continue;
      this.#candidates.delete(key);
      if (draft.owns('chains', key)) draft.belongings.chains.add(key);
      this.#stay(table, candidate.chain.rules);
    }
    for (const key of this.#candidates.keys()) draft.letGo('chains', key);
  }

  #keyOf(table: TableName, chain: string): string {
    return chainKey(this.#family, table, chain);
  }

  #ownsRule(key: string, isShared: boolean): boolean {
    return this.#draft.owns('jumps', key) && (!isShared || this.#draft.owns('besideKubelet', key));
  }

  /** Notes that kpc-apply makes, or made, this beside a kubelet that has none. */
  #noteKubelet(key: string, table: TableName, name: string): void {
    if (mayKubeletMake(this.#trace, table, name)) this.#draft.have('besideKubelet', key);
  }

  #stay(table: TableName, rules: readonly Rule[]): void {
    for (const rule of rules) this.#staying.push({ table, rule });
  }

  /**
   * Whether a chain of a name that kubelet and kube-proxy share is a kubelet's by now, or holds another program's rules:
   * then neither it nor the jumps to it are taken away. An empty one is no kubelet's.
   */
  #isKubelets(table: TableName, { name, rules }: Chain): boolean {
    if (rules.length === 0) return false;
    if (classifyChain(table, name) === 'shared' && !rules.every(isLocalnetRule)) return true;
    if (!mayKubeletMake(this.#trace, table, name)) return false;
    return !this.#draft.owns('besideKubelet', this.#keyOf(table, name));
  }
}

/** The chains that the kernel's own jump to. */
function listEntries(table: TableName, chains: Chains): ReadonlySet<string> {
  const entries = [...chains.values()].filter(({ name }) => isBuiltInChain(table, name));
  return new Set(entries.flatMap(({ rules }) => rules.map((rule) => jumpChain(rule) ?? '')));
}
