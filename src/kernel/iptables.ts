import type { Origin } from './origin.ts';

export type TableName = 'nat' | 'filter' | 'mangle' | 'raw' | 'security';

/**
 * The iptables state of one family: table → chain name → chain. Chains keep the order in which they are declared.
 */
export type Tables = { readonly [T in TableName]?: ReadonlyMap<string, Chain> };

/** A chain with its rules in order. `policy` is set for the kernel's own chains (INPUT and so on) when known. */
export interface Chain {
  readonly name: string;
  readonly rules: readonly Rule[];
  readonly policy?: 'ACCEPT' | 'DROP' | undefined;
  readonly origin?: Origin | undefined;
}

/**
 * One rule: its arguments in the order they are written. kube-proxy's order and the order of iptables-save differ;
 * ruleMeaning gives the same text for both, and that is what equality goes by. Neither origin nor order of writing
 * takes part in it.
 */
export interface Rule {
  readonly args: readonly RuleArg[];
  readonly origin?: Origin | undefined;
}

/** One argument (an option with its values, or a match with its options) of a rule. */
export type RuleArg =
  | { readonly kind: 'source' | 'destination'; readonly cidr: string; readonly negated?: boolean }
  | { readonly kind: 'in-interface' | 'out-interface'; readonly name: string; readonly negated?: boolean }
  | { readonly kind: 'protocol'; readonly protocol: string; readonly negated?: boolean }
  /** `-m tcp` and so on, where no option of the module follows at once. */
  | { readonly kind: 'module'; readonly name: string }
  | { readonly kind: 'destination-port' | 'source-port'; readonly ports: string; readonly negated?: boolean }
  | { readonly kind: 'comment'; readonly text: string }
  | { readonly kind: 'mark'; readonly value: number; readonly mask: number; readonly negated?: boolean }
  | { readonly kind: 'conntrack-state'; readonly states: readonly string[]; readonly negated?: boolean }
  | {
      readonly kind: 'address-type';
      readonly which: 'source' | 'destination';
      readonly type: string;
      readonly negated?: boolean;
    }
  | {
      readonly kind: 'match-set';
      readonly set: string;
      readonly directions: readonly ('src' | 'dst')[];
      readonly negated?: boolean;
    }
  | { readonly kind: 'physdev-is-in'; readonly negated?: boolean }
  /** `-m ipvs --vaddr A --vproto P --vport N`. The protocol is a lower-case name. */
  | { readonly kind: 'ipvs'; readonly address: string; readonly protocol: string; readonly port: number }
  /** `-m statistic --mode random --probability P`; the text is what was written, ten decimals from kube-proxy. */
  | { readonly kind: 'statistic'; readonly probability: string }
  | { readonly kind: 'recent'; readonly name: string; readonly action: RecentAction }
  | { readonly kind: 'jump'; readonly target: Target; readonly goto?: boolean }
  /** Anything kpc does not read: the words as written, kept so that they can be compared and written again. */
  | { readonly kind: 'other'; readonly words: readonly string[] };

export type RecentAction =
  { readonly kind: 'set' } | { readonly kind: 'rcheck'; readonly seconds: number; readonly reap: boolean };

export type Target =
  | { readonly kind: 'chain'; readonly chain: string }
  | { readonly kind: 'accept' | 'drop' | 'return' }
  | { readonly kind: 'reject'; readonly with?: string | undefined }
  | { readonly kind: 'masquerade'; readonly randomFully: boolean }
  | { readonly kind: 'dnat'; readonly to: string }
  /** mark = (mark & ~mask) ^ value, as --set-xmark has it; --or-mark and --xor-mark are written where they say the same. */
  | { readonly kind: 'mark'; readonly operation: 'or' | 'xor' | 'set'; readonly value: number; readonly mask: number }
  | { readonly kind: 'other'; readonly words: readonly string[] };

/** A line of a tool's output that kpc cannot read; line counts from 1. */
export interface UnreadLine {
  readonly line: number;
  readonly text: string;
  readonly reason: string;
}
