import type { ModuleChange } from '../../kernel/module-delta.ts';
import type { SysctlChange } from '../../kernel/sysctl-delta.ts';
import type { TimeoutsChange } from '../../kernel/timeouts-delta.ts';
import { tally, type ChangeLister } from './change-lister.ts';
import type { ChangeKind, KernelChange, OwnedChange } from './kernel-change.ts';

export const sysctlChanges: ChangeLister<readonly SysctlChange[]> = {
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

export const timeoutsChanges: ChangeLister<TimeoutsChange | undefined> = {
  list: (change) => (change ? [ofNode({ kind: 'ipvs-timeouts', change: 'changed', ...change })] : []),
  count: (change) => (change ? [{ object: 'IPVS timeouts', change: 'changed', number: 1 }] : []),
};

export const moduleChanges: ChangeLister<readonly ModuleChange[]> = {
  list: (changes) => changes.map((each) => ofNode({ kind: 'module', change: kindOfModule(each), name: each.name })),
  count: (changes) => tally(changes.map((each) => ['kernel module', kindOfModule(each)])),
};

function kindOfModule({ kind }: ModuleChange): 'added' | 'removed' {
  return kind === 'load-module' ? 'added' : 'removed';
}

function ofNode(change: KernelChange): OwnedChange {
  return { owner: undefined, change };
}
