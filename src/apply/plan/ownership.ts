import { contains, joinHostPort } from '../../kernel/address.ts';
import { parseBalancer } from '../../kernel/balancer/balancer.ts';
import { equalStates, jumpChain, emptyState, type KernelState } from '../../kernel/state.ts';
import { temporarySetName, type IpSet } from '../../kernel/ipset/ipset.ts';
import { formatEntry } from '../../kernel/ipset/set-entry.ts';
import { equalRules, familyOfPlace, rulesPlaces, type RulesPlace } from '../../kernel/iptables/iptables-delta.ts';
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
import type { Link } from '../../kernel/link/link.ts';
import { diffNftTables } from '../../kernel/nftables/nft-delta.ts';
import { isOwnedByProgram, type NftTable } from '../../kernel/nftables/table.ts';
import {
  isLocalnetRule,
  mayKubeletMake,
  traceKubelet,
  classifyChain,
  sharedChain,
  type KubeletTrace,
} from '../../kube-proxy/chains.ts';
import { parseSetName, serviceLink } from '../../kube-proxy/ipvs-objects.ts';
import { isKubeProxyTable } from '../../kube-proxy/nft-table.ts';
import { variantOfPlace, type Variants } from '../node/tools.ts';
import type { OwnedNames } from '../state/owned-lists.ts';
import { addressKey, chainKey, jumpKey, nftTableKey, nothingOwned, rulesKey } from '../state/owned-names.ts';
import { OwnershipDraft, type Claims, type Leftover, type OwnershipDecision } from './ownership-draft.ts';

export function decideOwnership(present: KernelState, wanted: KernelState, claims: Claims): OwnershipDecision {
  const decision = divideAll(present, wanted, claims);
  const { leftovers } = decision;
  if (leftovers.length === 0 || claims.adopt) return decision;
  const { used } = divideAll(present, wanted, { ...claims, adopt: true });
  const keyOf = ({ kind, name }: Pick<Leftover, 'kind' | 'name'>) => `${kind} ${name}`;
  const keys = new Set(used.map(keyOf));
  return { ...decision, leftovers: leftovers.map((each) => ({ ...each, isUsed: keys.has(keyOf(each)) })) };
}

function divideAll(present: KernelState, wanted: KernelState, claims: Claims): OwnershipDecision {
  const draft = new OwnershipDraft(present, wanted, claims);
  // Conflicts are reported in this order. Sysctls, timeouts and modules have no owner, because the last writer is right.
  for (const divide of [divideVirtualServers, divideRules, divideNftTables, divideSets, divideLinks, divideProxyPorts])
    divide(draft);
  return draft.finish();
}

export function ownedNamesIn(state: KernelState, variants: Variants): OwnedNames {
  return decideOwnership(emptyState, state, { owned: nothingOwned, variants, adopt: false, excluded: [] }).ownedAfter;
}

function keyed<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, T> {
  return new Map(items.map((item) => [keyOf(item), item]));
}

function areSameParts<Part extends Partial<KernelState>>(a: Part, b: Part): boolean {
  return equalStates({ ...emptyState, ...a }, { ...emptyState, ...b });
}

function divideVirtualServers(draft: OwnershipDraft): void {
  const { claims, present, foreign } = draft;
  const wanted = keyed(draft.wanted.virtualServers, virtualServerKey);
  const isExcluded = ({ address }: VirtualServer) => claims.excluded.some((network) => contains(network, address));
  const isAdoptable = (server: VirtualServer) =>
    !isExcluded(server) && draft.evidence.virtualServer(server) === 'certain';
  draft.divide('virtualServers', {
    present: keyed(present.virtualServers, virtualServerKey),
    wanted,
    isOwned: (server, key) =>
      (draft.owns('virtualServers', key) && (wanted.has(key) || !isExcluded(server))) ||
      (claims.adopt && isAdoptable(server)),
    collide: (there, asked) =>
      areSameParts({ virtualServers: [there] }, { virtualServers: [asked] })
        ? undefined
        : { kind: 'virtual-server', name: describeServer(there), adoptable: isAdoptable(there) },
    leave: (server) => foreign.push(describeServer(server)),
  });
}

function describeServer({ protocol, address, port }: VirtualServer): string {
  return `${protocol} ${joinHostPort(address.text, port)}`;
}

