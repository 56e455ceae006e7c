import type { Address, Family } from '../kernel/address.ts';
import type { Unlisted } from '../kernel/ipvs/ipvs.ts';
import type { TableName } from '../kernel/iptables/iptables.ts';
import type { RuleStep } from './step.ts';

export type Maybe<Unknown = undefined> = boolean | Unknown;

export function negateIf<U>(negated: boolean | undefined, result: Maybe<U>): Maybe<U> {
  return typeof result === 'boolean' ? result !== (negated === true) : result;
}

/** Reports whether all items pass. Stops at the first that fails; if none fails, returns the first unknown. */
export function allOf<T, U>(items: Iterable<T>, test: (item: T) => Maybe<U>): Maybe<U> {
  let result: Maybe<U> = true;
  for (const item of items) {
    const one = test(item);
    if (one === false) return false;
    if (one !== true && result === true) result = one;
  }
  return result;
}

export function someOf<T, U>(items: Iterable<T>, test: (item: T) => Maybe<U>): Maybe<U> {
  return negateIf(
    true,
    allOf(items, (item) => negateIf(true, test(item))),
  );
}

export function all<U>(...results: readonly Maybe<U>[]): Maybe<U> {
  return allOf(results, (each) => each);
}

export interface LineOfFile {
  readonly file: string;
  readonly line: number;
}

export type Missing =
  /** `unread`: a line of the printed tables that kpc cannot read. */
  | {
      readonly kind: 'iptables';
      readonly family: Family;
      readonly tables: readonly TableName[];
      readonly unread?: LineOfFile;
    }
  | { readonly kind: 'legacy-iptables'; readonly family: Family }
  /** `chain`: a chain of kube-proxy's table that is missing from a listing that seems complete. */
  | { readonly kind: 'nftables'; readonly family: Family; readonly chain?: string | undefined }
  /** A rule in chain `from` that jumps to the rules shown. */
  | { readonly kind: 'jump'; readonly tool: RuleStep['tool']; readonly from: string; readonly to: string }
  | { readonly kind: 'chain'; readonly tool: RuleStep['tool']; readonly table: string; readonly chain: string }
  | { readonly kind: 'policy'; readonly family: Family; readonly table: TableName; readonly chain: string }
  /** `unlisted`: a set's entry whose virtual server is not in the list. `unread`: a line of the list that kpc cannot read. */
  | {
      readonly kind: 'virtual-servers';
      readonly unlisted?: Unlisted | undefined;
      readonly unread?: LineOfFile | undefined;
    }
  | { readonly kind: 'set'; readonly set: string; readonly tool: RuleStep['tool'] }
  | { readonly kind: 'endpoint-slices'; readonly service: string }
  /** EndpointSlices that fit the Service on one side of a comparison only, because these fields of the Service changed. */
  | { readonly kind: 'fitting-slices'; readonly service: string; readonly fields: readonly string[] }
  /** The ranges of cluster IPs. kube-proxy drops packets to addresses in these ranges that no Service has. */
  | { readonly kind: 'service-cidrs' }
  /** `isUnrouted`: a link has the address, but the shown table `local` lacks it. */
  | { readonly kind: 'own-address'; readonly address: Address; readonly isUnrouted?: true }
  | { readonly kind: 'own-addresses' }
  | { readonly kind: 'route'; readonly address: Address }
  | {
      readonly kind: 'routes';
      readonly family: Family;
      readonly table?: string | undefined;
      readonly isRules?: boolean;
    }
  | { readonly kind: 'sysctl'; readonly name: string }
  /** Whether an interface is a bridge that shows packets to rules. `lost`: on such a bridge, a reset is lost; on any other, an answer. */
  | {
      readonly kind: 'bridge';
      readonly sysctl: string;
      readonly link: string | undefined;
      readonly lost: LostByBridge | undefined;
    };

export type LostByBridge = 'answer' | 'reset';

/** Something that varies from packet to packet. `rate`, `excess`: what a limit has let through. `memory`: what earlier packets left. */
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
  | 'xdp'
  | 'content';

/** Why a packet's fate is unknown. Each kind says what would settle the fate. */
export type Reason = {
  readonly rule?: RuleStep | undefined;
  readonly fact?: string | undefined;
  /** The answer to show if both answers lead to the same end; yes by default. */
  readonly likely?: boolean | undefined;
  /** Other reasons to settle, which would otherwise show only once this one is settled. */
  readonly also?: readonly Reason[] | undefined;
} & (
  | { readonly kind: 'missing-listing'; readonly missing: Missing }
  | { readonly kind: 'missing-flag'; readonly flag: '--in-interface'; readonly such?: string }
  /** `--from` would tell from which address the node sends to `to`. `such`: the likely address. */
  | { readonly kind: 'missing-flag'; readonly flag: '--from'; readonly to: Address; readonly such: Address }
  /** `--node` would tell which Node of the input is meant, because the two treat the packet differently. */
  | { readonly kind: 'missing-flag'; readonly flag: '--node'; readonly nodes: readonly [string, string] }
  /** `of`: a table or line, or what kpc does not read in a known rule. */
  | { readonly kind: 'unread-rule'; readonly of: string | LineOfFile }
  | { readonly kind: 'unread-value'; readonly text: string }
  /** Two chains with the same hook and priority. The kernel runs the newer one first. `isListable`: nft can show which is newer. */
  | { readonly kind: 'unknown-order'; readonly chains: readonly [string, string]; readonly isListable: boolean }
  | { readonly kind: 'circumstance'; readonly of: Circumstance; readonly text: string }
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

export function unreadRule(of: string | LineOfFile): Reason {
  return { kind: 'unread-rule', of };
}

export function unreadValue(text: string): Reason {
  return { kind: 'unread-value', text };
}

/** `text`: what to look at on the node, or what tells questions of one rule apart. */
export function circumstance(of: Circumstance, text = ''): Reason {
  return { kind: 'circumstance', of, text };
}

export function lacks(missing: Missing, fact?: string): Reason {
  return { kind: 'missing-listing', missing, fact };
}

/** Reports whether all routes of a family are missing, rather than one table or the routing rules. */
export function lacksAllRoutes(reason: Reason): boolean {
  if (reason.kind !== 'missing-listing' || reason.missing.kind !== 'routes') return false;
  return reason.missing.table === undefined && reason.missing.isRules !== true;
}

export function isGap(reason: Reason): boolean {
  if (reason.kind === 'unread-rule') return reason.rule === undefined;
  if (reason.kind === 'circumstance') return reason.of === 'bridge-port' || reason.of === 'xdp';
  return reason.kind === 'missing-listing' && gaps.has(reason.missing.kind);
}

const gaps: ReadonlySet<Missing['kind']> = new Set(['iptables', 'legacy-iptables', 'nftables', 'virtual-servers']);

/** Returns the same key for reasons that the same input would settle. */
export function reasonKey({ rule, fact: _, likely: __, also: ___, ...reason }: Reason): string {
  // Any --node settles this reason, whichever two Nodes it names.
  if (reason.kind === 'missing-flag' && reason.flag === '--node') return reason.flag;
  const isOfRule = reason.kind !== 'missing-listing' && reason.kind !== 'missing-flag';
  const where = rule && isOfRule ? [rule.tool, rule.table, rule.chain, rule.position] : [];
  return JSON.stringify([reason, ...where]);
}
