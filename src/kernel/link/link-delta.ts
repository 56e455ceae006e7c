import { formatAddressAdd, formatLinks, type Link, type LinkAddress } from './link.ts';
import { partition, type Split } from '../split-changes.ts';

/** One step from some links to others. */
export type LinkChange =
  /** A link with its addresses. One whose kind is not known cannot be made: its addresses are for one that is there. */
  | { readonly kind: 'add-link'; readonly link: Link }
  | { readonly kind: 'delete-link'; readonly link: Link }
  | { readonly kind: 'add-address'; readonly link: string; readonly address: LinkAddress }
  | { readonly kind: 'delete-address'; readonly link: string; readonly address: LinkAddress };

/** How to get from some links to others. A kind that one side does not know is taken to be the same. */
export function diffLinks(from: readonly Link[], to: readonly Link[]): readonly LinkChange[] {
  const before = new Map(from.map((link) => [link.name, link]));
  const changes: LinkChange[] = [];
  for (const link of to) {
    const old = before.get(link.name);
    before.delete(link.name);
    if (!old) changes.push({ kind: 'add-link', link });
    else if (old.kind !== undefined && link.kind !== undefined && old.kind !== link.kind) {
      changes.push({ kind: 'delete-link', link: old }, { kind: 'add-link', link });
    } else pushAddressChanges(changes, old, link);
  }
  for (const link of before.values()) changes.push({ kind: 'delete-link', link });
  return changes;
}

function pushAddressChanges(changes: LinkChange[], from: Link, to: Link): void {
  const before = new Map(from.addresses.map((address) => [addressKey(address), address]));
  const added = to.addresses.filter((address) => !before.delete(addressKey(address)));
  // The kernel refuses an address that is there with another scope, so what goes must go first.
  for (const address of before.values()) changes.push({ kind: 'delete-address', link: to.name, address });
  for (const address of added) changes.push({ kind: 'add-address', link: to.name, address });
}

function addressKey(address: LinkAddress): string {
  return `${address.address.text}/${address.prefixLength} ${address.scope ?? 'global'}`;
}

/**
 * What is to be made first, and what is to go after it. A link or address that makes way for another one of its name
 * goes with the additions.
 */
export function splitLinksDelta(changes: readonly LinkChange[]): Split<LinkChange> {
  const made = new Set(changes.flatMap((change) => (isAddition(change) ? [nameOf(change)] : [])));
  return partition(changes, (change) => !isAddition(change) && !made.has(nameOf(change)));
}

function isAddition(change: LinkChange): boolean {
  return change.kind === 'add-link' || change.kind === 'add-address';
}

function nameOf(change: LinkChange): string {
  return 'address' in change
    ? `${change.link} ${change.address.address.text}/${change.address.prefixLength}`
    : change.link.name;
}

/** The input of `ip -batch` that makes the changes. '' where there are none. */
export function formatLinksDelta(changes: readonly LinkChange[]): string {
  let text = '';
  for (const change of changes) text += formatLinkChange(change);
  return text;
}

function formatLinkChange(change: LinkChange): string {
  switch (change.kind) {
    case 'add-link':
      return formatLinks([change.link]);
    case 'delete-link':
      return `link del ${change.link.name}\n`;
    case 'add-address':
      return `${formatAddressAdd(change.link, change.address)}\n`;
    case 'delete-address':
      return `addr del ${change.address.address.text}/${change.address.prefixLength} dev ${change.link}\n`;
    default:
      return change satisfies never;
  }
}
