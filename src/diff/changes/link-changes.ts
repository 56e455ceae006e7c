import type { LinkAddress, LinkChange } from '../../kernel/link/link.ts';
import { tally, withContent, type ChangeLister } from './change-lister.ts';
import type { OwnedChange } from './kernel-change.ts';

export const linkChanges: ChangeLister<readonly LinkChange[]> = {
  list: (changes, owners) =>
    changes.flatMap((each) => {
      const { change, link, isWhole, addresses } = stepOf(each);
      const side = change === 'added' ? owners.to : owners.from;
      const listed = addresses.map((address): OwnedChange => ({
        owner: side.ofAddress(address),
        change: { kind: 'address', change, link, address: address.address.text },
      }));
      return isWhole ? withContent(listed, (free) => ({ kind: 'link', change, link, addresses: free })) : listed;
    }),
  count: (changes) =>
    tally(
      changes.map(stepOf).flatMap(({ change, isWhole, addresses }) => {
        const ofAddresses = addresses.map(() => ['address', change] as const);
        return isWhole ? [['link', change] as const, ...ofAddresses] : ofAddresses;
      }),
    ),
};

/** The addresses that come or go, alone or with their link. */
interface LinkStep {
  readonly change: 'added' | 'removed';
  readonly link: string;
  readonly isWhole: boolean;
  readonly addresses: readonly LinkAddress[];
}

function stepOf(change: LinkChange): LinkStep {
  switch (change.kind) {
    case 'add-link':
    case 'delete-link': {
      const { name: link, addresses } = change.link;
      return { change: change.kind === 'add-link' ? 'added' : 'removed', link, isWhole: true, addresses };
    }
    case 'add-address':
    case 'delete-address': {
      const { link, address } = change;
      return {
        change: change.kind === 'add-address' ? 'added' : 'removed',
        link,
        isWhole: false,
        addresses: [address],
      };
    }
  }
}
