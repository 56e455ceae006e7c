import { compareText } from '../cluster/compare-text.ts';
import type { Family } from '../kernel/family.ts';
import type { Chain, TableName, Tables } from '../kernel/iptables.ts';
import { formatDeclaration, formatTables, formatWord, isBuiltInChain, tableNames } from '../kernel/iptables.ts';
import { actingRules, ruleMeaning } from '../kernel/iptables-meaning.ts';
import { formatSets } from '../kernel/ipset.ts';
import { formatVirtualServers } from '../kernel/ipvs.ts';
import { formatLinks } from '../kernel/link.ts';
import { formatModules } from '../kernel/modules.ts';
import type { KernelState } from '../kernel/state.ts';
import { formatSysctls } from '../kernel/sysctl.ts';
import { alignSides } from './align-sides.ts';
import { separate } from './belonging.ts';
import type { Side } from './side.ts';

/** A file of both sides, as text that can be compared line by line; '' where a side has none of it. */
export interface FilePair {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

/**
 * The comparable part of both sides in the files that a bundle has, those that differ. Next to a dump, rules are written
 * by their meaning and chains by name, since iptables-save neither writes rules as kube-proxy does nor keeps the order.
 */
export function filePairs(one: Side, other: Side): readonly FilePair[] {
  const { from, to } = alignSides(one, other);
  const { own } = separate(from, to);
  const byMeaning = from.kind === 'dump' || to.kind === 'dump';
  const before = writeFiles(own.from, byMeaning);
  const after = writeFiles(own.to, byMeaning);
  return Object.entries(before)
    .map(([name, text]) => ({ name, from: text, to: after[name as keyof typeof after] }))
    .filter((pair) => pair.from !== pair.to);
}

function writeFiles(state: KernelState, byMeaning: boolean) {
  const rules = byMeaning ? formatMeanings : formatTables;
  const family = (name: Family) => rules(state.iptables[name] ?? {});
  const sets = byMeaning ? state.sets.map(({ hashSize: _, ...set }) => set).toSorted(compareNames) : state.sets;
  return {
    'modules.conf': formatModules(state.modules),
    'sysctl.conf': formatSysctls(state.sysctls),
    'ipset.restore': formatSets(sets),
    'iptables.restore': family('ipv4'),
    'ip6tables.restore': family('ipv6'),
    'ipvsadm.restore': formatVirtualServers(state.virtualServers),
    'ip.batch': formatLinks(state.links.map((link) => (byMeaning ? { ...link, kind: 'dummy' } : link))),
  };
}

function formatMeanings(tables: Tables): string {
  return tableNames
    .flatMap((table) => {
      const chains = [...(tables[table]?.values() ?? [])].toSorted(compareNames);
      return chains.length === 0 ? [] : [`*${table}`, ...chains.flatMap((chain) => chainLines(table, chain)), 'COMMIT'];
    })
    .map((line) => `${line}\n`)
    .join('');
}

function chainLines(table: TableName, chain: Chain): readonly string[] {
  const rules = actingRules(chain.rules).map((rule) => `-A ${formatWord(chain.name)} ${ruleMeaning(rule)}`);
  return isBuiltInChain(table, chain.name) ? rules : [formatDeclaration(chain.name), ...rules];
}

function compareNames(a: { readonly name: string }, b: { readonly name: string }): number {
  return compareText(a.name, b.name);
}
