import type { Address } from '../kernel/address.ts';
import type { Protocol } from '../kernel/family.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Verdict } from '../packet/packet.ts';

/** What kpc lint has to say about one object, or about the input. */
export interface Finding {
  readonly diagnostic: Diagnostic;
  /** "namespace/name" of the Service that it is about; undefined if it is about none, or about several. */
  readonly service: string | undefined;
  /** The object whose lines it points at, as "Service default/web"; undefined if it points at none. */
  readonly object: string | undefined;
  /** The other Services that it names: what they accept, it may be. */
  readonly named: readonly string[];
  /** A packet that shows it, and how that ends, where kpc trace says so. */
  readonly shown?: { readonly packet: PacketClaim; readonly verdict: Verdict } | undefined;
}

/** A packet and how it ends, if the finding is right. */
export interface PacketClaim {
  readonly from: 'pod' | 'node' | 'external';
  readonly to: Address;
  readonly port: number;
  readonly protocol: Protocol;
  /** The node that it meets; '' for the one that kpc trace takes where the input has none. */
  readonly node: string;
  readonly ends: readonly Verdict[];
}
