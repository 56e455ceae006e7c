import {
  cameByBridge,
  changeMark,
  changeZone,
  decide,
  drawOne,
  isInterface,
  masquerade,
  redirect,
  reject,
  rewriteDestination,
  rewriteSource,
  type Flow,
} from './flow.ts';
import { someOf, lacks, unreadRule, type Answer } from './reason.ts';
import { unknown, type Decision } from './packet.ts';
import type { Hook, RuleStep } from './step.ts';

export interface RuleTable {
  readonly tool: RuleStep['tool'];
  readonly name: string;
  readonly chains: { readonly has: (chain: string) => boolean };
  readonly bases: readonly HookedChain[];
  readonly supposed: ReadonlySet<string>;
  readonly runRules: (flow: Flow, chain: string) => Decision | undefined;
}

export interface HookedChain {
  readonly chain: string;
  readonly hook: Hook;
  readonly priority: number;
  readonly devices?: readonly string[] | undefined;
  readonly isNat: boolean;
  /** Whether the kernel reroutes the node's own packets after a change by this chain, as for table mangle and chains of type route. */
  readonly reroutes: boolean;
  readonly drops: Answer;
  readonly isIdle: boolean;
}

export function runBaseChain(flow: Flow, table: RuleTable, { chain, drops, devices }: HookedChain): Decision {
  if (devices && !decide(flow, () => someOf(devices, (name) => isInterface(flow, 'input', name)))) return 'accept';
  // With br_netfilter, rules see a packet before the chains at the bridge device do. kpc does not model that order.
  if (devices && mayBeOfBridge(flow) && decide(flow, () => cameByBridge(flow)))
    return unknown(unreadRule(`table ${table.name}`));
  const decision = runChain(flow, table, chain);
  if (decision !== 'return') return decision;
  if (!decide(flow, () => drops)) return 'accept';
  flow.steps.push({ kind: 'policy', hook: flow.hook, tool: table.tool, table: table.name, chain });
  return 'dropped';
}

/** Reports whether a link may be a bridge. A link of unknown type that leads to other hosts counts as one only if it has ports. */
function mayBeOfBridge({ input = '', routing }: Flow): boolean {
  const { isBridge, outer } = routing.places;
  return isBridge(input) ?? (!outer.includes(input) || routing.portsOf(input).length > 0);
}

function runChain(flow: Flow, table: RuleTable, chain: string): Decision {
  const { tool, name, chains, supposed } = table;
  const lacking = lacks({ kind: 'chain', tool, table: name, chain }, `chain ${tool} ${name} ${chain}`);
  const isThere = chains.has(chain) && (!supposed.has(chain) || decide(flow, () => lacking));
  if (!isThere) return unknown(lacking);
  return flow.choices.enter(() => table.runRules(flow, chain) ?? 'return');
}

export const unshownPosition = 0;

export function carryOutAction(flow: Flow, table: RuleTable, step: RuleStep): Decision | undefined {
  const { action } = step;
  switch (action.kind) {
    case 'accept':
    case 'return':
      return action.kind;
    case 'continue':
    case 'write-set':
      return undefined;
    case 'drop':
      return 'dropped';
    case 'reject':
      return reject(flow, action.with);
    case 'jump': {
      const decision = runChain(flow, table, action.chain);
      return decision === 'return' ? undefined : decision;
    }
    case 'goto':
      return runChain(flow, table, action.chain);
    case 'goto-random':
      return runChain(flow, table, drawOne(flow, action.chains) ?? '');
    case 'dnat':
      return rewriteDestination(flow, action.target);
    case 'dnat-random': {
      const target = drawOne(flow, action.targets);
      return target ? rewriteDestination(flow, target) : unknown({ ...unreadRule('no target'), rule: step });
    }
    case 'redirect':
      return redirect(flow, action.port);
    case 'snat':
      return rewriteSource(flow, { address: action.address });
    case 'masquerade':
      return masquerade(flow);
    case 'notrack':
      flow.connection = undefined;
      return undefined;
    case 'zone':
      changeZone(flow, action.zone, action.direction);
      return undefined;
    case 'change-mark':
      changeMark(flow, action.of, action.change);
      return undefined;
    case 'unknown':
      return unknown({ ...unreadRule(action.text), rule: step });
    default:
      return action satisfies never;
  }
}
