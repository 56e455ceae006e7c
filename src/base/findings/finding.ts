import type { Address } from '../../kernel/address.ts';
import type { Protocol } from '../../kernel/family.ts';
import type { Located, Place } from '../../kernel/place.ts';
import { severityOf, type ArgumentsOf, type FindingCode } from './codes.ts';
import { foundOf, type ValueForm } from './fields.ts';
import type { Cited, Severity } from './rows.ts';

/** A stable, documented code and its arguments. */
export type Fault<Code extends FindingCode = FindingCode> = {
  readonly [C in Code]: { readonly code: C; readonly arguments: ArgumentsOf<C> };
}[Code];

export interface About {
  /** A side of a comparison has a word for its name, such as a mode: a path is a place. */
  readonly kind: 'service' | 'object' | 'side';
  readonly name: string;
}

export interface PacketEvidence {
  readonly from: 'pod' | 'node' | 'external';
  readonly to: Address;
  readonly port: number;
  readonly protocol: Protocol;
  /** The node where the packet is traced; '' lets kpc trace choose if the input has none. */
  readonly node: string;
  readonly verdict: string;
}

/** Something to say about the input, as data; `say` has the words of each code. After an error nothing is written. */
export type Finding<Code extends FindingCode = FindingCode> = Fault<Code> & {
  readonly severity: Severity;
  /** Undefined without a field: a missing --node, say. */
  readonly place?: Place | undefined;
  readonly about?: About | undefined;
  readonly evidence?: PacketEvidence | undefined;
  /** The file is not searched for more findings of this kind. */
  readonly isLast?: true;
};

/** Makes a finding; its code's table gives the severity. */
export function diagnose<Code extends FindingCode>(code: Code, details: ArgumentsOf<Code>, place?: Place): Finding {
  const shown = cutTexts(details);
  return { severity: severityOf(code, shown), code, arguments: shown, place } as Finding;
}

/** A value of a flag or field that is not of the form. */
export function wrongValue(field: string, value: string, form: ValueForm, place?: Place): Finding {
  return diagnose('bad-value', { field, found: foundOf(value), form }, place);
}

/** Longer than any file path, valid name, value or rule. */
const longestText = 4096;

/** Cuts long texts: a YAML alias can put one text into thousands of findings, more than can be written. */
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

/** For a fault found by code that does not know its place. */
export function diagnoseFault({ code, arguments: details }: Fault, place?: Place): Finding {
  return diagnose<FindingCode>(code, details, place);
}

/** For a finding whose arguments cite another finding. */
export function cite({ code, arguments: details }: Fault): Cited {
  return { code, arguments: details };
}

/** An error keeps kpc from writing anything. */
export function isError({ severity }: Pick<Finding, 'severity'>): boolean {
  return severity === 'error';
}

/** The same findings, but errors about the whole input come last, because findings about its parts may explain them. */
export function endLast(findings: readonly Finding[]): readonly Finding[] {
  const isOfWhole = (each: Finding): boolean => isError(each) && each.place === undefined;
  return [...findings.filter((each) => !isOfWhole(each)), ...findings.filter(isOfWhole)];
}

/** As with --strict. */
export function asStrict(finding: Finding): Finding {
  return finding.severity === 'warning' ? { ...finding, severity: 'error' } : finding;
}

/** Equal for findings that say the same, wherever they are. */
export function keyOfFault({ code, arguments: details }: Fault): string {
  return `${code} ${JSON.stringify(details)}`;
}

/** The last of each group of findings that say the same. */
export function distinct<F extends Fault>(findings: readonly F[]): readonly F[] {
  return [...new Map(findings.map((each) => [keyOfFault(each), each])).values()];
}

/** The start of a line, or the whole file. Lines count from 1. */
export function placeAtLine(file: string, line?: number): Place {
  return { file, locate: () => ({ file, line: line ?? 1, column: 1 }), isWholeFile: line === undefined };
}

/** The place as data; for a whole file, only its name. */
export function locate(place: Place | undefined): Located | undefined {
  return place?.isWholeFile ? { file: place.file } : place?.locate();
}

/** Most diagnostics of one code for one file: a megabyte of mistakes has a million. */
export const mostOfCode = 300;

/** The limit also applies to programs, which read all diagnostics. */
export const mostForPrograms = 10_000;

/** Counts one file's diagnostics, so that only the first of each code are made. */
export class Tally {
  readonly #most: number;
  readonly #counts = new Map<FindingCode, Record<Severity, number>>();

  constructor(most: number = mostOfCode) {
    this.#most = most;
  }

  /** Whether to make another finding of that code; if not, counts it. */
  admits(code: FindingCode, severity: Severity): boolean {
    const counts = this.#counts.get(code) ?? { error: 0, warning: 0, note: 0 };
    this.#counts.set(code, counts);
    return ++counts[severity] <= this.#most;
  }

  /** Whether further ones of that code are only counted. */
  isFull(code: FindingCode, severity: Severity): boolean {
    return (this.#counts.get(code)?.[severity] ?? 0) >= this.#most;
  }

  /** Reports how many were not made. */
  rest(file: string): readonly Finding[] {
    return [...this.#counts].flatMap(([code, counts]) =>
      (['error', 'warning', 'note'] as const).flatMap((severity) => {
        const count = counts[severity] - this.#most;
        return count > 0 ? [diagnose('not-shown', { severity, count, of: code }, placeAtLine(file))] : [];
      }),
    );
  }
}
