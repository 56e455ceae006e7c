/** Reports whether two values of JSON are equal, in any order of fields. A field that is undefined counts as missing. */
export function isSameValue(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || !one || !other) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const [own, others] = [definedFields(one), definedFields(other)];
  return own.size === others.size && [...own].every(([key, value]) => isSameValue(value, others.get(key)));
}

function definedFields(value: object): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(value).filter(([, each]) => each !== undefined));
}
