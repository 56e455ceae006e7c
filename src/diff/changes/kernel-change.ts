import type { Family, Protocol } from '../../kernel/family.ts';
import type { TableName } from '../../kernel/iptables.ts';
import type { IpvsTimeouts } from '../../kernel/ipvs.ts';

export type ChangeKind = 'added' | 'removed' | 'changed';

/** One thing of the kernel that differs, in the kernel's words. */
export type KernelChange =
  | {
      readonly kind: 'virtual-server';
      readonly change: ChangeKind;
      readonly protocol: Protocol;
      readonly address: string;
      readonly port: number;
      /** Scheduler, persistence and flags, as ipvsadm writes them; what is there on a side only. */
      readonly optionsFrom?: string;
      readonly optionsTo?: string;
      /** "ip:port" of real servers. */
      readonly added: readonly string[];
      readonly removed: readonly string[];
      readonly edited: readonly { readonly server: string; readonly from: string; readonly to: string }[];
    }
  | { readonly kind: 'set-entry'; readonly change: 'added' | 'removed'; readonly set: string; readonly value: string }
  | {
      readonly kind: 'set';
      readonly change: ChangeKind;
      readonly set: string;
      /** Entries that belong to no Service port. */
      readonly entries: number;
      /** The line that makes it, on each side. */
      readonly from?: string;
      readonly to?: string;
    }
  | {
      readonly kind: 'chain';
      readonly change: ChangeKind;
      readonly family: Family;
      readonly table: TableName;
      readonly chain: string;
      /** Whether Service ports share the chain: then all that is said here is of the rules of one of them. */
      readonly shared: boolean;
      readonly rulesFrom: number;
      readonly rulesTo: number;
      /** Rules in one text for all ways to write them. */
      readonly added: readonly string[];
      readonly removed: readonly string[];
      /** Whether the same rules stand in another order. */
      readonly reordered: boolean;
    }
  /** A table of nftables, with what in it belongs to no Service port. */
  | {
      readonly kind: 'nft-table';
      readonly change: 'added' | 'removed';
      readonly family: Family;
      readonly table: string;
      readonly chains: number;
      readonly sets: number;
    }
  /** A table of nftables that is made anew, since one side holds what kpc knows by its text alone. */
  | {
      readonly kind: 'nft-table';
      readonly change: 'changed';
      readonly family: Family;
      readonly table: string;
      /** The first line of each such part: "counter hits". */
      readonly strangeFrom: readonly string[];
      readonly strangeTo: readonly string[];
    }
  | {
      readonly kind: 'nft-chain';
      readonly change: ChangeKind;
      readonly family: Family;
      readonly table: string;
      readonly chain: string;
      readonly rulesFrom: number;
      readonly rulesTo: number;
      /** Rules in one text for all ways to write them. */
      readonly added: readonly string[];
      readonly removed: readonly string[];
      /** Whether the same rules stand in another order. */
      readonly reordered: boolean;
      /** Where the kernel enters it and what becomes of packets that no rule decides, where that differs; '' for a chain without. */
      readonly base?: { readonly from: string; readonly to: string };
      /** "ip:port" of what its rules send packets to, where nothing else differs. */
      readonly endpointsAdded: readonly string[];
      readonly endpointsRemoved: readonly string[];
    }
  | {
      readonly kind: 'nft-counter';
      readonly change: 'added' | 'removed';
      readonly family: Family;
      readonly table: string;
      readonly counter: string;
    }
  /** A set or a map of nftables. */
  | {
      readonly kind: 'nft-set';
      readonly change: ChangeKind;
      readonly family: Family;
      readonly table: string;
      readonly set: string;
      readonly isMap: boolean;
      /** Elements that belong to no Service port. */
      readonly elements: number;
      /** What it is, on each side. */
      readonly from?: string;
      readonly to?: string;
    }
  | {
      readonly kind: 'nft-element';
      readonly change: ChangeKind;
      readonly family: Family;
      readonly table: string;
      readonly set: string;
      readonly key: string;
      /** What becomes of a packet, on each side; undefined in a set. */
      readonly from?: string;
      readonly to?: string;
    }
  | { readonly kind: 'address'; readonly change: 'added' | 'removed'; readonly link: string; readonly address: string }
  | { readonly kind: 'link'; readonly change: 'added' | 'removed'; readonly link: string; readonly addresses: number }
  | {
      readonly kind: 'sysctl';
      readonly change: ChangeKind;
      readonly name: string;
      readonly from?: string | undefined;
      readonly to?: string | undefined;
    }
  | {
      readonly kind: 'ipvs-timeouts';
      readonly change: 'changed';
      readonly from: IpvsTimeouts;
      readonly to: IpvsTimeouts;
    }
  | { readonly kind: 'module'; readonly change: 'added' | 'removed'; readonly name: string }
  /** What kpc-apply goes by on the node: nothing in the state shows it. */
  | {
      readonly kind: 'setting';
      readonly change: 'changed';
      readonly name: string;
      readonly from: string;
      readonly to: string;
      /** Why this value, where the node decided it: "32768 × 4 cores". */
      readonly reason?: string | undefined;
    };

/** A change, and the Service port that it is about; undefined for what every node has. */
export interface OwnedChange {
  readonly owner: string | undefined;
  readonly change: KernelChange;
}
