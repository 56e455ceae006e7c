import { isConfigured } from '../../src/library/node/kpc-yaml-values.ts';
import { callerWith, inWordsOf, isBeyond, nameOptions, type CallerWords } from '../../src/library/words.ts';
import { flagKey } from '../../src/settings/flag.ts';
import type { Cited } from '../../src/base/findings/rows.ts';
import { wordsOf } from '../../src/say/words/words.ts';

interface Names {
  readonly tools: ReadonlySet<string>;
  /** The parameters of this tool, or of all tools. */
  readonly parameters: ReadonlySet<string>;
  /** The parameters that the question can use. Advice names only these. */
  readonly useful: ReadonlySet<string>;
  readonly options: ReadonlySet<string>;
}

/**
 * Matches "kpc lint", "kpc describe FILE" and "kpc migrate --to-kubernetes-version" in quotes, and kpc lint and kpc describe -f FILE
 * without quotes.
 */
const command =
  /"kpc ([a-z]+)(?: (--[a-z-]+)|(?: (?:'[^'"]*'|[^\s'"-][^\s"]*))+)?"|(?<!")\bkpc ([a-z]+)(?: -f (?:'[^']*'|[^\s,;]+))?/g;

interface Caller extends CallerWords {
  readonly names: Names;
}

/** Puts an answer and its findings into a tool's words: parameters instead of flags, and tools instead of commands. */
export function inParameters<Said extends Cited & { readonly help?: string | undefined }, Answer>(
  findings: readonly Said[],
  answer: Answer,
  names: Names,
): Answer & { readonly findings: readonly Said[] } {
  const adviser = callerOf(names, names.useful);
  const spoken = findings.map((each) => ({ ...each, help: wordsOf(each, (way) => wayOf(way, adviser)).help }));
  const caller = callerOf(names, names.parameters);
  return inWordsOf({ ...answer, findings: spoken }, (words) => speak(words, caller));
}

function speak(words: string, caller: Caller): string {
  const spoken = words.replaceAll(command, (found, quoted?: string, flag?: string, bare?: string) => {
    const name = quoted ?? bare ?? '';
    if (!caller.names.tools.has(name)) return found;
    return flag === undefined ? name : `${name} with ${flagKey(flag.slice(2))}`;
  });
  return nameOptions(spoken, caller);
}

function callerOf(names: Names, parameters: ReadonlySet<string>): Caller {
  const own = callerWith(parameters);
  const takesManifests = parameters.has('manifests');
  return {
    names,
    option: (name, isOff) => (name === 'file' && !takesManifests ? undefined : own.option(name, isOff)),
    manifests: takesManifests ? own.manifests : undefined,
  };
}

/** Puts advice into a caller's words; undefined if the advice needs a command line, or a flag or command without a counterpart here. */
function wayOf(way: string, caller: Caller): string | undefined {
  const { names } = caller;
  const spoken = speak(way, caller);
  if (/\bwith -f\b/.test(spoken)) return undefined;
  const commands = [...spoken.matchAll(/\bkpc ([a-z]+)/g)].map(([, name = '']) => name);
  if (commands.some((name) => isConfigured(name) && !names.tools.has(name))) return undefined;
  return isBeyond(spoken, caller, names.options) ? undefined : spoken;
}
