import { assignedTexts } from '../cluster/assign-addresses.ts';
import { serviceOf } from '../packet/trace/scene.ts';
import { count, formatCount } from '../base/format-count.ts';
import { groupBy } from '../cluster/group-by.ts';
import { cut, line, reportDiff, type ReportBlock, type ReportLimits, type ReportLine } from '../diff/diff-report.ts';
import type { ServicePortDiff, SideDiff } from '../diff/diff-sides.ts';
import { listFacts } from '../diff/port-facts.ts';
import type { ServiceReason } from '../diff/service-reasons.ts';
import type { Side } from '../diff/compared-side.ts';
import type { Severity, ServiceEffects } from '../packet/equivalence/findings.ts';
import { targetWords } from './equivalence.ts';

/** Both sides of manifests or bundles, and how they differ. */
export interface Review {
  readonly from: Side;
  readonly to: Side;
  readonly diff: SideDiff;
  /** How packets end; undefined if there are too many Services to ask. */
  readonly packets: ServiceEffects | undefined;
}

/** A difference as the review of a change: each Service in two lines, then what becomes of packets; no rules. */
export function reportReview({ from, to, diff, packets }: Review, limits: ReportLimits): readonly ReportBlock[] {
  const whole = reportDiff(diff, limits);
  // What belongs to no Service is all there is to say if no Service differs.
  if (diff.servicePorts.length === 0) return whole;
  const mark = markAssumed([from, to]);
  const services = [...groupBy(diff.servicePorts, ({ label }) => serviceOf(label))];
  const lines = services.slice(0, limits.servicePorts).flatMap(([name, ports]) => serviceLines(name, ports, mark));
  const hidden = services.length - limits.servicePorts;
  const summary = whole.at(-1) ?? [];
  return [
    [
      line('title', 'Services'),
      ...lines,
      ...(hidden > 0 ? [line('more', `and ${formatCount(hidden)} more (--limit 0 shows all)`)] : []),
      ...(lines.some(({ text }) => text.includes('*')) ? [line('reason', '* assumed')] : []),
    ],
    packetLines(packets, to, limits),
    ...reportDiff({ ...diff, servicePorts: [], base: [] }, limits).slice(0, -1),
    summary.map(({ role, text }) => ({ role, text: `${text} --rules shows the rules.` })),
  ];
}

function serviceLines(
  name: string,
  ports: readonly ServicePortDiff[],
  mark: (service: string, text: string) => string,
): readonly ReportLine[] {
  const [only, ...others] = new Set(ports.map(({ reasons }) => wholeChange(reasons)));
  const change = others.length === 0 ? (only ?? 'changed') : 'changed';
  const texts = [...new Set(ports.flatMap((port) => portTexts(port, ports.length > 1)))].map((text) =>
    mark(name, text),
  );
  const [first, second] = halve(texts.toSorted((a, b) => rankOf(a) - rankOf(b)));
  return [line(change, `${name}  ${first}`), ...(second === '' ? [] : [line('reason', second)])];
}

/** Where a text comes in the line of a Service: what it is, then where, then who serves it. */
function rankOf(text: string): number {
  const ranks = [/^type /, /^port /, /^node port /, /^(?!.*\bendpoints?\b)/];
  const found = ranks.findIndex((pattern) => pattern.test(text));
  return found < 0 ? ranks.length : found;
}

/** Whether all of the Service came or went. */
function wholeChange(reasons: readonly ServiceReason[]): 'added' | 'removed' | undefined {
  if (reasons.some(({ kind }) => kind === 'service-added')) return 'added';
  return reasons.some(({ kind }) => kind === 'service-removed') ? 'removed' : undefined;
}

/** What there is to say of a Service port; endpoints are counted. */
function portTexts({ label, reasons, kernel, follows }: ServicePortDiff, isOneOfMany: boolean): readonly string[] {
  const port = label.slice(serviceOf(label).length + 1);
  const isWhole = wholeChange(reasons) !== undefined;
  const prefix = isOneOfMany && port !== '' && !isWhole ? `${port}: ` : '';
  const said = reasons.flatMap(({ kind, text, fields, endpoint }) => {
    if (kind === 'facts') {
      return listFacts(fields.families ?? []).filter(
        (fact) => !/^(?:internal|external)TrafficPolicy Cluster$/.test(fact),
      );
    }
    const isToldElsewhere = endpoint !== undefined || kind === 'service-added' || kind === 'service-removed';
    return isToldElsewhere ? [] : [`${prefix}${text}`];
  });
  const all = [...said, ...(isWhole ? [] : countEndpoints(reasons).map((text) => `${prefix}${text}`))];
  return all.length === 0 && kernel.length + follows.length > 0 ? [`${prefix}its rules`] : all;
}

