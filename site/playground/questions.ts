import type { PacketProtocol } from '../../src/packet/packet.ts';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import type { Release } from '../../src/kube-proxy/releases.ts';
import type { WayInWords } from '../../src/say/way/step.ts';
import type { SaidFinding } from '../../src/say/words/said.ts';

/** What is looked at: manifests, and how they are compiled; or what a node printed. */
export interface Input {
  readonly name: string;
  readonly text: string;
  /** Manifests that name the Services of a dump; '' for none. */
  readonly beside: string;
  /** '' for the first Node of the input. */
  readonly node: string;
  readonly mode: ProxyMode;
  readonly release: Release;
  /** Whether to assume what manifests from git lack, as kpc describe does. */
  readonly assume: boolean;
}

/** In the place of the name of a Service. */
export const allServices = '*';

/** What the page asks. */
export type Question =
  | { readonly kind: 'read'; readonly input: Input }
  /** `service`: one of those that were offered, or allServices for a table, which fits into `columns` characters where it can. */
  | { readonly kind: 'service'; readonly input: Input; readonly service: string; readonly columns: number }
  /** `width`: that of the picture, in pixels. */
  | { readonly kind: 'trace'; readonly input: Input; readonly packet: PacketQuestion; readonly width: number }
  | { readonly kind: 'compare'; readonly from: Input; readonly to: Input };

export interface PacketQuestion {
  readonly from: string;
  readonly to: string;
  /** '' for the protocol of the Service port. */
  readonly protocol: PacketProtocol | '';
  /** Where the packet arrives; '' if the question does not say. */
  readonly inInterface: string;
}

/** What came out. Texts have the colours of a terminal. */
export type Answer =
  | { readonly kind: 'read'; readonly result: ReadInput }
  | { readonly kind: 'service'; readonly text: string; readonly matrix: string; readonly ways: readonly NamedWay[] }
  | { readonly kind: 'trace'; readonly text: string; readonly svg: string }
  | { readonly kind: 'compare'; readonly text: string; readonly problems: readonly Problem[] }
  /** Why there is no answer, in a sentence. */
  | { readonly kind: 'wrong'; readonly text: string };

/** What there is to say of a text; a remark of a dump has no code. */
export type Problem = Pick<SaidFinding, 'severity' | 'text' | 'help' | 'place'> & {
  readonly code?: SaidFinding['code'] | undefined;
};

export interface ReadInput {
  /** Manifests, unless it is what a node printed. */
  readonly kind: 'manifests' | 'dump';
  readonly problems: readonly Problem[];
  /** The names of all nodes, also if there are errors. */
  readonly nodes: readonly string[];
  /** Undefined if a problem is an error. */
  readonly output: Output | undefined;
}

export interface Output {
  readonly node: string;
  readonly summary: string;
  /** The files of a bundle, by name; none of a dump. */
  readonly files: readonly (readonly [name: string, text: string])[];
  /** The file that shows most of the Services. */
  readonly mainFile: string;
  readonly services: readonly string[];
  /** What packets may be asked about. */
  readonly senders: readonly string[];
  readonly targets: readonly string[];
}

/** The way to an address of a Service, with what kind of address it is: "cluster IP". */
export interface NamedWay {
  readonly kind: string;
  readonly way: WayInWords;
}
