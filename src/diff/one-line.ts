import { printable } from '../base/printable.ts';

/**
 * A text that cannot end the line it is printed on, nor act on the terminal or the CI that shows it: names in a bundle or a
 * dump may hold anything, and what follows a line break would pass for a line of kpc's own.
 */
export function oneLine(text: string): string {
  return printable(text);
}
