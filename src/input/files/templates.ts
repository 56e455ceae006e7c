import { diagnose, isError, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { pathBelow } from '../../base/file-names.ts';
import { groupBy } from '../../cluster/group-by.ts';
import { placeAt } from '../documents/document.ts';
import type { TextFile } from '../documents/text-file.ts';

/** What is in braces in the templates of a chart; "{{ $labels.job }}" of an alert does not match. */
const action =
  /\{\{-?\s*(?:\/\*|(?:if|else|end|range|with|define|template|include|block|toYaml|tpl|quote)\b|[$.(]*\.?(?:Values|Release|Chart|Capabilities|Template|Files)\b)/;

/** What templates of other programs fill in: Go's own and Jinja's braces, ERB, ytt, kustomize, envsubst and plain placeholders. */
const placeholder =
  /\{\{-? ?[.$(\w][^{}]*\}\}|\{%|<%|#@|\$\([\w.]+\)|\$\{\w+(?::?[-=?+][^{}]*)?\}|\$[A-Za-z_]\w*|\$\{[\w.]+\}|%%\w+%%|@[A-Z][A-Z0-9_]*@|__[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*__/;

/** Statements that have lines of their own, so that any line of the file may be wrong because of one. */
const statement = /^[ \t]*(?:\{%|<%|#@ ?(?:load|data|if|for|def|overlay|end)\b)/m;

/** How each kind of template shows: in a line with something wrong, and anywhere in such a file. */
const marks: readonly { readonly kind: TemplateKind; readonly inLine: RegExp; readonly anywhere: RegExp }[] = [
  { kind: 'helm', inLine: action, anywhere: action },
  { kind: 'other', inLine: placeholder, anywhere: statement },
];

/** Whether a text holds what a template is to fill in. */
export function holdsMark(text: string): boolean {
  return marks.some(({ inLine }) => inLine.test(text));
}

/** What fills a template in: Helm, or another program. */
type TemplateKind = 'helm' | 'other';

/** A file that is a template, and the place that shows it. */
export interface Template {
  readonly kind: TemplateKind;
  readonly file: TextFile;
  readonly offset: number;
  /** The placeholder, as it is written. */
  readonly mark: string;
}

/** The template that a file of a chart's templates is; undefined for one that says no more than plain YAML. */
export function findChartTemplate(file: TextFile): Template | undefined {
  const offset = file.origin?.chart === undefined ? -1 : file.text.indexOf('{{');
  return offset < 0 ? undefined : { kind: 'helm', file, offset, mark: '{{' };
}

/** How far from what is wrong in a line a template is looked for: a long line holds much else. */
const mostBefore = 80;
const mostAfter = 200;

/**
 * The templates that a file is, to judge by what is wrong with it: one of each kind, and the diagnostics that do not result
 * from them. Braces elsewhere belong to what the file configures.
 */
export function findTemplates(
  file: TextFile,
  faults: readonly Diagnostic[],
): { readonly templates: readonly Template[]; readonly others: readonly Diagnostic[] } {
  const inLines = faults.map((fault) => (isError(fault) ? findInLine(file, fault) : undefined));
  const found = inLines.filter((template) => template !== undefined).sort((a, b) => a.offset - b.offset);
  const hasBadYaml = faults.some(({ code }) => code === 'bad-yaml');
  for (const { kind: own, anywhere } of marks) {
    const match = hasBadYaml || found.some(({ kind }) => kind === own) ? anywhere.exec(file.text) : undefined;
    // Whatever else is wrong with it is so because the template is not rendered.
    if (match) return { templates: [{ kind: own, file, offset: match.index, mark: match[0] }], others: [] };
  }
  return {
    templates: found.filter(({ kind }, i) => found.findIndex((other) => other.kind === kind) === i),
    others: faults.filter((_, i) => !inLines[i]),
  };
}

function findInLine(file: TextFile, { place }: Diagnostic): Template | undefined {
  if (!place) return undefined;
  const { line, column } = place.locate();
  const start = Math.max(0, column - 1 - mostBefore);
  const near = file.lineAt(line).slice(start, column - 1 + mostAfter);
  for (const { kind, inLine } of marks) {
    const match = inLine.exec(near);
    if (match) return { kind, file, offset: file.offsetOf(line) + start + match.index, mark: match[0] };
  }
  return undefined;
}

/** One error for each chart or folder with templates, and for each single template. */
export function describeTemplates(
  templates: readonly Template[],
  isLeftOut: boolean,
  into: string,
): readonly { readonly diagnostic: Diagnostic; readonly files: number }[] {
  const groups = groupBy(templates, ({ kind, file: { origin, name } }) => {
    return `${kind} ${origin?.chart ?? origin?.folder ?? name}`;
  });
  return [...groups.values()].map((group) => {
    return { diagnostic: describe(group[0], group.length, isLeftOut, into), files: group.length };
  });
}

function describe({ kind, file, offset, mark }: Template, count: number, isLeftOut: boolean, into: string): Diagnostic {
  const { chart, chartName, folder } = file.origin ?? {};
  const place = placeAt(file, offset);
  const common = { count, folder, isLeftOut, into };
  if (kind !== 'helm') {
    // envsubst fills in $NAME and ${NAME}, and leaves all else as it is.
    const isVariable = /^\$(?:\w+|\{\w+\})$/.test(mark);
    const render = isVariable ? `envsubst < ${isPlain(file.name) ? file.name : 'FILE'}` : undefined;
    return diagnose('unrendered-template', { ...common, mark, render }, place);
  }
  const below = chart === undefined || folder === undefined ? '' : pathBelow(folder, chart);
  const chartFolder = chart !== undefined && isPlain(chart) ? chart : 'CHART';
  const render = ['helm template', ...(chartName === undefined ? [] : [chartName]), chartFolder].join(' ');
  const exclude = below !== '' && isPlain(below) ? below : undefined;
  return diagnose('unrendered-template', { ...common, chart, render, exclude }, place);
}

/** Whether a shell takes the word as it is. */
export function isPlain(word: string): boolean {
  return /^[\w./@%+,][\w./@%+,-]{0,199}$/.test(word);
}