/** Divides nftables tables. A table and its content have one owner: kpc-apply, a kube-proxy or another program. */
function divideNftTables(draft: OwnershipDraft): void {
  const { claims, present, wanted, leftovers, evidence } = draft;
  const keyOf = ({ family, name }: NftTable) => nftTableKey(family, name);
  const isLeft = (table: NftTable) => evidence.nftTable(table) === 'certain';
  draft.divide('nftTables', {
    present: keyed(present.nftables, keyOf),
    wanted: keyed(wanted.nftables, keyOf),
    // A table that a running program owns exclusively is not kpc-apply's, whatever the record says.
    isOwned: (table, key) =>
      isKubeProxyTable(table.name) &&
      !isOwnedByProgram(table) &&
      ((claims.adopt && isLeft(table)) || draft.owns('nftTables', key)),
    collide(there, asked, name) {
      if (diffNftTables([there], [asked]).length === 0) return undefined;
      return { kind: 'table', name, adoptable: isLeft(there) && !isOwnedByProgram(there) };
    },
    leave(table, name) {
      if (!isLeft(table)) return;
      leftovers.push({ kind: 'table', name, isInEffect: true, adoptable: !isOwnedByProgram(table) });
    },
  });
}

function divideSets(draft: OwnershipDraft): void {
  const { claims, present, wanted, leftovers, evidence } = draft;
  const needed = listNeededSets(draft);
  const isLeft = (set: IpSet) => evidence.set(set) === 'certain';
  draft.divide('sets', {
    present: keyed(present.sets, ({ name }) => name),
    wanted: keyed(wanted.sets, ({ name }) => name),
    isOwned: (set, name) =>
      (draft.owns('sets', name) && parseSetName(name) !== undefined) ||
      (claims.adopt && isLeft(set)) ||
      name === temporarySetName,
    collide: (there, asked, name) =>
      areSameParts({ sets: [there] }, { sets: [asked] }) ? undefined : { kind: 'set', name, adoptable: isLeft(there) },
    leave(set, name) {
      if (isLeft(set)) leftovers.push({ kind: 'set', name, isInEffect: false, adoptable: true });
    },
    // The kernel refuses to remove a set that a rule or another set uses.
    nameUsed: (_, name) => (needed.has(name) ? { kind: 'set', name } : undefined),
  });
}

