import { about, boolean, objectOf, oneOf, text, type Shaped } from '../../base/json/schema.ts';
import type { Network } from '../../kernel/address.ts';
import type { Rule } from '../../kernel/iptables/iptables.ts';
import type { KernelState } from '../../kernel/state.ts';
import { weighEvidence, type KubeProxyEvidence } from '../../kube-proxy/evidence.ts';
import type { Variants } from '../node/tools.ts';
import type { BalancerFile } from '../state/state-files.ts';
import type { OwnedNames } from '../state/owned-lists.ts';
import { mapLists } from '../state/owned-names.ts';

/**
 * On what grounds things are kpc-apply's: owned are those that it made, by its record; adopted those that a kube-proxy
 * left, where --adopt says so. Both have names that kube-proxy gives. All others are foreign.
 */
export interface Claims {
  readonly owned: OwnedNames;
  /** In use when the node was read. */
  readonly variants: Variants;
  /** Whether what a kube-proxy left is owned from now on. */
  readonly adopt: boolean;
  /** Virtual servers in here that are not wanted are foreign in any case (--ipvs-exclude-cidrs). */
  readonly excluded: readonly Network[];
  /** Wanted addresses that no interface of a node has: connections to the node itself would go to endpoints. */
  readonly clusterIPs?: ReadonlySet<string> | undefined;
  /** The file of the balancer, where it is not kpc-apply's. */
  readonly othersBalancer?: (BalancerFile & { readonly path: string }) | undefined;
}

export const conflictSchema = objectOf({
  kind: oneOf('virtual-server', 'set', 'chain', 'table', 'link', 'address', 'file'),
  name: text,
  /** Not if a running program has it to itself: the kernel lets no other change it. */
  adoptable: about('--adopt takes it over', boolean),
});

/** A thing that another program made. */
export type Conflict = Shaped<typeof conflictSchema>;

/** A thing of the kernel or beside it, as messages name it. */
type Named = Pick<Conflict, 'kind' | 'name'>;

/** "virtual server TCP 10.96.0.1:80". */
export function describeConflict({ kind, name }: Named): string {
  return `${kind === 'virtual-server' ? 'virtual server' : kind} ${name}`;
}

/** What looks like kube-proxy's, and stays. */
export interface Leftover extends Conflict {
  /** Whether --adopt would not remove it, because rules or sets of other programs use it. */
  readonly isUsed?: boolean | undefined;
  /** Whether packets get there: a hook of the kernel leads to it. */
  readonly isInEffect: boolean;
  /** Whether it is a chain of the variant of iptables that is not in use. */
  readonly isOfOtherVariant?: boolean | undefined;
}

/** Which part of a node's state may be changed, and what is in the way. */
export interface OwnershipDecision {
  /** What is wanted, as far as it can be had beside what stays. */
  readonly wanted: KernelState;
  /** What is owned and there, and what is wanted. */
  readonly owned: OwnedNames;
  /** What the change may touch: all of `owned` but things that another program had made exactly as wanted. */
  readonly ownedDuring: OwnedNames;
  /** Wanted things that are there as another program made them, and different. */
  readonly conflicts: readonly Conflict[];
  /** What will be owned once the wanted state is there: all of it but what another program had made just so. */
  readonly ownedAfter: OwnedNames;
  /** Virtual servers on the node that are neither owned nor wanted: "TCP 10.96.0.1:80". */
  readonly foreign: readonly string[];
  readonly leftovers: readonly Leftover[];
  /** What is owned and not wanted, and stays because rules or sets of other programs use it. */
  readonly used: readonly Named[];
}

type List = keyof OwnedNames;

/** How things of one kind divide: by key, those that are there and those that are wanted. */
interface Division<T> {
  readonly present: ReadonlyMap<string, T>;
  readonly wanted: ReadonlyMap<string, T>;
  isOwned(item: T, key: string): boolean;
  /** Why a wanted one that another program has made is a conflict; undefined if it is as wanted. */
  collide?(present: T, wanted: T, key: string): Conflict | undefined;
  /** Takes note of one that is not wanted and not owned. */
  leave(item: T, key: string): void;
  /**
   * Names one that cannot be removed because of what stays; undefined if it can be. An owned one that is not wanted stays owned
   * if it is by the record.
   */
  nameUsed?(item: T, key: string): Named | undefined;
  /** Takes note of a wanted one that is not there. */
  make?(item: T, key: string): void;
}

/** An OwnershipDecision while it is made: each kind of object adds its part. */
export class OwnershipDraft {
  readonly claims: Claims;
  readonly present: KernelState;
  /** Which of what is there a kube-proxy made. */
  readonly evidence: KubeProxyEvidence;
  /** Of iptables and links, not all that is wanted can be had beside what stays: that is left out here. */
  wanted: KernelState;
  readonly owned = emptyLists();
  readonly ownedDuring = emptyLists();
  readonly ownedAfter = emptyLists();
  readonly conflicts: Conflict[] = [];
  readonly foreign: string[] = [];
  readonly leftovers: Leftover[] = [];
  readonly used: Named[] = [];
  /** All iptables rules of other programs, and those of kpc-apply's that stay because of them. */
  readonly staying: Rule[] = [];
  readonly #ownedBefore: Readonly<Record<List, ReadonlySet<string>>>;

  constructor(present: KernelState, wanted: KernelState, claims: Claims) {
    this.present = present;
    this.evidence = weighEvidence(present, { known: wanted.virtualServers });
    this.wanted = wanted;
    this.claims = claims;
    this.#ownedBefore = mapLists((list) => new Set(claims.owned[list]));
  }

  owns(list: List, key: string): boolean {
    return this.#ownedBefore[list].has(key);
  }

  /** Something that is wanted, and that is not there or is owned. */
  have(list: List, key: string): void {
    this.letGo(list, key);
    this.ownedAfter[list].add(key);
  }

  /** Something owned that is not wanted. */
  letGo(list: List, key: string): void {
    this.owned[list].add(key);
    this.ownedDuring[list].add(key);
  }

  divide<T>(list: List, { present, wanted, isOwned, collide, leave, nameUsed, make }: Division<T>): void {
    for (const [key, item] of wanted) {
      const twin = present.get(key);
      if (twin === undefined) make?.(item, key);
      if (twin === undefined || isOwned(twin, key)) {
        this.have(list, key);
        continue;
      }
      this.owned[list].add(key);
      const conflict = collide?.(twin, item, key);
      if (conflict) this.conflicts.push(conflict);
    }
    for (const [key, item] of present) {
      if (wanted.has(key)) continue;
      if (!isOwned(item, key)) {
        leave(item, key);
        continue;
      }
      const used = nameUsed?.(item, key);
      if (!used) {
        this.letGo(list, key);
        continue;
      }
      this.used.push(used);
      if (this.owns(list, key)) this.ownedAfter[list].add(key);
    }
  }

  finish(): OwnershipDecision {
    const { wanted, conflicts, foreign, leftovers, used } = this;
    const toLists = (sets: Readonly<Record<List, ReadonlySet<string>>>) => mapLists((list) => [...sets[list]]);
    const [owned, ownedDuring, ownedAfter] = [toLists(this.owned), toLists(this.ownedDuring), toLists(this.ownedAfter)];
    return { wanted, owned, ownedDuring, ownedAfter, conflicts, foreign, leftovers, used };
  }
}

function emptyLists(): Readonly<Record<List, Set<string>>> {
  return mapLists(() => new Set());
}
