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
import type { KernelState } from '../../kernel/state.ts';
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
import { ShareDraft, type Claims, type Conflict, type NamedShare, type Leftover } from './conflicts.ts';

/** How the iptables rules of a node divide. */
export interface RuleShare {
  /** What is wanted, as far as it can be had beside what stays: see addToShared. */
  readonly wanted: KernelState['iptables'];
  readonly chains: NamedShare;
  readonly jumps: NamedShare;
  readonly besideKubelet: readonly string[];
  readonly conflicts: readonly Conflict[];
  /** kube-proxy's chains that are not wanted, and that are not kpc-apply's. */
  readonly leftovers: readonly Leftover[];
  /** All rules of other programs, and those of kpc-apply's that stay because of them. */
  readonly staying: readonly Rule[];
}

type RuleClaims = Pick<Claims, 'owned' | 'adopt'>;

/** Divides chains, and the jumps to them from the kernel's own chains. */
export function shareRules(
  present: KernelState['iptables'],
  wanted: KernelState['iptables'],
  claims: RuleClaims,
): RuleShare {
  const draft = new RuleDraft(claims);
  const adjusted: { [F in Family]?: Tables } = { ...wanted };
  for (const family of families) {
    const there = present[family] ?? {};
    const tables = draft.addToShared(family, there, wanted[family] ?? {});
    adjusted[family] = tables;
    draft.addFamily(family, there, tables);
  }
  return draft.finish(adjusted);
}

/** A chain that would go, if nothing stays that needs it. */
interface Candidate {
  readonly family: Family;
  readonly table: TableName;
  readonly chain: Chain;
}

class RuleDraft {
  private readonly claims: RuleClaims;
  private readonly owned: { readonly chains: ReadonlySet<string>; readonly jumps: ReadonlySet<string> };
  private readonly besideKubelet: ReadonlySet<string>;
  private readonly chains = new ShareDraft();
  private readonly jumps = new ShareDraft();
  private readonly conflicts: Conflict[] = [];
  private readonly leftovers: Leftover[] = [];
  private readonly candidates = new Map<string, Candidate>();
  /** Rules that stay, with where they stand. */
  private readonly staying: { readonly family: Family; readonly table: TableName; readonly rule: Rule }[] = [];
  private readonly madeBesideKubelet: Set<string>;

  constructor(claims: RuleClaims) {
    this.claims = claims;
    this.owned = { chains: new Set(claims.owned.chains), jumps: new Set(claims.owned.jumps) };
    this.besideKubelet = new Set(claims.owned.besideKubelet);
    this.madeBesideKubelet = new Set(claims.owned.besideKubelet);
  }

  /**
   * KUBE-FIREWALL is kubelet's as well as kube-proxy's, and each adds its rule where it is missing (EnsureRule). In one
   * that is not ours, ours is no more than a rule that was missing: what else stands there stays. Up to 1.26, kubelet has
   * a second rule in it.
   */
  addToShared(family: Family, present: Tables, wanted: Tables): Tables {
    const table = 'filter';
    const there = present[table]?.get(sharedChain);
    const trace = traceKubelet(present);
    const isMine = this.claims.adopt || this.owned.chains.has(chainKey(family, table, sharedChain));
    if (!there || (isMine && !this.isKubelets(family, table, there, trace))) return wanted;
    const asked = wanted[table]?.get(sharedChain);
    const keyOf = (rule: Rule) => jumpKey(family, table, sharedChain, rule);
    const known = new Set(there.rules.map(keyOf));
    const askedKeys = new Set(asked?.rules.map(keyOf));
    const isShared = mayKubeletMake(trace, table, sharedChain);
    const isOurs = (key: string) => this.owned.jumps.has(key) && (!isShared || this.besideKubelet.has(key));
    const staying = there.rules.filter((rule) => askedKeys.has(keyOf(rule)) || !isOurs(keyOf(rule)));
    const missing = (asked?.rules ?? []).filter((rule) => !known.has(keyOf(rule)));
    for (const key of askedKeys) {
      if (!known.has(key)) this.noteKubelet(key, table, sharedChain, trace);
      if (known.has(key) && !isOurs(key)) continue;
      this.jumps.touched.push(key);
      this.jumps.belongings.push(key);
    }
    if (!asked && staying.length === there.rules.length) return wanted;
    const merged = { ...there, rules: [...staying, ...missing] };
    return { ...wanted, [table]: new Map([...(wanted[table] ?? []), [sharedChain, merged]]) };
  }

  addFamily(family: Family, present: Tables, wanted: Tables): void {
    const trace = traceKubelet(present);
    for (const table of tableNames) {
      const [there, asked] = [present[table] ?? noChains, wanted[table] ?? noChains];
      const entries = listEntries(table, there);
      for (const chain of asked.values()) {
        if (!isBuiltInChain(table, chain.name)) this.addWanted(family, table, chain, there.get(chain.name), trace);
      }
      for (const chain of there.values()) {
        if (isBuiltInChain(table, chain.name) || asked.has(chain.name)) continue;
        this.addUnwanted(family, table, chain, entries, trace);
      }
      for (const name of new Set([...asked.keys(), ...there.keys()])) {
        if (isBuiltInChain(table, name)) this.addJumps(family, table, name, there, asked, trace);
      }
    }
  }

