// Answers about a packet: yes, no, or why unknown.
import type { Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { Unlisted } from '../kernel/ipvs/ipvs.ts';
import type { TableName } from '../kernel/iptables/iptables.ts';
import type { RuleStep } from './step.ts';

export type Maybe<Unknown = undefined> = boolean | Unknown;

export function negateIf<U>(negated: boolean | undefined, result: Maybe<U>): Maybe<U> {
  return typeof result === 'boolean' ? result !== (negated === true) : result;
}

/** Whether all items pass; stops at the first that fails. If none fails, returns the first unknown. */
export function allOf<T, U>(items: Iterable<T>, test: (item: T) => Maybe<U>): Maybe<U> {
  let result: Maybe<U> = true;
  for (const item of items) {
    const one = test(item);
    if (one === false) return false;
    if (one !== true && result === true) result = one;
  }
  return result;
}

/** Whether the test passes for any item; stops at the first that does. */
export function someOf<T, U>(items: Iterable<T>, test: (item: T) => Maybe<U>): Maybe<U> {
  return negateIf(
    true,
    allOf(items, (item) => negateIf(true, test(item))),
  );
}

export function all<U>(...results: readonly Maybe<U>[]): Maybe<U> {
  return allOf(results, (each) => each);
}

/** Something that a dump lacks. Each kind has a command that prints it. */
export type Missing =
  /** `file`: tables were printed, but with an unreadable line. */
  | {
      readonly kind: 'iptables';
      readonly family: Family;
      readonly tables: readonly TableName[];
      readonly unread?: { readonly file: string; readonly line: number };
    }
  /** The other iptables variant, which the kernel runs as well. */
  | { readonly kind: 'legacy-iptables'; readonly family: Family }
  | { readonly kind: 'nftables'; readonly family: Family }
  /** Whether chain `from` has a rule that jumps to the rules shown. */
  | { readonly kind: 'jump'; readonly tool: RuleStep['tool']; readonly from: string; readonly to: string }
  | { readonly kind: 'chain'; readonly tool: RuleStep['tool']; readonly table: string; readonly chain: string }
  | { readonly kind: 'policy'; readonly family: Family; readonly table: TableName; readonly chain: string }
  /** `unlisted`: an entry of a set whose server this list, seemingly complete, lacks. */
  | { readonly kind: 'virtual-servers'; readonly unlisted?: Unlisted | undefined }
  /** `tool`: the tool of the rule that uses the set. */
  | { readonly kind: 'set'; readonly set: string; readonly tool: RuleStep['tool'] }
  | { readonly kind: 'endpoint-slices'; readonly service: string }
  /** EndpointSlices that fit only one of two sides, as these fields of the Service changed. */
  | { readonly kind: 'fitting-slices'; readonly service: string; readonly fields: readonly string[] }
  /** The networks of cluster IPs: kube-proxy drops packets to addresses there that no Service has. */
  | { readonly kind: 'service-cidrs' }
  | { readonly kind: 'own-address'; readonly address: Address }
  | { readonly kind: 'own-addresses' }
  /** The interface by which packets to an address leave. */
  | { readonly kind: 'route'; readonly address: Address }
  /** The routes of a family: all of them, a table that a rule leads to, or the rules. */
  | {
      readonly kind: 'routes';
      readonly family: Family;
      readonly table?: string | undefined;
      readonly isRules?: boolean;
    }
  | { readonly kind: 'sysctl'; readonly name: string }
  /** Whether an interface is a bridge whose ports rules see; `lost`: what does not come back if so (a reset) or if not (an answer). */
  | {
      readonly kind: 'bridge';
      readonly sysctl: string;
      readonly link: string | undefined;
      readonly lost: LostByBridge | undefined;
    };

export type LostByBridge = 'answer' | 'reset';

/** Something that varies from packet to packet. `rate` and `excess`: what a limit has let through; `memory`: what a rule has remembered. */
export type Circumstance =
  | 'rate'
  | 'excess'
  | 'source-port'
  | 'program'
  | 'listener'
  | 'memory'
  | 'bridge-port'
  | 'refusal'
  | 'peer'
  | 'redirect'
  | 'encryption'
  | 'content';

/** Why a packet's fate is unknown. Each kind says what would settle it. */
export type Reason = {
  readonly rule?: RuleStep | undefined;
  /** Names a fact that is the same wherever asked on a packet's way: "in docker0". */
  readonly fact?: string | undefined;
  /** The answer to show when it makes no difference; yes by default. */
  readonly likely?: boolean | undefined;
} & (
  | { readonly kind: 'missing-listing'; readonly missing: Missing }
  | { readonly kind: 'missing-flag'; readonly flag: '--in-interface'; readonly such?: string }
  /** Which of its addresses the node sends `to` an address from; `such` is the likely one. */
  | { readonly kind: 'missing-flag'; readonly flag: '--from'; readonly to: Address; readonly such: Address }
  /** Which of the input's Nodes it is: these two do not treat the packet alike. */
  | { readonly kind: 'missing-flag'; readonly flag: '--node'; readonly nodes: readonly [string, string] }
  /** A rule, or part of one, that kpc does not read, in the tool's words. */
  | { readonly kind: 'unread-rule'; readonly text: string }
  /** A constant in a rule or set that kpc does not understand. */
  | { readonly kind: 'unread-value'; readonly text: string }
  /** Two chains of one hook and priority: the kernel enters the latest registered first. `isListable`: nft lists both in that order. */
  | { readonly kind: 'unknown-order'; readonly chains: readonly [string, string]; readonly isListable: boolean }
  | { readonly kind: 'circumstance'; readonly of: Circumstance; readonly text: string }
  /** Rules that fork more ways than kpc walks, or never end. */
  | { readonly kind: 'too-many-ways' }
);

export type Answer = Maybe<Reason>;

export const reasonKinds = [
  'missing-listing',
  'missing-flag',
  'unread-rule',
  'unread-value',
  'unknown-order',
  'circumstance',
  'too-many-ways',
] as const satisfies readonly Reason['kind'][];

export function unreadRule(text: string): Reason {
  return { kind: 'unread-rule', text };
}

export function unreadValue(text: string): Reason {
  return { kind: 'unread-value', text };
}

export function circumstance(of: Circumstance, text: string): Reason {
  return { kind: 'circumstance', of, text };
}

export function lacks(missing: Missing, fact?: string): Reason {
  return { kind: 'missing-listing', missing, fact };
}

/** Whether no routes of the family are shown, and not only some table or the rules. */
export function lacksAllRoutes(reason: Reason): boolean {
  if (reason.kind !== 'missing-listing' || reason.missing.kind !== 'routes') return false;
  return reason.missing.table === undefined && reason.missing.isRules !== true;
}

/** Whether something is missing that may see packets, such as a table, and not something else that stops them. */
export function isGap(reason: Reason): boolean {
  if (reason.kind === 'unread-rule') return reason.rule === undefined;
  if (reason.kind === 'circumstance') return reason.of === 'bridge-port';
  return reason.kind === 'missing-listing' && gaps.has(reason.missing.kind);
}

const gaps: ReadonlySet<Missing['kind']> = new Set(['iptables', 'legacy-iptables', 'nftables', 'virtual-servers']);

/** Equal for all reasons that one answer settles. */
export function reasonKey({ rule, fact: _, likely: __, ...reason }: Reason): string {
  // Any node settles it, whichever two show it.
  if (reason.kind === 'missing-flag' && reason.flag === '--node') return reason.flag;
  const isOfRule = reason.kind !== 'missing-listing' && reason.kind !== 'missing-flag';
  const where = rule && isOfRule ? [rule.tool, rule.table, rule.chain, rule.position] : [];
  return JSON.stringify([reason, ...where]);
}
