import { compareVirtualServers, type VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import { mapKinds, type ObjectKind } from '../kernel/kinds.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import type { Link } from '../kernel/link/link.ts';
import type { KernelState } from '../kernel/state.ts';
import type { Told } from './coverage.ts';
import { NftDraft } from './nftables-draft.ts';
import { RulesDraft } from './rules-draft.ts';

/** The objects of one kind in a dump while its files are read. The same may have been taken twice: the first counts. */
interface KindDraft<Objects, All> {
  readonly objects: Objects;
  readonly told: All;
}

type AnyDrafts = { readonly [K in ObjectKind]: KindDraft<KernelState[K], Told[K]> };

/** A draft of each kind, by the name of the kind. */
export interface Drafts extends AnyDrafts {
  readonly iptables: RulesDraft;
  readonly nftables: NftDraft;
  readonly sets: ListDraft<IpSet>;
  readonly virtualServers: ListDraft<VirtualServer>;
  readonly links: ListDraft<Link>;
  readonly sysctls: ValueDraft<KernelState['sysctls']>;
  readonly ipvsTimeouts: ValueDraft<KernelState['ipvsTimeouts']>;
}

/** Drafts of a dump of which nothing is read yet. */
export function startDrafts(): Drafts {
  return {
    iptables: new RulesDraft(),
    nftables: new NftDraft(),
    sets: new ListDraft<IpSet>(({ name }) => name),
    virtualServers: new ListDraft<VirtualServer>(virtualServerKey, compareVirtualServers),
    links: new ListDraft<Link>(({ name }) => name),
    sysctls: new ValueDraft<KernelState['sysctls']>(new Map()),
    ipvsTimeouts: new ValueDraft<KernelState['ipvsTimeouts']>(undefined),
    // A dump tells none: what needs a module is in the kernel with it only.
    modules: { objects: [], told: false },
  };
}

/** All that was taken, and what of it is known whole. */
export function finishDrafts(drafts: Drafts): { readonly state: KernelState; readonly told: Told } {
  const rows: AnyDrafts = drafts;
  return {
    state: mapKinds<KernelState>((kind) => rows[kind].objects),
    told: mapKinds<Told>((kind) => rows[kind].told),
  };
}

/** A kind whose objects a tool lists, all of them or a part. */
class ListDraft<T> {
  readonly #items = new Map<string, T>();
  readonly #keyOf: (item: T) => string;
  readonly #compare: ((a: T, b: T) => number) | undefined;
  #isWhole = false;

  constructor(keyOf: (item: T) => string, compare?: (a: T, b: T) => number) {
    this.#keyOf = keyOf;
    this.#compare = compare;
  }

  add(items: readonly T[], isWhole: boolean): void {
    for (const item of items) {
      const key = this.#keyOf(item);
      if (!this.#items.has(key)) this.#items.set(key, item);
    }
    if (isWhole) this.#isWhole = true;
  }

  get objects(): readonly T[] {
    const items = [...this.#items.values()];
    return this.#compare ? items.sort(this.#compare) : items;
  }

  get told(): boolean {
    return this.#isWhole;
  }
}

/** A kind that is known as soon as any of it was printed. */
class ValueDraft<T> {
  objects: T;
  told = false;

  constructor(nothing: T) {
    this.objects = nothing;
  }

  set(objects: T): void {
    this.objects = objects;
    this.told = true;
  }
}
