import type { SysctlReason } from '../../kernel/sysctls-and-modules.ts';
import type { Family, Protocol } from '../../kernel/address.ts';
import type { IpvsTimeouts } from '../../kernel/ipvs/ipvs.ts';
import type { Rule, TableName } from '../../kernel/iptables/iptables.ts';
import type { Origin, Place } from '../../kernel/place.ts';

export const changeKinds = ['added', 'removed', 'changed'] as const;

export type ChangeKind = (typeof changeKinds)[number];

export const changedObjects = [
  'virtual server',
  'set',
  'set entry',
  'set element',
  'table',
  'map',
  'counter',
  'chain',
  'link',
  'address',
  'sysctl',
  'proxy port',
  'IPVS timeouts',
  'kernel module',
  'setting',
] as const;

export type ChangedObject = (typeof changedObjects)[number];

/** The known facts about a change to each kind of object, as JSON prints them. '' and undefined mean that there is no value. */
interface ChangeFields {
  readonly 'virtual-server': {
    readonly protocol: Protocol;
    readonly address: string;
    readonly port: number;
    readonly optionsFrom?: string;
    readonly optionsTo?: string;
    readonly added: readonly string[];
    readonly removed: readonly string[];
    readonly edited: readonly { readonly server: string; readonly from: string; readonly to: string }[];
  };
  readonly 'set-entry': { readonly set: string; readonly value: string };
  /** `entries`: the number of entries that no Service port owns. `from` and `to`: the options with which the set is created. */
  readonly set: { readonly set: string; readonly entries: number; readonly from?: string; readonly to?: string };
  readonly chain: RuleEdits & {
    readonly family: Family;
    readonly table: TableName;
    readonly chain: string;
    /** Whether Service ports share the chain. If so, the edits are only one owner's. */
    readonly shared: boolean;
  };
  readonly 'nft-table': NftAt &
    (
      | { readonly chains: number; readonly sets: number }
      | { readonly strangeFrom: readonly string[]; readonly strangeTo: readonly string[] }
    );
  readonly 'nft-chain': NftAt &
    RuleEdits & {
      readonly chain: string;
      readonly base?: { readonly from: string; readonly to: string };
      readonly endpointsAdded: readonly string[];
      readonly endpointsRemoved: readonly string[];
    };
  readonly 'nft-counter': NftAt & { readonly counter: string };
  readonly 'nft-set': NftAt & {
    readonly set: string;
    readonly isMap: boolean;
    readonly elements: number;
    readonly from?: string;
    readonly to?: string;
  };
  readonly 'nft-element': NftAt & {
    readonly set: string;
    readonly key: string;
    readonly from: string | undefined;
    readonly to: string | undefined;
  };
  readonly address: { readonly link: string; readonly address: string };
  readonly link: { readonly link: string; readonly addresses: number };
  /** `reason`: why the node decided on this value. */
  readonly sysctl: {
    readonly name: string;
    readonly from: string | undefined;
    readonly to: string | undefined;
    readonly reason: SysctlReason | undefined;
  };
  readonly 'proxy-port': {
    readonly protocol: Protocol;
    readonly address: string;
    readonly port: number;
    readonly added: readonly string[];
    readonly removed: readonly string[];
  };
  readonly 'ipvs-timeouts': { readonly from: IpvsTimeouts; readonly to: IpvsTimeouts };
  readonly module: { readonly name: string };
  readonly setting: { readonly name: string; readonly from: string; readonly to: string };
}

export interface NftAt {
  readonly family: Family;
  readonly table: string;
}

export const kernelObjectKinds = [
  'virtual-server',
  'set-entry',
  'set',
  'chain',
  'nft-table',
  'nft-chain',
  'nft-counter',
  'nft-set',
  'nft-element',
  'address',
  'link',
  'sysctl',
  'proxy-port',
  'ipvs-timeouts',
  'module',
  'setting',
] as const satisfies readonly (keyof ChangeFields)[];

interface ChangeOfAny {
  /** The Service port that owns the object. Undefined for objects that every node has. */
  readonly owner: string | undefined;
  readonly object: ChangedObject;
  readonly change: ChangeKind;
  readonly family?: Family | undefined;
  readonly place?: Place | undefined;
  /** The rules whose texts are in `added` and `removed`, if the object is an iptables chain. */
  readonly edited?: readonly Rule[];
  /** Whether the object is in the iptables variant (legacy or nft) that kube-proxy does not use. */
  readonly isOtherVariant?: boolean;
  readonly holds?: readonly CountedChange[];
}

export type ChangeOf<Kind extends keyof ChangeFields> = {
  readonly [K in Kind]: ChangeOfAny & { readonly kind: K; readonly fields: ChangeFields[K] };
}[Kind];

export type KernelChange = ChangeOf<keyof ChangeFields>;

export function changeOf<Kind extends keyof ChangeFields>(
  kind: Kind,
  object: ChangedObject,
  change: ChangeKind,
  fields: ChangeFields[Kind],
): ChangeOf<Kind> {
  return { owner: undefined, object, change, kind, fields } as ChangeOf<Kind>;
}

export interface RuleEdits {
  readonly rulesFrom: number;
  readonly rulesTo: number;
  /** Rules in canonical form (ruleMeaning). */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly reordered: boolean;
}

export type CountedChange = readonly [object: ChangedObject, change: ChangeKind, number: number];

export function countsOf({ object, change, holds = [] }: KernelChange): readonly CountedChange[] {
  return [[object, change, 1], ...holds];
}

export function ownedBy(
  owner: string | undefined,
  { origin }: { readonly origin?: Origin | undefined },
): Pick<KernelChange, 'owner' | 'place'> {
  return { owner, place: origin?.place };
}

export function kindOfChange(from: unknown, to: unknown): ChangeKind {
  if (from === undefined) return 'added';
  return to === undefined ? 'removed' : 'changed';
}

/** Returns the items of `list` that `others` lacks. Compares items by text, ignores order, and counts duplicates. */
export function subtract<T>(list: readonly T[], others: readonly T[], textOf: (item: T) => string): readonly T[] {
  const left = new Map<string, number>();
  for (const item of others) left.set(textOf(item), (left.get(textOf(item)) ?? 0) + 1);
  return list.filter((item) => {
    const text = textOf(item);
    const number = left.get(text) ?? 0;
    left.set(text, number - 1);
    return number <= 0;
  });
}

export function compareRules(from: readonly string[], to: readonly string[]): RuleEdits {
  const asItIs = (text: string): string => text;
  const [added, removed] = [subtract(to, from, asItIs), subtract(from, to, asItIs)];
  const reordered = added.length + removed.length === 0 && from.join('\n') !== to.join('\n');
  return { rulesFrom: from.length, rulesTo: to.length, added, removed, reordered };
}
