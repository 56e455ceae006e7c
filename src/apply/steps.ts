import { splitDelta } from '../kernel/delta.ts';
import type { KernelDelta } from '../kernel/delta.ts';
import { families } from '../kernel/family.ts';
import type { Family } from '../kernel/family.ts';
import { formatSetsDelta } from '../kernel/ipset-delta.ts';
import { diffTables, formatTablesDelta } from '../kernel/iptables-delta.ts';
import { formatVirtualServersDelta } from '../kernel/ipvs-delta.ts';
import { formatLinksDelta } from '../kernel/link-delta.ts';
import type { NftTableDelta } from '../kernel/nftables/delta.ts';
import { formatNftStages } from '../kernel/nftables/format-stages.ts';
import type { KernelState } from '../kernel/state.ts';
import { addGuard, guardOf } from './access-guard.ts';
import type { TimeoutsChange } from '../kernel/timeouts-delta.ts';
import type { Command } from './host.ts';
import type { ReadingPart } from './node-reading.ts';
import { listStages } from './plan.ts';
import type { Plan, SettingChange } from './plan.ts';

/** One thing to do on the node. */
export type Step =
  | { readonly kind: 'load-modules'; readonly modules: readonly string[] }
  | { readonly kind: 'change-setting'; readonly change: SettingChange }
  | { readonly kind: 'set-ipvs-timeouts'; readonly change: TimeoutsChange }
  | {
      readonly kind: 'restore';
      readonly tool: RestoreTool;
      /** Whether it makes what is new, or takes away what goes. */
      readonly phase: 'add' | 'remove';
      /** What the tool reads on its standard input. */
      readonly input: string;
    };

type RestoreTool = 'ipset' | 'iptables' | 'ip6tables' | 'nft' | 'ipvsadm' | 'ip';

/**
 * A plan in the order in which it is carried out. New things come before what uses them: modules, sysctls, sets, rules
 * (the masquerade rules stand before anything can be routed), virtual servers, addresses. What goes takes the other
 * way. Rules change in one piece, old and new at once: see placeRules. A table of nftables comes before the rules and
 * virtual servers that it takes over from, and goes after those that take over from it are there.
 */
export function listSteps(plan: Plan): readonly Step[] {
  return listStages(plan).flatMap(listStageSteps);
}

function listStageSteps(plan: Plan): readonly Step[] {
  const { additions, removals } = splitDelta(plan.delta);
  const place = placeRules(plan);
  // An address must not be there before what closes it to all but Services.
  const guarded = place === 'between' ? addGuard(plan.present, guardOf(plan.state), 'before') : plan.present;
  const guard = place === 'between' ? restoreTables(plan.present, guarded) : [];
  const rules = place === 'between' ? restoreTables(guarded, plan.state) : formatRules(plan.delta);
  return [
    ...(plan.modules.length > 0 ? [{ kind: 'load-modules' as const, modules: plan.modules }] : []),
    ...plan.settings.map((change): Step => ({ kind: 'change-setting', change })),
    ...(additions.ipvsTimeouts ? [{ kind: 'set-ipvs-timeouts' as const, change: additions.ipvsTimeouts }] : []),
    ...restoreNft('add', additions.nftables),
    ...restore('ipset', 'add', formatSetsDelta(additions.sets)),
    ...(place === 'before IPVS' ? rules : []),
    ...guard,
    ...restore('ipvsadm', 'add', formatVirtualServersDelta(additions.virtualServers)),
    ...restore('ip', 'add', formatLinksDelta(additions.links)),
    ...(place === 'between' ? rules : []),
    ...restore('ip', 'remove', formatLinksDelta(removals.links)),
    ...restore('ipvsadm', 'remove', formatVirtualServersDelta(removals.virtualServers)),
    ...(place === 'after IPVS' ? rules : []),
    ...restore('ipset', 'remove', formatSetsDelta(removals.sets)),
    ...restoreNft('remove', removals.nftables),
  ];
}

/**
 * Where there are to be no rules at all, they go after the virtual servers, as does what guarded addresses that no rule
 * needs any more. Where iptables mode gives way to IPVS, its rules serve until the virtual servers are there: they see a
 * packet before IPVS does, so nothing is served twice.
 */
function placeRules({ state, delta, stage }: Plan): 'before IPVS' | 'between' | 'after IPVS' {
  if (stage === 'after takeover') return 'after IPVS';
  const chains = Object.values(state.iptables).flatMap((tables) => Object.values(tables));
  if (chains.every((table) => table.size === 0)) return 'after IPVS';
  const leavesIptables = Object.values(delta.iptables).some((tables) =>
    tables.some(({ changes }) =>
      changes.some((change) => change.kind === 'delete-chain' && change.chain.name.startsWith('KUBE-SVC-')),
    ),
  );
  return leavesIptables && state.virtualServers.length > 0 ? 'between' : 'before IPVS';
}

