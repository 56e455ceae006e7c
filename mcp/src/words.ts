import { isConfigured } from '../../src/library/node/kpc-yaml-values.ts';
import { callerWith, nameOptions, type CallerWords } from '../../src/library/words.ts';
import { flagKey } from '../../src/settings/flag.ts';
import type { Cited } from '../../src/base/findings/rows.ts';
import { wordsOf } from '../../src/say/words/words.ts';

/** Fields without kpc's own words: files, parts of examples, and rules as their tool writes them. */
const asWritten: ReadonlySet<string> = new Set(['example', 'files', 'items', 'kernel', 'manifest', 'rule', 'rules']);

interface Names {
  readonly tools: ReadonlySet<string>;
  /** Of the question, or of all. */
  readonly parameters: ReadonlySet<string>;
  /** Whatever kpc has as a flag. */
  readonly options: ReadonlySet<string>;
}

/** The parts of words: what is the case, and each way to mend it. */
const ends = { text: /(; |, or |: (?=add ))/, help: /(; |, or )/, settle: /(; |, or )/ } as const;

/** "kpc lint" and "kpc migrate --to-kubernetes-version" in quotes; kpc lint and kpc describe -f FILE without. */
const command = /"kpc ([a-z]+)(?: (--[a-z-]+))?"|(?<!")\bkpc ([a-z]+)(?: -f (?:'[^']*'|[^\s,;]+))?/g;

/** A finding with its advice as the command line has it: the library names its own options in the place of flags. */
export function inFlags<Said extends Cited & { readonly help?: string | undefined }>(said: Said): Said {
  const { help } = wordsOf(said);
  return { ...said, ...(help === undefined ? {} : { help }) };
}

/**
 * JSON whose words name parameters in the place of flags, and tools in the place of commands. A way to mend something is left out if
 * it needs what the question cannot have. A `kpc trace` to paste stays.
 */
export function inParameters<T>(answer: T, names: Names): T {
  const caller = callerOf(names);
  const speak = (words: string): string =>
    nameOptions(
      words.replaceAll(command, (found, quoted?: string, flag?: string, bare?: string) => {
        const name = quoted ?? bare ?? '';
        return names.tools.has(name) ? `${name}${flag === undefined ? '' : ` with ${flag}`}` : found;
      }),
      caller,
    );
  const say = (value: unknown, field = ''): unknown => {
    if (Array.isArray(value)) return value.map((each) => say(each));
    if (typeof value === 'object' && value !== null) {
      const fields = Object.entries(value);
      return Object.fromEntries(fields.map(([name, each]) => [name, asWritten.has(name) ? each : say(each, name)]));
    }
    if (typeof value !== 'string' || value.startsWith('kpc trace ')) return value;
    if (!Object.hasOwn(ends, field)) return speak(value);
    const parts = value.split(ends[field as keyof typeof ends]);
    const offered = parts.flatMap((part, i) => {
      const isKept = i % 2 === 0 && ((i === 0 && field === 'text') || !namesMore(part, names, caller));
      return isKept ? [{ before: parts[i - 1] ?? '', part }] : [];
    });
    if (offered.length === 0) return field === 'help' ? undefined : speak(value);
    return speak(offered.map(({ before, part }, i) => (i === 0 ? part : `${before}${part}`)).join(''));
  };
  return say(answer) as T;
}

function callerOf({ parameters }: Names): CallerWords {
  const own = callerWith(parameters);
  const takesManifests = parameters.has('manifests');
  return {
    option: (name, isOff) => (name === 'file' && !takesManifests ? undefined : own.option(name, isOff)),
    manifests: takesManifests ? own.manifests : undefined,
  };
}

/** Whether words name a flag that is no parameter, a command that is no tool, or what else only a command line has. */
function namesMore(words: string, { tools, options }: Names, { option, manifests }: CallerWords): boolean {
  if (/\bon the command line\b/.test(words) || (manifests === undefined && /\bwith -f\b/.test(words))) return true;
  const commands = [...words.matchAll(/\bkpc ([a-z]+)/g)].map(([, name = '']) => name);
  if (commands.some((name) => isConfigured(name) && !tools.has(name))) return true;
  const flags = [...words.matchAll(/(?<![\w-])--(no-)?([a-z][a-z-]*)/g)];
  return flags.some(([, no, name = '']) => {
    const key = flagKey(name);
    return options.has(key) && option(key, no !== undefined) === undefined;
  });
}
