/** How much a diagnostic weighs: an error means that nothing is written. */
export type Severity = 'error' | 'warning' | 'note';

export interface Weighing<Details = never> {
  /** The severities that are possible, the worst first. */
  readonly among: readonly Severity[];
  readonly weigh: (details: Details) => Severity;
}

/** What is wrong, then what to do about it, if kpc knows. */
export type Words = string | readonly [wrong: string, help: string | undefined];

/** The words, or how the arguments make them. */
type Wording = Words | ((details: never) => Words);

/** The row of a code. The functions take the arguments of a diagnostic with that code. */
export interface Row<W extends Wording = Wording> {
  readonly severity: Severity | Weighing;
  readonly words: W;
}

export function row<const W extends Wording>(severity: Row['severity'], words: W): Row<W> {
  return { severity, words };
}

/** Arguments that are texts, numbers, or lists of texts. */
export type Texts<Names extends string> = Readonly<Record<Names, string>>;
export type Numbers<Names extends string> = Readonly<Record<Names, number>>;
export type Lists<Names extends string> = Readonly<Record<Names, readonly string[]>>;

export type DiagnosticTable = Readonly<Record<string, Row>>;

export type DetailsOf<W> = W extends Words
  ? Record<string, never>
  : W extends (details: infer Details) => Words
    ? unknown extends Details
      ? Record<string, never>
      : Details
    : never;

/** Keyed by problem. */
export type Wordings = Readonly<Record<string, Wording>>;

/** The problems whose words need no arguments. */
type FixedProblem<W> = { [P in keyof W]: W[P] extends Words ? P : never }[keyof W];

/** The arguments of a code that covers several problems: those of the problem that `Key` names. */
export type DetailsBy<Key extends string, W> =
  | (FixedProblem<W> extends never ? never : { readonly [K in Key]: FixedProblem<W> })
  | {
      readonly [P in Exclude<keyof W, FixedProblem<W>>]: { readonly [K in Key]: P } & DetailsOf<W[P]>;
    }[Exclude<keyof W, FixedProblem<W>>];

/** The words of a code that covers several problems, which its argument `key` tells apart. */
export function wordsBy<Key extends string, const W extends Wordings>(
  key: Key,
  wordings: W,
): (details: DetailsBy<Key, W>) => Words {
  return (details) => {
    const { [key]: problem } = details as Readonly<Record<string, string>>;
    const wording = wordings[problem ?? ''] as Wording;
    return typeof wording === 'function' ? wording(details as never) : wording;
  };
}

/** An error, or a warning where the arguments say so. */
export function warningIf<Details>(isWarning: (details: Details) => boolean): Weighing<Details> {
  return { among: ['error', 'warning'], weigh: (details) => (isWarning(details) ? 'warning' : 'error') };
}

/** One severity for most problems, which the argument `key` tells apart, and another for some. */
export function severityBy<Key extends string>(
  key: Key,
  usual: Severity,
  others: Readonly<Record<string, Severity>>,
): Weighing<{ readonly [K in Key]: string }> {
  return {
    among: (['error', 'warning', 'note'] as const).filter(
      (each) => each === usual || Object.values(others).includes(each),
    ),
    weigh: ({ [key]: problem }) => others[problem] ?? usual,
  };
}
