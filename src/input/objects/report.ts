import { type ArgumentsOf, type FindingCode, severityOf } from '../../base/findings/codes.ts';
import type { Severity } from '../../base/findings/rows.ts';
import { foundOf, type FoundValue, type RequiredField, type ValueForm } from '../../base/findings/fields.ts';
import { fieldName } from '../../base/printable.ts';
import { diagnose, isError, Tally, type Finding } from '../../base/findings/finding.ts';
import type { FieldPath, ObjectSource } from '../../cluster/objects.ts';
import type { Place } from '../../kernel/place.ts';
import type { InputSource } from '../documents/document.ts';

export class Report implements ObjectSource {
  readonly source: InputSource;
  readonly diagnostics: Finding[] = [];
  /** Created when needed: most objects are right. */
  #silenced: Set<string> | undefined;
  /** Missing field, without list indexes → index of the diagnostic about the misspelled one. */
  #misspelled: Map<string, number> | undefined;

  readonly #tally: Tally;
  /** Whether some errors were only counted. */
  #hasUnmade = false;

  /** `tally` counts the diagnostics of the object's file. */
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

  /** Drops later diagnostics about a field and all below it and, for a list item, about the list as a whole. */
  silence(path: FieldPath): void {
    this.#silenced ??= new Set();
    this.#silenced.add(path.join('/'));
    if (typeof path.at(-1) === 'number') this.#silenced.add(`${path.slice(0, -1).join('/')}/`);
  }

  /** Reports a field, unless it is silenced or explained by a misspelled one. */
  add<Code extends FindingCode>(path: FieldPath, code: Code, details: ArgumentsOf<Code>): void {
    if (this.#isSettled(path)) return;
    const isWrong = severityOf(code, details) === 'error';
    if (isWrong ? this.isExplainedBy(path) : this.isDoubtful(path)) return;
    if (!this.#admits(code, details)) return;
    this.diagnostics.push(diagnose(code, this.#asWritten(path, details), this.source.place(path)));
  }

  /** Gives a number as the file has it: JavaScript may round it. */
  #asWritten<Details>(path: FieldPath, details: Details): Details {
    const { found } = details as { readonly found?: FoundValue };
    if (found?.type !== 'number' || Number.isSafeInteger(found.value)) return details;
    const written = this.source.written(path);
    return written === undefined ? details : { ...details, found: { ...found, written } };
  }

  /** Reports a value that is not of the form, unless its field is settled. */
  addWrong(
    path: FieldPath,
    value: unknown,
    wanted: ValueForm | Omit<ArgumentsOf<'bad-value'>, 'field' | 'found'>,
  ): void {
    const details = typeof wanted === 'string' ? { form: wanted } : wanted;
    this.add(path, 'bad-value', { field: fieldName(path), found: foundOf(value), ...details });
  }

  /** `path`: of the part that lacks the field. */
  addMissing(path: FieldPath, field: RequiredField, isGenerated?: boolean): void {
    this.add([...path, field], 'missing-field', { owner: fieldName(path), field, isGenerated });
  }

  /** Like add, but at the field's name. */
  addAtKey<Code extends FindingCode>(path: FieldPath, code: Code, details: ArgumentsOf<Code>): void {
    if (this.#admits(code, details)) this.diagnostics.push(diagnose(code, details, this.source.keyPlace(path)));
  }

  /** Whether further diagnostics of this code are only counted, so that their details are not needed. */
  isFull(code: FindingCode, severity: Severity): boolean {
    return this.#tally.isFull(code, severity);
  }

  #admits<Code extends FindingCode>(code: Code, details: ArgumentsOf<Code>): boolean {
    const severity = severityOf(code, details);
    const isAdmitted = this.#tally.admits(code, severity);
    if (!isAdmitted && severity === 'error') this.#hasUnmade = true;
    return isAdmitted;
  }

  /** Records that a field is present only under a misspelled name. */
  addMisspelled(path: FieldPath, meant: FieldPath, details: ArgumentsOf<'unknown-field'>): void {
    this.#misspelled ??= new Map();
    const name = joinFieldNames(meant);
    if (this.#misspelled.has(name)) return;
    const index = this.diagnostics.length;
    this.addAtKey(path, 'unknown-field', details);
    this.#misspelled.set(name, this.diagnostics.length > index ? index : -1);
  }

  /** Whether the reported value or misspelled name of a field explains another fault. If so, a misspelled name becomes an error. */
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

  /** Marks a missing field as required: a misspelled name of it is an error. */
  need(path: FieldPath): void {
    this.isExplainedBy(path);
  }

  #findMisspelled(path: FieldPath): number | undefined {
    const misspelled = this.#misspelled;
    if (!misspelled) return undefined;
    const name = joinFieldNames(path);
    const near = [...misspelled].find(([meant]) => `${name}/`.startsWith(`${meant}/`) || meant.startsWith(`${name}/`));
    return near?.[1];
  }

  #isSettled(path: FieldPath): boolean {
    const silenced = this.#silenced;
    if (silenced === undefined) return false;
    return silenced.has(`${path.join('/')}/`) || path.some((_, i) => silenced.has(path.slice(0, i + 1).join('/')));
  }
}

function joinFieldNames(path: FieldPath): string {
  return path.filter((step) => typeof step === 'string').join('/');
}
