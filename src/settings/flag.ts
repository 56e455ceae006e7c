import type { IdleBeside } from '../base/findings/calls.ts';

/** The type of the value that a flag has on the command line, by kind of flag. */
export interface FlagValues {
  on: boolean;
  /** A flag without a value: "--no-assume" switches "assume" off. */
  off: boolean;
  switch: boolean | string;
  text: string;
  /** One text, with commas between its items. */
  commas: string;
  /** A text as for `commas`, or true if the flag has no value. */
  optional: string | true;
  /** One text with commas between its items, or a list of such texts. */
  list: string | readonly string[];
  /** Codes of findings. In kpc.yaml, a code may also have a Service and a reason. */
  codes: readonly string[];
}

export type FlagKind = keyof FlagValues;

/** One row for a flag. The option, the help, the key in kpc.yaml, the schema and the library's option all come from it. */
export interface Flag<Key extends string = string, Kind extends FlagKind = FlagKind> extends FlagFacts {
  readonly kind: Kind;
  readonly key: Key;
  /** The name, such as "--cluster-cidr". */
  readonly name: string;
  /** The usage, such as "--cluster-cidr <cidrs>". */
  readonly usage: string;
  readonly help: string;
}

export function kpcYamlKey({ name }: Flag): string {
  return name.slice(2);
}

export interface FlagFacts {
  /** The group of the help that lists the flag. Flags without a group come first. */
  readonly group?: 'input' | 'nodes' | 'output' | 'settings' | undefined;
  /** The help lists kube-proxy's flags by rank, with the lowest rank first. Flags of the same rank are in the order of the settings. */
  readonly rank?: number;
  readonly isHidden?: boolean;
  /** Set if the value is a path, which kpc.yaml gives relative to its own folder. kpc replaces what is at a `written` path. */
  readonly path?: 'read' | 'written';
  readonly choices?: readonly string[];
  readonly usual?: unknown;
  /** Reads one value of the flag. Throws for a wrong value. */
  readonly parse?: (written: string) => unknown;
  /** Flags that cannot be combined with this one. */
  readonly rivals?: readonly string[];
  readonly needs?:
    | 'manifests'
    /** The flag needs manifests. If packets are traced, any input is enough. */
    | 'manifests-or-packets'
    /** The flag needs manifests, or a node whose flows kpc follows through a change to manifests. */
    | 'manifests-or-flows'
    | 'nodes'
    | 'none';
  /** The other flags that this flag needs, and those that make it ineffective. Each may include a value, such as "--output json". */
  readonly idle?: readonly ({
    /** The value of this flag that has no effect. If undefined, no value of the flag has an effect. */
    readonly value?: string;
  } & ({ readonly without: string } | { readonly beside: string; readonly why: IdleBeside }))[];
  /** Whether the flag affects only how a node is programmed and changed, but not Services or packets. */
  readonly isOfNode?: boolean;
  /** Whether kpc.yaml must not set the flag, because it selects a kpc.yaml or runs other programs. */
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

/** `usage`: the flag as in the help, such as "-o, --out <folder>". Brackets around the value mean that it is optional. */
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

/** Turns "cluster-cidr" into "clusterCidr", which is the name that the command-line parser gives the option. */
export function flagKey(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
