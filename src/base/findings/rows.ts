/** An error means that nothing is written. */
export type Severity = 'error' | 'warning' | 'note';

export interface Weighing<Arguments> {
  /** The possible severities, the worst first. */
  readonly among: readonly Severity[];
  weigh(details: Arguments): Severity;
}

/** A code's row: the type of its arguments, which must fit JSON, and its severities. */
export interface Row<Arguments> {
  readonly severity: Severity | Weighing<Arguments>;
  /** It is about how manifests are compiled; only an error is about the manifests. */
  readonly isOfCompiling?: true;
}

export function row<Arguments>(severity: Row<Arguments>['severity']): Row<Arguments> {
  return { severity };
}

export function severityIn<Arguments>({ severity }: Row<Arguments>, details: Arguments): Severity {
  return typeof severity === 'string' ? severity : severity.weigh(details);
}

export function ofCompiling<Arguments>(severity: Row<Arguments>['severity']): Row<Arguments> {
  return { severity, isOfCompiling: true };
}

/** The row of a code for several problems: its argument `problem` selects the others' types. */
export function byProblem<Problems>(severity: Row<By<'problem', Problems>>['severity']): Row<By<'problem', Problems>> {
  return { severity };
}

/** The arguments of a code for several cases, selected by `Key`. */
export type By<Key extends string, Cases> = {
  readonly [C in keyof Cases]: { readonly [K in Key]: C } & (Cases[C] extends None ? unknown : Cases[C]);
}[keyof Cases];

export type None = Readonly<Record<string, never>>;

export type ArgumentsIn<Table, Code extends keyof Table> = {
  [C in Code]: Table[C] extends Row<infer Arguments> ? Arguments : never;
}[Code];

/** Another finding as an argument: no argument has type Finding. */
export interface Cited {
  readonly code: string;
  readonly arguments: object;
}

export type Strings<Names extends string> = Readonly<Record<Names, string>>;
export type Numbers<Names extends string> = Readonly<Record<Names, number>>;
export type Lists<Names extends string> = Readonly<Record<Names, readonly string[]>>;

/** A warning if the arguments say so, else an error. */
export function warningIf<Arguments>(isWarning: (details: Arguments) => boolean): Weighing<Arguments> {
  return { among: ['error', 'warning'], weigh: (details) => (isWarning(details) ? 'warning' : 'error') };
}

/** One severity for most values of the argument `key`, another for some. */
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
