import type { KernelDelta } from '../../kernel/delta.ts';
import { objectKinds, type ObjectKind } from '../../kernel/kinds.ts';
import { tableChanges } from './chain-changes.ts';
import type { ChangeCount, ChangeLister } from './change-lister.ts';
import type { OwnedChange } from './kernel-change.ts';
import { linkChanges } from './link-changes.ts';
import { nftChanges } from './nft-changes.ts';
import { serverChanges } from './server-changes.ts';
import { setChanges } from './set-changes.ts';
import { moduleChanges, sysctlChanges, timeoutsChanges } from './setting-changes.ts';
import type { SideOwners } from './owners.ts';

type Listers = { readonly [K in ObjectKind]: ChangeLister<KernelDelta[K]> };

/** How the changes of each kind are told, in the order in which people are to read of them. */
const listers: Listers = {
  virtualServers: serverChanges,
  links: linkChanges,
  sets: setChanges,
  iptables: tableChanges,
  nftables: nftChanges,
  sysctls: sysctlChanges,
  ipvsTimeouts: timeoutsChanges,
  modules: moduleChanges,
};

/** What a Service becomes first, what every node has last. */
export const readingOrder = Object.keys(listers) as readonly ObjectKind[];

/** The changes of a delta one by one, each with its owner: virtual servers, addresses, sets, chains, then the rest. */
export function listKernelChanges(delta: KernelDelta, owners: SideOwners): readonly OwnedChange[] {
  return listInOrder(delta, owners, readingOrder);
}

/** The same in the order in which new things are made on a node. */
export function listChangesToMake(delta: KernelDelta, owners: SideOwners): readonly OwnedChange[] {
  return listInOrder(delta, owners, objectKinds);
}

function listInOrder(delta: KernelDelta, owners: SideOwners, order: readonly ObjectKind[]): readonly OwnedChange[] {
  const list = <K extends ObjectKind>(name: K) => listers[name].list(delta[name], owners);
  return order.flatMap((name) => list(name));
}

/** How many things a delta changes, in the order in which new things are made on a node. */
export function countChanges(delta: KernelDelta): readonly ChangeCount[] {
  const count = <K extends ObjectKind>(name: K) => listers[name].count(delta[name]);
  return objectKinds.flatMap((name) => count(name));
}