  private addWanted(
    family: Family,
    table: TableName,
    chain: Chain,
    twin: Chain | undefined,
    trace: KubeletTrace,
  ): void {
    const key = chainKey(family, table, chain.name);
    const kind = classifyChain(table, chain.name);
    if (!twin) this.noteKubelet(key, table, chain.name, trace);
    const isKubeProxys = twin !== undefined && isKubeProxyChain(table, twin);
    if (!twin || this.owned.chains.has(key) || (this.claims.adopt && isKubeProxys)) return this.chains.have(key);
    this.chains.ours.push(key);
    if (equalRules(twin.rules, chain.rules)) return;
    if (kind === 'shared') this.chains.touched.push(key);
    else this.conflicts.push({ kind: 'chain', name: key, adoptable: isKubeProxys });
  }

  private addUnwanted(
    family: Family,
    table: TableName,
    chain: Chain,
    entries: ReadonlySet<string>,
    trace: KubeletTrace,
  ): void {
    const key = chainKey(family, table, chain.name);
    const isOwned = this.owned.chains.has(key) && classifyChain(table, chain.name) !== undefined;
    const isKubeProxys = (isOwned || isKubeProxyChain(table, chain)) && !this.isKubelets(family, table, chain, trace);
    if (isKubeProxys && (this.claims.adopt || isOwned)) {
      this.candidates.set(key, { family, table, chain });
      return;
    }
    this.stay(family, table, chain.rules);
    if (!isKubeProxys) return;
    const isInEffect = chain.rules.length > 0 && entries.has(chain.name);
    this.leftovers.push({ kind: 'chain', name: key, isInEffect });
  }

  /** A jump that is there as it is wanted, and not ours, is left out: it stays, and where it stands. */
  private addJumps(
    family: Family,
    table: TableName,
    chain: string,
    there: ReadonlyMap<string, Chain>,
    asked: ReadonlyMap<string, Chain>,
    trace: KubeletTrace,
  ): void {
    const rules = there.get(chain)?.rules ?? [];
    const isOurs = (rule: Rule, key: string): boolean => {
      const target = jumpChain(rule) ?? '';
      const targetChain = there.get(target);
      if (classifyChain(table, target) === undefined || !targetChain) return false;
      if (this.owned.jumps.has(key)) {
        const isShared = targetChain.rules.length > 0 && mayKubeletMake(trace, table, target);
        return !isShared || this.besideKubelet.has(key);
      }
      if (!this.claims.adopt || !isKubeProxyJump(rule, table, chain)) return false;
      return isKubeProxyChain(table, targetChain) && !this.isKubelets(family, table, targetChain, trace);
    };
    const keys = new Map(rules.map((rule) => [jumpKey(family, table, chain, rule), rule]));
    const wanted = new Set<string>();
    for (const rule of asked.get(chain)?.rules ?? []) {
      if (!asked.has(jumpChain(rule) ?? '')) continue;
      const key = jumpKey(family, table, chain, rule);
      wanted.add(key);
      const twin = keys.get(key);
      if (!twin) this.noteKubelet(key, table, jumpChain(rule) ?? '', trace);
      if (!twin || isOurs(twin, key)) this.jumps.have(key);
    }
    for (const [key, rule] of keys) {
      if (wanted.has(key)) continue;
      if (isOurs(rule, key)) this.jumps.letGo(key);
      else this.stay(family, table, [rule]);
    }
  }

  /** Notes that kpc-apply makes, or made, this although there is a kubelet, which has none. */
  private noteKubelet(key: string, table: TableName, name: string, trace: KubeletTrace): void {
    if (mayKubeletMake(trace, table, name)) this.madeBesideKubelet.add(key);
  }

  private stay(family: Family, table: TableName, rules: readonly Rule[]): void {
    for (const rule of rules) this.staying.push({ family, table, rule });
  }

  /**
   * Whether a chain of a name that kubelet and kube-proxy share is a kubelet's by now, or holds another program's rules:
   * then neither it nor the jumps to it are taken away. An empty one is no kubelet's.
   */
  private isKubelets(family: Family, table: TableName, chain: Chain, trace: KubeletTrace): boolean {
    if (chain.rules.length === 0) return false;
    if (classifyChain(table, chain.name) === 'shared' && !chain.rules.every(isLocalnetRule)) return true;
    if (!mayKubeletMake(trace, table, chain.name)) return false;
    return !this.besideKubelet.has(chainKey(family, table, chain.name));
  }

  finish(wanted: KernelState['iptables']): RuleShare {
    // The list grows while it is walked: a chain that stays keeps those that it jumps to.
    for (const { family, table, rule } of this.staying) {
      const key = chainKey(family, table, jumpChain(rule) ?? '');
      const candidate = this.candidates.get(key);
      if (!candidate) continue;
      this.candidates.delete(key);
      if (this.owned.chains.has(key)) this.chains.belongings.push(key);
      this.stay(family, table, candidate.chain.rules);
    }
    for (const key of this.candidates.keys()) this.chains.letGo(key);
    return {
      wanted,
      chains: this.chains,
      jumps: this.jumps,
      besideKubelet: [...this.madeBesideKubelet],
      conflicts: this.conflicts,
      leftovers: this.leftovers,
      staying: this.staying.map(({ rule }) => rule),
    };
  }
}

/** The chains that the kernel's own jump to. */
function listEntries(table: TableName, chains: ReadonlyMap<string, Chain>): ReadonlySet<string> {
  const entries = new Set<string>();
  for (const { name, rules } of chains.values()) {
    if (isBuiltInChain(table, name)) for (const rule of rules) entries.add(jumpChain(rule) ?? '');
  }
  return entries;
}

const noChains: ReadonlyMap<string, Chain> = new Map();
