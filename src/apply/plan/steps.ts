import { count } from '../../base/format-count.ts';
import { splitDelta, type KernelDelta } from '../../kernel/delta.ts';
import { families } from '../../kernel/family.ts';
import { formatSetsDelta } from '../../kernel/ipset/ipset.ts';
import { diffFamilyTables, formatTablesDelta } from '../../kernel/iptables/iptables-delta.ts';
import { formatVirtualServersDelta } from '../../kernel/ipvs/ipvs-delta.ts';
import { formatLinksDelta } from '../../kernel/link/link.ts';
import { familyOf, type NftTableDelta } from '../../kernel/nftables/nft-delta.ts';
import { formatNftStages } from '../../kernel/nftables/format-delta.ts';
import { parseServiceChain } from '../../kube-proxy/chain-names.ts';
import { addGuard, guardOf } from './access-guard.ts';
import type { ReadingPart } from '../node/node-reading.ts';
import type { Setting } from './node-decisions.ts';
import { listStages, type Plan } from './plan.ts';
import type { Command } from '../node/host.ts';

/** One thing to do on the node. */
export type Step =
  /** Runs a tool. `what` is what it does, or how the changes go on its standard input differ from others of the tool. */
  | { readonly kind: 'run'; readonly command: Command; readonly what: string }
  /** Writes a file of the kernel. */
  | { readonly kind: 'write'; readonly setting: Setting };

/** Tools that make many changes from one text on their standard input. */
const restoreCommands = {
  ipset: { tool: 'ipset', args: ['restore'] },
  // --wait: another program may hold the lock of the tables for a moment.
  ipv4: { tool: 'iptables-restore', args: ['--noflush', '--wait', '10'] },
  ipv6: { tool: 'ip6tables-restore', args: ['--noflush', '--wait', '10'] },
  nft: { tool: 'nft', args: ['-f', '-'] },
  ipvsadm: { tool: 'ipvsadm', args: ['-R'] },
  ip: { tool: 'ip', args: ['-batch', '-'] },
} as const satisfies Readonly<Record<string, Command>>;

/** Makes what is new, or takes away what goes. */
function restore(tool: keyof typeof restoreCommands, phase: 'add' | 'remove', stdin: string): readonly Step[] {
  const command = { ...restoreCommands[tool], stdin };
  return stdin === '' ? [] : [{ kind: 'run', command, what: phase === 'remove' ? ', removals' : '' }];
}

/** When the rules of a plan change: before the virtual servers change, once new ones are there, or once old ones are gone. */
type RulesPlace = 'before IPVS' | 'between' | 'after IPVS';

/**
 * If no rules at all are wanted, they go after the virtual servers, as does what guarded addresses that no rule
 * needs any more. Where iptables mode gives way to IPVS, its rules serve until the virtual servers are there: they see a
 * packet before IPVS does, so nothing is served twice.
 */
function placeRules({ state, delta, stage }: Pick<Plan, 'state' | 'delta' | 'stage'>): RulesPlace {
  if (stage === 'after takeover') return 'after IPVS';
  const chains = Object.values(state.iptables).flatMap((tables) => Object.values(tables));
  if (chains.every((table) => table.size === 0)) return 'after IPVS';
  const leavesIptables = Object.values(delta.iptables).some((tables) =>
    tables.some(({ changes }) =>
      changes.some(
        (change) => change.kind === 'chain' && !change.to && parseServiceChain(change.from.name)?.kind === 'cluster',
      ),
    ),
  );
  return leavesIptables && state.virtualServers.length > 0 ? 'between' : 'before IPVS';
}

/** The changes of rules at this place. */
function changeRules(at: RulesPlace, { present, state, delta, stage }: Plan): readonly Step[] {
  const place = placeRules({ state, delta, stage });
  if (place !== 'between') return place === at ? restoreRules(delta.iptables) : [];
  // An address must not be there before what closes it to all but Services.
  const guarded = addGuard(present, guardOf(state), 'before');
  if (at === 'after IPVS') return [];
  const [from, to] = at === 'before IPVS' ? [present, guarded] : [guarded, state];
  return restoreRules(diffFamilyTables(from.iptables, to.iptables));
}

function restoreRules(deltas: KernelDelta['iptables']): readonly Step[] {
  return families.flatMap((family) => restore(family, 'add', formatTablesDelta(deltas[family] ?? [])));
}

