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
  /** Created on demand, because most objects have no errors. */
  #silenced: Set<string> | undefined;
  /** Missing field, without list indexes → index of the diagnostic about the misspelled field. */
  #misspelled: Map<string, number> | undefined;

  readonly #tally: Tally;
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

  /** Drops later diagnostics about a field and the fields below it. For a list item, also drops diagnostics about the list as a whole. */
  silence(path: FieldPath): void {
    this.#silenced ??= new Set();
    this.#silenced.add(path.join('/'));
    if (typeof path.at(-1) === 'number') this.#silenced.add(`${path.slice(0, -1).join('/')}/`);
  }

  add<Code extends FindingCode>(path: FieldPath, code: Code, details: ArgumentsOf<Code>): void {
    if (this.#isSettled(path)) return;
    const isWrong = severityOf(code, details) === 'error';
    if (isWrong ? this.isExplainedBy(path) : this.isDoubtful(path)) return;
    if (!this.#admits(code, details)) return;
    this.diagnostics.push(diagnose(code, this.#asWritten(path, details), this.source.place(path)));
  }

  #asWritten<Details>(path: FieldPath, details: Details): Details {
    const { found } = details as { readonly found?: FoundValue };
    if (found?.type !== 'number' || Number.isSafeInteger(found.value)) return details;
    const written = this.source.written(path);
    return written === undefined ? details : { ...details, found: { ...found, written } };
  }

  addWrong(
    path: FieldPath,
    value: unknown,
    wanted: ValueForm | Omit<ArgumentsOf<'bad-value'>, 'field' | 'found'>,
  ): void {
    const details = typeof wanted === 'string' ? { form: wanted } : wanted;
    this.add(path, 'bad-value', { field: fieldName(path), found: foundOf(value), ...details });
  }

  /** Reports a missing field. `path` leads to the part that lacks the field. */
  addMissing(path: FieldPath, field: RequiredField, isGenerated?: boolean): void {
    this.add([...path, field], 'missing-field', { owner: fieldName(path), field, isGenerated });
  }

  addAtKey<Code extends FindingCode>(path: FieldPath, code: Code, details: ArgumentsOf<Code>): void {
    if (this.#admits(code, details)) this.diagnostics.push(diagnose(code, details, this.source.keyPlace(path)));
  }

  /** Reports whether further diagnostics with this code are only counted, so that their details are not needed. */
  isFull(code: FindingCode, severity: Severity): boolean {
    return this.#tally.isFull(code, severity);
  }

  #admits<Code extends FindingCode>(code: Code, details: ArgumentsOf<Code>): boolean {
    const severity = severityOf(code, details);
    const isAdmitted = this.#tally.admits(code, severity);
    if (!isAdmitted && severity === 'error') this.#hasUnmade = true;
    return isAdmitted;
  }

  addMisspelled(path: FieldPath, meant: FieldPath, details: ArgumentsOf<'unknown-field'>): void {
    this.#misspelled ??= new Map();
    const name = joinFieldNames(meant);
    if (this.#misspelled.has(name)) return;
    const index = this.diagnostics.length;
    this.addAtKey(path, 'unknown-field', details);
    this.#misspelled.set(name, this.diagnostics.length > index ? index : -1);
  }

  /**
   * Reports whether a field's wrong value or misspelled name explains another fault. A misspelled name that explains a fault becomes an
   * error.
   */
  isExplainedBy(path: FieldPath): boolean {
    if (this.#isSettled(path)) return true;
    const index = this.#findMisspelled(path);
    const diagnostic = index === undefined ? undefined : this.diagnostics[index];
    if (index === undefined || diagnostic?.code !== 'unknown-field') return false;
    this.diagnostics[index] = diagnose('unknown-field', { ...diagnostic.arguments, isNeeded: true }, diagnostic.place);
    return true;
  }

  /** Reports whether a field's value is wrong or its name misspelled, so that no other check can rely on the field. */
  isDoubtful(path: FieldPath): boolean {
    return this.#isSettled(path) || this.#findMisspelled(path) !== undefined;
  }

  /** Marks a missing field as required, so that a misspelled name for it is an error. */
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
