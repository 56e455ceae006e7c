import { count, formatCount } from '../base/printable.ts';
import { reportDiff, type ReportLimits } from '../ask/diff/diff-report.ts';
import type { Severity } from '../ask/equivalence/findings.ts';
import {
  assumedNote,
  listEffects,
  listServices,
  summarizeReview,
  type PacketReview,
  type Review,
} from './diff-review.ts';
import { escapeMarkdown, fold, foldCode, formatMarkdown, kernelLines, listItems } from './formats/markdown.ts';

/** How many ways in which packets fare are not folded, so that a usual change fits one screen. */
const mostEffects = 6;

/**
 * A change as a comment on a pull request: what changes of each Service, and how packets fare, the worst first. The commands that
 * show it, and the objects of the kernel, are folded.
 */
export function formatReviewMarkdown(review: Review, limits: ReportLimits): string {
  const whole = reportDiff(review.diff, limits);
  if (review.diff.servicePorts.length === 0) return formatMarkdown(whole);
  const kernel = whole.flatMap((block) => kernelLines(block));
  const { title, note, effects, gaps } = listEffects(review);
  const shown = effects.length > mostEffects + 1 ? effects.slice(0, mostEffects) : effects;
  const folded = effects.slice(shown.length, limits.lines);
  const left = effects.length - shown.length - folded.length;
  const traces = [...shown, ...folded].map(({ trace }) => trace);
  return [
    `**${escapeMarkdown(summarizeReview(review))}**\n`,
    `### Services\n\n${listItems(serviceItems(review, limits))}`,
    `### ${escapeMarkdown(title)}\n\n${listItems([...asItem(note), ...shown.map(effectItem), ...gaps.map(escapeMarkdown)])}`,
    ...(folded.length === 0
      ? []
      : [
          fold(
            `${count(effects.length - shown.length, 'more difference')} for packets`,
            listItems([...folded.map(effectItem), ...(left > 0 ? [`… and ${formatCount(left)} more`] : [])]),
          ),
        ]),
    ...(traces.length === 0 ? [] : [foldCode('Commands that show this', 'sh', traces)]),
    ...(kernel.length === 0 ? [] : [foldCode('In the kernel', 'diff', kernel)]),
  ].join('\n');
}

function serviceItems(review: Review, limits: ReportLimits): readonly string[] {
  const { services, hidden, hasAssumed } = listServices(review, limits);
  return [
    ...services.map(({ change, name, texts }) => {
      const how = change === 'changed' ? '' : ` ${change}`;
      return `**${escapeMarkdown(name)}**${how}: ${escapeMarkdown(texts.join(', '))}`;
    }),
    ...(hidden > 0 ? [`… and ${formatCount(hidden)} more`] : []),
    ...asItem(hasAssumed ? assumedNote : undefined),
  ];
}

function asItem(text: string | undefined): readonly string[] {
  return text === undefined ? [] : [escapeMarkdown(text)];
}

const severityWords: Readonly<Record<Severity, string>> = {
  breaks: '**worse**: ',
  unknown: '',
  changes: '',
  opens: '**better**: ',
  'fails-otherwise': '',
};

function effectItem({ severity, text }: PacketReview): string {
  return `${severityWords[severity]}${escapeMarkdown(text)}`;
}