/** So many endpoints are named; more are counted. */
const namedEndpoints = 2;

/** What becomes of endpoints, unless the number of them has said it. */
function countEndpoints(reasons: readonly ServiceReason[]): readonly string[] {
  const own = reasons.filter(({ endpoint }) => endpoint !== undefined);
  const counts = (['added', 'removed', 'changed'] as const).flatMap((word) => {
    const number = own.filter(({ kind }) => kind === `endpoint-${word}`).length;
    return number > 0 ? [{ word, number }] : [];
  });
  // That there are more, or fewer, says it all.
  const isOneWay = counts.length === 1 && counts[0]?.word !== 'changed';
  if (isOneWay && reasons.some(({ kind }) => kind === 'scaled')) return [];
  if (own.length <= namedEndpoints) return own.map(({ text }) => text);
  return counts.map(({ word, number }) => `${count(number, 'endpoint')} ${word}`);
}

/** The texts in two lines of about the same length; in one if they are short. */
function halve(texts: readonly string[]): readonly [string, string] {
  const all = texts.join(', ');
  if (all.length <= 80) return [all, ''];
  let at = 1;
  while (at < texts.length && texts.slice(0, at + 1).join(', ').length <= all.length / 2) at++;
  return [texts.slice(0, at).join(', '), texts.slice(at).join(', ')];
}

/** Puts a star at what kpc chose. */
function markAssumed(sides: readonly Side[]): (service: string, text: string) => string {
  const chosen = new Map<string, Set<string>>();
  const withPods = new Set<string>();
  for (const { services } of sides) {
    for (const assigned of services?.assumed.services ?? []) {
      const before = chosen.get(assigned.service) ?? [];
      chosen.set(assigned.service, new Set([...before, ...assignedTexts(assigned)]));
    }
    for (const { namespace, service, endpoints } of services?.cluster.servicePorts ?? []) {
      if (endpoints.some(({ status }) => status.assumed)) withPods.add(`${namespace}/${service}`);
    }
  }
  return (service, text) => {
    const own = chosen.get(service);
    const marked = own ? text.replace(/[\da-f][\da-f.:]+/g, (word) => (own.has(word) ? `${word}*` : word)) : text;
    return withPods.has(service) && /\bendpoints?\b/.test(text) ? `${marked}*` : marked;
  };
}

const severityRoles: Readonly<Record<Severity, ReportLine['role']>> = {
  breaks: 'removed',
  changes: 'changed',
  opens: 'added',
  'fails-otherwise': 'reason',
};

/** More kinds of senders than this are all that there are on most nodes, and are not named. */
const mostSenders = 3;

function packetLines(
  packets: ServiceEffects | undefined,
  { services }: Side,
  { lines: limit }: ReportLimits,
): ReportBlock {
  const name = services?.node.name ?? '';
  const where = name === '' ? '' : ` on ${name}${services?.assumed.node ? ' (assumed)' : ''}`;
  const title = line('title', `Packets${where}`);
  if (!packets) {
    return [title, line('reason', 'not compared, for there are many Services: "kpc equivalence" compares them')];
  }
  const { effects, choosesOthers, touchesHairpins } = packets;
  const nothing = choosesOthers ? 'only the choice of endpoints changes' : 'no packet ends otherwise';
  const lines = effects.map(({ target, senders, from, to, services: names, severity, example }) => {
    const whose = names.length === 0 ? '' : ` of ${someOf(names)}`;
    const whom = senders.length > mostSenders ? '' : `, from ${senders.join(', ')}`;
    const text = `${targetWords[target]}${whose} (such as ${example.to})${whom}: ${from} → ${to}`;
    return line(severityRoles[severity], text);
  });
  return [
    title,
    ...(effects.length === 0 ? [line('reason', nothing)] : []),
    ...cut(lines, limit),
    ...(touchesHairpins
      ? [line('more', 'pods that reach themselves through a Service are left out: "kpc equivalence" shows them')]
      : []),
  ];
}

function someOf(names: readonly string[]): string {
  const more = names.length - 3;
  return names.slice(0, 3).join(', ') + (more > 0 ? ` and ${formatCount(more)} more` : '');
}
