import { splitDelta, type KernelDelta, objectKinds } from '../../kernel/state.ts';
import { families } from '../../kernel/address.ts';
import { withAdditions, type ProxyPort } from '../../kernel/balancer/balancer.ts';
import { formatSetsDelta } from '../../kernel/ipset/ipset.ts';
import {
  diffFamilyTables,
  formatTablesDelta,
  hasRules,
  rulesPlaces,
  settleTables,
  type RulesPlace,
} from '../../kernel/iptables/iptables-delta.ts';
import { formatVirtualServersDelta } from '../../kernel/ipvs/ipvs-delta.ts';
import { formatLinksDelta } from '../../kernel/link/link.ts';
import { familyOfDelta, type NftTableDelta } from '../../kernel/nftables/nft-delta.ts';
import { formatNftStages } from '../../kernel/nftables/format-delta.ts';
import { parseServiceChain } from '../../kube-proxy/chain-names.ts';
import { addGuard, guardOf } from './access-guard.ts';
import { rulesTool } from '../node/tools.ts';
import type { ReadingPart } from '../node/node-reading.ts';
import type { RequiredSysctl } from './node-decisions.ts';
import { listStages, type Plan } from './plan.ts';
import type { ToolCommand } from '../node/host.ts';
import type { KernelChange } from '../../ask/changes/kernel-change.ts';
import {
  countChanges,
  listKernelChanges,
  moduleChange,
  sysctlChange,
  type ChangeCount,
} from '../../ask/changes/list-changes.ts';
import { findOwners } from '../../kube-proxy/owners.ts';

export type PlanStep =
  | { readonly kind: 'run'; readonly command: ToolCommand; readonly isRemoval: boolean }
  | { readonly kind: 'write'; readonly setting: RequiredSysctl }
  | { readonly kind: 'balance'; readonly proxyPorts: readonly ProxyPort[] };

const restoreCommands = {
  ipset: { tool: 'ipset', args: ['restore'] },
  nft: { tool: 'nft', args: ['-f', '-'] },
  ipvsadm: { tool: 'ipvsadm', args: ['-R'] },
  ip: { tool: 'ip', args: ['-batch', '-'] },
} as const satisfies Readonly<Record<string, ToolCommand>>;

function restore(tool: keyof typeof restoreCommands, phase: 'add' | 'remove', stdin: string): readonly PlanStep[] {
  return feed(restoreCommands[tool], phase, stdin);
}

function feed(command: ToolCommand, phase: 'add' | 'remove', stdin: string): readonly PlanStep[] {
  return stdin === '' ? [] : [{ kind: 'run', command: { ...command, stdin }, isRemoval: phase === 'remove' }];
}

type RulesMoment = 'before IPVS' | 'between' | 'after IPVS';

/**
 * If no rules are wanted, the present rules and the guard are removed after the virtual servers. When IPVS replaces iptables mode, the
 * rules serve until the virtual servers exist. Rules see a packet first, so nothing is served twice.
 */
function chooseMoment({ state, delta, stage }: Pick<Plan, 'state' | 'delta' | 'stage'>): RulesMoment {
  if (stage === 'after takeover') return 'after IPVS';
  if (!Object.values(state.iptables).some(hasRules)) return 'after IPVS';
  const leavesIptables = families.some((family) =>
    delta.iptables[family]?.some(({ changes }) =>
      changes.some(
        (change) => change.kind === 'chain' && !change.to && parseServiceChain(change.from.name)?.kind === 'cluster',
      ),
    ),
  );
  return leavesIptables && state.virtualServers.length > 0 ? 'between' : 'before IPVS';
}

function changeRules(at: RulesMoment, { present, state, delta, stage, variants }: Plan): readonly PlanStep[] {
  const restoreRules = (
    deltas: KernelDelta['iptables'],
    places: readonly RulesPlace[] = families,
  ): readonly PlanStep[] =>
    places.flatMap((place) =>
      // Use --wait, because another program may briefly hold the tables' lock.
      feed(
        { tool: rulesTool(place, 'restore', variants), args: ['--noflush', '--wait', '10'] },
        'add',
        formatTablesDelta(deltas[place] ?? []),
      ),
    );
  // Rules in the other iptables variant serve until everything else exists.
  const others = at === 'after IPVS' ? restoreRules(delta.iptables, ['other ipv4', 'other ipv6']) : [];
  const moment = chooseMoment({ state, delta, stage });
  if (moment !== 'between') return moment === at ? [...restoreRules(delta.iptables), ...others] : others;
  if (at === 'after IPVS') return others;
  // An address must not exist before the rules that close it to everything but Services. Test: apply/access-guard.test.ts.
  const guarded = settleTables(present.iptables, addGuard(present, guardOf(state), 'before').iptables);
  const [from, to] = at === 'before IPVS' ? [present.iptables, guarded] : [guarded, state.iptables];
  return restoreRules(diffFamilyTables(from, to));
}

/** Prepares both families first. Then one transaction per family changes the rules that packets meet. */
function restoreNft(phase: 'add' | 'remove', deltas: readonly NftTableDelta[]): readonly PlanStep[] {
  const stages = families.map((family) => formatNftStages(deltas.filter((delta) => familyOfDelta(delta) === family)));
  return [...stages.flatMap((inputs) => inputs.slice(0, -1)), ...stages.flatMap((inputs) => inputs.slice(-1))].flatMap(
    (input) => restore('nft', phase, input),
  );
}

/** nginx must serve a port from before the first rule leads to the port until after the last such rule is gone. */
function balance(phase: 'add' | 'remove', { delta: { proxyPorts }, present, state }: Plan): readonly PlanStep[] {
  if (!proxyPorts.some(({ to }) => (to === undefined) === (phase === 'remove'))) return [];
  const ports = phase === 'add' ? withAdditions(present.proxyPorts, state.proxyPorts) : state.proxyPorts;
  return [{ kind: 'balance', proxyPorts: ports }];
}

