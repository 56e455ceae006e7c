import { splitDelta, type KernelDelta } from '../../kernel/delta.ts';
import { families, type Family } from '../../kernel/family.ts';
import { formatSetsDelta } from '../../kernel/ipset/ipset.ts';
import { diffFamilyTables, formatTablesDelta } from '../../kernel/iptables/iptables-delta.ts';
import { formatVirtualServersDelta, type TimeoutsChange } from '../../kernel/ipvs/ipvs-delta.ts';
import { objectKinds, type ObjectKind } from '../../kernel/kinds.ts';
import { formatLinksDelta } from '../../kernel/link/link.ts';
import type { NftTableDelta } from '../../kernel/nftables/nft-delta.ts';
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

/** The steps on a node for objects of one kind. */
interface KindSteps<Delta> {
  /** Makes what is new: `delta` is the additions of the plan. */
  add(delta: Delta, plan: Plan): readonly Step[];
  /** What changes once everything new is there, and nothing is gone yet. */
  switchOver?(plan: Plan): readonly Step[];
  /** Removes what goes: `delta` is the removals of the plan. */
  remove(delta: Delta, plan: Plan): readonly Step[];
  /** The parts of a reading that are out of date once the delta is made. */
  changedParts(delta: Delta): readonly ReadingPart[];
}

/** The steps of each kind. Their order on a node is that of the kernel's `kinds`. */
const kindSteps: { readonly [K in ObjectKind]: KindSteps<KernelDelta[K]> } = {
  modules: {
    // Those that are not in the kernel yet: a delta knows nothing of what is built in.
    add: (_, { modules }) => (modules.length > 0 ? [{ kind: 'load-modules', modules }] : []),
    remove: () => [],
    changedParts: () => [],
  },
  sysctls: {
    // With the other settings of the node, each a file of its own.
    add: (_, { settings }) => settings.map((change): Step => ({ kind: 'change-setting', change })),
    remove: () => [],
    changedParts: () => [],
  },
  ipvsTimeouts: {
    add: (change) => (change ? [{ kind: 'set-ipvs-timeouts', change }] : []),
    remove: () => [],
    changedParts: (change) => (change ? ['ipvs timeouts'] : []),
  },
  nftables: {
    add: (deltas) => restoreNft('add', deltas),
    remove: (deltas) => restoreNft('remove', deltas),
    changedParts: (deltas) => deltas.map((delta) => `nft ${familyOf(delta)}` as const),
  },
  sets: restored('ipset', formatSetsDelta, 'ipset'),
  iptables: {
    add: (_, plan) => changeRules('before IPVS', plan),
    switchOver: (plan) => changeRules('between', plan),
    remove: (_, plan) => changeRules('after IPVS', plan),
    changedParts: (delta) => families.filter((family) => (delta[family] ?? []).length > 0),
  },
  virtualServers: restored('ipvsadm', formatVirtualServersDelta, 'ipvsadm'),
  links: restored('ip', formatLinksDelta, 'addresses'),
};

/** A kind whose changes are lines of text for one tool. */
function restored<Change>(
  tool: RestoreTool,
  format: (changes: readonly Change[]) => string,
  part: ReadingPart,
): KindSteps<readonly Change[]> {
  return {
    add: (changes) => restore(tool, 'add', format(changes)),
    remove: (changes) => restore(tool, 'remove', format(changes)),
    changedParts: (changes) => (changes.length > 0 ? [part] : []),
  };
}

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
        (change) => change.kind === 'delete-chain' && parseServiceChain(change.chain.name)?.kind === 'cluster',
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
  return families.flatMap((family) => restore(tableTools[family], 'add', formatTablesDelta(deltas[family] ?? [])));
}

const tableTools: { readonly [F in Family]: RestoreTool } = { ipv4: 'iptables', ipv6: 'ip6tables' };

/** One transaction for each family changes what packets meet. What packets cannot meet yet comes first, for both families. */
function restoreNft(phase: 'add' | 'remove', deltas: readonly NftTableDelta[]): readonly Step[] {
  const stages = families.map((family) => formatNftStages(deltas.filter((delta) => familyOf(delta) === family)));
  return [...stages.flatMap((inputs) => inputs.slice(0, -1)), ...stages.flatMap((inputs) => inputs.slice(-1))].flatMap(
    (input) => restore('nft', phase, input),
  );
}

function familyOf(delta: NftTableDelta): Family {
  return delta.kind === 'change-table' ? delta.family : delta.table.family;
}

/**
 * A plan in the order in which it is carried out. New things come before what uses them, in the order of `kinds`:
 * modules, sysctls, sets, rules (the masquerade rules are there before anything can be routed), virtual servers, addresses.
 * What goes takes the other way. Rules change in one piece, old and new at once: see placeRules.
 */
export function listSteps(plan: Plan): readonly Step[] {
  return listStages(plan).flatMap(listStageSteps);
}

function listStageSteps(plan: Plan): readonly Step[] {
  const { additions, removals } = splitDelta(plan.delta);
  const add = <K extends ObjectKind>(kind: K) => kindSteps[kind].add(additions[kind], plan);
  const remove = <K extends ObjectKind>(kind: K) => kindSteps[kind].remove(removals[kind], plan);
  return [
    ...objectKinds.flatMap((kind) => add(kind)),
    ...objectKinds.flatMap((kind) => kindSteps[kind].switchOver?.(plan) ?? []),
    ...objectKinds.toReversed().flatMap((kind) => remove(kind)),
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
  const partsOf = <K extends ObjectKind>(kind: K, delta: KernelDelta) => kindSteps[kind].changedParts(delta[kind]);
  return new Set(plans.flatMap(({ delta }) => objectKinds.flatMap((kind) => partsOf(kind, delta))));
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
