import type { Network } from '../../kernel/address.ts';
import type { Rule } from '../../kernel/iptables/iptables.ts';
import type { KernelState } from '../../kernel/state.ts';
import { mapLists, type Belongings } from '../state/belongings.ts';

/**
 * On what grounds things are kpc-apply's: owned are those that it made, by its record; adopted those that a kube-proxy
 * left, where --adopt says so. Both have names that kube-proxy gives. All others are foreign.
 */
export interface Claims {
  readonly owned: Belongings;
  /** Whether what a kube-proxy left is ours from now on. */
  readonly adopt: boolean;
  /** Virtual servers in here that are not wanted are foreign in any case (--ipvs-exclude-cidrs). */
  readonly excluded: readonly Network[];
  /** Wanted addresses that no interface of a node has: connections to the node itself would go to endpoints. */
  readonly clusterIPs?: ReadonlySet<string> | undefined;
}

/** A thing that another program made. */
export interface Conflict {
  readonly kind: 'virtual-server' | 'set' | 'chain' | 'table' | 'link' | 'address';
  readonly name: string;
  /** Whether --adopt takes it over. It does not if a running program has it to itself: the kernel lets no other change it. */
  readonly adoptable: boolean;
}

/** "virtual server TCP 10.96.0.1:80". */
export function describeConflict({ kind, name }: Conflict): string {
  return `${kind === 'virtual-server' ? 'virtual server' : kind} ${name}`;
}

/** What looks like kube-proxy's, and stays. */
export interface Leftover extends Conflict {
  /** Whether packets get there: a hook of the kernel leads to it. */
  readonly isInEffect: boolean;
}

/** Which part of a node's state may be changed, and what is in the way. */
export interface Share {
  /** What is wanted, as far as it can be had beside what stays. */
  readonly wanted: KernelState;
  /** What counts: what is ours and is there, and what is wanted. */
  readonly ours: Belongings;
  /** What may be changed: the same, except for things that another program had made exactly as wanted. */
  readonly touched: Belongings;
  /** Wanted things that are there as another program made them, and different. */
  readonly conflicts: readonly Conflict[];
  /** What will be owned once the wanted state is there: all of it but what another program had made just so. */
  readonly belongings: Belongings;
  /** Virtual servers on the node that are neither ours nor wanted: "TCP 10.96.0.1:80". */
  readonly foreign: readonly string[];
  readonly leftovers: readonly Leftover[];
}

/** One of the lists of belongings. */
type List = keyof Belongings;

/** How things of one kind divide: by key, those that are there and those that are wanted. */
interface Division<T> {
  readonly present: ReadonlyMap<string, T>;
  readonly wanted: ReadonlyMap<string, T>;
  isMine(item: T, key: string): boolean;
  /** Why a wanted one that another program has made is a conflict; undefined if it is as wanted. */
  collide?(present: T, wanted: T, key: string): Conflict | undefined;
  /** Takes note of one that is not wanted and not ours. */
  leave(item: T, key: string): void;
  /** Whether one of ours stays though it is not wanted: it stays ours if it is by the record. */
  keeps?(item: T, key: string): boolean;
  /** Takes note of a wanted one that is not there. */
  make?(item: T, key: string): void;
}

/** A share while it is made: each kind adds its things. */
export class ShareDraft {
  readonly claims: Claims;
  readonly present: KernelState;
  /** Of iptables and links, not all that is wanted can be had beside what stays: that is left out here. */
  wanted: KernelState;
  readonly ours = emptyLists();
  readonly touched = emptyLists();
  readonly belongings = emptyLists();
  readonly conflicts: Conflict[] = [];
  readonly foreign: string[] = [];
  readonly leftovers: Leftover[] = [];
  /** All iptables rules of other programs, and those of kpc-apply's that stay because of them. */
  readonly staying: Rule[] = [];
  readonly #owned: Readonly<Record<List, ReadonlySet<string>>>;

  constructor(present: KernelState, wanted: KernelState, claims: Claims) {
    this.present = present;
    this.wanted = wanted;
    this.claims = claims;
    this.#owned = mapLists((list) => new Set(claims.owned[list]));
  }

  owns(list: List, key: string): boolean {
    return this.#owned[list].has(key);
  }

  /** Something that is wanted, and that is not there or is ours. */
  have(list: List, key: string): void {
    this.letGo(list, key);
    this.belongings[list].add(key);
  }

  /** Something of ours that is not wanted. */
  letGo(list: List, key: string): void {
    this.ours[list].add(key);
    this.touched[list].add(key);
  }

  divide<T>(list: List, { present, wanted, isMine, collide, leave, keeps, make }: Division<T>): void {
    for (const [key, item] of wanted) {
      const twin = present.get(key);
      if (twin === undefined) make?.(item, key);
      if (twin === undefined || isMine(twin, key)) {
        this.have(list, key);
        continue;
      }
      this.ours[list].add(key);
      const conflict = collide?.(twin, item, key);
      if (conflict) this.conflicts.push(conflict);
    }
    for (const [key, item] of present) {
      if (wanted.has(key)) continue;
      if (!isMine(item, key)) leave(item, key);
      else if (!keeps?.(item, key)) this.letGo(list, key);
      else if (this.owns(list, key)) this.belongings[list].add(key);
    }
  }

  finish(): Share {
    const { wanted, conflicts, foreign, leftovers } = this;
    const toLists = (sets: Readonly<Record<List, ReadonlySet<string>>>) => mapLists((list) => [...sets[list]]);
    const [ours, touched, belongings] = [toLists(this.ours), toLists(this.touched), toLists(this.belongings)];
    return { wanted, ours, touched, belongings, conflicts, foreign, leftovers };
  }
}

function emptyLists(): Readonly<Record<List, Set<string>>> {
  return mapLists(() => new Set());
}