/** One transaction for each family changes what packets meet. What packets cannot meet yet comes first, for both families. */
function restoreNft(phase: 'add' | 'remove', deltas: readonly NftTableDelta[]): readonly Step[] {
  const stages = families.map((family) => formatNftStages(deltas.filter((delta) => familyOf(delta) === family)));
  return [...stages.flatMap((inputs) => inputs.slice(0, -1)), ...stages.flatMap((inputs) => inputs.slice(-1))].flatMap(
    (input) => restore('nft', phase, input),
  );
}

/** The steps of a plan, in execution order. */
export function listSteps(plan: Plan): readonly Step[] {
  return listStages(plan).flatMap(listStageSteps);
}

/**
 * Adds things before what uses them: modules, settings, sets, rules (masquerade rules before anything can be routed),
 * virtual servers, addresses. Removes things in reverse order, once everything new is there. Rules change in one piece,
 * old and new at once: see placeRules.
 */
function listStageSteps(plan: Plan): readonly Step[] {
  const { modules, settings, delta } = plan;
  const { nftables, sets, virtualServers, links } = splitDelta(delta);
  const run = (what: string, tool: string, ...args: readonly string[]): Step => ({
    kind: 'run',
    command: { tool, args },
    what,
  });
  const { to } = delta.ipvsTimeouts ?? {};
  const timeouts = to && [to.tcp, to.tcpFin, to.udp];
  return [
    ...(modules.length > 0 ? [run(`load ${modules.join(', ')}`, 'modprobe', '-a', '--', ...modules)] : []),
    ...settings.map(({ setting }): Step => ({ kind: 'write', setting })),
    ...(timeouts ? [run('set the timeouts of IPVS', 'ipvsadm', '--set', ...timeouts.map(String))] : []),
    ...restoreNft('add', nftables.additions),
    ...restore('ipset', 'add', formatSetsDelta(sets.additions)),
    ...changeRules('before IPVS', plan),
    ...restore('ipvsadm', 'add', formatVirtualServersDelta(virtualServers.additions)),
    ...restore('ip', 'add', formatLinksDelta(links.additions)),
    ...changeRules('between', plan),
    ...restore('ip', 'remove', formatLinksDelta(links.removals)),
    ...restore('ipvsadm', 'remove', formatVirtualServersDelta(virtualServers.removals)),
    ...changeRules('after IPVS', plan),
    ...restore('ipset', 'remove', formatSetsDelta(sets.removals)),
    ...restoreNft('remove', nftables.removals),
  ];
}

/** What nft is given, one input a transaction. */
export function listNftInputs(steps: readonly Step[]): readonly string[] {
  return steps.flatMap((step) =>
    step.kind === 'run' && step.command.tool === 'nft' ? (step.command.stdin ?? []) : [],
  );
}

/** How many transactions of nftables these steps are; `hasRules`: iptables keeps its rules there, too. */
export function countNftTransactions(steps: readonly Step[], hasRules: boolean): number {
  const counts = steps.map((step) => {
    if (step.kind !== 'run') return 0;
    const { tool, stdin = '' } = step.command;
    if (tool === 'nft') return 1;
    return hasRules && tool.endsWith('tables-restore')
      ? stdin.split('\n').filter((line) => line === 'COMMIT').length
      : 0;
  });
  return counts.reduce((sum, each) => sum + each, 0);
}

/** The parts of a node, as they are read, in which these plans change anything. */
export function changedParts(plans: readonly Plan[]): ReadonlySet<ReadingPart> {
  const parts = plans.flatMap(({ delta }): readonly ReadingPart[] => [
    ...families.filter((family) => (delta.iptables[family] ?? []).length > 0),
    ...delta.nftables.map((each) => `nft ${familyOf(each)}` as const),
    ...(delta.ipvsTimeouts ? (['ipvs timeouts'] as const) : []),
    ...delta.sets.map(() => 'ipset' as const),
    ...delta.virtualServers.map(() => 'ipvsadm' as const),
    ...delta.links.map(() => 'addresses' as const),
  ]);
  return new Set(parts);
}

/** A step in a few words: "ipset: 12 lines". */
export function describeStep(step: Step): string {
  if (step.kind === 'write') return `set ${step.setting.name} to ${step.setting.value}`;
  const { tool, stdin } = step.command;
  return stdin === undefined ? step.what : `${tool}: ${count(stdin.split('\n').length - 1, 'line')}${step.what}`;
}
