import { callerWith, nameOptions } from '../../src/library/words.ts';

/** Fields without kpc's own words: files, parts of examples, and rules as their tool writes them. */
const asWritten: ReadonlySet<string> = new Set(['example', 'files', 'items', 'kernel', 'manifest', 'rule', 'rules']);

interface Names {
  readonly tools: ReadonlySet<string>;
  readonly parameters: ReadonlySet<string>;
}

/** JSON with parameters named instead of flags, and tools instead of commands. A `kpc trace` to paste stays. */
export function inParameters<T>(answer: T, { tools, parameters }: Names): T {
  const caller = callerWith(parameters);
  const say = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(say);
    if (typeof value === 'object' && value !== null) {
      const fields = Object.entries(value);
      return Object.fromEntries(fields.map(([name, each]) => [name, asWritten.has(name) ? each : say(each)]));
    }
    if (typeof value !== 'string' || value.startsWith('kpc trace ')) return value;
    return nameOptions(value, caller).replaceAll(/"kpc ([a-z]+)"/g, (found, name: string) =>
      tools.has(name) ? name : found,
    );
  };
  return say(answer) as T;
}
