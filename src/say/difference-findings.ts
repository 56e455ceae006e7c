import { describeKernelChange } from '../ask/changes/kernel-change.ts';
import type { SideDiff } from '../ask/diff/diff-sides.ts';
import { reasonWords } from '../ask/diff/reason-words.ts';
import type { ArgumentsOf } from '../base/findings/codes.ts';
import { diagnose, type Finding } from '../base/findings/finding.ts';
import type { Located } from '../kernel/place.ts';
import { formatCount } from '../base/printable.ts';
import { casesOf } from './formats/answer.ts';
import type { TestCase } from './formats/junit.ts';
import type { SaidFinding } from './words/said.ts';

const mostLines = 20;

/** The first lines, and how many more there are. */
export function firstLines(lines: readonly string[]): { readonly what: readonly string[]; readonly more: number } {
  return { what: lines.slice(0, mostLines), more: Math.max(0, lines.length - mostLines) };
}

/** A finding for each Service port that differs, and one for all that belongs to no Service. `golden`: what was to be the same. */
export function differencesFound(
  { servicePorts, base }: SideDiff,
  golden?: ArgumentsOf<'service-differs'>['golden'],
): readonly Finding[] {
  const ofServices = servicePorts.map(({ label: servicePort, change, reasons, kernel, place }) => {
    const lines = reasons.length > 0 ? reasons.map((reason) => reasonWords(reason)) : kernel.map(describeKernelChange);
    return diagnose('service-differs', { servicePort, change, ...firstLines(lines), golden }, place);
  });
  // Where Services differ, the rest follows from them; a golden has to be the same in all.
  const isTold = base.length > 0 && (golden !== undefined || servicePorts.length === 0);
  const ofNone = isTold ? [diagnose('state-differs', { golden, ...firstLines(base.map(describeKernelChange)) })] : [];
  return [...ofServices, ...ofNone];
}

/** A case for each Service port, and for each other finding. What differs fails. */
export function differenceCases(
  ports: readonly { readonly label: string; readonly place?: Located | undefined }[],
  findings: readonly SaidFinding[],
): readonly TestCase[] {
  const failed = new Map(
    findings.flatMap((each): readonly (readonly [string, TestCase])[] => {
      const { code, arguments: details, text, help, place } = each;
      if (code !== 'service-differs' && code !== 'state-differs') return [];
      const name = 'servicePort' in details ? details.servicePort : text;
      const { what, more } = details;
      const rest = more > 0 ? [`and ${formatCount(more)} more`] : [];
      const failure = { title: text, lines: [...what, ...rest, ...(help === undefined ? [] : [help])] };
      return [[name, { name, place, failure }]];
    }),
  );
  const names = new Set([...ports.map(({ label }) => label), ...failed.keys()]);
  const places = new Map(ports.map(({ label, place }) => [label, place]));
  const others = findings.filter(({ code }) => code !== 'service-differs' && code !== 'state-differs');
  return [
    ...Array.from(names, (name) => failed.get(name) ?? { name, place: places.get(name), failure: undefined }),
    ...casesOf(others),
  ];
}
