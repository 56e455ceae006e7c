import type { Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { TableName } from '../kernel/iptables/iptables.ts';
import type { Maybe } from './maybe.ts';
import type { RuleStep } from './step.ts';

/** What a dump does not show. Each has the command that prints it. */
export type Missing =
  /** Tables of iptables or ip6tables; `file` where they were printed but have a line that kpc cannot read. */
  | {
      readonly kind: 'iptables';
      readonly family: Family;
      readonly tables: readonly TableName[];
      readonly unread?: { readonly file: string; readonly line: number };
    }
  /** The other variant of iptables, which the kernel runs as well. */
  | { readonly kind: 'legacy-iptables'; readonly family: Family }
  | { readonly kind: 'nftables'; readonly family: Family }
  /** Whether a rule of the chain `from` goes on to the rules that are there. */
  | { readonly kind: 'jump'; readonly tool: RuleStep['tool']; readonly from: string; readonly to: string }
  /** A chain to which a rule goes. */
  | { readonly kind: 'chain'; readonly tool: RuleStep['tool']; readonly table: string; readonly chain: string }
  /** What a chain of the kernel does with packets that none of its rules decides. */
  | { readonly kind: 'policy'; readonly family: Family; readonly table: TableName; readonly chain: string }
  /** `unlisted`: a clause about one that another listing names, though the list looks whole. */
  | { readonly kind: 'virtual-servers'; readonly unlisted?: string | undefined }
  /** `tool`: that of the rule that asks for it. */
  | { readonly kind: 'set'; readonly set: string; readonly tool: RuleStep['tool'] }
  /** The endpoints of a Service, "namespace/name". */
  | { readonly kind: 'endpoint-slices'; readonly service: string }
  /** The networks of cluster IPs, of which kube-proxy drops those that no Service has. */
  | { readonly kind: 'service-cidrs' }
  /** Whether an address is the node's own. */
  | { readonly kind: 'own-address'; readonly address: Address }
  /** Which of its own addresses the node sends from. */
  | { readonly kind: 'own-addresses' }
  /** By which interface packets leave to an address. */
  | { readonly kind: 'route'; readonly address: Address }
  /** The routes of a family: none are listed, a table that a rule leads to is not, or the rules. */
  | {
      readonly kind: 'routes';
      readonly family: Family;
      readonly table?: string | undefined;
      readonly isRules?: boolean;
    }
  | { readonly kind: 'sysctl'; readonly name: string }
  /** Whether an interface is a bridge, of which rules see the ports. */
  | { readonly kind: 'bridge'; readonly sysctl: string };

/** What may happen differently to each packet, whatever the rules are. */
export type Circumstance =
  /** How many packets a rule has seen lately: it takes those up to a limit, or those above it. */
  | 'rate'
  | 'excess'
  /** The port that the client's kernel chose. */
  | 'source-port'
  /** The program that sends. */
  | 'program'
  /** The program that listens on the node, and passes connections on. */
  | 'listener'
  /** Packets before this one, which a rule has remembered. */
  | 'memory'
  /** The port of a bridge that the sender is behind. */
  | 'bridge-port'
  /** What the packet has in some other field. */
  | 'content';

/** Why what becomes of a packet is not known. Each kind says what would settle it. */
export type Reason = {
  /** Where the question came up. */
  readonly rule?: RuleStep | undefined;
  /** Names a fact, which is one and the same wherever it is asked on a packet's way: "in docker0". */
  readonly fact?: string | undefined;
  /** The answer whose way is shown if it makes no difference; yes if undefined. */
  readonly likely?: boolean | undefined;
} & (
  | { readonly kind: 'missing-listing'; readonly missing: Missing }
  | { readonly kind: 'missing-flag'; readonly flag: '--in-interface'; readonly such?: string }
  /** Which of the node's addresses its packet `to` an address has, for which this one is likely. */
  | { readonly kind: 'missing-flag'; readonly flag: '--from'; readonly to: Address; readonly such: Address }
  /** A rule, or a part of it, that kpc does not read: the tool's words. */
  | { readonly kind: 'unread-rule'; readonly text: string }
  /** A constant of a rule or a set that kpc does not understand. */
  | { readonly kind: 'unread-value'; readonly text: string }
  /** Two chains of one hook and priority: the kernel enters the one that was registered last first. */
  | { readonly kind: 'unknown-order'; readonly chains: readonly [string, string] }
  | { readonly kind: 'circumstance'; readonly of: Circumstance; readonly text: string }
  /** Rules that fork more ways than kpc walks, or never end. */
  | { readonly kind: 'too-many-ways' }
);

/** What a test of a packet finds out. */
export type Answer = Maybe<Reason>;

/** What the answer to a question may lack. */
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

/** Whether something is missing that may see packets, such as a table: all else that stops a packet is a question of its own. */
export function isGap(reason: Reason): boolean {
  if (reason.kind === 'unread-rule') return reason.rule === undefined;
  return reason.kind === 'missing-listing' && gaps.has(reason.missing.kind);
}

const gaps: ReadonlySet<Missing['kind']> = new Set(['iptables', 'legacy-iptables', 'nftables', 'virtual-servers']);

/** The same text for reasons that one answer settles. */
export function reasonKey({ rule, fact: _, likely: __, ...reason }: Reason): string {
  const isOfRule = reason.kind !== 'missing-listing' && reason.kind !== 'missing-flag';
  const where = rule && isOfRule ? [rule.tool, rule.table, rule.chain, rule.position] : [];
  return JSON.stringify([reason, ...where]);
}
