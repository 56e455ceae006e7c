import type { KernelDelta } from '../../kernel/delta.ts';
import { objectKinds, type ObjectKind } from '../../kernel/kinds.ts';
import { tableChanges } from './chain-changes.ts';
import { type ChangeCount, type ChangeLister, tally } from './change-lister.ts';
import type { OwnedChange, ChangeKind, KernelChange } from './kernel-change.ts';
import { linkChanges } from './link-changes.ts';
import { nftChanges } from './nft-changes.ts';
import { serverChanges } from './server-changes.ts';
import { setChanges } from './set-changes.ts';
import type { SideOwners } from './owners.ts';
import type { ModuleChange } from '../../kernel/modules.ts';
import type { SysctlChange } from '../../kernel/sysctl.ts';
import type { TimeoutsChange } from '../../kernel/ipvs/ipvs-delta.ts';

const sysctlChanges: ChangeLister<readonly SysctlChange[]> = {
  list: (changes) =>
    changes.map((change) =>
      ofNode(
        change.kind === 'drop-sysctl'
          ? { kind: 'sysctl', change: 'removed', name: change.name, from: change.from }
          : { kind: 'sysctl', change: kindOfSysctl(change), name: change.name, from: change.from, to: change.to },
      ),
    ),
  count: (changes) => tally(changes.map((change) => ['sysctl', kindOfSysctl(change)])),
};

function kindOfSysctl(change: SysctlChange): ChangeKind {
  if (change.kind === 'drop-sysctl') return 'removed';
  return change.from === undefined ? 'added' : 'changed';
}

const timeoutsChanges: ChangeLister<TimeoutsChange | undefined> = {
  list: (change) => (change ? [ofNode({ kind: 'ipvs-timeouts', change: 'changed', ...change })] : []),
  count: (change) => (change ? [{ object: 'IPVS timeouts', change: 'changed', number: 1 }] : []),
};

const moduleChanges: ChangeLister<readonly ModuleChange[]> = {
  list: (changes) => changes.map((each) => ofNode({ kind: 'module', change: kindOfModule(each), name: each.name })),
  count: (changes) => tally(changes.map((each) => ['kernel module', kindOfModule(each)])),
};

function kindOfModule({ kind }: ModuleChange): 'added' | 'removed' {
  return kind === 'load-module' ? 'added' : 'removed';
}

function ofNode(change: KernelChange): OwnedChange {
  return { owner: undefined, change };
}

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
