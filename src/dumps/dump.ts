import type { Fault } from '../diagnostics/diagnostic.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import type { Coverage } from './coverage.ts';
import type { ReadableKind } from './output-kinds.ts';

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

/** Why a dump may hold more than was read of it. */
export type Doubt =
  | {
      readonly file: string;
      /**
       * Lines that could not be read; nothing at all, as of a tool that failed; an end in the middle of a line; or columns that
       * do not show how real servers are reached.
       */
      readonly kind: 'unread' | 'empty' | 'cut-line' | 'no-forwarding';
    }
  /** A table of another program in nftables, which is no part of a side's state: packets alone meet it. */
  | {
      readonly kind: 'other-table';
      /** "inet firewalld". */
      readonly table: string;
      /** Its rules for packets of IP: none in families such as arp. Undefined where not all of it could be read. */
      readonly tables: readonly NftTable[] | undefined;
    };

/** Why a file of a dump, or a part of it, takes no part, or how it was taken; without a line, of the whole file. */
export type DumpFault = Fault & { readonly file: string; readonly line: number | undefined };
