import type { Location, Place } from '../kernel/place.ts';
import { entryOf, type ArgumentsOf, type DiagnosticCode } from './codes.ts';
import type { Severity } from './diagnostic-rows.ts';

/** A diagnostic as data, without its place. */
export type Fault<Code extends DiagnosticCode = DiagnosticCode> = {
  readonly [C in Code]: { readonly code: C; readonly arguments: ArgumentsOf<C> };
}[Code];

/**
 * An error, warning or note about the input: a code, stable and documented, and the arguments of that code.
 * The text says what is wrong, and the help what to do about it. An error means that nothing is written.
 */
export type Diagnostic = Fault & {
  readonly severity: Severity;
  readonly text: string;
  /** Undefined if kpc has no advice. */
  readonly help?: string | undefined;
  /** Undefined for what concerns no field: a missing --node, say. */
  readonly place?: Place | undefined;
};

/** The one way to make a diagnostic: the table of its code says how severe it is, and in which words. */
export function diagnose<Code extends DiagnosticCode>(
  code: Code,
  details: ArgumentsOf<Code>,
  place?: Place,
): Diagnostic {
  const { words } = entryOf(code);
  const shown = cutTexts(details);
  const made = typeof words === 'function' ? words(shown) : words;
  const [text, help] = typeof made === 'string' ? [made] : made;
  return {
    severity: severityOf(code, shown),
    code,
    text,
    ...(help === undefined ? {} : { help }),
    arguments: shown,
    place,
  } as Diagnostic;
}

/** How severe a diagnostic would be. */
export function severityOf<Code extends DiagnosticCode>(code: Code, details: ArgumentsOf<Code>): Severity {
  const { severity } = entryOf(code);
  return typeof severity === 'string' ? severity : severity.weigh(details);
}

/** Longer than the path of any file, and than any valid name, value or rule. */
const longestText = 4096;

/**
 * Cuts long texts. An alias in YAML makes one text of a file the value of thousands of fields: all diagnostics of them
 * together must not be larger than what can be written.
 */
function cutTexts<Value>(value: Value): Value;
function cutTexts(value: unknown): unknown {
  if (typeof value === 'string') return value.length > longestText ? `${value.slice(0, longestText - 3)}...` : value;
  if (Array.isArray(value)) return value.map((item: unknown) => cutTexts(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]: [string, unknown]) => [name, cutTexts(item)]));
}

/** Makes a fault, for code that does not know the place. */
export function faultOf<Code extends DiagnosticCode>(code: Code, details: ArgumentsOf<Code>): Fault {
  return { code, arguments: details } as Fault;
}

/** For code that knows the place of a fault that other code found. */
export function diagnoseFault({ code, arguments: details }: Fault, place?: Place): Diagnostic {
  return diagnose<DiagnosticCode>(code, details, place);
}

export function addWords(diagnostic: Diagnostic, words: string): Diagnostic {
  return { ...diagnostic, text: `${diagnostic.text}${words}` };
}

/** An error keeps kpc from writing anything. */
export function isError({ severity }: Pick<Diagnostic, 'severity'>): boolean {
  return severity === 'error';
}

/** The beginning of a line of a file, or the file as a whole. Lines count from 1. */
export function placeAtLine(file: string, line?: number): Place {
  return { file, locate: () => ({ file, line: line ?? 1, column: 1 }), isWholeFile: line === undefined };
}

/** The place as data; a file as a whole has its name alone. */
export function locate(place: Place | undefined): Partial<Location> {
  if (place?.isWholeFile) return { file: place.file };
  return place?.locate() ?? {};
}
