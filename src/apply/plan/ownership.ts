import { contains, joinHostPort } from '../../kernel/address.ts';
import { equalStates } from '../../kernel/delta.ts';
import { families, type Family } from '../../kernel/family.ts';
import { temporarySetName } from '../../kernel/ipset/ipset.ts';
import { formatEntry } from '../../kernel/ipset/set-entry.ts';
import { equalRules } from '../../kernel/iptables/iptables-delta.ts';
import {
  isBuiltInChain,
  tableNames,
  type Chain,
  type Rule,
  type TableName,
  type Tables,
} from '../../kernel/iptables/iptables.ts';
import { virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import type { VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import type { Link, LinkAddress } from '../../kernel/link/link.ts';
import { diffNftTables } from '../../kernel/nftables/nft-delta.ts';
import { isOwnedByProgram, type NftTable } from '../../kernel/nftables/table.ts';
import { jumpChain } from '../../kernel/restrict.ts';
import { emptyState, type KernelState } from '../../kernel/state.ts';
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
import { isKubeProxySet, mayKubeProxyMake } from '../../kube-proxy/ipvs-sets.ts';
import { isKubeProxyTable, isMadeByKubeProxy } from '../../kube-proxy/nft-names.ts';
import { serviceLink } from '../../kube-proxy/service-link.ts';
import { recognizeVirtualServers } from '../../kube-proxy/virtual-servers.ts';
import { addressKey, chainKey, jumpKey, nftTableKey, noBelongings, type Belongings } from '../state/belongings.ts';
import { ShareDraft, type Claims, type Share } from './share-draft.ts';

/** Divides what is on a node, in view of what is wanted there, into ours and theirs. */
export function takeShare(present: KernelState, wanted: KernelState, claims: Claims): Share {
  const draft = new ShareDraft(present, wanted, claims);
  // Conflicts are reported in this order. The kernel keeps a set that a rule uses. No program owns sysctls, timeouts
  // and modules: the last one to set them is right.
  for (const share of [shareVirtualServers, shareRules, shareNftTables, shareSets, shareLinks]) share(draft);
  return draft.finish();
}

/** The names of all that a state has. */
export function belongingsIn(state: KernelState): Belongings {
  return takeShare(emptyState, state, { owned: noBelongings, adopt: false, excluded: [] }).belongings;
}

function keyed<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, T> {
  return new Map(items.map((item) => [keyOf(item), item]));
}

/** Whether parts of a state mean the same. */
function areSame<Part extends Partial<KernelState>>(a: Part, b: Part): boolean {
  return equalStates({ ...emptyState, ...a }, { ...emptyState, ...b });
}

function shareVirtualServers(draft: ShareDraft): void {
  const { claims, present, foreign } = draft;
  const wanted = keyed(draft.wanted.virtualServers, virtualServerKey);
  const isExcluded = ({ address }: VirtualServer) => claims.excluded.some((network) => contains(network, address));
  const isKubeProxys = recognizeVirtualServers(present, draft.wanted.virtualServers);
  const isAdoptable = (server: VirtualServer) => !isExcluded(server) && isKubeProxys(server);
  draft.divide('virtualServers', {
    present: keyed(present.virtualServers, virtualServerKey),
    wanted,
    isMine: (server, key) =>
      (draft.owns('virtualServers', key) && (wanted.has(key) || !isExcluded(server))) ||
      (claims.adopt && isAdoptable(server)),
    collide: (there, asked) =>
      areSame({ virtualServers: [there] }, { virtualServers: [asked] })
        ? undefined
        : { kind: 'virtual-server', name: describeServer(there), adoptable: isAdoptable(there) },
    leave: (server) => foreign.push(describeServer(server)),
  });
}

/** "TCP 10.96.0.1:80". */
function describeServer({ protocol, address, port }: VirtualServer): string {
  return `${protocol} ${joinHostPort(address.text, port)}`;
}

/** A table is one owner's with all that is in it: of those that kpc-apply did not make, a kube-proxy's or another program's. */
function shareNftTables(draft: ShareDraft): void {
  const { claims, present, wanted, leftovers } = draft;
  const keyOf = ({ family, name }: NftTable) => nftTableKey(family, name);
  draft.divide('nftTables', {
    present: keyed(present.nftables, keyOf),
    wanted: keyed(wanted.nftables, keyOf),
    // A table that a program has to itself is that program's, even where the record has one of that name.
    isMine: (table, key) =>
      isKubeProxyTable(table.name) &&
      !isOwnedByProgram(table) &&
      ((claims.adopt && isMadeByKubeProxy(table)) || draft.owns('nftTables', key)),
    collide(there, asked, name) {
      if (diffNftTables([there], [asked]).length === 0) return undefined;
      const isHeld = isOwnedByProgram(there);
      return { kind: 'table', name, adoptable: isMadeByKubeProxy(there) && !isHeld, isHeld };
    },
    leave(table, name) {
      if (!isMadeByKubeProxy(table)) return;
      leftovers.push({ kind: 'table', name, isInEffect: true, isHeld: isOwnedByProgram(table) });
    },
  });
}

function shareSets(draft: ShareDraft): void {
  const { claims, present, wanted, leftovers } = draft;
  const needed = listNeededSets(draft);
  const isOwned = (name: string) => draft.owns('sets', name) && isKubeProxySet(name);
  draft.divide('sets', {
    present: keyed(present.sets, ({ name }) => name),
    wanted: keyed(wanted.sets, ({ name }) => name),
    isMine: (set, name) => isOwned(name) || (claims.adopt && mayKubeProxyMake(set)) || name === temporarySetName,
    collide: (there, asked, name) =>
      areSame({ sets: [there] }, { sets: [asked] })
        ? undefined
        : { kind: 'set', name, adoptable: mayKubeProxyMake(there) },
    leave(set, name) {
      if (mayKubeProxyMake(set)) leftovers.push({ kind: 'set', name, isInEffect: false });
    },
    // The kernel keeps a set that a rule or another set uses.
    keeps(_, name) {
      if (needed.has(name) && isOwned(name)) draft.belongings.sets.add(name);
      return needed.has(name);
    },
  });
}

/** The sets that the rules that stay name, and the sets of sets. */
function listNeededSets({ present, staying }: ShareDraft): ReadonlySet<string> {
  const needed = new Set<string>();
  for (const { args } of staying) {
    for (const arg of args) {
      if (arg.kind === 'match-set') needed.add(arg.set);
      // Options that kpc does not read, and the target SET, name theirs as a word.
      else if (arg.kind === 'other') for (const word of arg.words) needed.add(word);
      else if (arg.kind === 'jump' && arg.target.kind === 'other')
        for (const word of arg.target.words) needed.add(word);
    }
  }
  for (const { type, entries } of present.sets) {
    if (type === 'list:set') for (const entry of entries) needed.add(formatEntry(entry));
  }
  return needed;
}

/**
 * A link that kpc-apply made is its own with all addresses on it. On one that was there before, only the addresses are
 * that it put there.
 */
function shareLinks(draft: ShareDraft): void {
  const { claims, present, wanted, conflicts, leftovers } = draft;
  const there = keyed(present.links, ({ name }) => name);
  const asked = keyed(wanted.links, ({ name }) => name);
  const beside: Link[] = [];
  const isMine = (link: Link): boolean =>
    link.name === serviceLink && (draft.owns('links', link.name) || (claims.adopt && mayBeServiceLink(link)));
  const keysOf = ({ name, addresses }: Link) => addresses.map((address) => addressKey(name, address));

  for (const link of asked.values()) {
    const twin = there.get(link.name);
    if (!twin || isMine(twin)) {
      draft.have('links', link.name);
      beside.push(link);
      continue;
    }
    if (twin.kind !== undefined && link.kind !== undefined && twin.kind !== link.kind) {
      conflicts.push({ kind: 'link', name: link.name, adoptable: false });
    }
    // An address that is there, and not ours, is left out: it is as it is wanted, and stays.
    const bound = new Set(keysOf(twin));
    for (const key of keysOf(link)) if (!bound.has(key) || draft.owns('addresses', key)) draft.have('addresses', key);
    beside.push({ ...link, kind: twin.kind });
  }
  for (const link of there.values()) {
    const isWanted = asked.has(link.name);
    if (isMine(link)) {
      if (!isWanted) draft.letGo('links', link.name);
      continue;
    }
    const going = keysOf(link).filter((key) => draft.owns('addresses', key) && !draft.ours.addresses.has(key));
    for (const key of going) draft.letGo('addresses', key);
    if (isWanted) continue;
    // The link itself stays.
    if (going.length > 0) beside.push({ ...link, addresses: [] });
    if (link.name === serviceLink && mayBeServiceLink(link)) {
      leftovers.push({ kind: 'link', name: link.name, isInEffect: false });
    }
  }
  draft.wanted = { ...wanted, links: beside };
  // Cluster IPs that are addresses of the node itself, whatever the bundle lists as its addresses. A dummy link does not
  // count: kube-ipvs0 is one, and so is that of a DNS cache, which answers at a cluster IP on purpose.
  for (const { name, addresses } of present.links.filter(({ kind }) => kind !== 'dummy')) {
    for (const { address } of addresses.filter((each) => claims.clusterIPs?.has(each.address.text))) {
      conflicts.push({ kind: 'address', name: `${address.text} of ${name}`, adoptable: false });
    }
  }
}

/** Whether a link of kube-proxy's name may be its own: a dummy, with single addresses if any. Others of its name are another program's. */
function mayBeServiceLink({ kind, addresses }: Link): boolean {
  const isSingle = ({ family, prefixLength }: LinkAddress) => prefixLength === (family === 'ipv4' ? 32 : 128);
  const given = addresses.filter(({ scope }) => scope !== 'link');
  return (kind === undefined || kind === 'dummy') && (given.length === 0 || given.some(isSingle));
}

/** Divides chains, and the jumps to them from the kernel's own chains. */
function shareRules(draft: ShareDraft): void {
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
  /** Chains to remove unless a staying rule needs them, by key. */
  readonly #candidates = new Map<string, { readonly table: TableName; readonly chain: Chain }>();
  /** Rules that stay, each with its table. */
  readonly #staying: { readonly table: TableName; readonly rule: Rule }[] = [];

  constructor(draft: ShareDraft, family: Family, present: Tables) {
    this.#draft = draft;
    this.#family = family;
    this.#present = present;
    this.#trace = traceKubelet(present);
  }

  /** Returns what is wanted, as changed by #addToShared. */
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
   * kubelet and kube-proxy share KUBE-FIREWALL, and each adds its rule if it is missing (EnsureRule). In a chain that
   * is not ours, only a rule that was missing is ours; all others stay. Up to 1.26, kubelet has a second rule in it.
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

  /** `entries`: the chains that built-in chains jump to. */
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

  /** Skips a jump that already exists as wanted and is not ours: it stays where it is. */
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
    // The list grows during the loop: a chain that stays keeps the chains that it jumps to.
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

  /** Notes that kpc-apply makes, or made, this chain or rule beside a kubelet that lacks it. */
  #noteKubelet(key: string, table: TableName, name: string): void {
    if (mayKubeletMake(this.#trace, table, name)) this.#draft.have('besideKubelet', key);
  }

  #stay(table: TableName, rules: readonly Rule[]): void {
    for (const rule of rules) this.#staying.push({ table, rule });
  }

  /**
   * Whether a chain whose name kubelet and kube-proxy share is now kubelet's, or holds another program's rules: then
   * neither the chain nor the jumps to it are removed. An empty chain is not kubelet's.
   */
  #isKubelets(table: TableName, { name, rules }: Chain): boolean {
    if (rules.length === 0) return false;
    if (classifyChain(table, name) === 'shared' && !rules.every(isLocalnetRule)) return true;
    if (!mayKubeletMake(this.#trace, table, name)) return false;
    return !this.#draft.owns('besideKubelet', this.#keyOf(table, name));
  }
}

/** The chains that built-in chains jump to. */
function listEntries(table: TableName, chains: Chains): ReadonlySet<string> {
  const entries = [...chains.values()].filter(({ name }) => isBuiltInChain(table, name));
  return new Set(entries.flatMap(({ rules }) => rules.map((rule) => jumpChain(rule) ?? '')));
}
