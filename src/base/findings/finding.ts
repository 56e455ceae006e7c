import type { Address, Protocol } from '../../kernel/address.ts';
import type { Located, Place } from '../../kernel/place.ts';
import { severityOf, type ArgumentsOf, type FindingCode } from './codes.ts';
import { foundOf, type ValueForm } from './fields.ts';
import type { Cited, Severity } from './rows.ts';

export type Fault<Code extends FindingCode = FindingCode> = {
  readonly [C in Code]: { readonly code: C; readonly arguments: ArgumentsOf<C> };
}[Code];

export interface About {
  readonly kind: 'service' | 'object' | 'side';
  readonly name: string;
}

export interface PacketEvidence {
  readonly from: 'pod' | 'node' | 'external';
  readonly to: Address;
  readonly port: number;
  readonly protocol: Protocol;
  /** The node on which the packet is traced. With '', and if the input has no node, kpc trace chooses one. */
  readonly node: string;
  readonly verdict: string;
}

/** A message about the input, as data. `say` has the words for each code. After an error, kpc writes no output. */
export type Finding<Code extends FindingCode = FindingCode> = Fault<Code> & {
  readonly severity: Severity;
  /** Undefined if no field is concerned, for example for a missing --node. */
  readonly place?: Place | undefined;
  readonly about?: About | undefined;
  readonly evidence?: PacketEvidence | undefined;
  /** Set if the rest of the file is not searched for findings of this kind. */
  readonly isLast?: true;
};

export function diagnose<Code extends FindingCode>(code: Code, details: ArgumentsOf<Code>, place?: Place): Finding {
  const shown = cutTexts(details);
  return { severity: severityOf(code, shown), code, arguments: shown, place } as Finding;
}

export function wrongValue(field: string, value: string, form: ValueForm, place?: Place): Finding {
  return diagnose('bad-value', { field, found: foundOf(value), form }, place);
}

const longestText = 4096;

/** Cuts long strings. Otherwise a YAML alias could put one long string into thousands of findings, which would be too long to print. */
function cutTexts<Value>(value: Value): Value;
function cutTexts(value: unknown): unknown {
  if (typeof value === 'string') return value.length > longestText ? `${value.slice(0, longestText - 3)}...` : value;
  if (Array.isArray(value)) return value.map((item: unknown) => cutTexts(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]: [string, unknown]) => [name, cutTexts(item)]));
}

export function faultOf<Code extends FindingCode>(code: Code, details: ArgumentsOf<Code>): Fault {
  return { code, arguments: details } as Fault;
}

export function diagnoseFault({ code, arguments: details }: Fault, place?: Place): Finding {
  return diagnose<FindingCode>(code, details, place);
}

export function cite({ code, arguments: details }: Fault): Cited {
  return { code, arguments: details };
}

export function isError({ severity }: Pick<Finding, 'severity'>): boolean {
  return severity === 'error';
}

/** Moves errors about the whole input to the end, after findings about its parts that may explain these errors. */
export function endLast(findings: readonly Finding[]): readonly Finding[] {
  const isOfWhole = (each: Finding): boolean => isError(each) && (each.place === undefined || each.code === 'no-input');
  return [...findings.filter((each) => !isOfWhole(each)), ...findings.filter(isOfWhole)];
}

export function asStrict(finding: Finding): Finding {
  return finding.severity === 'warning' ? { ...finding, severity: 'error' } : finding;
}

/** Returns the same text for findings with the same code and arguments, whatever their places. */
export function keyOfFault({ code, arguments: details }: Fault): string {
  return `${code} ${JSON.stringify(details)}`;
}

export function distinct<F extends Fault>(findings: readonly F[]): readonly F[] {
  return [...new Map(findings.map((each) => [keyOfFault(each), each])).values()];
}

/** Returns the start of a line (lines count from 1), or the whole file if no line is given. */
export function placeAtLine(file: string, line?: number): Place {
  return { file, locate: () => ({ file, line: line ?? 1, column: 1 }), isWholeFile: line === undefined };
}

/** Returns the place as data; for a whole file, only its name. */
export function locate(place: Place | undefined): Located | undefined {
  return place?.isWholeFile ? { file: place.file } : place?.locate();
}

/** The maximum of diagnostics with one code for one file, because a megabyte of mistakes may make a million diagnostics. */
export const mostOfCode = 300;

/** The limit for programs, which read all diagnostics. */
export const mostForPrograms = 10_000;

/** Counts one file's diagnostics, so that only the first ones of each code are made. */
export class Tally {
  readonly #most: number;
  readonly #counts = new Map<FindingCode, Record<Severity, number>>();

  constructor(most: number = mostOfCode) {
    this.#most = most;
  }

  /** Returns whether to make another finding with this code and severity. Counts the finding in either case. */
  admits(code: FindingCode, severity: Severity): boolean {
    const counts = this.#counts.get(code) ?? { error: 0, warning: 0, note: 0 };
    this.#counts.set(code, counts);
    return ++counts[severity] <= this.#most;
  }

  isFull(code: FindingCode, severity: Severity): boolean {
    return (this.#counts.get(code)?.[severity] ?? 0) >= this.#most;
  }

  rest(file: string): readonly Finding[] {
    return [...this.#counts].flatMap(([code, counts]) =>
      (['error', 'warning', 'note'] as const).flatMap((severity) => {
        const count = counts[severity] - this.#most;
        return count > 0 ? [diagnose('not-shown', { severity, count, of: code }, placeAtLine(file))] : [];
      }),
    );
  }
}
