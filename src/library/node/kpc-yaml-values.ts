import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { foundOf } from '../../base/findings/fields.ts';
import {
  about,
  anyOf,
  boolean,
  findFaults,
  listOf,
  matching,
  named,
  nullable,
  number,
  objectWith,
  oneOf,
  optional,
  text,
  textThat,
  type Shape,
} from '../../base/json-shape.ts';
import { groupBy } from '../../cluster/group-by.ts';
import { findNearest } from '../../base/find-nearest.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import type { Ignore } from '../../lint/ignores.ts';
import type { Flag, FlagKind } from '../../settings/flag.ts';

/** The commands that a kpc.yaml configures. */
export const configuredCommands = [
  'compile',
  'lint',
  'diff',
  'describe',
  'trace',
  'test',
  'equivalence',
  'migrate',
] as const;

/** A flag that a kpc.yaml sets, with its value and place there. */
export interface GivenFlag {
  readonly row: Flag;
  readonly value: unknown;
  readonly path: readonly string[];
}

/** Reports the value at a path, or its key (`atKey`). */
export type Refuse = (path: FieldPath, details: ArgumentsOf<'bad-kpc-yaml'>, atKey?: boolean) => void;

/** False for null, which leaves the flag out, and for a value that the flag does not take. */
export function hasRightValue({ row, value, path: at }: GivenFlag, refuse: Refuse): boolean {
  if (value === null) return false;
  const faults = findFaults(valuesOf[row.kind].shape, value, mostFaults);
  for (const { problem, path, value: found, name } of faults) {
    // An entry of a list, as "ignore[0]", or a field of one.
    const entryAt = (steps: FieldPath) =>
      steps.reduce(
        (entry: string, step) => `${entry}${typeof step === 'number' ? `[${step}]` : `.${step}`}`,
        keyOf(row),
      );
    const { expected } = valuesOf[row.kind !== 'codes' && path.length > 0 ? 'text' : row.kind];
    if (problem === 'wrong')
      refuse([...at, ...path], { problem: 'value', flag: entryAt(path), found: foundOf(found), expected });
    else if (problem === 'missing') {
      const of = path.slice(0, -1);
      refuse([...at, ...of], { problem: 'lacks', entry: entryAt(of), field: String(path.at(-1)) });
    } else {
      const meant = findNearest(name, Object.keys(ignoreFields));
      refuse([...at, ...path, name], { problem: 'unknown-field', entry: entryAt(path), name, meant }, true);
    }
  }
  return faults.length === 0;
}

/** The faults of a value that are reported. */
const mostFaults = 20;

export function isConfigured(name: string): boolean {
  return configuredCommands.some((each) => each === name);
}

/** A command, with the flags that a kpc.yaml may hold. */
export interface ConfiguredCommand {
  readonly name: string;
  readonly flags: readonly Flag[];
}

/** What kpc.yaml calls a flag. */
export function keyOf({ name }: Flag): string {
  return name.slice(2);
}

const onOrOff = named('onOrOff', oneOf(true, false, 'true', 'false'));

/** A word of a command line cannot hold a null byte. */
const word = named(
  'word',
  anyOf(
    'a string or a number',
    textThat('a string without null bytes', (written) => !written.includes('\0')),
    number('a number'),
  ),
);

const words = named('words', anyOf('one or a list', word, listOf(word)));

type AcceptedCode = Pick<Ignore, 'code' | 'service'>;

/** `reason` is for readers. */
const ignoreFields = {
  code: text,
  service: optional(text),
  reason: matching('a reason that is not empty', /\S/),
};

/** A code that kpc lint does not report, or does not report of one Service. Closed: a misspelt `service` would mean all. */
const ignored = named(
  'ignore',
  anyOf(
    'a code, or a mapping with code, service and reason',
    text,
    objectWith<AcceptedCode>(ignoreFields, { expected: 'a mapping', isClosed: true }),
  ),
);

/** What lint's `ignore` holds. */
export type Ignored = string | readonly (string | AcceptedCode)[];

const ignores = anyOf('a code, or a list', text, listOf(ignored));

const yesOrNo = { shape: onOrOff, expected: 'boolean' } as const;

/** The values of each kind of flag, and what completes "write …" for others. A flag that needs no value may be true. */
const valuesOf = {
  on: yesOrNo,
  off: yesOrNo,
  switch: yesOrNo,
  text: { shape: word, expected: 'one' },
  commas: { shape: words, expected: 'list' },
  optional: { shape: anyOf('true, or its value', boolean, words), expected: 'list' },
  list: { shape: words, expected: 'list' },
  codes: { shape: ignores, expected: 'ignores' },
} as const satisfies Readonly<Record<FlagKind, object>>;

export function kpcYamlShape(commands: readonly ConfiguredCommand[]): Shape {
  const sections = commands.map((command) => {
    const own = nullable(objectWith(shapesOf([command]), closed));
    return [command.name, optional(about(`flags of kpc ${command.name} alone`, own))] as const;
  });
  const all = objectWith({ ...shapesOf(commands), ...Object.fromEntries(sections) }, closed);
  return about('Flags of kpc for a repository, without their dashes. A flag on the command line wins.', nullable(all));
}

const closed = { expected: 'a mapping of flags', isClosed: true } as const;

/** The flags of some commands, by name. A flag may take other values in each. */
function shapesOf(commands: readonly ConfiguredCommand[]): Readonly<Record<string, Shape>> {
  const byName = groupBy(
    commands.flatMap(({ flags }) => flags),
    keyOf,
  );
  const found = [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(
    found.map(([name, rows]) => {
      const choices = rows.flatMap(({ choices: own = [] }) => own);
      const [first] = rows.toSorted(({ kind: a }, { kind: b }) => Number(b === 'list') - Number(a === 'list'));
      const shape: Shape | undefined =
        choices.length > 0 ? oneOf(...new Set(choices)) : first && valuesOf[first.kind].shape;
      return [name, optional(about(rows[0]?.help ?? '', shape ?? word))];
    }),
  );
}
