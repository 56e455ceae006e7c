import type { Host } from '../dumps/hosts.ts';
import type { OutputKind, ReadableKind } from '../dumps/output-kinds.ts';
import type { TableName } from '../kernel/iptables.ts';
import type { KernelState } from '../kernel/state.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';
import type { Coverage } from './coverage.ts';
import type { LossyOption } from './nftables-draft.ts';
import type { Doubt } from './side.ts';

/** What a file of a dump is: the tool that printed it. */
export type DumpFileKind =
  Exclude<ReadableKind, 'rules'> | 'iptables-save' | 'ip6tables-save' | 'iptables -S' | 'ip6tables -S';

/** What was taken from a node, by kpc-apply dump or by hand. */
export interface Dump {
  readonly state: KernelState;
  readonly coverage: Coverage;
  /** Each output that was read, with the file it is in. */
  readonly files: readonly { readonly name: string; readonly kind: DumpFileKind }[];
  readonly faults: readonly DumpFault[];
  readonly doubts: readonly Doubt[];
}

/** Why a file of a dump, or a part of it, takes no part, or how it was taken. */
export type DumpFault =
  /** A line that cannot be read, and how many more of the file cannot for the same reason. */
  | { readonly kind: 'unread-line'; readonly file: string; readonly line: UnreadLine; readonly more: number }
  /** Its name says that a tool printed it, and its content that none did. */
  | { readonly kind: 'no-output'; readonly file: string; readonly expected: DumpFileKind }
  /** It ends before its end: what it holds is known, but not what it lacks. */
  | { readonly kind: 'cut-off'; readonly file: string; readonly expected: DumpFileKind }
  /** What a tool printed that lacks what is needed. */
  | {
      readonly kind: 'refused';
      readonly file: string;
      readonly line: number;
      readonly output: OutputKind | DumpFileKind | 'ipset list -t' | LossyOption;
      readonly reason: string;
    }
  /** Rules without a line that says of which table. */
  | { readonly kind: 'no-table'; readonly file: string; readonly line: number; readonly tables: readonly TableName[] }
  /** Virtual servers that may be all that the node has, or a part that nothing shows to be one. */
  | { readonly kind: 'taken-whole'; readonly file: string; readonly line: number }
  /** A listing that differs from one before it, of another node or another time: by what. */
  | {
      readonly kind: 'second-listing';
      readonly file: string;
      readonly line: number;
      readonly output: DumpFileKind;
      readonly differences: readonly string[];
    }
  /** Outputs of another host than the first one. */
  | {
      readonly kind: 'other-host';
      readonly file: string;
      readonly line: number;
      readonly outputs: readonly OutputKind[];
      readonly host: Host;
      readonly first: Host;
    }
  /** A word of iptables-nft-save of rules that it does not show. */
  | { readonly kind: 'legacy-tables'; readonly file: string }
  /** Lines between the outputs that are of no tool. */
  | { readonly kind: 'strays'; readonly file: string; readonly line: number; readonly count: number };

export type Reader = <T extends { readonly unread: readonly UnreadLine[] }>(result: T) => T;
