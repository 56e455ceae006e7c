import { parseJson, TooLong } from '../bounds.ts';
import { describeFault, findFaults, type Check } from './check.ts';
import { findRepeatedKeys, locateInJson } from './locate.ts';

/** The faults of one file that are reported. */
const mostFaults = 50;

/**
 * Parses and checks a JSON file. `problems` are all that is wrong with it, a line each: "manifest.json:3:14: node must be an object".
 * They never quote text that is not JSON: it may be another file altogether.
 */
export function parseFile<T>(
  check: Check<T>,
  file: string,
  text: string,
): { readonly value: T } | { readonly problems: readonly string[] } {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    return { problems: [`${file}: it is ${error instanceof TooLong ? error.message : 'not JSON'}`] };
  }
  const lineOf = placeLines(file, text);
  const found = [
    ...findRepeatedKeys(text, 0, text.length).map(({ second }) => ({
      offset: second,
      text: 'this key is in the same object twice',
    })),
    ...describeAll(check, value, text),
  ].sort((a, b) => a.offset - b.offset);
  if (found.length === 0) return { value: value as T };
  const more = found.length > mostFaults ? [`${file}: and ${found.length - mostFaults} more of this kind`] : [];
  return { problems: [...found.slice(0, mostFaults).map((each) => lineOf(each.offset, each.text)), ...more] };
}

function describeAll(check: Check, value: unknown, text: string) {
  const faults = findFaults(check, value);
  if (faults.length === 0) return [];
  const locate = locateInJson(text, 0);
  return faults.map((fault) => {
    const { path, name, problem } = fault;
    const offset = problem === 'unknown' ? locate([...path, name], 'key') : locate(path, 'value');
    return { offset, text: describeFault(fault) };
  });
}

/** Writes lines about the values of a JSON text: "manifest.json:3:14: families must be …". */
export type LocatedLines = (path: readonly (string | number)[], said: string) => string;

export function createLocatedLines(file: string, text: string): LocatedLines {
  const lineOf = placeLines(file, text);
  const locate = locateInJson(text, 0);
  return (path, said) => lineOf(locate(path, 'value'), said);
}

function placeLines(file: string, text: string): (offset: number, said: string) => string {
  return (offset, said) => {
    const before = text.slice(0, offset);
    return `${file}:${before.split('\n').length}:${offset - before.lastIndexOf('\n')}: ${said}`;
  };
}
