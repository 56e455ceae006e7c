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
      return { kind: 'table', name, adoptable: isMadeByKubeProxy(there) && !isOwnedByProgram(there) };
    },
    leave(table, name) {
      if (!isMadeByKubeProxy(table)) return;
      leftovers.push({ kind: 'table', name, isInEffect: true, adoptable: !isOwnedByProgram(table) });
    },
  });
}

function shareSets(draft: ShareDraft): void {
  const { claims, present, wanted, leftovers } = draft;
  const needed = listNeededSets(draft);
  draft.divide('sets', {
    present: keyed(present.sets, ({ name }) => name),
    wanted: keyed(wanted.sets, ({ name }) => name),
    isMine: (set, name) =>
      (draft.owns('sets', name) && isKubeProxySet(name)) ||
      (claims.adopt && mayKubeProxyMake(set)) ||
      name === temporarySetName,
    collide: (there, asked, name) =>
      areSame({ sets: [there] }, { sets: [asked] })
        ? undefined
        : { kind: 'set', name, adoptable: mayKubeProxyMake(there) },
    leave(set, name) {
      if (mayKubeProxyMake(set)) leftovers.push({ kind: 'set', name, isInEffect: false, adoptable: true });
    },
    // The kernel keeps a set that a rule or another set uses.
    keeps: (_, name) => needed.has(name),
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
      leftovers.push({ kind: 'link', name: link.name, isInEffect: false, adoptable: true });
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
  for (const family of families) {
    const there = draft.present.iptables[family] ?? {};
    const node: KubeletNode = { draft, family, trace: traceKubelet(there) };
    const asked = addToShared(node, there.filter?.get(sharedChain), draft.wanted.iptables[family] ?? {});
    draft.wanted = { ...draft.wanted, iptables: { ...draft.wanted.iptables, [family]: asked } };
    shareFamily(node, there, asked);
  }
}

/** The rules of one family are shared here, with a kubelet where one has left a trace. */
interface KubeletNode {
  readonly draft: ShareDraft;
  readonly family: Family;
  readonly trace: KubeletTrace;
}

/** A chain of a table. */
interface PlacedChain {
  readonly table: TableName;
  readonly chain: Chain;
}

/** A rule of a chain. */
interface PlacedRule extends PlacedChain {
  readonly rule: Rule;
}

function shareFamily(node: KubeletNode, there: Tables, asked: Tables): void {
  const { draft, family } = node;
  const keyOf = ({ table, chain }: PlacedChain) => chainKey(family, table, chain.name);
  const targetOf = ({ table, rule }: PlacedRule) => chainKey(family, table, jumpChain(rule) ?? '');
  const [chains, wantedChains] = [keyed(listChains(there, false), keyOf), keyed(listChains(asked, false), keyOf)];
  const rulesOf = (tables: Tables) =>
    keyed(listChains(tables, true).flatMap(listRules), ({ table, chain, rule }) =>
      jumpKey(family, table, chain.name, rule),
    );
  const rules = rulesOf(there);

  const isMyJump = (jump: PlacedRule, key: string) => isOwnJump(node, jump, key, chains.get(targetOf(jump)));
  // A jump that is there as it is wanted, and is not ours, stays where it is.
  const wantedJumps = [...rulesOf(asked)].filter(([key, jump]) => {
    const twin = rules.get(key);
    return wantedChains.has(targetOf(jump)) && (!twin || isMyJump(twin, key));
  });
  const staying: PlacedRule[] = [];
  draft.divide('jumps', {
    present: rules,
    wanted: new Map(wantedJumps),
    isMine: isMyJump,
    leave: (jump) => staying.push(jump),
    make: ({ table, rule }, key) => noteKubelet(node, key, table, jumpChain(rule) ?? ''),
  });

  const isMine = (placed: PlacedChain, key: string) => isOwnChain(node, placed, key, wantedChains.has(key));
  const candidates = new Map([...chains].filter(([key]) => !wantedChains.has(key)));
  for (const [key, placed] of candidates) {
    if (!isMine(placed, key)) for (const rule of listRules(placed)) staying.push(rule);
  }
  // The list grows during the loop: a chain that stays keeps the chains that it jumps to.
  for (const rule of staying) {
    draft.staying.push(rule.rule);
    const target = candidates.get(targetOf(rule));
    candidates.delete(targetOf(rule));
    if (target) for (const each of listRules(target)) staying.push(each);
  }
  const entries = new Set([...rules.values()].map(targetOf));
  draft.divide('chains', {
    present: chains,
    wanted: wantedChains,
    isMine,
    collide: (twin, { chain }, name) => collideChains(node, twin, chain, name),
    leave({ table, chain }, name) {
      if (!isKubeProxyChain(table, chain) || isKubelets(node, table, chain)) return;
      const isInEffect = chain.rules.length > 0 && entries.has(name);
      draft.leftovers.push({ kind: 'chain', name, isInEffect, adoptable: true });
    },
    keeps: (_, key) => !candidates.has(key),
    make: ({ table, chain }, key) => noteKubelet(node, key, table, chain.name),
  });
}

/** The kernel's own chains of some tables, or all others. */
function listChains(tables: Tables, areBuiltIn: boolean): readonly PlacedChain[] {
  return tableNames.flatMap((table) =>
    [...(tables[table]?.values() ?? [])].flatMap((chain) =>
      isBuiltInChain(table, chain.name) === areBuiltIn ? { table, chain } : [],
    ),
  );
}

function listRules({ table, chain }: PlacedChain): readonly PlacedRule[] {
  return chain.rules.map((rule) => ({ table, chain, rule }));
}

/**
 * kubelet and kube-proxy share KUBE-FIREWALL, and each adds its rule if it is missing (EnsureRule). In a chain that
 * is not ours, only a rule that was missing is ours; all others stay. Up to 1.26, kubelet has a second rule in it.
 * Returns what is wanted with the rules that stay.
 */
function addToShared(node: KubeletNode, there: Chain | undefined, wanted: Tables): Tables {
  const table = 'filter';
  const { draft, family, trace } = node;
  const isMine = draft.claims.adopt || draft.owns('chains', chainKey(family, table, sharedChain));
  if (!there || (isMine && !isKubelets(node, table, there))) return wanted;
  const asked = wanted[table]?.get(sharedChain);
  const keyOf = (rule: Rule) => jumpKey(family, table, sharedChain, rule);
  const known = new Set(there.rules.map(keyOf));
  const askedKeys = new Set(asked?.rules.map(keyOf));
  const isOurs = (key: string) => ownsRule(node, key, mayKubeletMake(trace, table, sharedChain));
  const staying = there.rules.filter((rule) => askedKeys.has(keyOf(rule)) || !isOurs(keyOf(rule)));
  const missing = (asked?.rules ?? []).filter((rule) => !known.has(keyOf(rule)));
  for (const key of askedKeys) {
    if (!known.has(key)) noteKubelet(node, key, table, sharedChain);
    if (known.has(key) && !isOurs(key)) continue;
    draft.touched.jumps.add(key);
    draft.belongings.jumps.add(key);
  }
  if (!asked && staying.length === there.rules.length) return wanted;
  const merged = { ...there, rules: [...staying, ...missing] };
  return { ...wanted, [table]: new Map([...(wanted[table] ?? []), [sharedChain, merged]]) };
}

function isOwnChain(node: KubeletNode, { table, chain }: PlacedChain, key: string, isWanted: boolean): boolean {
  const { draft } = node;
  if (!draft.owns('chains', key) && !(draft.claims.adopt && isKubeProxyChain(table, chain))) return false;
  return isWanted || (classifyChain(table, chain.name) !== undefined && !isKubelets(node, table, chain));
}

function isOwnJump(
  node: KubeletNode,
  { table, chain, rule }: PlacedRule,
  key: string,
  target: PlacedChain | undefined,
): boolean {
  const { draft, trace } = node;
  if (!target || classifyChain(table, target.chain.name) === undefined) return false;
  if (draft.owns('jumps', key)) {
    return ownsRule(node, key, target.chain.rules.length > 0 && mayKubeletMake(trace, table, target.chain.name));
  }
  if (!draft.claims.adopt || !isKubeProxyJump(rule, table, chain.name)) return false;
  return isKubeProxyChain(table, target.chain) && !isKubelets(node, table, target.chain);
}

function collideChains({ draft }: KubeletNode, { table, chain: twin }: PlacedChain, chain: Chain, name: string) {
  if (equalRules(twin.rules, chain.rules)) return undefined;
  if (classifyChain(table, chain.name) !== 'shared') {
    return { kind: 'chain', name, adoptable: isKubeProxyChain(table, twin) } as const;
  }
  draft.touched.chains.add(name);
  return undefined;
}

function ownsRule({ draft }: KubeletNode, key: string, isShared: boolean): boolean {
  return draft.owns('jumps', key) && (!isShared || draft.owns('besideKubelet', key));
}

/** Notes that kpc-apply makes, or made, this chain or rule beside a kubelet that lacks it. */
function noteKubelet({ draft, trace }: KubeletNode, key: string, table: TableName, name: string): void {
  if (mayKubeletMake(trace, table, name)) draft.have('besideKubelet', key);
}

/**
 * Whether a chain whose name kubelet and kube-proxy share is now kubelet's, or holds another program's rules: then
 * neither the chain nor the jumps to it are removed. An empty chain is not kubelet's.
 */
function isKubelets({ draft, family, trace }: KubeletNode, table: TableName, { name, rules }: Chain): boolean {
  if (rules.length === 0) return false;
  if (classifyChain(table, name) === 'shared' && !rules.every(isLocalnetRule)) return true;
  return mayKubeletMake(trace, table, name) && !draft.owns('besideKubelet', chainKey(family, table, name));
}
