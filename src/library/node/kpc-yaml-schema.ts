import {
  about,
  anyOf,
  boolean,
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
  type Schema,
} from '../../base/json/schema.ts';
import { groupBy } from '../../cluster/grouping.ts';
import type { Ignore } from '../../ask/lint/ignores.ts';
import { kpcYamlKey, type Flag, type FlagKind } from '../../settings/flag.ts';

export const onOrOff = named('onOrOff', oneOf(true, false, 'true', 'false'));

/** A word on a command line cannot contain a null byte. */
export const word = named(
  'word',
  anyOf('a string or a number', textThat('a string without null bytes', 'isWithoutNull'), number('a number')),
);

export const words = named('words', anyOf('one or a list', word, listOf(word)));

const ignoreFields = {
  code: text,
  service: optional(text),
  reason: matching('a reason that is not empty', /\S/),
};

/** A code that kpc lint ignores, maybe for one Service. Unknown fields are refused: a misspelt `service` would cover all Services. */
const ignored = named(
  'ignore',
  anyOf(
    'a code, or a mapping with code, service and reason',
    text,
    objectWith<Pick<Ignore, 'code' | 'service'>>(ignoreFields, { expected: 'a mapping', additionalProperties: false }),
  ),
);

export const acceptedCodes = anyOf('a code, or a list', text, listOf(ignored));

export const oneOrTrue = anyOf('true, or its value', boolean, words);

const valuesOf: Readonly<Record<FlagKind, Schema>> = {
  on: onOrOff,
  off: onOrOff,
  switch: onOrOff,
  text: word,
  commas: words,
  optional: oneOrTrue,
  list: words,
  codes: acceptedCodes,
};

export interface ConfiguredCommand {
  readonly name: string;
  readonly flags: readonly Flag[];
}

export function kpcYamlSchema(commands: readonly ConfiguredCommand[]): Schema {
  const sections = commands.map((command) => {
    const own = nullable(objectWith(schemasOf([command]), closed));
    return [command.name, optional(about(`flags of kpc ${command.name} alone`, own))] as const;
  });
  const all = objectWith({ ...schemasOf(commands), ...Object.fromEntries(sections) }, closed);
  return about('Flags of kpc for a repository, without their dashes. A flag on the command line wins.', nullable(all));
}

const closed = { expected: 'a mapping of flags', additionalProperties: false } as const;

function schemasOf(commands: readonly ConfiguredCommand[]): Readonly<Record<string, Schema>> {
  const byName = groupBy(
    commands.flatMap(({ flags }) => flags),
    kpcYamlKey,
  );
  const found = [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(
    found.map(([name, rows]) => {
      const choices = rows.flatMap(({ choices: own = [] }) => own);
      const [first] = rows.toSorted(({ kind: a }, { kind: b }) => Number(b === 'list') - Number(a === 'list'));
      const schema: Schema | undefined =
        choices.length > 0 ? oneOf(...new Set(choices)) : first && valuesOf[first.kind];
      return [name, optional(about(rows[0]?.help ?? '', schema ?? word))];
    }),
  );
}
