// The actions of rules, in terms that iptables and nftables share.
import type { Address } from './address.ts';
import type { Target } from './ports-and-marks.ts';

export type RuleVerdict =
  | { readonly kind: 'accept' | 'drop' | 'return' | 'continue' }
  /** `goto` does not return. */
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };

export type MarkHolder = 'packet' | 'connection';

/** mark = (mark & stays) ^ (start & keep) ^ flip; start is a mark or 0. Unsigned, 32 bits. */
export interface MarkChange {
  readonly stays: number;
  /** Without it, start is 0. */
  readonly start?: { readonly from: MarkHolder; readonly keep: number };
  readonly flip: number;
}

export const allBits = 0xffffffff;

export type PlainAction =
  | RuleVerdict
  | { readonly kind: 'masquerade'; readonly fullyRandom?: boolean }
  /** `with`: the answer in the tool's words; undefined for the default ICMP answer. */
  | { readonly kind: 'reject'; readonly with?: string | undefined }
  /** Without a port, the packet keeps its own. */
  | { readonly kind: 'dnat'; readonly target: Target }
  | { readonly kind: 'change-mark'; readonly of: MarkHolder; readonly change: MarkChange };

export type OtherAction =
  | { readonly kind: 'notrack' }
  | { readonly kind: 'snat'; readonly address: Address }
  /** Sends it to the node: the input interface's address, or loopback. */
  | { readonly kind: 'redirect'; readonly port: number | undefined }
  | { readonly kind: 'zone'; readonly zone: number; readonly direction: 'original' | 'reply' | undefined }
  /** An action that kpc does not understand, in the tool's words. */
  | { readonly kind: 'unknown'; readonly text: string };
