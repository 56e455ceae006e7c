import type { FieldPath } from '../cluster/objects.ts';
import type { Location, Place } from '../kernel/origin.ts';
import type { InputSource } from './document.ts';
import type { TextFile } from './text-file.ts';

/** A text inside a document: the value of one of its fields. */
export interface EmbeddedText {
  readonly file: TextFile;
  readonly source: InputSource;
  readonly path: FieldPath;
  readonly text: string;
}

/**
 * Turns a place in an embedded text into one in the file around it. A literal block of YAML ("|") has the same lines
 * there, further to the right; for texts written in another way the field is as near as it gets.
 */
export function outerPlace(embedded: EmbeddedText, inner: Place): Place {
  const field = embedded.source.place(embedded.path);
  return {
    file: field.file,
    locate: () => moveLocation(embedded, field.locate(), inner.locate()),
  };
}

/** A source for a document of the embedded text. */
export function outerSource(embedded: EmbeddedText, inner: InputSource): InputSource {
  return {
    place: (path) => outerPlace(embedded, inner.place(path)),
    keyPlace: (path) => outerPlace(embedded, inner.keyPlace(path)),
  };
}

function moveLocation({ file, text }: EmbeddedText, field: Location, inner: Location): Location {
  if (file.lineAt(field.line).charAt(field.column - 1) !== '|') return field;
  const lines = text.split('\n');
  const sample = lines.findIndex((line) => line.trim() !== '');
  const written = file.lineAt(field.line + 1 + sample);
  const indent = sample < 0 ? 0 : written.length - (lines[sample] ?? '').length;
  return { file: field.file, line: field.line + inner.line, column: inner.column + Math.max(0, indent) };
}
