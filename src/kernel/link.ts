import type { Family } from './family.ts';
import type { Origin } from './origin.ts';

/** A network link. `kind` is the link type of `ip -d link` where it is known: dummy for kube-ipvs0. */
export interface Link {
  readonly name: string;
  readonly kind?: string | undefined;
  readonly addresses: readonly LinkAddress[];
}

export interface LinkAddress {
  readonly family: Family;
  /** Canonical text. */
  readonly address: string;
  readonly prefixLength: number;
  /** "global", "link", "host"; undefined is global. */
  readonly scope?: string | undefined;
  readonly origin?: Origin | undefined;
}
