import type { AssignedService } from '../cluster/assign-addresses.ts';
import type { Cluster, NodeContext } from '../cluster/model.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import type { Family } from '../kernel/family.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import type { Coverage } from './coverage.ts';

/** One side of a comparison: a state, what it is known to hold, and the Services it was compiled from where known. */
export interface Side {
  readonly kind: 'manifests' | 'bundle' | 'dump';
  /** What the user called it: a path, or "-". */
  readonly name: string;
  readonly state: KernelState;
  /** A state whose items tell by their origins what the items of `state` are there for; undefined where none does. */
  readonly labels: KernelState | undefined;
  readonly coverage: Coverage;
  /** The families that it was compiled for; both for a dump. */
  readonly families: readonly Family[];
  /** Files of a dump that may have held more than was read. */
  readonly doubts: readonly Doubt[];
  /** Undefined for a dump: it does not tell which Services it came from. */
  readonly services: SideServices | undefined;
}

/** What a dump may hold more of than was read. */
export type Doubt = FileDoubt | TableDoubt;

/** Why a file of a dump may have held more than was read of it. */
interface FileDoubt {
  readonly file: string;
  /**
   * Lines that could not be read; nothing at all, as of a tool that failed; an end in the middle of a line; or columns that
   * do not show how real servers are reached.
   */
  readonly kind: 'unread' | 'empty' | 'cut-line' | 'no-forwarding';
}

/** A table of another program in nftables, which is no part of a side's state: packets alone meet it. */
interface TableDoubt {
  readonly kind: 'other-table';
  /** "inet firewalld". */
  readonly table: string;
  /** Its rules for packets of IP: none in families such as arp. Undefined where not all of it could be read. */
  readonly tables: readonly NftTable[] | undefined;
}

export interface SideServices {
  readonly cluster: Cluster;
  readonly node: NodeContext;
  readonly settings: ProxySettings;
  readonly assumed: AssumedValues;
}

/** What kpc chose, since nothing in the input says it. */
interface AssumedValues {
  readonly services: readonly AssignedService[];
  /** The addresses of Pods that no input holds. */
  readonly pods: ReadonlySet<string>;
  readonly node: boolean;
}
