import { about, boolean, objectOf, oneOf, text, type Shaped } from '../../base/json/schema.ts';
import type { Network } from '../../kernel/address.ts';
import type { Rule } from '../../kernel/iptables/iptables.ts';
import type { KernelState } from '../../kernel/state.ts';
import { weighEvidence, type KubeProxyEvidence } from '../../kube-proxy/evidence.ts';
import type { Variants } from '../node/tools.ts';
import type { BalancerFile } from '../state/record.ts';
import type { OwnedNames } from '../state/owned-lists.ts';
import { mapLists } from '../state/owned-names.ts';

/**
 * Decides who owns an object. `owned`: the recorded objects of kpc-apply. `adopt`: whether to take over a kube-proxy's objects. All others
 * are foreign.
 */
export interface Claims {
  readonly owned: OwnedNames;
  readonly variants: Variants;
  readonly adopt: boolean;
  /** Unwanted virtual servers in these networks are always foreign (--ipvs-exclude-cidrs). */
  readonly excluded: readonly Network[];
  /** Wanted addresses that must not be on the node's interfaces, because connections to the node itself would reach endpoints. */
  readonly clusterIPs?: ReadonlySet<string> | undefined;
  readonly othersBalancer?: (BalancerFile & { readonly path: string }) | undefined;
}

export const conflictSchema = objectOf({
  kind: oneOf('virtual-server', 'set', 'chain', 'table', 'link', 'address', 'file'),
  name: text,
  /** False if a running program owns the table, because the kernel then refuses changes by others. */
  adoptable: about('--adopt takes it over', boolean),
});

export type Conflict = Shaped<typeof conflictSchema>;

type NamedObject = Pick<Conflict, 'kind' | 'name'>;

export interface Leftover extends Conflict {
  /** Whether even --adopt would keep the object, because other programs' rules or sets use it. */
  readonly isUsed?: boolean | undefined;
  readonly isInEffect: boolean;
  readonly isOfOtherVariant?: boolean | undefined;
}

export interface OwnershipDecision {
  /** The wanted objects, without those that collide with objects that stay. */
  readonly wanted: KernelState;
  /** The owned objects that are present, plus the wanted objects. */
  readonly owned: OwnedNames;
  /** The objects that the change may touch: `owned` without objects that another program had already made as wanted. */
  readonly ownedDuring: OwnedNames;
  readonly conflicts: readonly Conflict[];
  /** The objects owned after the change: the wanted ones, except objects that another program had already made. */
  readonly ownedAfter: OwnedNames;
  /** Virtual servers neither owned nor wanted, such as "TCP 10.96.0.1:80". */
  readonly foreign: readonly string[];
  readonly leftovers: readonly Leftover[];
  /** Owned and unwanted objects that stay, because other programs' rules or sets use them. */
  readonly used: readonly NamedObject[];
}

type List = keyof OwnedNames;

interface Division<T> {
  readonly present: ReadonlyMap<string, T>;
  readonly wanted: ReadonlyMap<string, T>;
  isOwned(item: T, key: string): boolean;
  /** Returns the conflict between another program's object and a wanted one; undefined if the object is as wanted. */
  collide?(present: T, wanted: T, key: string): Conflict | undefined;
  leave(item: T, key: string): void;
  /** Names an object that cannot be removed because a remaining object uses it. A recorded object then stays owned. */
  nameUsed?(item: T, key: string): NamedObject | undefined;
  make?(item: T, key: string): void;
}

export class OwnershipDraft {
  readonly claims: Claims;
  readonly present: KernelState;
  readonly evidence: KubeProxyEvidence;
  /** Without iptables rules and links that collide with objects that stay. */
  wanted: KernelState;
  readonly owned = emptyNameLists();
  readonly ownedDuring = emptyNameLists();
  readonly ownedAfter = emptyNameLists();
  readonly conflicts: Conflict[] = [];
  readonly foreign: string[] = [];
  readonly leftovers: Leftover[] = [];
  readonly used: NamedObject[] = [];
  /** Other programs' iptables rules, and kpc-apply's rules that these rules still use. */
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
