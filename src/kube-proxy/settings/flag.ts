/** The kinds of flags, with the values that the command line gives them. */
export interface FlagValues {
  text: string;
  /** True if the flag has no value. */
  switch: boolean | string;
  /** A text with commas between the items, or a list of such texts. */
  list: string | readonly string[];
}

type FlagKind = keyof FlagValues;

/** A flag of kube-proxy. */
export interface Flag<Key extends string = string, Kind extends FlagKind = FlagKind> {
  readonly kind: Kind;
  /** Its name among the options, in camel case: "clusterCidr". */
  readonly key: Key;
  /** "--cluster-cidr". */
  readonly name: string;
  /** "--cluster-cidr <cidrs>". */
  readonly usage: string;
  readonly help: string;
  /** Where help lists it: lower ranks first, and flags of one rank in the order of the settings. */
  readonly rank: number;
}

type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Rest}`
  ? `${Head}${Capitalize<CamelCase<Rest>>}`
  : Name;

type KeyOf<Usage extends string> = Usage extends `--${infer Name} ${string}` ? CamelCase<Name> : never;

type FlagNotes = Partial<Pick<Flag, 'rank'>>;

/** A flag with a value: "--cluster-cidr <cidrs>". */
export function textFlag<const Usage extends `--${string} <${string}>`>(usage: Usage, help: string, notes?: FlagNotes) {
  return makeFlag('text', usage, help, notes);
}

/** A flag whose value is a list: one that is given again adds to it. */
export function listFlag<const Usage extends `--${string} <${string}>`>(usage: Usage, help: string, notes?: FlagNotes) {
  return makeFlag('list', usage, help, notes);
}

/** A flag that is on without a value: "--masquerade-all [bool]". */
export function switchFlag<const Usage extends `--${string} [bool]`>(usage: Usage, help: string, notes?: FlagNotes) {
  return makeFlag('switch', usage, help, notes);
}

function makeFlag<Kind extends FlagKind, Usage extends string>(
  kind: Kind,
  usage: Usage,
  help: string,
  { rank = 0 }: FlagNotes = {},
): Flag<KeyOf<Usage>, Kind> {
  const [name = ''] = usage.split(' ');
  return { kind, key: flagKey(name.slice(2)) as KeyOf<Usage>, name, usage, help, rank };
}

/** "cluster-cidr" → "clusterCidr", as the command-line parser names options. */
export function flagKey(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Go's strconv.ParseBool, in any case. */
export function readSwitch(value: string): boolean | undefined {
  if (/^(?:1|t|true)$/i.test(value)) return true;
  return /^(?:0|f|false)$/i.test(value) ? false : undefined;
}

/** pflag's StringSlice: commas between the values, and a flag given more than once adds to them. */
export function splitList(value: FlagValues['list'] | undefined): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const parts = typeof value === 'string' ? [value] : value;
  return parts.flatMap((part) => (part === '' ? [] : part.split(',')));
}
