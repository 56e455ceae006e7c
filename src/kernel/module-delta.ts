import { partition, type Split } from './split.ts';

/** Module names. One that is no longer wanted stays loaded: other programs may use it. */
export interface ModuleChange {
  readonly kind: 'load-module' | 'drop-module';
  readonly name: string;
}

export function diffModules(from: readonly string[], to: readonly string[]): readonly ModuleChange[] {
  const before = new Set(from);
  const after = new Set(to);
  return [
    ...to.filter((name) => !before.has(name)).map((name): ModuleChange => ({ kind: 'load-module', name })),
    ...from.filter((name) => !after.has(name)).map((name): ModuleChange => ({ kind: 'drop-module', name })),
  ];
}

export function applyModulesDelta(modules: readonly string[], changes: readonly ModuleChange[]): readonly string[] {
  const dropped = new Set(changes.filter((change) => change.kind === 'drop-module').map((change) => change.name));
  const loaded = changes.filter((change) => change.kind === 'load-module').map((change) => change.name);
  return [...modules.filter((name) => !dropped.has(name)), ...loaded];
}

export function splitModulesDelta(changes: readonly ModuleChange[]): Split<ModuleChange> {
  return partition(changes, ({ kind }) => kind === 'drop-module');
}
