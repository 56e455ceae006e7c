import type { ArgumentsOf, DiagnosticCode } from '../diagnostics/codes.ts';
import { diagnose, isError } from '../diagnostics/diagnostic.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
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

  /** Says that enough was said about a field and all below it: nothing more is taken about them. */
  settle(path: FieldPath): void {
    this.#settled ??= new Set();
    this.#settled.add(path.join('/'));
  }

  /** Says what is wrong with a field. */
  add<Code extends DiagnosticCode>(path: FieldPath, code: Code, details: ArgumentsOf<Code>): void {
    if (this.#isSettled(path)) return;
    this.diagnostics.push(diagnose(code, details, this.source.place(path)));
  }

  /** Like add, but at the name of the field. */
  addAtKey<Code extends DiagnosticCode>(path: FieldPath, code: Code, details: ArgumentsOf<Code>): void {
    this.diagnostics.push(diagnose(code, details, this.source.keyPlace(path)));
  }

  #isSettled(path: FieldPath): boolean {
    const settled = this.#settled;
    return settled !== undefined && path.some((_, i) => settled.has(path.slice(0, i + 1).join('/')));
  }
}