export function listSteps(plan: Plan): readonly PlanStep[] {
  return listStages(plan).flatMap(listStageSteps);
}

/**
 * Adds objects before whatever uses them (masquerade rules before anything is routed), and removes in reverse order once everything new
 * exists. Rules change at one moment: see chooseMoment.
 */
function listStageSteps(plan: Plan): readonly PlanStep[] {
  const { modules, settings, delta } = plan;
  const { nftables, sets, virtualServers, links } = splitDelta(delta);
  const run = (tool: string, ...args: readonly string[]): PlanStep => ({
    kind: 'run',
    command: { tool, args },
    isRemoval: false,
  });
  const { to } = delta.ipvsTimeouts ?? {};
  const timeouts = to && [to.tcp, to.tcpFin, to.udp];
  return [
    ...(modules.length > 0 ? [run('modprobe', '-a', '--', ...modules)] : []),
    ...settings.map(({ setting }): PlanStep => ({ kind: 'write', setting })),
    ...(timeouts ? [run('ipvsadm', '--set', ...timeouts.map(String))] : []),
    ...restoreNft('add', nftables.additions),
    ...restore('ipset', 'add', formatSetsDelta(sets.additions)),
    ...balance('add', plan),
    ...changeRules('before IPVS', plan),
    ...restore('ipvsadm', 'add', formatVirtualServersDelta(virtualServers.additions)),
    ...restore('ip', 'add', formatLinksDelta(links.additions)),
    ...changeRules('between', plan),
    ...restore('ip', 'remove', formatLinksDelta(links.removals)),
    ...restore('ipvsadm', 'remove', formatVirtualServersDelta(virtualServers.removals)),
    ...changeRules('after IPVS', plan),
    ...balance('remove', plan),
    ...restore('ipset', 'remove', formatSetsDelta(sets.removals)),
    ...restoreNft('remove', nftables.removals),
  ];
}

/**
 * Returns the number of transactions that the kernel counts if only these steps change nftables; undefined if the count would prove
 * nothing.
 */
export function countNftTransactions(
  { delta, present, state, variants }: Plan,
  steps: readonly PlanStep[],
): number | undefined {
  const isOf = (tool: string) => steps.filter((step) => step.kind === 'run' && step.command.tool === tool).length;
  // In the nft variant, iptables also makes transactions.
  if (rulesPlaces.some((place) => isOf(rulesTool(place, 'restore', variants)) > 0)) return undefined;
  const transactions = isOf(restoreCommands.nft.tool);
  if (transactions === 0) return 0;
  const isWhole = [...present.nftables, ...state.nftables].every((table) => !table.strange);
  const { additions, removals } = splitDelta(delta).nftables;
  const deltas = [...additions, ...removals];
  const isOneEach = transactions === deltas.length || additions.every(({ kind }) => kind === 'table');
  return isWhole && isOneEach && deltas.every(isSurelyCounted) ? transactions : undefined;
}

/**
 * Reports whether this change is certain to increase the kernel's generation count. The kernel does not count a transaction without effect,
 * such as adding elements that another program has just added. kpc-apply would then mistake the other program's transaction for its own.
 * Adding a rule always counts. So does a removal that succeeds, because removing a missing object fails. Test:
 * apply/nft-generation.test.ts.
 */
function isSurelyCounted(delta: NftTableDelta): boolean {
  if (delta.kind === 'table') return true;
  return delta.changes.some((change) => {
    if (change.kind === 'elements') return change.removed.length > 0;
    return change.kind === 'chain' ? (change.to?.rules.length ?? 1) > 0 : change.from !== undefined;
  });
}

export function changedParts(plans: readonly Plan[]): ReadonlySet<ReadingPart> {
  const parts = plans.flatMap(({ delta }): readonly ReadingPart[] => [
    ...rulesPlaces.filter((place) => (delta.iptables[place] ?? []).length > 0),
    // Read both families again, so that the two readings match.
    ...(delta.nftables.length > 0 ? families.map((family) => `nft ${family}` as const) : []),
    ...(delta.ipvsTimeouts ? (['ipvs timeouts'] as const) : []),
    ...delta.sets.map(() => 'ipset' as const),
    ...delta.virtualServers.map(() => 'ipvsadm' as const),
    ...delta.links.map(() => 'addresses' as const),
  ]);
  return new Set(parts);
}

export function toolOf(step: PlanStep): string | undefined {
  if (step.kind === 'run') return step.command.tool;
  return step.kind === 'balance' ? 'nginx' : undefined;
}

export function listPlan(plan: Plan): readonly KernelChange[] {
  const { present, wanted, state } = plan;
  const owners = { from: findOwners([present, wanted]), to: findOwners([wanted, state, present]) };
  return [...changesOfNode(plan), ...listKernelChanges(plan.delta, owners, objectKinds)];
}

export function countPlan(plan: Plan): readonly ChangeCount[] {
  const { modules, settings } = plan;
  const ofNode: readonly ChangeCount[] = [
    { object: 'kernel module', change: 'added', number: modules.length },
    { object: 'sysctl', change: 'changed', number: settings.length },
  ];
  return [...ofNode.filter(({ number }) => number > 0), ...countChanges(plan.delta)];
}

function changesOfNode({ modules, settings }: Plan): readonly KernelChange[] {
  return [
    ...modules.map((name) => moduleChange(name, 'added')),
    ...settings.map(({ setting: { name, value, reason }, from }) => ({
      ...sysctlChange(name, from, value, reason),
      change: 'changed' as const,
    })),
  ];
}
