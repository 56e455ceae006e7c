import { splitDelta, type KernelDelta } from '../../kernel/delta.ts';
import { objectKinds, type ObjectKind } from '../../kernel/kinds.ts';
import type { Command } from '../node/host.ts';
import { kindSteps, type Step, type RestoreTool } from './kind-steps.ts';
import type { ReadingPart } from '../node/node-reading.ts';
import { listStages, type Plan } from './plan.ts';

/**
 * A plan in the order in which it is carried out. New things come before what uses them, in the order of `kinds`:
 * modules, sysctls, sets, rules (the masquerade rules stand before anything can be routed), virtual servers, addresses.
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
