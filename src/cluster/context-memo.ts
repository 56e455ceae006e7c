/**
 * What was made last of each subject, and in which context. Contexts are plain data: those with the same text are equal. It
 * changes no result.
 */
export class ContextMemo<Subject extends object, Made> {
  readonly #made = new WeakMap<Subject, { readonly key: string; readonly made: Made }>();
  readonly #keys = new WeakMap<object, string>();

  /** What `make` makes of the subject in the context, or what it made last if the context was equal. */
  recall(subject: Subject, context: object, make: () => Made): Made {
    const key = this.#keyOf(context);
    const known = this.#made.get(subject);
    if (known?.key === key) return known.made;
    const made = make();
    this.#made.set(subject, { key, made });
    return made;
  }

  /** The context as text: once for all subjects that share it. */
  #keyOf(context: object): string {
    let key = this.#keys.get(context);
    if (key === undefined) this.#keys.set(context, (key = JSON.stringify(context, listSets)));
    return key;
  }
}

/** JSON has no sets. */
function listSets(_: string, value: unknown): unknown {
  return value instanceof Set ? [...(value as ReadonlySet<unknown>)] : value;
}