function listNeededSets({ present, staying }: OwnershipDraft): ReadonlySet<string> {
  const needed = new Set<string>();
  for (const { args } of staying) {
    for (const arg of args) {
      if (arg.kind === 'match-set') needed.add(arg.set);
      // In options that kpc does not parse and in the target SET, set names are plain words.
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

/** If kpc-apply made a link, it owns the link with all addresses. On any other link, it owns only the addresses that it added. */
function divideLinks(draft: OwnershipDraft): void {
  const { claims, present, wanted, conflicts, leftovers, evidence } = draft;
  const isLeft = (link: Link) => evidence.link(link) === 'certain';
  const there = keyed(present.links, ({ name }) => name);
  const asked = keyed(wanted.links, ({ name }) => name);
  const beside: Link[] = [];
  const isOwned = (link: Link): boolean =>
    link.name === serviceLink && (draft.owns('links', link.name) || (claims.adopt && isLeft(link)));
  const keysOf = ({ name, addresses }: Link) => addresses.map((address) => addressKey(name, address));

  for (const link of asked.values()) {
    const twin = there.get(link.name);
    if (!twin || isOwned(twin)) {
      draft.have('links', link.name);
      beside.push(link);
      continue;
    }
    if (twin.kind !== undefined && link.kind !== undefined && twin.kind !== link.kind) {
      conflicts.push({ kind: 'link', name: link.name, adoptable: false });
    }
    // An address that is present but not owned is already as wanted, so it stays.
    const bound = new Set(keysOf(twin));
    for (const key of keysOf(link)) if (!bound.has(key) || draft.owns('addresses', key)) draft.have('addresses', key);
    beside.push({ ...link, kind: twin.kind });
  }
  for (const link of there.values()) {
    const isWanted = asked.has(link.name);
    if (isOwned(link)) {
      if (!isWanted) draft.letGo('links', link.name);
      continue;
    }
    const going = keysOf(link).filter((key) => draft.owns('addresses', key) && !draft.owned.addresses.has(key));
    for (const key of going) draft.letGo('addresses', key);
    if (isWanted) continue;
    if (going.length > 0) beside.push({ ...link, addresses: [] });
    if (isLeft(link)) {
      leftovers.push({ kind: 'link', name: link.name, isInEffect: false, adoptable: true });
    }
  }
  draft.wanted = { ...wanted, links: beside };
  // Report cluster IPs on the node's own links. Dummy links may have them, such as kube-ipvs0 or the link of a DNS cache.
  for (const { name, addresses } of present.links.filter(({ kind }) => kind !== 'dummy')) {
    for (const { address } of addresses.filter((each) => claims.clusterIPs?.has(each.address.text))) {
      conflicts.push({ kind: 'address', name: `${address.text} of ${name}`, adoptable: false });
    }
  }
}

function divideProxyPorts(draft: OwnershipDraft): void {
  const { wanted, conflicts, leftovers } = draft;
  const file = draft.claims.othersBalancer;
  if (!file) return;
  const { path: name, isAdoptable: adoptable } = file;
  const { proxyPorts } = parseBalancer(file.text);
  const isThere = adoptable && areSameParts({ proxyPorts }, { proxyPorts: wanted.proxyPorts });
  if (wanted.proxyPorts.length > 0 && !isThere) conflicts.push({ kind: 'file', name, adoptable });
  if (wanted.proxyPorts.length === 0 && adoptable) leftovers.push({ kind: 'file', name, isInEffect: false, adoptable });
  draft.wanted = { ...wanted, proxyPorts: [] };
}

function divideRules(draft: OwnershipDraft): void {
  for (const key of draft.claims.owned.besideKubelet) draft.have('besideKubelet', key);
  for (const place of rulesPlaces) {
    const there = draft.present.iptables[place] ?? {};
    const node: KubeletNode = {
      draft,
      place,
      key: rulesKey(place, draft.claims.variants),
      trace: traceKubelet(there),
    };
    const asked = addToShared(node, there.filter?.get(sharedChain), draft.wanted.iptables[place] ?? {});
    draft.wanted = { ...draft.wanted, iptables: { ...draft.wanted.iptables, [place]: asked } };
    divideTables(node, there, asked);
  }
}

interface KubeletNode {
  readonly draft: OwnershipDraft;
  readonly place: RulesPlace;
  readonly key: string;
  readonly trace: KubeletTrace;
}

interface PlacedChain {
  readonly table: TableName;
  readonly chain: Chain;
}

interface PlacedRule extends PlacedChain {
  readonly rule: Rule;
}

function divideTables(node: KubeletNode, there: Tables, asked: Tables): void {
  const { draft, place, key: own } = node;
  const keyOf = ({ table, chain }: PlacedChain) => chainKey(own, table, chain.name);
  const targetOf = ({ table, rule }: PlacedRule) => chainKey(own, table, jumpChain(rule) ?? '');
  const [chains, wantedChains] = [keyed(listChains(there, false), keyOf), keyed(listChains(asked, false), keyOf)];
  const rulesOf = (tables: Tables) =>
    keyed(listChains(tables, true).flatMap(listRules), ({ table, chain, rule }) =>
      jumpKey(own, table, chain.name, rule),
    );
  const rules = rulesOf(there);

  const isMyJump = (jump: PlacedRule, key: string) => isOwnJump(node, jump, key, chains.get(targetOf(jump)));
  // A wanted jump that another program made stays in place.
  const wantedJumps = [...rulesOf(asked)].filter(([key, jump]) => {
    const twin = rules.get(key);
    return wantedChains.has(targetOf(jump)) && (!twin || isMyJump(twin, key));
  });
  const staying: PlacedRule[] = [];
  draft.divide('jumps', {
    present: rules,
    wanted: new Map(wantedJumps),
    isOwned: isMyJump,
    leave: (jump) => staying.push(jump),
    make: ({ table, rule }, key) => noteKubelet(node, key, table, jumpChain(rule) ?? ''),
  });

  const isOwned = (placed: PlacedChain, key: string) => isOwnChain(node, placed, key, wantedChains.has(key));
  const candidates = new Map([...chains].filter(([key]) => !wantedChains.has(key)));
  for (const [key, placed] of candidates) {
    if (!isOwned(placed, key)) for (const rule of listRules(placed)) staying.push(rule);
  }
  // The loop extends the list, because a chain that stays keeps the chains it jumps to.
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
    isOwned,
    collide: (twin, { chain }, key) => collideChains(node, twin, chain, key),
    leave({ table, chain }, key) {
      if (node.draft.evidence.chain(table, chain) !== 'certain' || isKubelets(node, table, chain)) return;
      const isInEffect = chain.rules.length > 0 && entries.has(key);
      const isOfOtherVariant = place !== familyOfPlace(place);
      const name = nameChain(node, table, chain);
      draft.leftovers.push({ kind: 'chain', name, isInEffect, isOfOtherVariant, adoptable: true });
    },
    nameUsed: ({ table, chain }, key) =>
      candidates.has(key) ? undefined : { kind: 'chain', name: nameChain(node, table, chain) },
    make: ({ table, chain }, key) => noteKubelet(node, key, table, chain.name),
  });
}

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
 * Merges the wanted rules of KUBE-FIREWALL with the rules that stay. kubelet and kube-proxy share this chain; each adds its own rule if
 * missing (EnsureRule), and kubelet up to 1.26 a second one. In a foreign chain, only a rule that was missing is owned.
 */
function addToShared(node: KubeletNode, there: Chain | undefined, wanted: Tables): Tables {
  const table = 'filter';
  const { draft, key: own, trace } = node;
  const ownsChain = draft.claims.adopt || draft.owns('chains', chainKey(own, table, sharedChain));
  if (!there || (ownsChain && !isKubelets(node, table, there))) return wanted;
  const asked = wanted[table]?.get(sharedChain);
  const keyOf = (rule: Rule) => jumpKey(own, table, sharedChain, rule);
  const known = new Set(there.rules.map(keyOf));
  const askedKeys = new Set(asked?.rules.map(keyOf));
  const isOwned = (key: string) => ownsRule(node, key, mayKubeletMake(trace, table, sharedChain));
  const staying = there.rules.filter((rule) => askedKeys.has(keyOf(rule)) || !isOwned(keyOf(rule)));
  const missing = (asked?.rules ?? []).filter((rule) => !known.has(keyOf(rule)));
  for (const key of askedKeys) {
    if (!known.has(key)) noteKubelet(node, key, table, sharedChain);
    if (known.has(key) && !isOwned(key)) continue;
    draft.ownedDuring.jumps.add(key);
    draft.ownedAfter.jumps.add(key);
  }
  if (!asked && staying.length === there.rules.length) return wanted;
  const merged = { ...there, rules: [...staying, ...missing] };
  return { ...wanted, [table]: new Map([...(wanted[table] ?? []), [sharedChain, merged]]) };
}

function isOwnChain(node: KubeletNode, { table, chain }: PlacedChain, key: string, isWanted: boolean): boolean {
  const { draft } = node;
  if (!draft.owns('chains', key) && !(draft.claims.adopt && draft.evidence.chain(table, chain) === 'certain'))
    return false;
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
  if (!draft.claims.adopt || draft.evidence.jump(table, chain.name, rule) !== 'certain') return false;
  return draft.evidence.chain(table, target.chain) === 'certain' && !isKubelets(node, table, target.chain);
}

function collideChains(node: KubeletNode, { table, chain: twin }: PlacedChain, chain: Chain, key: string) {
  const { draft } = node;
  if (equalRules(twin.rules, chain.rules)) return undefined;
  if (classifyChain(table, chain.name) !== 'shared') {
    const name = nameChain(node, table, chain);
    return { kind: 'chain', name, adoptable: draft.evidence.chain(table, twin) === 'certain' } as const;
  }
  draft.ownedDuring.chains.add(key);
  return undefined;
}

/** Names a chain: "ipv4 nat KUBE-SERVICES" or "ipv4 nat KUBE-SERVICES (iptables-legacy)". */
function nameChain({ draft, place }: KubeletNode, table: TableName, { name }: Chain): string {
  const family = familyOfPlace(place);
  const of = place === family ? '' : ` (iptables-${variantOfPlace(place, draft.claims.variants)})`;
  return `${family} ${table} ${name}${of}`;
}

function ownsRule({ draft }: KubeletNode, key: string, isShared: boolean): boolean {
  return draft.owns('jumps', key) && (!isShared || draft.owns('besideKubelet', key));
}

function noteKubelet({ draft, trace }: KubeletNode, key: string, table: TableName, name: string): void {
  if (mayKubeletMake(trace, table, name)) draft.have('besideKubelet', key);
}

/** Reports whether a chain with a shared name is kubelet's or has other programs' rules. The chain then stays, with the jumps to it. */
function isKubelets({ draft, key: own, trace }: KubeletNode, table: TableName, { name, rules }: Chain): boolean {
  if (rules.length === 0) return false;
  if (classifyChain(table, name) === 'shared' && !rules.every(isLocalnetRule)) return true;
  return mayKubeletMake(trace, table, name) && !draft.owns('besideKubelet', chainKey(own, table, name));
}
