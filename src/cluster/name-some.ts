/** How many names are enough to see what is meant. */
const shown = 3;

/** The first names of a list: "a, b, c and 4 more". */
export function nameSome(names: readonly string[]): string {
  const some = names.slice(0, shown).join(', ');
  return names.length > shown ? `${some} and ${names.length - shown} more` : some;
}
