import { findConflict } from '../../base/odd-texts.ts';
import { diagnose, placeAtLine, type Finding } from '../../base/findings/finding.ts';
import type { Location } from '../../kernel/place.ts';

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The origin of a file that the user did not name. */
export interface FolderOrigin {
  readonly folder: string;
  /** The folder of the Helm chart for which this file is a template. */
  readonly chart: string | undefined;
  readonly chartName?: string | undefined;
}

/** Mark one line in 64, because marks for every line would take more memory than a text with many empty lines. */
const linesPerMark = 64;

/** `name` is the file's name in diagnostics; "-" for stdin. */
export class TextFile {
  readonly name: string;
  /** Without a leading byte order mark. */
  readonly text: string;
  readonly hasByteOrderMark: boolean;
  readonly origin: FolderOrigin | undefined;
  #marks: readonly number[] | undefined;

  constructor(name: string, text: string, origin?: FolderOrigin) {
    this.name = name;
    this.hasByteOrderMark = text.startsWith('\uFEFF');
    this.text = this.hasByteOrderMark ? text.slice(1) : text;
    this.origin = origin;
  }

  /** Returns line and column of an offset, both from 1. Columns count UTF-16 units, as editors do. */
  locationAt(offset: number): Location {
    const marks = this.#marksOf();
    let low = 0;
    let high = marks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((marks[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    let [line, start] = [low * linesPerMark + 1, marks[low] ?? 0];
    for (let end = this.text.indexOf('\n', start); end >= 0 && end < offset; end = this.text.indexOf('\n', start)) {
      start = end + 1;
      line++;
    }
    return { file: this.name, line, column: offset - start + 1 };
  }

  offsetOf(line: number): number {
    const before = Math.floor((line - 1) / linesPerMark);
    let start = this.#marksOf()[before] ?? this.text.length;
    for (let at = before * linesPerMark + 1; at < line; at++) {
      const end = this.text.indexOf('\n', start);
      if (end < 0) return this.text.length;
      start = end + 1;
    }
    return start;
  }

  /** Returns a line without its end, counted from 1; '' if there is none. */
  lineAt(line: number): string {
    if (line < 1) return '';
    const start = this.offsetOf(line);
    const end = this.text.indexOf('\n', start);
    return this.text.slice(start, end < 0 ? this.text.length : end).replace(/\r$/, '');
  }

  #marksOf(): readonly number[] {
    if (this.#marks) return this.#marks;
    const marks = [0];
    let line = 1;
    for (let at = this.text.indexOf('\n'); at >= 0; at = this.text.indexOf('\n', at + 1)) {
      if (line++ % linesPerMark === 0) marks.push(at + 1);
    }
    this.#marks = marks;
    return marks;
  }
}

export function diagnoseMergeConflict(file: string, text: string): Finding | undefined {
  const line = findConflict(text);
  return line === undefined ? undefined : diagnose('merge-conflict', {}, placeAtLine(file, line));
}

/** A file that a kustomization uses to make its changes. `digest` is undefined if kpc does not read the file, for example as too large. */
export interface NamedFile {
  readonly name: string;
  readonly digest: string | undefined;
}

export interface LoadedFiles {
  readonly files: readonly TextFile[];
  readonly named?: readonly NamedFile[] | undefined;
  readonly diagnostics: readonly Finding[];
  /** Problems with files that were found in folders, not named. */
  readonly unreadable?: readonly Finding[] | undefined;
}
