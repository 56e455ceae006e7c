/**
 * A text that cannot end the line it is printed on: names in a bundle or a dump may hold anything, and what follows a
 * line break would pass for a line of kpc's own.
 */
export function oneLine(text: string): string {
  return text.replace(/[\n\v\f\r\u0085\u2028\u2029]/g, '·');
}
