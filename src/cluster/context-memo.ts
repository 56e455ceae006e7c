/**
 * Keeps the last result for each subject, and its context. Contexts are plain data, equal if their text is. Results are the same
 * without it.
 */
export class ContextMemo<Subject extends object, Made> {
  readonly #made = new WeakMap<Subject, { readonly key: string; readonly made: Made }>();
  readonly #keys = new WeakMap<object, string>();

  /** Calls `make`, unless the subject's last context was equal. */
  recall(subject: Subject, context: object, make: () => Made): Made {
    const key = this.#keyOf(context);
    const known = this.#made.get(subject);
    if (known?.key === key) return known.made;
    const made = make();
    this.#made.set(subject, { key, made });
    return made;
  }

  /** Makes the key once for all subjects that share a context. */
  #keyOf(context: object): string {
    let key = this.#keys.get(context);
    if (key === undefined) this.#keys.set(context, (key = JSON.stringify(context, listSets)));
    return key;
  }
}

/** JSON has no sets, so they become lists. */
function listSets(_: string, value: unknown): unknown {
  return value instanceof Set ? [...(value as ReadonlySet<unknown>)] : value;
}
