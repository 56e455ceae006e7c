import type { Finding } from '../base/findings/finding.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import { findingsForPeople, sayFinding, type SaidFinding } from '../say/words/said.ts';
import { modeFromWords as modeFrom } from '../kube-proxy/modes.ts';
import type { LoadedInputs } from '../snapshot/open/load-texts.ts';
import { flagKey } from '../settings/flag.ts';
import { openOptions } from './options.ts';

const options: ReadonlySet<string> = new Set([
  ...openOptions,
  ...(['manifests', 'allowEmpty', 'node', 'nodes', 'allNodes', 'shard', 'from', 'to', 'toKubernetesVersion'] as const),
]);

export { findingsForPeople, sortDiagnostics };

/** The names that a caller of kpc uses for options. */
export interface CallerWords {
  /** The caller's name for an option (in camel case), or for switching it off; undefined if it has none. */
  readonly option: (name: string, isOff: boolean) => string | undefined;
  /** What the caller writes instead of "with -f"; undefined if it takes no manifests. */
  readonly manifests: string | undefined;
}

/** A caller with these option names, and `manifests` for files. */
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

/** Puts findings into words for the library, whose callers write options instead of flags. */
export function diagnosticsOf(diagnostics: readonly Finding[]): readonly SaidFinding[] {
  return diagnostics.map((each) => sayFinding(each, inOptions));
}

/** "name one with --proxy-mode" → "name one with proxyMode". */
export function inOptions(words: string): string {
  return nameOptions(words, library);
}

/** Replaces flags by the caller's words, except in quotes, such as in a command to run. */
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

/** A clause for a summary, if the user did not name the mode. */
export function modeNoteWords({ modeNote }: Pick<LoadedInputs, 'modeNote'>): string {
  return modeFrom(modeNote?.code === 'default-mode' ? modeNote.arguments.named : undefined);
}
