import { findConflict } from '../../base/odd-texts.ts';
import { diagnose, placeAtLine, type Finding } from '../../base/findings/finding.ts';
import type { Location } from '../../kernel/place.ts';

/** A stretch of a file: offsets into its text, `end` not included. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Where a file was found that was not named itself. */
export interface FolderOrigin {
  /** The folder that was named. */
  readonly folder: string;
  /** The Helm chart whose template the file is, by its folder. */
  readonly chart: string | undefined;
  /** What that chart calls itself. */
  readonly chartName?: string | undefined;
}

/** A list of all lines would cost more than a text of empty ones. */
const linesPerMark = 64;

/** The text of one input file, and where its lines start. `name` is what diagnostics call it: "-" for stdin. */
export class TextFile {
  readonly name: string;
  /** Without the byte order mark that it may begin with. */
  readonly text: string;
  readonly hasByteOrderMark: boolean;
  /** Undefined for a file that was named itself, and for stdin. */
  readonly origin: FolderOrigin | undefined;
  /** Where every so many lines start. */
  #marks: readonly number[] | undefined;

  constructor(name: string, text: string, origin?: FolderOrigin) {
    this.name = name;
    this.hasByteOrderMark = text.startsWith('\uFEFF');
    this.text = this.hasByteOrderMark ? text.slice(1) : text;
    this.origin = origin;
  }

  /** Line and column of an offset, both from 1; columns count UTF-16 units, as editors do. */
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

  /** The offset of the first character of a line, counted from 1. */
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

  /** A line without its end, counted from 1; '' if there is none. */
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

/** What is wrong with a text in which Git marks a merge conflict; undefined if it marks none. `file` is its name. */
export function describeConflict(file: string, text: string): Finding | undefined {
  const line = findConflict(text);
  return line === undefined ? undefined : diagnose('merge-conflict', {}, placeAtLine(file, line));
}

/** Files that could be read, and what is wrong with the others. */
export interface LoadedFiles {
  readonly files: readonly TextFile[];
  readonly diagnostics: readonly Finding[];
  /** What is wrong with files that are not named themselves, but found in folders. */
  readonly unreadable?: readonly Finding[] | undefined;
}
