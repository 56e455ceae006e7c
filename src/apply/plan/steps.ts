import { splitDelta, type KernelDelta } from '../../kernel/delta.ts';
import { families } from '../../kernel/family.ts';
import { formatSetsDelta } from '../../kernel/ipset/ipset.ts';
import { diffFamilyTables, formatTablesDelta } from '../../kernel/iptables/iptables-delta.ts';
import { formatVirtualServersDelta, type TimeoutsChange } from '../../kernel/ipvs/ipvs-delta.ts';
import { formatLinksDelta } from '../../kernel/link/link.ts';
import { familyOf, type NftTableDelta } from '../../kernel/nftables/nft-delta.ts';
import { formatNftStages } from '../../kernel/nftables/format-delta.ts';
import { parseServiceChain } from '../../kube-proxy/chain-names.ts';
import { addGuard, guardOf } from './access-guard.ts';
import type { ReadingPart } from '../node/node-reading.ts';
import { listStages, type Plan, type SettingChange } from './plan.ts';
import type { Command } from '../node/host.ts';

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

/** Tools that make many changes from one text on their standard input. */
const restoreCommands = {
  ipset: { tool: 'ipset', args: ['restore'] },
  // --wait: another program may hold the lock of the tables for a moment.
  iptables: { tool: 'iptables-restore', args: ['--noflush', '--wait', '10'] },
  ip6tables: { tool: 'ip6tables-restore', args: ['--noflush', '--wait', '10'] },
  nft: { tool: 'nft', args: ['-f', '-'] },
  ipvsadm: { tool: 'ipvsadm', args: ['-R'] },
  ip: { tool: 'ip', args: ['-batch', '-'] },
} as const satisfies Readonly<Record<string, Command>>;

type RestoreTool = keyof typeof restoreCommands;

function restore(tool: RestoreTool, phase: 'add' | 'remove', input: string): readonly Step[] {
  return input === '' ? [] : [{ kind: 'restore', tool, phase, input }];
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
  const toolOf = { ipv4: 'iptables', ipv6: 'ip6tables' } as const;
  return families.flatMap((family) => restore(toolOf[family], 'add', formatTablesDelta(deltas[family] ?? [])));
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
  const { additions, removals } = splitDelta(delta);
  return [
    ...(modules.length > 0 ? [{ kind: 'load-modules', modules } as const] : []),
    ...settings.map((change): Step => ({ kind: 'change-setting', change })),
    ...(additions.ipvsTimeouts ? [{ kind: 'set-ipvs-timeouts', change: additions.ipvsTimeouts } as const] : []),
    ...restoreNft('add', additions.nftables),
    ...restore('ipset', 'add', formatSetsDelta(additions.sets)),
    ...changeRules('before IPVS', plan),
    ...restore('ipvsadm', 'add', formatVirtualServersDelta(additions.virtualServers)),
    ...restore('ip', 'add', formatLinksDelta(additions.links)),
    ...changeRules('between', plan),
    ...restore('ip', 'remove', formatLinksDelta(removals.links)),
    ...restore('ipvsadm', 'remove', formatVirtualServersDelta(removals.virtualServers)),
    ...changeRules('after IPVS', plan),
    ...restore('ipset', 'remove', formatSetsDelta(removals.sets)),
    ...restoreNft('remove', removals.nftables),
  ];
}

/** What nft is given, one input a transaction. */
export function listNftInputs(steps: readonly Step[]): readonly string[] {
  return steps.flatMap((step) => (step.kind === 'restore' && step.tool === 'nft' ? step.input : []));
}

/** How many transactions of nftables these steps are; `hasRules`: iptables keeps its rules there, too. */
export function countNftTransactions(steps: readonly Step[], hasRules: boolean): number {
  const counts = steps.map((step) => {
    if (step.kind !== 'restore') return 0;
    if (step.tool === 'nft') return 1;
    const isRules = step.tool === 'iptables' || step.tool === 'ip6tables';
    return hasRules && isRules ? step.input.split('\n').filter((line) => line === 'COMMIT').length : 0;
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
      return `${restoreCommands[step.tool].tool}: ${count(step)}${step.phase === 'remove' ? ', removals' : ''}`;
    default:
      return step satisfies never;
  }
}

function count({ input }: Step & { readonly kind: 'restore' }): string {
  const lines = input.split('\n').length - 1;
  return `${lines} ${lines === 1 ? 'line' : 'lines'}`;
}
