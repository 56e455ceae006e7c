import type { LinkChange } from '../../kernel/link-delta.ts';
import { tally, type ChangeLister } from './change-lister.ts';
import type { ChangeKind, OwnedChange } from './kernel-change.ts';
import type { SideOwners } from './owners.ts';

export const linkChanges: ChangeLister<readonly LinkChange[]> = {
  list: (changes, owners) => changes.flatMap((change) => changesOf(change, owners)),
  count: (changes) =>
    tally(
      changes.flatMap((change): readonly (readonly ['link' | 'address', ChangeKind])[] => {
        switch (change.kind) {
          case 'add-link':
            return [['link', 'added'], ...change.link.addresses.map(() => ['address', 'added'] as const)];
          case 'delete-link':
            return [['link', 'removed'], ...change.link.addresses.map(() => ['address', 'removed'] as const)];
          case 'add-address':
            return [['address', 'added']];
          case 'delete-address':
            return [['address', 'removed']];
        }
      }),
    ),
};

function changesOf(change: LinkChange, owners: SideOwners): readonly OwnedChange[] {
  switch (change.kind) {
    case 'add-link':
    case 'delete-link': {
      const kind = change.kind === 'add-link' ? 'added' : 'removed';
      const side = change.kind === 'add-link' ? owners.to : owners.from;
      const owned = change.link.addresses.map((address): OwnedChange => ({
        owner: side.ofAddress(address),
        change: { kind: 'address', change: kind, link: change.link.name, address: address.address.text },
      }));
      const free = owned.filter(({ owner }) => owner === undefined).length;
      const link: OwnedChange = {
        owner: undefined,
        change: { kind: 'link', change: kind, link: change.link.name, addresses: free },
      };
      return [link, ...owned.filter(({ owner }) => owner !== undefined)];
    }
    case 'add-address':
    case 'delete-address': {
      const added = change.kind === 'add-address';
      const { address } = change.address;
      return [
        {
          owner: (added ? owners.to : owners.from).ofAddress(change.address),
          change: { kind: 'address', change: added ? 'added' : 'removed', link: change.link, address: address.text },
        },
      ];
    }
  }
}
