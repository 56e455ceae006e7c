// Files that are not manifests: unrendered templates, and other programs' files.
import type { Into } from '../../base/findings/files.ts';
import { baseName, pathBelow } from '../../base/names.ts';
import { placeAt, type InputDocument } from '../documents/document.ts';
import type { TextFile } from '../documents/text-file.ts';
import { diagnose, isError, type Finding } from '../../base/findings/finding.ts';
import { groupBy } from '../../cluster/grouping.ts';

/** Files of charts and kustomize that are often in the same folder as manifests. */
const otherFiles = /^(?:Chart\.(?:ya?ml|lock)|values[^/]*\.ya?ml|kustomization\.ya?ml)$/;

/**
 * Reports whether a document in a folder's file is clearly another program's: it is not a mapping, or nothing in it marks a Kubernetes
 * object. A marked object without a kind is an error instead.
 */
export function isForeignDocument({ file, value }: InputDocument): boolean {
  if (!file.origin) return false;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return true;
  const { apiVersion, kind } = value as Readonly<Record<string, unknown>>;
  if (isWord(apiVersion) && isWord(kind)) return false;
  if (otherFiles.test(baseName(file.name))) return true;
  const hasShape = Object.hasOwn(value, 'metadata') || Object.hasOwn(value, 'spec') || Object.hasOwn(value, 'items');
  return !hasShape && !(isWord(apiVersion) && Object.hasOwn(value, 'kind'));
}

function isWord(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

export function isForeignText({ origin, text }: TextFile): boolean {
  return origin !== undefined && !holdsObject(text);
}

export function holdsObject(text: string): boolean {
  return /^[ \t-]*["']?(?:apiVersion|kind)["']?[ \t]*:/m.test(text) || /"kind"\s*:/.test(text);
}

/** Returns the tool that renders a chart's or kustomize's own file. */
export function findMaker(name: string): 'helm' | 'kustomize' | undefined {
  const file = baseName(name);
  if (/^kustomization\.ya?ml$/.test(file)) return 'kustomize';
  return otherFiles.test(file) ? 'helm' : undefined;
}

/** Matches a value to be filled in: template brackets, a variable, or a name between two signs. */
const placeholder = /\{\{[^{}]*\}\}|\{%|<%|#@|\$(?:[A-Za-z_]\w*|\([\w.]+\)|\{\w[^{}]*\})|(@|%%|__)[A-Z][A-Z0-9_]*?\1/;

/** Matches a line that begins with a template statement, such as "{{- if .Values.web }}", which can break the YAML anywhere in the file. */
const statement = /^[ \t]*(?:\{\{[^{}\n]*(?:\}\})?|\{%|<%|#@)/m;

export function holdsPlaceholder(text: string): boolean {
  return placeholder.test(text);
}

export interface Template {
  readonly file: TextFile;
  readonly offset: number;
  readonly mark: string;
}

/** Returns the first template statement of a chart's file, unless the file is plain YAML. */
export function findChartTemplate(file: TextFile): Template | undefined {
  const offset = file.origin?.chart === undefined ? -1 : file.text.indexOf('{{');
  return offset < 0 ? undefined : { file, offset, mark: '{{' };
}

/** A placeholder explains an error only if it is within this many characters, because a long line may hold unrelated text. */
const mostBefore = 80;
const mostAfter = 200;

/** Decides whether a file's errors show that the file is a template. `others` are the diagnostics with other causes. */
export function findTemplate(
  file: TextFile,
  faults: readonly Finding[],
): {
  readonly template: Template | undefined;
  readonly others: readonly Finding[];
  /** Whether the template can produce any number of objects, so that its documents cannot be told apart. */
  readonly isWhole: boolean;
} {
  const line = faults.some(({ code }) => code === 'bad-yaml' || code === 'not-closed')
    ? statement.exec(file.text)
    : undefined;
  if (line) return { template: { file, offset: line.index, mark: line[0].trim() }, others: [], isWhole: true };
  const inLines = faults.map((fault) => (isError(fault) ? findInLine(file, fault) : undefined));
  const [template] = inLines.filter((found) => found !== undefined).toSorted((a, b) => a.offset - b.offset);
  return { template, others: faults.filter((_, i) => !inLines[i]), isWhole: false };
}

/** Returns the placeholder that explains a diagnostic. */
export function findInLine(file: TextFile, { place }: Finding): Template | undefined {
  if (!place) return undefined;
  const { line, column } = place.locate();
  const start = Math.max(0, column - 1 - mostBefore);
  const match = placeholder.exec(file.lineAt(line).slice(start, column - 1 + mostAfter));
  return match ? { file, offset: file.offsetOf(line) + start + match.index, mark: match[0] } : undefined;
}

export function describeTemplates(
  templates: readonly Template[],
  isLeftOut: boolean,
  into: Into,
): readonly { readonly diagnostic: Finding; readonly files: number }[] {
  const groups = groupBy(templates, ({ file: { origin, name } }) => origin?.chart ?? origin?.folder ?? name);
  return [...groups.values()].map((group) => {
    return { diagnostic: diagnoseTemplate(group[0], group.length, isLeftOut, into), files: group.length };
  });
}

function diagnoseTemplate({ file, offset, mark }: Template, count: number, isLeftOut: boolean, into: Into): Finding {
  const { chart, chartName, folder } = file.origin ?? {};
  const place = placeAt(file, offset);
  const common = { count, folder, isLeftOut, into };
  if (chart === undefined) return diagnose('unrendered-template', { ...common, mark }, place);
  const below = folder === undefined ? '' : pathBelow(folder, chart);
  const words = ['helm template', ...(chartName === undefined ? [] : [chartName])];
  const exclude = below !== '' && isPlainWord(below) ? below : undefined;
  return diagnose('unrendered-template', { ...common, mark, chart, render: words.join(' '), exclude }, place);
}

/** Reports whether a shell needs no quotes around the word. */
export function isPlainWord(word: string): boolean {
  return /^[\w./@%+,][\w./@%+,-]{0,199}$/.test(word);
}
