import { about, boolean, objectOf, oneOf, text, type Shaped } from '../../base/json/schema.ts';
import type { Network } from '../../kernel/address.ts';
import type { Rule } from '../../kernel/iptables/iptables.ts';
import type { KernelState } from '../../kernel/state.ts';
import { weighEvidence, type KubeProxyEvidence } from '../../kube-proxy/evidence.ts';
import type { Variants } from '../node/tools.ts';
import type { BalancerFile } from '../state/record.ts';
import type { OwnedNames } from '../state/owned-lists.ts';
import { mapLists } from '../state/owned-names.ts';

/** Owned: recorded as made here. Adopted: a kube-proxy's, with --adopt. Other objects are foreign. */
export interface Claims {
  readonly owned: OwnedNames;
  /** In use when the node was read. */
  readonly variants: Variants;
  readonly adopt: boolean;
  /** Unwanted virtual servers in these are always foreign (--ipvs-exclude-cidrs). */
  readonly excluded: readonly Network[];
  /** Wanted addresses that no interface of a node has: connections to the node itself would reach endpoints. */
  readonly clusterIPs?: ReadonlySet<string> | undefined;
  /** The balancer's file, if not kpc-apply's. */
  readonly othersBalancer?: (BalancerFile & { readonly path: string }) | undefined;
}

export const conflictSchema = objectOf({
  kind: oneOf('virtual-server', 'set', 'chain', 'table', 'link', 'address', 'file'),
  name: text,
  /** Not possible if a running program owns the table: the kernel then refuses changes by others. */
  adoptable: about('--adopt takes it over', boolean),
});

export type Conflict = Shaped<typeof conflictSchema>;

type NamedObject = Pick<Conflict, 'kind' | 'name'>;

/** Objects that look like kube-proxy's, and stay. */
export interface Leftover extends Conflict {
  /** Whether --adopt would keep it, because other programs' rules or sets use it. */
  readonly isUsed?: boolean | undefined;
  /** Whether packets reach it. */
  readonly isInEffect: boolean;
  /** Whether it is a chain of the unused iptables variant. */
  readonly isOfOtherVariant?: boolean | undefined;
}

export interface OwnershipDecision {
  /** The wanted objects that do not collide with those that stay. */
  readonly wanted: KernelState;
  /** The owned objects that are present, plus the wanted ones. */
  readonly owned: OwnedNames;
  /** The objects that the change may touch: all of `owned`, except those that another program had already made as wanted. */
  readonly ownedDuring: OwnedNames;
  readonly conflicts: readonly Conflict[];
  /** The objects owned after the change: all wanted ones, except those that another program had already made. */
  readonly ownedAfter: OwnedNames;
  /** Virtual servers neither owned nor wanted: "TCP 10.96.0.1:80". */
  readonly foreign: readonly string[];
  readonly leftovers: readonly Leftover[];
  /** Owned and unwanted, but kept because other programs' rules or sets use it. */
  readonly used: readonly NamedObject[];
}

type List = keyof OwnedNames;

interface Division<T> {
  readonly present: ReadonlyMap<string, T>;
  readonly wanted: ReadonlyMap<string, T>;
  isOwned(item: T, key: string): boolean;
  /** Why another program's object conflicts with a wanted one; undefined if it is as wanted. */
  collide?(present: T, wanted: T, key: string): Conflict | undefined;
  leave(item: T, key: string): void;
  /** Names an object that cannot be removed, because a remaining one uses it. An owned object then stays owned if it is recorded. */
  nameUsed?(item: T, key: string): NamedObject | undefined;
  make?(item: T, key: string): void;
}

/** An OwnershipDecision being made: each kind of object adds its part. */
export class OwnershipDraft {
  readonly claims: Claims;
  readonly present: KernelState;
  readonly evidence: KubeProxyEvidence;
  /** Leaves out iptables rules and links that collide with those that stay. */
  wanted: KernelState;
  readonly owned = emptyNameLists();
  readonly ownedDuring = emptyNameLists();
  readonly ownedAfter = emptyNameLists();
  readonly conflicts: Conflict[] = [];
  readonly foreign: string[] = [];
  readonly leftovers: Leftover[] = [];
  readonly used: NamedObject[] = [];
  /** Other programs' iptables rules, and kpc-apply's rules that these still use. */
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

  have(list: List, key: string): void {
    this.letGo(list, key);
    this.ownedAfter[list].add(key);
  }

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

function emptyNameLists(): Readonly<Record<List, Set<string>>> {
  return mapLists(() => new Set());
}
