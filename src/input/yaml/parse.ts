import type { FieldPath } from '../../cluster/objects.ts';
import { nameCharacter } from '../../base/space-lookalikes.ts';
import { refuse, Refusal, type SyntaxFault } from '../documents/syntax-fault.ts';
import { compose, type Composed } from './compose.ts';
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
    const composed = composeText(text);
    const faults = findRepeatedKeys(composed);
    if (faults.length > 0) return { kind: 'faults', faults };
    return { kind: 'value', value: decode(composed) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { fault } = error;
    return { kind: 'faults', faults: [{ ...fault, offset: Math.min(fault.offset, text.length) }] };
  }
}

/** Characters that go-yaml takes nowhere. */
const forbidden = /[^\t\n\r\u0020-\u007e\u0085\u00a0-\ufffd\u{10000}-\u{10ffff}]|\ufeff/u;

/**
 * A line that is no start of a document but looks like one, which kubectl's reader of lines refuses wherever it stands; or
 * one that holds the end of a line to YAML, so that its second part is there to some readers and not to others.
 */
const oddMarker = /(?<![^\n])---(?:(?![ \t\r\n]|$)|[^\n]*(?:\r(?!\n)|[\u0085\u2028\u2029]))/;

/** What ends a line to go-yaml and is none to the package, or the other way round. */
const oddLineEnd = /[\u2028\u2029]|\r(?=\r\n)/;

function composeText(text: string, isKnown = false): Composed {
  for (const pattern of [forbidden, oddMarker, oddLineEnd]) {
    const found = pattern.exec(text);
    if (!found) continue;
    const [character] = found;
    refuse(
      found.index,
      pattern === oddMarker ? 'text behind "---"' : `the character ${nameCharacter(character.codePointAt(0) ?? 0)}`,
    );
  }
  // kubectl reads line by line, and ends each with a line feed.
  const lines = text.replaceAll(/\r(?!\n)|\u0085/g, '\n');
  return compose(/[\r\n]$/.test(text) ? lines : `${lines}\n`, isKnown);
}

/**
 * Where fields stand in a YAML document: parses the text once, then answers with the offset of a field, or of the
 * nearest field above it that is written down.
 */
export function locateInYaml(text: string): (path: FieldPath, of: PositionOf) => number {
  const composed = composeText(text, true);
  return (path, of) => locate(composed, path, of);
}
