import type { Shape } from '../../base/json-shape.ts';
import { printableJson } from '../../base/printable.ts';

/**
 * Formats JSON for --output json. The type makes each command print its published shape (src/say/outputs, schemas/).
 */
export function formatJson<T>(_: Shape<T>, value: T): string {
  return `${printableJson(JSON.stringify(value, undefined, 2))}\n`;
}
