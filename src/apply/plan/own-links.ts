import type { Link, LinkAddress } from '../../kernel/link/link.ts';
import type { KernelState } from '../../kernel/state.ts';
import { serviceLink } from '../../kube-proxy/service-link.ts';
import { addressKey } from '../state/belongings.ts';
import { ShareDraft, type Claims, type Conflict, type Leftover, type NamedShare } from './conflicts.ts';

/** How the links of a node divide. */
export interface LinkShare {
  /** What is wanted; of a link that is another program's, the addresses on it. */
  readonly wanted: KernelState['links'];
  readonly links: NamedShare;
  readonly addresses: NamedShare;
  readonly conflicts: readonly Conflict[];
  readonly leftovers: readonly Leftover[];
}

/**
 * A link that kpc-apply made is its own with all addresses on it. On one that was there before, only the addresses are
 * that it put there.
 */
export function shareLinks(
  present: KernelState['links'],
  wanted: KernelState['links'],
  claims: Pick<Claims, 'owned' | 'adopt'>,
): LinkShare {
  const there = new Map(present.map((link) => [link.name, link]));
  const [links, addresses] = [new ShareDraft(), new ShareDraft()];
  const conflicts: Conflict[] = [];
  const leftovers: Leftover[] = [];
  const beside: Link[] = [];
  const ownedLinks = new Set(claims.owned.links);
  const ownedAddresses = new Set(claims.owned.addresses);
  const isMine = (link: Link): boolean =>
    link.name === serviceLink && (ownedLinks.has(link.name) || (claims.adopt && mayKubeProxyMake(link)));

  for (const link of wanted) {
    const twin = there.get(link.name);
    if (!twin || isMine(twin)) {
      links.have(link.name);
      beside.push(link);
      continue;
    }
    if (twin.kind !== undefined && link.kind !== undefined && twin.kind !== link.kind) {
      conflicts.push({ kind: 'link', name: link.name, adoptable: false });
    }
    const bound = new Set(twin.addresses.map((address) => addressKey(link.name, address)));
    for (const address of link.addresses) {
      const key = addressKey(link.name, address);
      // One that is there, and not ours, is left out: it is as it is wanted, and stays.
      if (bound.has(key) && !ownedAddresses.has(key)) continue;
      addresses.have(key);
    }
    beside.push({ ...link, kind: twin.kind });
  }
  const asked = new Set(wanted.map(({ name }) => name));
  for (const link of present) {
    const isWanted = asked.has(link.name);
    if (isMine(link)) {
      if (!isWanted) links.letGo(link.name);
      continue;
    }
    const known = new Set(addresses.ours);
    const going = link.addresses
      .map((address) => addressKey(link.name, address))
      .filter((key) => ownedAddresses.has(key) && !known.has(key));
    for (const key of going) addresses.letGo(key);
    // The link itself stays.
    if (!isWanted && going.length > 0) beside.push({ ...link, addresses: [] });
    if (!isWanted && link.name === serviceLink && mayKubeProxyMake(link))
      leftovers.push({ kind: 'link', name: link.name, isInEffect: false });
  }
  return { wanted: beside, links, addresses, conflicts, leftovers };
}

/** Whether a link of kube-proxy's name may be its own: a dummy, with single addresses if any. Others of its name are another program's. */
function mayKubeProxyMake({ kind, addresses }: Link): boolean {
  const isSingle = ({ family, prefixLength }: LinkAddress) => prefixLength === (family === 'ipv4' ? 32 : 128);
  const given = addresses.filter(({ scope }) => scope !== 'link');
  return (kind === undefined || kind === 'dummy') && (given.length === 0 || given.some(isSingle));
}
