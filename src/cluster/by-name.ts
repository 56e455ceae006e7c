/** Some objects, by namespace and name. */
export interface Names {
  has(namespace: string, name: string): boolean;
}

/** Values that are looked up by namespace and name. */
export interface ReadonlyByName<T> extends Names {
  get(namespace: string, name: string): T | undefined;
}

/**
 * Values by namespace and name. No text is made of the two to look them up by: making and hashing one each time takes
 * several times as long as looking up one after the other.
 */
export class ByName<T> implements ReadonlyByName<T> {
  readonly #namespaces = new Map<string, Map<string, T>>();

  get(namespace: string, name: string): T | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  has(namespace: string, name: string): boolean {
    return this.#namespaces.get(namespace)?.has(name) === true;
  }

  set(namespace: string, name: string, value: T): void {
    const names = this.#namespaces.get(namespace);
    if (names) names.set(name, value);
    else this.#namespaces.set(namespace, new Map([[name, value]]));
  }
}

/** The objects of a list. */
export function namesOf(objects: readonly { readonly namespace: string; readonly name: string }[]): Names {
  const names = new ByName<true>();
  for (const { namespace, name } of objects) names.set(namespace, name, true);
  return names;
}

/** The objects that are among the ones or the others. */
export function eitherOf(some: Names, others: Names): Names {
  return { has: (namespace, name) => some.has(namespace, name) || others.has(namespace, name) };
}
