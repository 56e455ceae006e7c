import type { Address } from '../../kernel/address.ts';
import type { Protocol } from '../../kernel/family.ts';
import type { Located, Place } from '../../kernel/place.ts';
import { severityOf, type ArgumentsOf, type FindingCode } from './codes.ts';
import type { Cited, Severity } from './rows.ts';

/** What a finding says, without its place: a code, stable and documented, and the arguments of that code. */
export type Fault<Code extends FindingCode = FindingCode> = {
  readonly [C in Code]: { readonly code: C; readonly arguments: ArgumentsOf<C> };
}[Code];

/** What a finding is about: a Service as "namespace/name", or an object as "Node worker-1". */
export interface About {
  readonly kind: 'service' | 'object';
  readonly name: string;
}

/** A packet that shows what a finding says, and how that ends. */
export interface Evidence {
  readonly from: 'pod' | 'node' | 'external';
  readonly to: Address;
  readonly port: number;
  readonly protocol: Protocol;
  /** The node that it meets; '' for the one that kpc trace takes where the input has none. */
  readonly node: string;
  readonly verdict: string;
}

/** Something to say about the input, as data: `say` has the words of each code. An error means that nothing is written. */
export type Finding<Code extends FindingCode = FindingCode> = Fault<Code> & {
  readonly severity: Severity;
  /** Undefined for what concerns no field: a missing --node, say. */
  readonly place?: Place | undefined;
  readonly about?: About | undefined;
  readonly evidence?: Evidence | undefined;
  /** No more of its kind are looked for in the file. */
  readonly isLast?: true;
};

/** The one way to make a finding: the table of its code says how severe it is. */
export function diagnose<Code extends FindingCode>(code: Code, details: ArgumentsOf<Code>, place?: Place): Finding {
  const shown = cutTexts(details);
  return { severity: severityOf(code, shown), code, arguments: shown, place } as Finding;
}

/** Longer than the path of any file, and than any valid name, value or rule. */
const longestText = 4096;

/**
 * Cuts long texts. An alias in YAML makes one text of a file the value of thousands of fields: all findings of them
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
export function faultOf<Code extends FindingCode>(code: Code, details: ArgumentsOf<Code>): Fault {
  return { code, arguments: details } as Fault;
}

/** For code that knows the place of a fault that other code found. */
export function diagnoseFault({ code, arguments: details }: Fault, place?: Place): Finding {
  return diagnose<FindingCode>(code, details, place);
}

/** For a finding whose arguments name another. */
export function cite({ code, arguments: details }: Fault): Cited {
  return { code, arguments: details };
}

/** An error keeps kpc from writing anything. */
export function isError({ severity }: Pick<Finding, 'severity'>): boolean {
  return severity === 'error';
}

/** What is wrong where the rest is used all the same. */
export function asWarning(finding: Finding): Finding {
  return { ...finding, severity: 'warning' };
}

/** The same for findings that say the same, wherever they are. */
export function keyOfFault({ code, arguments: details }: Fault): string {
  return `${code} ${JSON.stringify(details)}`;
}

/** The findings without those that say the same as another: the last of each. */
export function distinct<F extends Fault>(findings: readonly F[]): readonly F[] {
  return [...new Map(findings.map((each) => [keyOfFault(each), each])).values()];
}

/** The beginning of a line of a file, or the file as a whole. Lines count from 1. */
export function placeAtLine(file: string, line?: number): Place {
  return { file, locate: () => ({ file, line: line ?? 1, column: 1 }), isWholeFile: line === undefined };
}

/** The place as data; a file as a whole has its name alone. */
export function locate(place: Place | undefined): Located | undefined {
  return place?.isWholeFile ? { file: place.file } : place?.locate();
}

/** How many diagnostics of one code are made of one file: a megabyte of mistakes has a million. */
export const mostOfCode = 300;

/** The same where programs read the diagnostics to the last. */
export const mostForPrograms = 10_000;

/** Counts the diagnostics of one file, so that only the first of each code are made. */
export class Tally {
  readonly #most: number;
  readonly #counts = new Map<FindingCode, Record<Severity, number>>();

  constructor(most: number = mostOfCode) {
    this.#most = most;
  }

  /** Whether one more of that code is to be made; else it is counted. */
  admits(code: FindingCode, severity: Severity): boolean {
    const counts = this.#counts.get(code) ?? { error: 0, warning: 0, note: 0 };
    this.#counts.set(code, counts);
    return ++counts[severity] <= this.#most;
  }

  /** Whether all others of that code are only counted. */
  isFull(code: FindingCode, severity: Severity): boolean {
    return (this.#counts.get(code)?.[severity] ?? 0) >= this.#most;
  }

  /** Says how many were not made. */
  rest(file: string): readonly Finding[] {
    return [...this.#counts].flatMap(([code, counts]) =>
      (['error', 'warning', 'note'] as const).flatMap((severity) => {
        const count = counts[severity] - this.#most;
        return count > 0 ? [diagnose('not-shown', { severity, count, of: code }, placeAtLine(file))] : [];
      }),
    );
  }
}
