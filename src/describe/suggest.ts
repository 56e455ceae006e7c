/** How many suggestions help; more would be a list to search. */
const most = 3;

/** The names that are most like the one asked for, the nearest first; none where none is near. */
export function nearest(wanted: string, names: readonly string[]): readonly string[] {
  // Two letters that changed places count twice.
  const limit = wanted.length < 4 ? 1 : Math.max(2, Math.floor(wanted.length / 3));
  const near: { readonly name: string; readonly distance: number }[] = [];
  for (const name of names) {
    if (Math.abs(name.length - wanted.length) > limit && !name.includes(wanted)) continue;
    const distance = name.includes(wanted) ? 1 : editDistance(wanted, name, limit);
    if (distance <= limit) near.push({ name, distance });
  }
  return near
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, most)
    .map(({ name }) => name);
}

/** Letters to insert, delete or change, counted up to `limit`: more than that is limit + 1. */
function editDistance(a: string, b: string, limit: number): number {
  let before = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const change = (before[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const cost = Math.min(change, (before[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      row.push(cost);
      least = Math.min(least, cost);
    }
    if (least > limit) return limit + 1;
    before = row;
  }
  return before[b.length] ?? 0;
}
