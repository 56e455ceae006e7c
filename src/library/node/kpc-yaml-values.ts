import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { foundOf } from '../../base/findings/fields.ts';
import { acceptedCodes, oneOrTrue, onOrOff, word, words } from '#checks';
import type { Shaped } from '../../base/json/schema.ts';
import { findFaults } from '../../base/json/check.ts';
import { findNearest } from '../../base/names.ts';
import { withSlashes } from '../../base/system-paths.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import { kpcYamlKey, type Flag, type FlagKind } from '../../settings/flag.ts';
import { knownNetworks } from '../options.ts';
import { refuse as refuseCall } from '../refusal.ts';
import type { acceptedCodes as acceptedCodesSchema } from './kpc-yaml-schema.ts';

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

export interface GivenFlag {
  readonly row: Flag;
  readonly value: unknown;
  readonly path: readonly string[];
}

/** Reports a fault in kpc.yaml. `atKey`: whether the fault's place is the value's key. */
export type Refuse = (path: FieldPath, details: ArgumentsOf<'bad-kpc-yaml'>, atKey?: boolean) => void;

/** Reports whether a value can be used. A wrong value cannot, nor can null, which unsets the flag. `called`: the flag's name in errors. */
export function hasRightValue({ row, value, path: at }: GivenFlag, refuse: Refuse, called = kpcYamlKey(row)): boolean {
  if (value === null) return false;
  const { choices } = row;
  const faults = findFaults(valuesOf[row.kind].check, value);
  for (const { problem, path, check, value: found, name } of faults) {
    if (Number.isNaN(found)) continue;
    // Returns the name of an entry in a list ("ignore[0]"), or of a field of an entry.
    const entryAt = (steps: FieldPath) =>
      steps.reduce((entry: string, step) => `${entry}${typeof step === 'number' ? `[${step}]` : `.${step}`}`, called);
    const { expected } = valuesOf[row.kind !== 'codes' && path.length > 0 ? 'text' : row.kind];
    const meaning = expected === 'one' || expected === 'list' ? row.help : undefined;
    if (problem === 'wrong')
      refuse([...at, ...path], {
        problem: 'value',
        flag: entryAt(path),
        found: foundOf(found),
        expected,
        choices,
        meaning,
      });
    else if (problem === 'missing') {
      const of = path.slice(0, -1);
      refuse([...at, ...of], { problem: 'lacks', entry: entryAt(of), field: String(path.at(-1)) });
    } else {
      const meant = findNearest(name, Object.keys(check.fields ?? {}));
      refuse([...at, ...path, name], { problem: 'unknown-field', entry: entryAt(path), name, meant }, true);
    }
  }
  const strange = choices && [value].flat().find((each) => !choices.includes(String(each)));
  if (faults.length > 0 || strange === undefined) return faults.length === 0;
  refuse(at, { problem: 'value', flag: called, found: foundOf(strange), expected: 'one', choices });
  return false;
}

export function isConfigured(name: string): boolean {
  return configuredCommands.some((each) => each === name);
}

export type Ignored = Shaped<typeof acceptedCodesSchema>;

const yesOrNo = { check: onOrOff, expected: 'boolean' } as const;

/** For each kind of flag: a check for its values, and `expected`, the right kind of value, for the error about a wrong value. */
const valuesOf = {
  on: yesOrNo,
  off: yesOrNo,
  switch: yesOrNo,
  text: { check: word, expected: 'one' },
  commas: { check: words, expected: 'list' },
  optional: { check: oneOrTrue, expected: 'list' },
  list: { check: words, expected: 'list' },
  codes: { check: acceptedCodes, expected: 'ignores' },
} as const satisfies Readonly<Record<FlagKind, object>>;

/** Parses words as on the command line. Undefined for `false`, which unsets the flag. Refuses wrong values. */
export function valueOfWords(row: Flag, written: readonly string[]): unknown {
  const { kind, path, parse = path === undefined ? String : withSlashes } = row;
  const [first] = written;
  const isOn = first === 'true';
  if (kind === 'on' || kind === 'off') return isOn ? kind === 'on' : undefined;
  if (kind === 'optional' && written.length === 1 && (isOn || first === 'false'))
    return isOn ? knownNetworks : undefined;
  try {
    const values = written.map((each) => parse(each));
    if (kind === 'list' || kind === 'codes') return values.flat();
    return row.parse ? values.at(-1) : values.join(',');
  } catch (error) {
    return refuseCall({ problem: 'value', reason: error instanceof Error ? error.message : String(error) });
  }
}
