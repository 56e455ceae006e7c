import { diffByKey } from './diff-by-key.ts';
import { passingRules, type RuleArg, type Tables } from './iptables/iptables.ts';
import { readLines, type UnreadLine } from './unread-line.ts';

/** A modules-load.d(5) file: one module a line; '' for none. */
export function formatModules(modules: readonly string[]): string {
  return modules.map((module) => `${module}\n`).join('');
}

/** Reads a modules-load.d(5) file. Takes any text: lines that are not one name are in `unread`. */
export function parseModules(text: string): {
  readonly modules: readonly string[];
  readonly unread: readonly UnreadLine[];
} {
  const modules: string[] = [];
  const unread = readLines(text, ['#', ';'], (line) => {
    if (!/^[\w-]+$/.test(line)) return 'not the name of a module';
    modules.push(line);
    return undefined;
  });
  return { modules, unread };
}

/** A module to load. A module that is no longer wanted stays loaded: other programs may use it. */
export interface ModuleChange {
  readonly change: 'added' | 'removed';
  readonly name: string;
}

export function diffModules(from: readonly string[], to: readonly string[]): readonly ModuleChange[] {
  const { added, removed } = diffByKey(from, to, (name) => name);
  return [
    ...added.map((name): ModuleChange => ({ change: 'added', name })),
    ...removed.map((name): ModuleChange => ({ change: 'removed', name })),
  ];
}

/** The modules that implement each match, in load order. */
const modulesOf: readonly (readonly [RuleArg['kind'], readonly string[]])[] = [
  ['match-set', ['xt_set']],
  ['comment', ['xt_comment']],
  ['mark', ['xt_mark']],
  ['source-type', ['xt_addrtype']],
  ['destination-type', ['xt_addrtype']],
  ['conntrack-state', ['xt_conntrack']],
  ['statistic', ['xt_statistic']],
  ['recent', ['xt_recent']],
  ['virtual-server', ['xt_ipvs']],
  // physdev sees bridge ports only if bridged packets pass iptables.
  ['physdev-is-in', ['br_netfilter', 'xt_physdev']],
];

/**
 * The kernel modules that these rules' matches need. Most kernels load them when a rule uses them; nodes that forbid autoloading
 * need them listed.
 */
export function matchModules(tables: readonly Tables[]): readonly string[] {
  const used = new Set<RuleArg['kind']>();
  for (const chains of tables.flatMap((ofFamily) => Object.values(ofFamily))) {
    for (const chain of chains.values()) {
      for (const { args } of passingRules(chain)) {
        for (const { kind } of args) used.add(kind);
      }
    }
  }
  return [...new Set(modulesOf.flatMap(([kind, modules]) => (used.has(kind) ? modules : [])))];
}
