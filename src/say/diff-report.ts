import { otherParts } from '../base/findings/answers.ts';
import { count, formatCount } from '../base/printable.ts';
import { areSidesSame, type ServicePortDiff, type SideDiff } from '../ask/diff/diff-sides.ts';
import { describeKernelChange } from './changes.ts';
import type { KernelChange } from '../ask/changes/kernel-change.ts';
import { describeGaps } from './gaps.ts';
import { cutBlock, lines, section, type Block } from './lines.ts';
import { otherPartWords } from './words/other-parts.ts';
import { serviceReasonWords } from './service-reasons.ts';

/** How much of each list to print before "and 230 more"; Infinity for all. */
export interface ReportLimits {
  readonly servicePorts: number;
  readonly lines: number;
}

/** A difference in words: Service port by Service port, then objects that belong to no Service, then a summary. */
export function reportDiff(diff: SideDiff, limits: ReportLimits): readonly Block[] {
  const shown = diff.servicePorts.slice(0, limits.servicePorts);
  const hidden = diff.servicePorts.slice(limits.servicePorts);
  return [
    ...shown.map((port) => reportServicePort(port, diff, limits.lines)),
    lines('dim', 2, hidden.length > 0 && `… and ${formatCount(hidden.length)} more: ${summarizeKinds(hidden)}`),
    ...otherParts.map((part) => section(otherPartWords[part].title, diff[part].flatMap(changeLine), limits.lines)),
    lines('summary', 0, summarizeDiff(diff)),
  ];
}

function reportServicePort(
  { label, change, reasons, kernel, follows }: ServicePortDiff,
  { extent, isReadBack }: SideDiff,
  limit: number,
): Block {
  const unchanged = extent === 'all' ? 'nothing changes in the kernel' : 'nothing changes in what was compared';
  const words = reasons.map((reason) => serviceReasonWords(reason));
  return [
    ...lines('heading', 0, `${label} ${change}`),
    ...cutBlock(lines('plain', 2, ...words), limit, 2),
    ...cutBlock(kernel.flatMap(changeLine), limit, 2),
    ...lines('dim', 2, follows.length > 0 && `… and ${count(follows.length, 'chain')} that follow`),
    ...lines('dim', 2, kernel.length + follows.length === 0 && !isReadBack && `… ${unchanged}`),
  ];
}

function changeLine(change: KernelChange): Block {
  return lines(change.change, 1, describeKernelChange(change));
}

/** How much differs, in one sentence. */
export function summarizeDiff(diff: SideDiff): string {
  if (areSidesSame(diff)) return summarizeSame(diff);
  // Two parts may share a name.
  const others = new Map<string, number>();
  for (const part of otherParts) {
    const { what } = otherPartWords[part];
    others.set(what, (others.get(what) ?? 0) + diff[part].length);
  }
  const parts = [
    ...(diff.servicePorts.length > 0 ? [summarizeKinds(diff.servicePorts)] : []),
    ...[...others].flatMap(([what, number]) => (number > 0 ? [`${count(number, 'difference')} in ${what}`] : [])),
  ];
  const missed = describeGaps(diff.gaps).join(', ');
  return `${parts.join('; ')}${missed === '' ? '' : `; not compared: ${missed}`}.${countComments(diff)}`;
}

/** "3 Service ports differ: 2 changed, 1 added", or "1 Service port changed" if all changed alike. */
function summarizeKinds(differing: readonly ServicePortDiff[]): string {
  const ports = count(differing.length, 'Service port');
  const kinds = (['changed', 'added', 'removed'] as const).flatMap((kind) => {
    const number = differing.filter(({ change }) => change === kind).length;
    return number > 0 ? [[kind, number] as const] : [];
  });
  if (kinds.length === 1) return `${ports} ${kinds[0]?.[0]}`;
  return `${ports} differ: ${kinds.map(([kind, number]) => `${formatCount(number)} ${kind}`).join(', ')}`;
}

/** A note on differing comments, which do not affect packets. */
function countComments({ comments }: SideDiff): string {
  if (comments === 0) return '';
  return ` ${count(comments, 'rule')} ${comments === 1 ? 'differs in its comment' : 'differ in their comments'} alone.`;
}

/** Says what was not compared, so that "no difference" does not read as a full comparison. */
function summarizeSame(diff: SideDiff): string {
  const missed = diff.extent === 'all' ? [] : describeGaps(diff.gaps);
  return `${noDifference(missed, countCompared(diff))}${countComments(diff)}`;
}

export function noDifference(notCompared: readonly string[], compared = ''): string {
  if (notCompared.length === 0) return 'No difference.';
  return `No difference in what could be compared${compared}; not compared: ${notCompared.join(', ')}.`;
}

/** Says how few Service ports were compared, if nothing else was. */
function countCompared({ compared }: SideDiff): string {
  if (!compared) return '';
  const { all, withoutEndpoints: lacking } = compared;
  const without = lacking === 0 ? '' : lacking === all ? ', without endpoints' : `, ${lacking} without endpoints`;
  return ` (${count(all, 'Service port')}${without})`;
}
