import { printableJson } from '../base/printable.ts';

/** A value as the commands print it for --output json. */
export function formatJson(value: unknown): string {
  return `${printableJson(JSON.stringify(value, undefined, 2))}\n`;
}
