import type { IdleBeside } from '../base/findings/calls.ts';

/** The command line's values by kind of flag. */
export interface FlagValues {
  on: boolean;
  /** No value: "--no-assume" switches "assume" off. */
  off: boolean;
  /** True if the flag has no value. */
  switch: boolean | string;
  text: string;
  /** One text, with commas between the items. */
  commas: string;
  /** The same, or no value. */
  optional: string | true;
  /** A text with commas between the items, or a list of such texts. */
  list: string | readonly string[];
  /** Codes of findings; kpc.yaml may add a Service and a reason. */
  codes: readonly string[];
}

export type FlagKind = keyof FlagValues;

/** The one row behind a flag's option, help, key in kpc.yaml, schema, and library option. */
export interface Flag<Key extends string = string, Kind extends FlagKind = FlagKind> extends FlagFacts {
  readonly kind: Kind;
  /** Its name among the options, in camel case: "clusterCidr". */
  readonly key: Key;
  /** "--cluster-cidr". */
  readonly name: string;
  /** "--cluster-cidr <cidrs>". */
  readonly usage: string;
  readonly help: string;
}

export function kpcYamlKey({ name }: Flag): string {
  return name.slice(2);
}

export interface FlagFacts {
  /** Its part of help; flags without one come first. */
  readonly group?: 'input' | 'nodes' | 'output' | 'settings' | undefined;
  /** Help lists kube-proxy's flags by rank, the lowest first, then in the order of the settings. */
  readonly rank?: number;
  readonly isHidden?: boolean;
  /** Paths, relative to kpc.yaml's folder there. A written one is replaced. */
  readonly path?: 'read' | 'written';
  readonly choices?: readonly string[];
  readonly usual?: unknown;
  /** Reads one value of the flag, and throws for a wrong one. */
  readonly parse?: (written: string) => unknown;
  /** Flags it cannot be combined with. */
  readonly rivals?: readonly string[];
  readonly needs?:
    | 'manifests'
    /** Manifests; or anything, if packets are traced. */
    | 'manifests-or-packets'
    /** Manifests; or a node, if its flows are followed through a change to manifests. */
    | 'manifests-or-flows'
    | 'nodes'
    | 'none';
  /** Other flags that make it ineffective, or that it needs. Each may have a value: "--output json". */
  readonly idle?: readonly ({
    /** The value that has no effect; any if undefined. */
    readonly value?: string;
  } & ({ readonly without: string } | { readonly beside: string; readonly why: IdleBeside }))[];
  /** Affects only a node's programming and its changes, no Service or packet. */
  readonly isOfNode?: boolean;
  /** Not allowed in kpc.yaml: it selects one, or runs other programs. */
  readonly isOfCall?: boolean;
}

export type OptionsOf<Row extends Flag> = {
  readonly [Each in Row as Each['key']]?: FlagValues[Each['kind']] | undefined;
};

type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Rest}`
  ? `${Head}${Capitalize<CamelCase<Rest>>}`
  : Name;

type KeyOf<Usage extends string> = Usage extends `${string}--${infer Name} ${string}`
  ? CamelCase<Name>
  : Usage extends `${string}--${infer Name}`
    ? CamelCase<Name>
    : never;

/** `usage` as in help: "-o, --out <folder>", with brackets for an optional value. */
export function flagRow<Kind extends FlagKind, const Usage extends string>(
  kind: Kind,
  usage: Usage,
  help: string,
  facts: FlagFacts = {},
): Flag<KeyOf<Usage>, Kind> {
  const [name = ''] = /--[\w-]+/.exec(usage) ?? [];
  const key = flagKey(name.slice(kind === 'off' ? '--no-'.length : 2)) as KeyOf<Usage>;
  return { kind, key, name, usage, help, ...facts };
}

/** "cluster-cidr" → "clusterCidr", as the command-line parser names options. */
export function flagKey(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
