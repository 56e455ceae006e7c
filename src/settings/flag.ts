import type { IdleBeside } from '../base/findings/calls.ts';

/** The values on the command line, by kind of flag. */
export interface FlagValues {
  on: boolean;
  /** A flag without a value: "--no-assume" switches "assume" off. */
  off: boolean;
  switch: boolean | string;
  text: string;
  /** One text, with commas between items. */
  commas: string;
  /** Like `commas`, or true without a value. */
  optional: string | true;
  /** A text with commas between items, or a list of such texts. */
  list: string | readonly string[];
  /** Codes of findings. kpc.yaml may add a Service and a reason. */
  codes: readonly string[];
}

export type FlagKind = keyof FlagValues;

/** The row behind a flag's option, help, key in kpc.yaml, schema and library option. */
export interface Flag<Key extends string = string, Kind extends FlagKind = FlagKind> extends FlagFacts {
  readonly kind: Kind;
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
  /** The flag's part of the help. Flags without a group come first. */
  readonly group?: 'input' | 'nodes' | 'output' | 'settings' | undefined;
  /** Help lists kube-proxy's flags by rank, the lowest first, then in the order of the settings. */
  readonly rank?: number;
  readonly isHidden?: boolean;
  /** Set if the value is a path. In kpc.yaml, paths are relative to its folder. kpc replaces the file or folder at a `written` path. */
  readonly path?: 'read' | 'written';
  readonly choices?: readonly string[];
  readonly usual?: unknown;
  /** Reads one value of the flag. Throws for a wrong value. */
  readonly parse?: (written: string) => unknown;
  /** Flags that cannot be combined with this one. */
  readonly rivals?: readonly string[];
  readonly needs?:
    | 'manifests'
    /** The flag needs manifests, or any input if packets are traced. */
    | 'manifests-or-packets'
    /** The flag needs manifests, or a node whose flows kpc follows through a change to manifests. */
    | 'manifests-or-flows'
    | 'nodes'
    | 'none';
  /** Other flags that this flag needs, or that make it ineffective. Each may have a value, such as "--output json". */
  readonly idle?: readonly ({
    /** The value of this flag that has no effect; if undefined, no value has an effect. */
    readonly value?: string;
  } & ({ readonly without: string } | { readonly beside: string; readonly why: IdleBeside }))[];
  /** Affects only how a node is programmed and changed, not Services or packets. */
  readonly isOfNode?: boolean;
  /** Not allowed in kpc.yaml, because it selects a kpc.yaml or runs other programs. */
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

/** `usage`: as in the help, such as "-o, --out <folder>". Brackets mean that the value is optional. */
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

/** Turns "cluster-cidr" into "clusterCidr", which is the command-line parser's name for the option. */
export function flagKey(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
