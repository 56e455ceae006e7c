import { diagnose, isError } from '../diagnostics/diagnostic.ts';
import { pathBelow } from '../base/file-names.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { groupBy } from '../cluster/group-by.ts';
import { placeAt } from './document.ts';
import type { TextFile } from './text-file.ts';

/** What stands in braces in the templates of a chart; "{{ $labels.job }}" of an alert is none of it. */
const action =
  /\{\{-?\s*(?:\/\*|(?:if|else|end|range|with|define|template|include|block|toYaml|tpl|quote)\b|[$.(]*\.?(?:Values|Release|Chart|Capabilities|Template|Files)\b)/;

/** A file that is a template, and where that shows. */
export interface Template {
  readonly file: TextFile;
  readonly offset: number;
}

/** The template that a file of a chart's templates is; undefined for one that says no more than plain YAML. */
export function findChartTemplate(file: TextFile): Template | undefined {
  const offset = file.origin?.chart === undefined ? -1 : file.text.indexOf('{{');
  return offset < 0 ? undefined : { file, offset };
}

/**
 * The template that a file is, to judge by what is wrong with it: it is not YAML, or what is wrong stands in a line with
 * braces. Else its braces are a matter of what it configures.
 */
export function findTemplate(file: TextFile, faults: readonly Diagnostic[]): Template | undefined {
  const errors = faults.filter(isError);
  if (errors.length === 0) return undefined;
  const match = action.exec(file.text);
  if (!match) return undefined;
  const shows = errors.some(({ code, place }) => {
    return code === 'bad-yaml' || (place !== undefined && action.test(file.lineAt(place.locate().line)));
  });
  return shows ? { file, offset: match.index } : undefined;
}

/** One error for each chart or folder with templates, and for each template that stands alone. */
export function describeTemplates(templates: readonly Template[]): Diagnostic[] {
  const groups = groupBy(templates, ({ file: { origin, name } }) => origin?.chart ?? origin?.folder ?? name);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first ? [describe(first, group.length)] : [];
  });
}

function describe({ file, offset }: Template, count: number): Diagnostic {
  const { chart, folder } = file.origin ?? {};
  const below = chart === undefined || folder === undefined ? '' : pathBelow(folder, chart);
  const details = {
    count,
    chart,
    folder,
    chartWord: chart !== undefined && isPlain(chart) ? chart : 'CHART',
    exclude: below !== '' && isPlain(below) ? below : undefined,
  };
  return diagnose('helm-template', details, placeAt(file, offset));
}

/** Whether a shell takes the word as it is. */
export function isPlain(word: string): boolean {
  return /^[\w./@%+,][\w./@%+,-]{0,199}$/.test(word);
}
