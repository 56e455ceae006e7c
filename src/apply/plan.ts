import { diffStates, isEmptyDelta, type KernelDelta } from '../kernel/delta.ts';
import { restrictState } from '../kernel/restrict.ts';
import type { KernelState } from '../kernel/state.ts';
import type { Connections } from './connections.ts';
import { planDrain, type DrainPolicy } from './drain.ts';
import { findModule, type ModuleIndex } from './modules.ts';
import type { Setting } from './node-decisions.ts';
import { ownershipOf } from './belongings.ts';
import { takeShare, type Claims, type Share } from './ownership.ts';
import type { DrainingServer } from './record.ts';

/** What a node is to be like. */
export interface Target {
  /** The tools' part: sysctls and modules stand in the two lists below. */
  readonly state: KernelState;
  readonly settings: readonly Setting[];
  readonly modules: readonly string[];
}

/** What a node is like. */
export interface NodeState {
  readonly state: KernelState;
  /** File → value. */
  readonly settings: Readonly<Record<string, string>>;
  readonly modules: ModuleIndex;
  /** Of IPVS; only asked of real servers that drain. */
  readonly connections: Connections;
}

/** A setting that has another value, or none yet. */
export interface SettingChange {
  readonly setting: Setting;
  readonly from: string | undefined;
}

/** Everything that is to change on a node, as data. */
export interface Plan {
  readonly modules: readonly string[];
  readonly settings: readonly SettingChange[];
  readonly delta: KernelDelta;
  /** Real servers that keep their connections until these end. */
  readonly draining: readonly DrainingServer[];
  readonly share: Share;
  /** The state that the delta leads to, of what is ours. */
  readonly state: KernelState;
}

/** Compares a node with what it is to be like. */
export function makePlan(
  node: NodeState,
  target: Target,
  claims: Claims,
  drain: DrainPolicy & { readonly known: readonly DrainingServer[] },
): Plan {
  const share = takeShare(node.state, target.state, claims);
  const owns = ownershipOf(share.ours);
  const present = restrictState(node.state, owns);
  const wanted = restrictState(share.wanted, owns);
  const drained = planDrain(present.virtualServers, wanted.virtualServers, node.connections, drain.known, drain);
  const state: KernelState = {
    ...wanted,
    virtualServers: drained.virtualServers,
    ipvsTimeouts: target.state.ipvsTimeouts ?? present.ipvsTimeouts,
  };
  return {
    modules: target.modules.filter((module) => findModule(node.modules, module) === 'loadable'),
    settings: target.settings.flatMap((setting) => changeSetting(node, setting) ?? []),
    delta: diffStates(present, state),
    draining: drained.draining,
    share,
    state,
  };
}

function changeSetting(node: NodeState, setting: Setting): SettingChange | undefined {
  const from = node.settings[setting.path];
  return from === setting.value ? undefined : { setting, from };
}

/** Whether the node is as it is to be; real servers that still drain are as they are to be. */
export function isEmptyPlan(plan: Plan): boolean {
  return plan.modules.length === 0 && plan.settings.length === 0 && isEmptyDelta(plan.delta);
}
