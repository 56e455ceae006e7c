import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { folderOf, pathBelow } from '../base/file-names.ts';
import type { TemplateKind } from '../diagnostics/files.ts';
import { groupBy } from '../cluster/group-by.ts';
import { placeAt } from './document.ts';
import type { TextFile } from './text-file.ts';

/** What stands in braces in the templates of a chart; "{{ $labels.job }}" of an alert is none of it. */
const action =
  /\{\{-?\s*(?:\/\*|(?:if|else|end|range|with|define|template|include|block|toYaml|tpl|quote)\b|[$.(]*\.?(?:Values|Release|Chart|Capabilities|Template|Files)\b)/;

/** How a kind of template shows in a line with something wrong. A line is of the first kind that fits. */
const marks: readonly { readonly kind: TemplateKind; readonly pattern: RegExp }[] = [
  { kind: 'helm', pattern: action },
  { kind: 'go', pattern: /\{\{-? ?[.$(][^{}]*\}\}/ },
  { kind: 'jinja', pattern: /\{\{-? ?\w[^{}]*\}\}|\{%/ },
  { kind: 'erb', pattern: /<%/ },
  { kind: 'ytt', pattern: /#@/ },
  { kind: 'kustomize', pattern: /\$\([\w.]+\)/ },
  { kind: 'envsubst', pattern: /\$\{\w+(?::?[-=?+][^{}]*)?\}|\$[A-Za-z_]\w*/ },
  { kind: 'placeholder', pattern: /\$\{[\w.]+\}|%%\w+%%|@[A-Z][A-Z0-9_]*@|__[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*__/ },
];

/** Kinds whose statements have lines of their own, so that any line of the file may be wrong because of one. */
const statements: readonly { readonly kind: TemplateKind; readonly pattern: RegExp }[] = [
  { kind: 'helm', pattern: action },
  { kind: 'jinja', pattern: /^[ \t]*\{%/m },
  { kind: 'erb', pattern: /^[ \t]*<%/m },
  { kind: 'ytt', pattern: /^[ \t]*#@ ?(?:load|data|if|for|def|overlay|end)\b/m },
];

/** Whether a text holds what a template is to fill in. */
export function holdsMark(text: string): boolean {
  return marks.some(({ pattern }) => pattern.test(text));
}

/** A file that is a template, and where that shows. */
export interface Template {
  readonly kind: TemplateKind;
  readonly file: TextFile;
  readonly offset: number;
  /** What is to be filled in there, as it is written. */
  readonly mark: string;
}

/** The template that a file of a chart's templates is; undefined for one that says no more than plain YAML. */
export function findChartTemplate(file: TextFile): Template | undefined {
  const offset = file.origin?.chart === undefined ? -1 : file.text.indexOf('{{');
  return offset < 0 ? undefined : { kind: 'helm', file, offset, mark: '{{' };
}

/**
 * The templates that a file is, to judge by what is wrong with it: one of each kind, and the diagnostics that do not result
 * from them. What stands in braces elsewhere is a matter of what the file configures.
 */
export function findTemplates(
  file: TextFile,
  faults: readonly Diagnostic[],
): { readonly templates: readonly Template[]; readonly others: readonly Diagnostic[] } {
  const found = new Map<TemplateKind, Template>();
  const others: Diagnostic[] = [];
  const hasBadYaml = faults.some(({ code }) => code === 'bad-yaml');
  for (const fault of faults) {
    const template = isError(fault) ? findInLine(file, fault) : undefined;
    if (!template) {
      others.push(fault);
      continue;
    }
    const first = found.get(template.kind);
    if (!first || template.offset < first.offset) found.set(template.kind, template);
  }
  if (hasBadYaml || found.size > 0) {
    for (const { kind, pattern } of statements) {
      const match = pattern.exec(file.text);
      if (match && (hasBadYaml || found.has(kind))) {
        // Whatever else is wrong with it is so because the template is not rendered.
        return { templates: [{ kind, file, offset: match.index, mark: match[0] }], others: [] };
      }
    }
  }
  return { templates: [...found.values()], others };
}

function findInLine(file: TextFile, { place }: Diagnostic): Template | undefined {
  if (!place) return undefined;
  const { line, column } = place.locate();
  const text = file.lineAt(line);
  // A long line holds much else.
  const start = Math.max(0, column - 1 - mostBefore);
  const near = text.slice(start, column - 1 + mostAfter);
  for (const { kind, pattern } of marks) {
    const match = pattern.exec(near);
    if (match) return { kind, file, offset: file.offsetOf(line) + start + match.index, mark: match[0] };
  }
  return undefined;
}

/** How far from what is wrong in a line a template is looked for. */
const mostBefore = 80;
const mostAfter = 200;

/** One error for each chart or folder with templates, and for each template that stands alone. */
export function describeTemplates(
  templates: readonly Template[],
  isLeftOut: boolean,
  into: string,
): readonly { readonly diagnostic: Diagnostic; readonly files: number }[] {
  const groups = groupBy(templates, ({ kind, file: { origin, name } }) => {
    return `${kind} ${origin?.chart ?? origin?.folder ?? name}`;
  });
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first ? [{ diagnostic: describe(first, group.length, isLeftOut, into), files: group.length }] : [];
  });
}

function describe({ kind, file, offset, mark }: Template, count: number, isLeftOut: boolean, into: string): Diagnostic {
  const { chart, chartName, folder } = file.origin ?? {};
  if (kind !== 'helm') {
    const fileWord = isPlain(file.name) ? file.name : 'FILE';
    const details = { kind, count, folder, isLeftOut, mark, fileWord, folderWord: folderOf(fileWord), into };
    return diagnose('unrendered-template', details, placeAt(file, offset));
  }
  const below = chart === undefined || folder === undefined ? '' : pathBelow(folder, chart);
  const details = {
    count,
    chart,
    folder,
    isLeftOut,
    chartWords: [
      ...(chartName === undefined ? [] : [chartName]),
      chart !== undefined && isPlain(chart) ? chart : 'CHART',
    ].join(' '),
    into,
    exclude: below !== '' && isPlain(below) ? below : undefined,
  };
  return diagnose('helm-template', details, placeAt(file, offset));
}

/** Whether a shell takes the word as it is. */
export function isPlain(word: string): boolean {
  return /^[\w./@%+,][\w./@%+,-]{0,199}$/.test(word);
}