const tableTools: { readonly [F in Family]: RestoreTool } = { ipv4: 'iptables', ipv6: 'ip6tables' };

function formatRules({ iptables }: Pick<KernelDelta, 'iptables'>): readonly Step[] {
  return families.flatMap((family) => restore(tableTools[family], 'add', formatTablesDelta(iptables[family] ?? [])));
}

function restoreTables(from: KernelState, to: KernelState): readonly Step[] {
  return families.flatMap((family) => {
    const delta = diffTables(from.iptables[family] ?? {}, to.iptables[family] ?? {});
    return restore(tableTools[family], 'add', formatTablesDelta(delta));
  });
}

/** What packets meet changes in one transaction for each family. What they cannot meet yet comes before, for both. */
function restoreNft(phase: 'add' | 'remove', deltas: readonly NftTableDelta[]): readonly Step[] {
  const stages = families.map((family) => formatNftStages(deltas.filter((delta) => familyOf(delta) === family)));
  return [...stages.flatMap((inputs) => inputs.slice(0, -1)), ...stages.flatMap((inputs) => inputs.slice(-1))].flatMap(
    (input) => restore('nft', phase, input),
  );
}

function familyOf(delta: NftTableDelta): Family {
  return delta.kind === 'change-table' ? delta.family : delta.table.family;
}

function restore(tool: RestoreTool, phase: 'add' | 'remove', input: string): readonly Step[] {
  return input === '' ? [] : [{ kind: 'restore', tool, phase, input }];
}

/** What nft is given, one input a transaction. */
export function listNftInputs(steps: readonly Step[]): readonly string[] {
  return steps.flatMap((step) => (step.kind === 'restore' && step.tool === 'nft' ? step.input : []));
}

/** The parts of a node, as they are read, in which these plans change anything. */
export function changedParts(plans: readonly Plan[]): ReadonlySet<ReadingPart> {
  const parts = new Set<ReadingPart>();
  for (const { delta } of plans) {
    for (const family of families) if ((delta.iptables[family] ?? []).length > 0) parts.add(family);
    for (const each of delta.nftables) parts.add(`nft ${familyOf(each)}`);
    if (delta.sets.length > 0) parts.add('ipset');
    if (delta.virtualServers.length > 0) parts.add('ipvsadm');
    if (delta.ipvsTimeouts) parts.add('ipvs timeouts');
    if (delta.links.length > 0) parts.add('addresses');
  }
  return parts;
}

/** The command that carries out a step; undefined for one that is a write to a file. */
export function stepCommand(step: Step): Command | undefined {
  switch (step.kind) {
    case 'load-modules':
      return { tool: 'modprobe', args: ['-a', '--', ...step.modules] };
    case 'change-setting':
      return undefined;
    case 'set-ipvs-timeouts': {
      const { tcp, tcpFin, udp } = step.change.to;
      return { tool: 'ipvsadm', args: ['--set', `${tcp}`, `${tcpFin}`, `${udp}`] };
    }
    case 'restore':
      return { ...restoreCommands[step.tool], stdin: step.input };
    default:
      return step satisfies never;
  }
}

const restoreCommands: { readonly [T in RestoreTool]: Command } = {
  ipset: { tool: 'ipset', args: ['restore'] },
  // --wait: another program may hold the lock of the tables for a moment.
  iptables: { tool: 'iptables-restore', args: ['--noflush', '--wait', '10'] },
  ip6tables: { tool: 'ip6tables-restore', args: ['--noflush', '--wait', '10'] },
  nft: { tool: 'nft', args: ['-f', '-'] },
  ipvsadm: { tool: 'ipvsadm', args: ['-R'] },
  ip: { tool: 'ip', args: ['-batch', '-'] },
};

/** A step in a few words: "ipset restore: 12 lines". */
export function describeStep(step: Step): string {
  switch (step.kind) {
    case 'load-modules':
      return `load ${step.modules.join(', ')}`;
    case 'change-setting':
      return `set ${step.change.setting.name} to ${step.change.setting.value}`;
    case 'set-ipvs-timeouts':
      return 'set the timeouts of IPVS';
    case 'restore':
      return `${restoreCommands[step.tool].tool}: ${describeLines(step)}`;
    default:
      return step satisfies never;
  }
}

function describeLines(step: Step & { readonly kind: 'restore' }): string {
  const lines = step.input.split('\n').length - 1;
  const count = `${lines} ${lines === 1 ? 'line' : 'lines'}`;
  return step.phase === 'remove' ? `${count}, removals` : count;
}
