import type { KernelDelta } from '../../kernel/delta.ts';
import { families, type Family } from '../../kernel/family.ts';
import { formatSetsDelta } from '../../kernel/ipset/ipset.ts';
import { diffTables, formatTablesDelta } from '../../kernel/iptables/iptables-delta.ts';
import { formatVirtualServersDelta, type TimeoutsChange } from '../../kernel/ipvs/ipvs-delta.ts';
import type { ObjectKind } from '../../kernel/kinds.ts';
import { formatLinksDelta } from '../../kernel/link/link.ts';
import type { NftTableDelta } from '../../kernel/nftables/delta.ts';
import { formatNftStages } from '../../kernel/nftables/format-delta.ts';
import type { KernelState } from '../../kernel/state.ts';
import { parseServiceChain } from '../../kube-proxy/chain-names.ts';
import { addGuard, guardOf } from './access-guard.ts';
import type { ReadingPart } from '../node/node-reading.ts';
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

/** Tools that make many changes from one text on their standard input. */
export type RestoreTool = 'ipset' | 'iptables' | 'ip6tables' | 'nft' | 'ipvsadm' | 'ip';

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
export const kindSteps: { readonly [K in ObjectKind]: KindSteps<KernelDelta[K]> } = {
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
 * Where there are to be no rules at all, they go after the virtual servers, as does what guarded addresses that no rule
 * needs any more. Where iptables mode gives way to IPVS, its rules serve until the virtual servers are there: they see a
 * packet before IPVS does, so nothing is served twice.
 */
function placeRules({ state, delta, stage }: Plan): RulesPlace {
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
function changeRules(at: RulesPlace, plan: Plan): readonly Step[] {
  const place = placeRules(plan);
  if (place !== 'between') return place === at ? formatRules(plan.delta) : [];
  // An address must not be there before what closes it to all but Services.
  const guarded = addGuard(plan.present, guardOf(plan.state), 'before');
  switch (at) {
    case 'before IPVS':
      return restoreTables(plan.present, guarded);
    case 'between':
      return restoreTables(guarded, plan.state);
    case 'after IPVS':
      return [];
  }
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
