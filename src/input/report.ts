import { isError } from '../cluster/diagnostic.ts';
import type { Diagnostic, Severity } from '../cluster/diagnostic.ts';
import type { FieldPath } from '../cluster/objects.ts';
import type { InputSource } from './document.ts';

/** Collects what is to be said about one object. */
export class Report {
  readonly source: InputSource;
  readonly diagnostics: Diagnostic[] = [];
  /** Made when needed: most objects are right. */
  #settled: Set<string> | undefined;

  constructor(source: InputSource) {
    this.source = source;
  }

  get hasErrors(): boolean {
    return this.diagnostics.some(isError);
  }

  /** Says that enough was said about a field and all below it: no more errors or warnings are taken about them. */
  settle(path: FieldPath): void {
    this.#settled ??= new Set();
    this.#settled.add(path.join('/'));
  }

  error(path: FieldPath, code: string, text: string): void {
    this.#add('error', path, code, text);
  }

  warn(path: FieldPath, code: string, text: string): void {
    this.#add('warning', path, code, text);
  }

  #add(severity: Severity, path: FieldPath, code: string, text: string): void {
    if (this.#isSettled(path)) return;
    this.diagnostics.push({ severity, code, text, place: this.source.place(path) });
  }

  /** Like error or warn, but at the name of the field. */
  atKey(severity: Severity, path: FieldPath, code: string, text: string): void {
    this.diagnostics.push({ severity, code, text, place: this.source.keyPlace(path) });
  }

  #isSettled(path: FieldPath): boolean {
    const settled = this.#settled;
    return settled !== undefined && path.some((_, i) => settled.has(path.slice(0, i + 1).join('/')));
  }
}
