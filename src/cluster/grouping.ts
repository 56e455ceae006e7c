/** Groups items. Keys and items keep the order of first appearance. (Map.groupBy needs Node 21.) */
export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, [T, ...T[]]> {
  const groups = new Map<string, [T, ...T[]]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

export function uniqueBy<T>(items: readonly T[], keyOf: (item: T) => unknown): T[] {
  return [...new Map(items.map((item) => [keyOf(item), item])).values()];
}

export interface Names {
  has(namespace: string, name: string): boolean;
}

export interface ReadonlyByName<T> extends Names {
  get(namespace: string, name: string): T | undefined;
}

/** Values by namespace and name, joined by a line break, which no name contains. */
export class ByName<T> implements ReadonlyByName<T> {
  readonly #values = new Map<string, T>();

  get(namespace: string, name: string): T | undefined {
    return this.#values.get(`${namespace}\n${name}`);
  }

  has(namespace: string, name: string): boolean {
    return this.#values.has(`${namespace}\n${name}`);
  }

  set(namespace: string, name: string, value: T): void {
    this.#values.set(`${namespace}\n${name}`, value);
  }
}

export function namesOf(objects: readonly { readonly namespace: string; readonly name: string }[]): Names {
  const names = new ByName<true>();
  for (const { namespace, name } of objects) names.set(namespace, name, true);
  return names;
}

export function eitherOf(some: Names, others: Names): Names {
  return { has: (namespace, name) => some.has(namespace, name) || others.has(namespace, name) };
}
