import { type ArgumentsOf, type FindingCode, severityOf } from '../../base/findings/codes.ts';
import type { Severity } from '../../base/findings/rows.ts';
import type { Found } from '../../base/findings/fields.ts';
import { diagnose, isError, Tally, type Finding } from '../../base/findings/finding.ts';
import type { FieldPath, Source } from '../../cluster/objects.ts';
import type { Place } from '../../kernel/place.ts';
import type { InputSource } from '../documents/document.ts';

/** Collects the diagnostics of one object. Its places are those of the object. */
export class Report implements Source {
  readonly source: InputSource;
  readonly diagnostics: Finding[] = [];
  /** Made when needed: most objects are right. */
  #silenced: Set<string> | undefined;
  /** Field that is missing, without the numbers of list items → the diagnostic of the one that is there in its place. */
  #misspelled: Map<string, number> | undefined;

  readonly #tally: Tally;
  /** Whether there are errors that are only counted. */
  #hasUnmade = false;

  /** `tally` counts those of the object's file. */
  constructor(source: InputSource, tally: Tally = new Tally()) {
    this.source = source;
    this.#tally = tally;
  }

  place(path: FieldPath): Place {
    return this.source.place(path);
  }

  get hasErrors(): boolean {
    return this.#hasUnmade || this.diagnostics.some(isError);
  }

  /** Says that enough was said about a field and all below it, and, for an item, about its list as a whole: nothing more is taken about them. */
  silence(path: FieldPath): void {
    this.#silenced ??= new Set();
    this.#silenced.add(path.join('/'));
    if (typeof path.at(-1) === 'number') this.#silenced.add(`${path.slice(0, -1).join('/')}/`);
  }

  /** Says what is wrong with a field, unless it is silenced, or results from a misspelled one. */
  add<Code extends FindingCode>(path: FieldPath, code: Code, details: ArgumentsOf<Code>): void {
    if (this.#isSettled(path)) return;
    const isWrong = severityOf(code, details) === 'error';
    if (isWrong ? this.isExplainedBy(path) : this.isDoubtful(path)) return;
    if (!this.#admits(code, details)) return;
    this.diagnostics.push(diagnose(code, this.#asWritten(path, details), this.source.place(path)));
  }

  /** With a number as the file has it, which JavaScript may round. */
  #asWritten<Details>(path: FieldPath, details: Details): Details {
    const { found } = details as { readonly found?: Found };
    if (found?.type !== 'number' || Number.isSafeInteger(found.value)) return details;
    const written = this.source.written(path);
    return written === undefined ? details : { ...details, found: { ...found, written } };
  }

  /** Reports that an object or a part of it, called `owner`, lacks a field, and what belongs there. */
  addMissing(path: FieldPath, owner: string, expected: string): void {
    this.add(path, 'missing-field', { owner, field: String(path.at(-1)), expected });
  }

  /** Like add, but at the name of the field. */
  addAtKey<Code extends FindingCode>(path: FieldPath, code: Code, details: ArgumentsOf<Code>): void {
    if (this.#admits(code, details)) this.diagnostics.push(diagnose(code, details, this.source.keyPlace(path)));
  }

  /** Whether all others of that code are only counted: what they would say need not be found out. */
  isFull(code: FindingCode, severity: Severity): boolean {
    return this.#tally.isFull(code, severity);
  }

  #admits<Code extends FindingCode>(code: Code, details: ArgumentsOf<Code>): boolean {
    const severity = severityOf(code, details);
    const isAdmitted = this.#tally.admits(code, severity);
    if (!isAdmitted && severity === 'error') this.#hasUnmade = true;
    return isAdmitted;
  }

  /** Says that a field is there under a name that Kubernetes does not know, and not under its own. */
  addMisspelled(path: FieldPath, meant: FieldPath, details: ArgumentsOf<'unknown-field'>): void {
    this.#misspelled ??= new Map();
    const name = nameOf(meant);
    if (this.#misspelled.has(name)) return;
    const index = this.diagnostics.length;
    this.addAtKey(path, 'unknown-field', details);
    this.#misspelled.set(name, this.diagnostics.length > index ? index : -1);
  }

  /**
   * Whether something that is wrong results from what was said of a field: that its value is wrong, or its name misspelled. The
   * object is wrong then, and a misspelled name is an error.
   */
  isExplainedBy(path: FieldPath): boolean {
    if (this.#isSettled(path)) return true;
    const index = this.#findMisspelled(path);
    const diagnostic = index === undefined ? undefined : this.diagnostics[index];
    if (index === undefined || diagnostic?.code !== 'unknown-field') return false;
    this.diagnostics[index] = diagnose('unknown-field', { ...diagnostic.arguments, isNeeded: true }, diagnostic.place);
    return true;
  }

  /** Whether a field's value is wrong or its name misspelled, so that nothing follows from it. */
  isDoubtful(path: FieldPath): boolean {
    return this.#isSettled(path) || this.#findMisspelled(path) !== undefined;
  }

  /** Says that the rules depend on a field that is missing: a misspelled name of it is an error. */
  need(path: FieldPath): void {
    this.isExplainedBy(path);
  }

  /** The index of the diagnostic that says so. */
  #findMisspelled(path: FieldPath): number | undefined {
    const misspelled = this.#misspelled;
    if (!misspelled) return undefined;
    const name = nameOf(path);
    const near = [...misspelled].find(([meant]) => `${name}/`.startsWith(`${meant}/`) || meant.startsWith(`${name}/`));
    return near?.[1];
  }

  #isSettled(path: FieldPath): boolean {
    const silenced = this.#silenced;
    if (silenced === undefined) return false;
    return silenced.has(`${path.join('/')}/`) || path.some((_, i) => silenced.has(path.slice(0, i + 1).join('/')));
  }
}

/** The names on the way to a field. */
function nameOf(path: FieldPath): string {
  return path.filter((step) => typeof step === 'string').join('/');
}
