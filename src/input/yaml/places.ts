import type { JsonEntry, FieldLocator } from '../../base/json/locate.ts';

export type YamlPlaces = Map<unknown, Map<string, JsonEntry>>;

export function locatorOf(document: unknown, start: number, places: YamlPlaces): FieldLocator {
  return (path, of) => {
    let value = document;
    let offset = start;
    for (const [i, step] of path.entries()) {
      const entry = places.get(value)?.get(String(step));
      if (!entry) return offset;
      offset = entry[i === path.length - 1 ? of : 'value'];
      value = (value as Readonly<Record<string | number, unknown>>)[step];
    }
    return offset;
  };
}

export function addPlaces(inner: YamlPlaces, start: number, into: YamlPlaces): void {
  for (const [value, entries] of inner) {
    const moved = Array.from(
      entries,
      ([name, { key, value: at }]) => [name, { key: key + start, value: at + start }] as const,
    );
    into.set(value, new Map(moved));
  }
}
