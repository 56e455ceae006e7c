import type { FieldPath } from '../../cluster/objects.ts';
import { Refusal, type SyntaxFault } from '../documents/syntax-fault.ts';
import { compose } from './compose.ts';
import { decode, findRepeatedKeys } from './decode.ts';
import { locate, type PositionOf } from './locate.ts';

export type ParsedValue =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'faults'; readonly faults: readonly SyntaxFault[] };

/**
 * Reads the one YAML document in the text as kubectl does: go-yaml v2 under sigs.k8s.io/yaml. What kubectl takes and kpc
 * refuses is in test/yaml/kubectl.test.ts; no text has another value here than there.
 */
export function parseYamlValue(text: string): ParsedValue {
  try {
    const composed = compose(text);
    const faults = findRepeatedKeys(composed);
    if (faults.length > 0) return { kind: 'faults', faults };
    return { kind: 'value', value: decode(composed) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { fault } = error;
    return { kind: 'faults', faults: [{ ...fault, offset: Math.min(fault.offset, text.length) }] };
  }
}

/**
 * Where fields stand in a YAML document: parses the text once, then answers with the offset of a field, or of the
 * nearest field above it that is written down.
 */
export function locateInYaml(text: string): (path: FieldPath, of: PositionOf) => number {
  const composed = compose(text, true);
  return (path, of) => locate(composed, path, of);
}
