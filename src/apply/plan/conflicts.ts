import type { Network } from '../../kernel/address.ts';
import type { Belongings } from '../state/belongings.ts';

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

/** `adoptable`: whether --adopt would settle it. */
export interface Conflict {
  readonly kind: 'virtual-server' | 'set' | 'chain' | 'table' | 'link' | 'address';
  readonly name: string;
  readonly adoptable: boolean;
  /** Whether a running program has it to itself, so that the kernel lets no other change it. */
  readonly isHeld?: boolean | undefined;
}

/** "virtual server TCP 10.96.0.1:80". */
export function describeConflict({ kind, name, isHeld }: Omit<Conflict, 'adoptable'>): string {
  const text = kind === 'virtual-server' ? `virtual server ${name}` : `${kind} ${name}`;
  return isHeld ? `${text} (which a running program owns)` : text;
}

/** Keys of one kind of thing. */
export interface NamedShare {
  /** What counts. */
  readonly ours: readonly string[];
  /** What may be changed. */
  readonly touched: readonly string[];
  /** What will be in the record. */
  readonly belongings: readonly string[];
}

/** Collects the keys of one kind of thing. */
export class ShareDraft implements NamedShare {
  readonly ours: string[] = [];
  readonly touched: string[] = [];
  readonly belongings: string[] = [];

  /** Something that is wanted, and that is not there or is ours. */
  have(key: string): void {
    this.letGo(key);
    this.belongings.push(key);
  }

  /** Something of ours that is not wanted. */
  letGo(key: string): void {
    this.ours.push(key);
    this.touched.push(key);
  }
}

export interface Leftover {
  readonly kind: 'chain' | 'table' | 'set' | 'link';
  readonly name: string;
  /** Whether packets get there: a hook of the kernel leads to it. */
  readonly isInEffect: boolean;
  /** As Conflict has it. */
  readonly isHeld?: boolean | undefined;
}
