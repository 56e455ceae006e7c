import { callerWith, nameOptions } from '../../src/library/words.ts';

/** What holds no words of kpc's own: files, what an example is made of, and rules as their tool writes them. */
const asWritten: ReadonlySet<string> = new Set(['example', 'files', 'items', 'kernel', 'manifest', 'rule', 'rules']);

/** The names of what an agent may ask. */
interface Names {
  readonly tools: ReadonlySet<string>;
  readonly parameters: ReadonlySet<string>;
}

/** JSON whose words name parameters in the place of flags, and tools in the place of commands. A `kpc trace` to paste stays. */
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
