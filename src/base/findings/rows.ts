/** How much a finding weighs: an error means that nothing is written. */
export type Severity = 'error' | 'warning' | 'note';

export interface Weighing<Arguments> {
  /** The severities that are possible, the worst first. */
  readonly among: readonly Severity[];
  weigh(details: Arguments): Severity;
}

/** The row of a code: the type of its arguments, which JSON can hold, and how severe its findings are. */
export interface Row<Arguments> {
  readonly severity: Severity | Weighing<Arguments>;
  /** It says how manifests are compiled; only as an error does it say anything about them. */
  readonly isOfCompiling?: true;
}

export function row<Arguments>(severity: Row<Arguments>['severity']): Row<Arguments> {
  return { severity };
}

export function ofCompiling<Arguments>(severity: Row<Arguments>['severity']): Row<Arguments> {
  return { severity, isOfCompiling: true };
}

/** The row of a code that covers several problems, which its argument `problem` tells apart: their other arguments. */
export function byProblem<Problems>(severity: Row<By<'problem', Problems>>['severity']): Row<By<'problem', Problems>> {
  return { severity };
}

/** The arguments of a code that covers several cases, which its argument `Key` tells apart. */
export type By<Key extends string, Cases> = {
  readonly [C in keyof Cases]: { readonly [K in Key]: C } & (Cases[C] extends None ? unknown : Cases[C]);
}[keyof Cases];

/** No arguments. */
export type None = Readonly<Record<string, never>>;

/** What another finding says: arguments hold no finding of their own type. */
export interface Cited {
  readonly code: string;
  readonly arguments: object;
}

/** Arguments that are texts, numbers, or lists of texts. */
export type Texts<Names extends string> = Readonly<Record<Names, string>>;
export type Numbers<Names extends string> = Readonly<Record<Names, number>>;
export type Lists<Names extends string> = Readonly<Record<Names, readonly string[]>>;

/** An error, or a warning where the arguments say so. */
export function warningIf<Arguments>(isWarning: (details: Arguments) => boolean): Weighing<Arguments> {
  return { among: ['error', 'warning'], weigh: (details) => (isWarning(details) ? 'warning' : 'error') };
}

/** One severity for most cases, which the argument `key` tells apart, and another for some. */
export function severityBy<Key extends string>(
  key: Key,
  usual: Severity,
  others: Readonly<Record<string, Severity>>,
): Weighing<{ readonly [K in Key]?: unknown }> {
  return {
    among: (['error', 'warning', 'note'] as const).filter(
      (each) => each === usual || Object.values(others).includes(each),
    ),
    weigh: ({ [key]: which }) => others[String(which)] ?? usual,
  };
}
