import type { PacketProtocol } from '../../src/packet/packet.ts';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import type { Release } from '../../src/kube-proxy/releases.ts';
import type { WayInWords } from '../../src/say/way/step.ts';
import type { SaidFinding } from '../../src/say/words/said.ts';

/** Manifests and how to compile them, or a node's output. */
export interface Input {
  readonly name: string;
  readonly text: string;
  /** Manifests that name the Services of a dump; '' for none. */
  readonly beside: string;
  /** "" for the first Node in the input. */
  readonly node: string;
  readonly mode: ProxyMode;
  readonly release: Release;
  /** Whether to assume what manifests from git lack, as kpc describe does. */
  readonly assume: boolean;
}

/** Stands for all Services in place of a Service's name. */
export const allServices = '*';

export type Question =
  | { readonly kind: 'read'; readonly input: Input }
  /** `service`: one of the offered names, or allServices for a table that fits into `columns` characters if possible. */
  | { readonly kind: 'service'; readonly input: Input; readonly service: string; readonly columns: number }
  /** `width`: the picture's, in pixels. */
  | { readonly kind: 'trace'; readonly input: Input; readonly packet: PacketQuestion; readonly width: number }
  | { readonly kind: 'compare'; readonly from: Input; readonly to: Input };

export interface PacketQuestion {
  readonly from: string;
  readonly to: string;
  /** '' for the protocol of the Service port. */
  readonly protocol: PacketProtocol | '';
  /** The interface where the packet arrives; "" if the question names none. */
  readonly inInterface: string;
}

/** An answer. Its texts have terminal colours. */
export type Answer =
  | { readonly kind: 'read'; readonly result: ReadInput }
  | { readonly kind: 'service'; readonly text: string; readonly matrix: string; readonly ways: readonly NamedWay[] }
  | { readonly kind: 'trace'; readonly text: string; readonly svg: string }
  | { readonly kind: 'compare'; readonly text: string; readonly problems: readonly Problem[] }
  /** A sentence that says why there is no answer. */
  | { readonly kind: 'wrong'; readonly text: string };

/** A problem of a text. A remark about a dump has no code. */
export type Problem = Pick<SaidFinding, 'severity' | 'text' | 'help' | 'place'> & {
  readonly code?: SaidFinding['code'] | undefined;
};

export interface ReadInput {
  /** Manifests, unless the text is a node's output. */
  readonly kind: 'manifests' | 'dump';
  readonly problems: readonly Problem[];
  /** The names of all nodes, even if there are errors. */
  readonly nodes: readonly string[];
  /** Undefined if a problem is an error. */
  readonly output: Output | undefined;
}

export interface Output {
  readonly node: string;
  readonly summary: string;
  /** The files of a bundle, by name. A dump has none. */
  readonly files: readonly (readonly [name: string, text: string])[];
  /** The file that shows most about the Services. */
  readonly mainFile: string;
  readonly services: readonly string[];
  /** The packets that the page offers to trace. */
  readonly senders: readonly string[];
  readonly targets: readonly string[];
}

/** A way to a Service's address. `kind`: the kind of address, such as "cluster IP". */
export interface NamedWay {
  readonly kind: string;
  readonly way: WayInWords;
}
