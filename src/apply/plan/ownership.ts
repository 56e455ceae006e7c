import { contains, joinHostPort } from '../../kernel/address.ts';
import { equalStates } from '../../kernel/delta.ts';
import { temporarySetName } from '../../kernel/ipset/ipset.ts';
import { formatEntry } from '../../kernel/ipset/set-entry.ts';
import { virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import type { VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import type { Link, LinkAddress } from '../../kernel/link/link.ts';
import { diffNftTables } from '../../kernel/nftables/nft-delta.ts';
import { isOwnedByProgram, type NftTable } from '../../kernel/nftables/table.ts';
import { emptyState, type KernelState } from '../../kernel/state.ts';
import { isMadeByKubeProxy, isKubeProxyTable } from '../../kube-proxy/nft-names.ts';
import { serviceLink } from '../../kube-proxy/service-link.ts';
import { isKubeProxySet, mayKubeProxyMake } from '../../kube-proxy/ipvs-sets.ts';
import { recognizeVirtualServers } from '../../kube-proxy/virtual-servers.ts';
import { addressKey, nftTableKey } from '../state/belongings.ts';
import { shareRules } from './own-rules.ts';
import { ShareDraft, type Claims, type Share } from './share-draft.ts';

/** Divides what is on a node, in view of what is wanted there, into ours and theirs. */
export function takeShare(present: KernelState, wanted: KernelState, claims: Claims): Share {
  const draft = new ShareDraft(present, wanted, claims);
  // In the order in which people are to read of what is in the way. The kernel keeps a set that a rule uses. Sysctls, timeouts and
  // modules are no program's own: the last one to set them is right.
  for (const share of [shareVirtualServers, shareRules, shareNftTables, shareSets, shareLinks]) share(draft);
  return draft.finish();
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
