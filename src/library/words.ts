import type { ArgumentsOf } from '../base/findings/codes.ts';
import { faultOf, type Finding } from '../base/findings/finding.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import { findingsForPeople, sayFinding, type SaidFinding } from '../say/words/said.ts';
import { inOneLine } from '../say/words/words.ts';
import type { ModeSource } from '../kube-proxy/modes.ts';
import type { LoadedInputs } from '../snapshot/open/load-texts.ts';
import { flagKey } from '../settings/flag.ts';
import { openFlags, openOptions } from './options.ts';

/** The rows of flags that only functions for programs take would be dead weight in a browser. Test: library/library.test.ts. */
const ofFunctions = [
  'manifests',
  'allowEmpty',
  'node',
  'nodes',
  'allNodes',
  'shard',
  'from',
  'to',
  'proto',
  'inInterface',
  'all',
  'toKubernetesVersion',
  'toConfig',
];
const options: ReadonlySet<string> = new Set([...openOptions, ...ofFunctions]);

export { findingsForPeople, sortDiagnostics };

export interface CallerWords {
  /** Returns the caller's name for an option (in camel case), or for switching it off. Undefined if the caller lacks the option. */
  readonly option: (name: string, isOff: boolean) => string | undefined;
  /** The caller's words for "with -f". Undefined if the caller accepts no manifests. */
  readonly manifests: string | undefined;
}

export function callerWith(names: ReadonlySet<string>): CallerWords {
  return {
    option: (name, isOff) => {
      if (name === 'file') return 'manifests';
      return names.has(name) ? `${name}${isOff ? ': false' : ''}` : undefined;
    },
    manifests: 'in manifests',
  };
}

const library = callerWith(options);

export function diagnosticsOf(diagnostics: readonly Finding[]): readonly SaidFinding[] {
  return diagnostics.map((each) => sayFinding(each, adviseInOptions));
}

/** Throws a TypeError, because the program that calls the library has an error. */
export function misuse(why: ArgumentsOf<'bad-call'>): never {
  throw new TypeError(inOptions(inOneLine(faultOf('bad-call', why))));
}

/** Reports whether advice in a caller's words needs a command line, or one of kpc's `flags` that the caller lacks. */
export function isBeyond(spoken: string, { option }: CallerWords, flags: ReadonlySet<string>): boolean {
  if (/\bon the command line\b/.test(spoken)) return true;
  return [...spoken.matchAll(/(?<![\w-])--(no-)?([a-z][a-z-]*)/g)].some(([, no, name = '']) => {
    const key = flagKey(name);
    return flags.has(key) && option(key, no !== undefined) === undefined;
  });
}

const flagsOfKpc: ReadonlySet<string> = new Set(openFlags('programs').map(({ key }) => key));

export function adviseInOptions(way: string): string | undefined {
  const spoken = inOptions(way);
  return isBeyond(spoken, library, flagsOfKpc) ? undefined : spoken;
}

/** Turns "name one with --proxy-mode" into "name one with proxyMode". */
export function inOptions(words: string): string {
  return nameOptions(words, library);
}

/** Fields that are not in kpc's own words: files, parts of examples, and rules as their tool writes them. */
const asWritten: ReadonlySet<string> = new Set(['example', 'files', 'items', 'kernel', 'manifest', 'rule', 'rules']);

/** Puts all words of an answer into the caller's words, except commands to run. */
export function inWordsOf<Answer>(answer: Answer, speak: (words: string) => string): Answer {
  const say = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(say);
    if (typeof value === 'object' && value !== null) {
      const fields = Object.entries(value);
      return Object.fromEntries(fields.map(([name, each]) => [name, asWritten.has(name) ? each : say(each)]));
    }
    return typeof value !== 'string' || value.startsWith('kpc trace ') ? value : speak(value);
  };
  return say(answer) as Answer;
}

export function answerInOptions<Answer>(answer: Answer): Answer {
  return inWordsOf(answer, inOptions);
}

/** Replaces flags with the caller's words. Quoted text stays unchanged, because it may be a command to run. */
export function nameOptions(words: string, { option, manifests }: CallerWords): string {
  return words.replaceAll(/"[^"]*"|(?<![\w-])--[a-z][a-z-]*|\bwith -f\b/g, (found) => {
    if (found === 'with -f') return manifests ?? found;
    if (found.startsWith('"')) return found;
    const name = flagKey(found.slice(2));
    const negated = /^no([A-Z])(.*)$/.exec(name);
    const positive = negated ? `${negated[1]?.toLowerCase()}${negated[2]}` : '';
    return option(name, false) ?? option(positive, true) ?? found;
  });
}

/** Returns what left the mode unnamed. Undefined if the user named it. */
export function modeSourceOf({ modeNote }: Pick<LoadedInputs, 'modeNote'>): ModeSource | undefined {
  return modeNote?.code === 'default-mode' ? modeNote.arguments.named : undefined;
}
