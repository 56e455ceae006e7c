/** How serious a finding is. After an error, kpc writes no output. */
export type Severity = 'error' | 'warning' | 'note';

export interface Weighing<Arguments> {
  /** The possible severities, the worst first. */
  readonly among: readonly Severity[];
  weigh(details: Arguments): Severity;
}

export interface Row<Arguments> {
  readonly severity: Severity | Weighing<Arguments>;
  /** Set if the code is about how manifests are compiled. Only errors with such a code are about the manifests. */
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

/** Returns the row of a code for several problems. Its argument `problem` selects the types of the other arguments. */
export function byProblem<Problems>(severity: Row<By<'problem', Problems>>['severity']): Row<By<'problem', Problems>> {
  return { severity };
}

/** The arguments of a code for several cases, which the argument `Key` selects. */
export type By<Key extends string, Cases> = {
  readonly [C in keyof Cases]: { readonly [K in Key]: C } & (Cases[C] extends None ? unknown : Cases[C]);
}[keyof Cases];

export type None = Readonly<Record<string, never>>;

export type ArgumentsIn<Table, Code extends keyof Table> = {
  [C in Code]: Table[C] extends Row<infer Arguments> ? Arguments : never;
}[Code];

/** Another finding as an argument, because no argument has type Finding. */
export interface Cited {
  readonly code: string;
  readonly arguments: object;
}

export type Strings<Names extends string> = Readonly<Record<Names, string>>;
export type Numbers<Names extends string> = Readonly<Record<Names, number>>;
export type Lists<Names extends string> = Readonly<Record<Names, readonly string[]>>;

export function warningIf<Arguments>(isWarning: (details: Arguments) => boolean): Weighing<Arguments> {
  return { among: ['error', 'warning'], weigh: (details) => (isWarning(details) ? 'warning' : 'error') };
}

/** Gives one severity to findings in general, and another to findings with certain values of the argument `key`. */
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
