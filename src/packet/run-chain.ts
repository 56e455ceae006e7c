import { masquerade, rewriteDestination, type Flow } from './flow.ts';
import type { Maybe } from './maybe.ts';
import type { Action, Decision, Hook, RuleStep } from './packet.ts';

/** A table of iptables or nftables, ready for packets. */
export interface RuleTable {
  readonly tool: RuleStep['tool'];
  readonly name: string;
  readonly chains: { readonly has: (chain: string) => boolean };
  readonly bases: readonly BaseChain[];
  /** What the first rule that decides does with a packet; undefined if none of the chain decides. */
  readonly runRules: (flow: Flow, chain: string) => Decision | undefined;
}

/** A chain that the kernel enters. */
export interface BaseChain {
  readonly chain: string;
  readonly hook: Hook;
  /** Of a chain of type nat, the order among these. */
  readonly priority: number;
  readonly isNat: boolean;
  /** Whether what no rule decides is dropped. */
  readonly drops: boolean;
}

/** Sends a packet through one of the chains that the kernel enters. */
export function runBaseChain(flow: Flow, table: RuleTable, { chain, drops }: BaseChain): Decision {
  const decision = runChain(flow, table, chain);
  if (decision !== 'return') return decision;
  if (!drops) return 'accept';
  flow.steps.push({ kind: 'policy', hook: flow.hook, tool: table.tool, table: table.name, chain });
  return 'dropped';
}

function runChain(flow: Flow, table: RuleTable, chain: string): Decision {
  if (!table.chains.has(chain)) return 'unknown';
  return flow.choices.enter(() => table.runRules(flow, chain) ?? 'return');
}

/** Whether a rule takes the packet. Where kpc cannot know, both are tried; the step is the rule in doubt. */
export function takes(flow: Flow, isMatch: Maybe, step: RuleStep): boolean {
  return isMatch ?? flow.choices.doubt(() => [...flow.steps, step]);
}

/** Carries out a rule, if it takes the packet. Undefined if the packet goes on to the next rule. */
export function meet(flow: Flow, table: RuleTable, isMatch: Maybe, step: RuleStep): Decision | undefined {
  if (!takes(flow, isMatch, step)) return undefined;
  flow.steps.push(step);
  const { action } = step;
  switch (action.kind) {
    case 'accept':
    case 'return':
      return action.kind;
    case 'continue':
      return undefined;
    case 'drop':
      return 'dropped';
    case 'reject':
      return 'refused';
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
      return target ? rewriteDestination(flow, target) : 'unknown';
    }
    case 'snat':
      flow.source = action.address;
      flow.connection?.rewritten.add('source');
      return 'accept';
    case 'masquerade':
      return masquerade(flow);
    case 'set-mark':
      flow.mark = changeMark(flow.mark, action);
      return undefined;
    case 'unknown':
      return 'unknown';
    default:
      return action satisfies never;
  }
}

function drawOne<T>(flow: Flow, items: readonly T[]): T | undefined {
  return items[flow.choices.draw(items.map(() => 1 / items.length))];
}

/** The mark after a rule that sets, flips or clears bits of it: an unsigned number of 32 bits. */
export function changeMark(mark: number, change: Action & { readonly kind: 'set-mark' }): number {
  const { operation, value, mask = 0xffffffff } = change;
  switch (operation) {
    case 'or':
      return (mark | value) >>> 0;
    case 'xor':
      return (mark ^ value) >>> 0;
    case 'set':
      return ((mark & ~mask) ^ value) >>> 0;
    default:
      return operation satisfies never;
  }
}
