import { assignedTexts } from '../cluster/assign-addresses.ts';
import { count, formatCount, percent, joinWords } from '../base/printable.ts';
import { nameSome } from './words/rows.ts';
import { groupBy, uniqueBy } from '../cluster/grouping.ts';
import { serviceName } from '../cluster/model.ts';
import { fullName } from '../cluster/objects.ts';
import {
  beyondWords,
  reportDiff,
  summarizeDiff,
  type ReportLimits,
  describeGaps,
  sideChangeTexts,
} from './diff-report.ts';
import { unaskedPods } from '../ask/diff/beyond-kernel.ts';
import { formatMarkdown } from './formats/markdown.ts';
import { cutBlock, lines, type Block, type Line } from './lines.ts';
import { areSidesSame, type ServicePortDiff, type SideDiff } from '../ask/diff/diff-sides.ts';
import { assumedNote, listFacts, type WriteValue, serviceReasonWords } from './port-facts.ts';
import type { ServiceReason } from '../ask/diff/service-reasons.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { Effect, EffectSender, EndpointShares, EffectSeverity } from '../ask/equivalence/effects.ts';
import type { ServiceEffect, ServiceEffects } from '../ask/equivalence/findings.ts';
import type { ArgumentsOf } from '../base/findings/codes.ts';
import { unnamedMode } from './grounds.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { senderTexts } from './way/sender.ts';
import { fateWords, lackWords, sourcesWords } from './way/fate.ts';
import { nothingLacks, unknownWords } from './words/answers.ts';
import { targetWords, traceEffect, type TraceWords } from './equivalence.ts';

export interface Review {
  readonly from: Snapshot;
  readonly to: Snapshot;
  readonly diff: SideDiff;
  /** What happens to packets. Undefined if there are too many Services to trace packets to. */
  readonly packets: ServiceEffects | undefined;
  readonly trace: TraceWords;
}

/** Formats the review as a comment on a pull request. Changes to the kernel are folded. */
export function formatReviewMarkdown(review: Review, limits: ReportLimits, beside: readonly Block[] = []): string {
  const whole = reportDiff(review.diff, limits);
  const sides = lines('plain', 0, ...sideChangeTexts(review));
  if (areSidesSame(review.diff)) return formatMarkdown([sides, ...whole, ...beside]);
  const summary = lines('summary', 0, summarizeDiff(review.diff));
  const services = serviceLines(review, limits, Infinity);
  const packets = packetLines(review, limits, limits.lines);
  return formatMarkdown([sides, summary, services, packets, ...beside], whole);
}

/** Reviews a change: describes each Service in two lines, then what happens to packets. Leaves out the rules of Services. */
export function reportReview(review: Review, limits: ReportLimits): readonly Block[] {
  const { diff, trace } = review;
  const sides = lines('plain', 0, ...sideChangeTexts(review));
  if (areSidesSame(diff)) return [sides, ...reportDiff(diff, limits)];
  const summary = summarizeDiff(diff);
  // If Services differ, they explain why packets are treated differently, so objects that belong to no Service are left out.
  const isOfServices = diff.servicePorts.length > 0;
  const others = reportDiff({ ...diff, servicePorts: [], ...(isOfServices ? { base: [] } : {}) }, limits).slice(0, -1);
  return [
    sides,
    ...(isOfServices ? [serviceLines(review, limits, longestLine)] : others),
    packetLines(review, limits, 1),
    ...(isOfServices ? others : []),
    lines('summary', 0, trace === 'no-command' ? summary : `${summary} --rules shows the rules.`),
  ];
}

/** Lines with more characters than this are split in two. */
const longestLine = 80;

function serviceLines({ from, to, diff }: Review, { servicePorts: limit }: ReportLimits, longest: number): Block {
  const marksOf = findMarks([from, to]);
  const all = [...groupBy(diff.servicePorts, ({ service }) => service)];
  const shown = all.slice(0, limit).flatMap(([name, ports]) => reviewService(name, ports, marksOf(name), longest));
  const hidden = all.length - limit;
  return [
    ...lines('heading', 0, all.length > 0 && 'Services'),
    ...shown,
    ...lines('dim', 2, hidden > 0 && `… and ${formatCount(hidden)} more (--limit 0 shows all)`),
    ...lines('plain', 2, shown.some(({ text }) => text.includes('*')) && assumedNote),
  ];
}

/** Lists the changes of a Service, with the most important change first. */
function reviewService(
  name: string,
  ports: readonly ServicePortDiff[],
  { write, hasAssumedPods }: Marks,
  longest: number,
): Block {
  const [only, ...others] = new Set(ports.map(({ reasons }) => wholeChange(reasons)));
  const role = others.length === 0 ? (only ?? 'changed') : 'changed';
  const said = ports
    .flatMap((port) => servicePortWords(port, ports.length > 1, write))
    .map(({ rank, text }) => ({ rank, text: rank === 'endpoints' && hasAssumedPods ? `${text}*` : text }));
  const distinct = uniqueBy(said, ({ text }) => text);
  const sorted = distinct.toSorted((a, b) => ranks.indexOf(a.rank) - ranks.indexOf(b.rank));
  const [text, rest] = halve(
    sorted.map((each) => each.text),
    longest,
  );
  return [{ role, depth: 1, name, text }, ...lines('plain', 2, rest)];
}

/** The order of the facts in a Service's line: first what the Service is, then where it is, then which endpoints serve it. */
const ranks = ['type', 'port', 'node-port', 'other', 'endpoints'] as const;

interface Ranked {
  readonly rank: (typeof ranks)[number];
  readonly text: string;
}

function wholeChange(reasons: readonly ServiceReason[]): 'added' | 'removed' | undefined {
  if (reasons.some(({ kind }) => kind === 'service-added')) return 'added';
  return reasons.some(({ kind }) => kind === 'service-removed') ? 'removed' : undefined;
}

/** Describes the differences of a Service port, naming only a few of its endpoints. */
function servicePortWords(diff: ServicePortDiff, isOneOfMany: boolean, writeOf: Marks['write']): readonly Ranked[] {
  const { service, label, reasons, kernel, follows } = diff;
  const isWhole = wholeChange(reasons) !== undefined;
  const port = label.slice(service.length + 1);
  const write: WriteValue = (value) => writeOf(value, port);
  const prefix = isOneOfMany && port !== '' && !isWhole ? `${port}: ` : '';
  const named = ({ rank, text }: Ranked): Ranked =>
    prefix === '' ? { rank, text } : { rank: rank === 'endpoints' ? rank : 'other', text: prefix + text };
  const kind = reasons.find(decidesAll)?.kind;
  // For an added or removed port, its name and number are enough, because all its other properties are added or removed with it.
  if (!isWhole && (kind === 'port-added' || kind === 'port-removed')) {
    const facts = reasons.flatMap((reason) =>
      reason.kind === 'facts' ? listFacts(reason.ports, undefined, write) : [],
    );
    const what = facts.filter((fact) => fact.kind === 'port' || fact.kind === 'node-port').map(({ text }) => text);
    return [
      {
        rank: 'port',
        text: `${port === '' ? '' : `${port} `}${kind === 'port-added' ? 'added' : 'removed'}: ${what.join(', ')}`,
      },
    ];
  }
  const said = [
    // The facts of a whole port are mostly the same for all ports, so they do not name the port.
    ...reasons
      .filter((reason) => kind === undefined || reason.kind !== 'facts')
      .flatMap((reason) => rankReason(reason, write).map((each) => (reason.kind === 'facts' ? each : named(each)))),
    ...(isWhole || kind !== undefined ? [] : countEndpoints(reasons).map(named)),
  ];
  const hasRules = kernel.length + follows.length > 0;
  return said.length === 0 && hasRules ? [named({ rank: 'other', text: 'its rules' })] : said;
}

function decidesAll({ kind }: ServiceReason): boolean {
  return kind === 'programmed' || kind === 'port-added' || kind === 'port-removed';
}

/** Describes a reason in words. Returns nothing if another part of the line implies the reason. */
function rankReason(reason: ServiceReason, write: WriteValue): readonly Ranked[] {
  switch (reason.kind) {
    case 'service-added':
    case 'service-removed':
    case 'endpoint-added':
    case 'endpoint-removed':
    case 'endpoint-changed':
      return [];
    case 'facts':
      return listFacts(reason.ports, reason.type, write).flatMap(({ kind, text, isUsual }) => {
        return isUsual ? [] : [{ rank: kind === 'address' || kind === 'policy' ? 'other' : kind, text }];
      });
    default:
      return [{ rank: rankOfReason(reason), text: serviceReasonWords(reason, write) }];
  }
}

function rankOfReason(reason: ServiceReason): Ranked['rank'] {
  switch (reason.kind) {
    case 'field':
      return reason.field === 'type' || reason.field === 'port' ? reason.field : 'other';
    case 'programmed':
      return reason.from === 'external-name' ? 'type' : 'other';
    case 'port-added':
    case 'port-removed':
    case 'port-renamed':
      return 'port';
    case 'node-port':
      return 'node-port';
    case 'scaled':
      return 'endpoints';
    default:
      return 'other';
  }
}

const namedEndpoints = 2;

/** Names and counts added, removed and changed endpoints. */
function countEndpoints(reasons: readonly ServiceReason[]): readonly Ranked[] {
  const own = reasons.filter((reason) => 'endpoint' in reason);
  const counts = (['added', 'removed', 'changed'] as const).flatMap((word) => {
    const names = own.flatMap(({ kind, endpoint }) => (kind === `endpoint-${word}` ? endpoint : []));
    return names.length > 0 ? [{ word, names }] : [];
  });
  const texts =
    own.length <= namedEndpoints
      ? own.map((reason) => serviceReasonWords(reason))
      : counts.map(({ word, names }) => `${count(names.length, 'endpoint')} ${word}: ${nameSome(names)}`);
  return texts.map((text) => ({ rank: 'endpoints', text }));
}

/** Splits texts into two lines of similar length. Returns one line if it is not longer than `longest`. */
function halve(texts: readonly string[], longest: number): readonly [string, string] {
  const all = texts.join(', ');
  if (all.length <= longest) return [all, ''];
  let at = 1;
  while (at < texts.length && texts.slice(0, at + 1).join(', ').length <= all.length / 2) at++;
  return [texts.slice(0, at).join(', '), texts.slice(at).join(', ')];
}

interface Marks {
  /** Adds a star to a port's value if kpc chose this value. */
  readonly write: (value: string, port: string) => string;
  readonly hasAssumedPods: boolean;
}

function findMarks(sides: readonly Snapshot[]): (service: string) => Marks {
  const assumed = sides.flatMap(({ assumed: values }) => values?.services ?? []);
  const chosen = groupBy(assumed, ({ service }) => service);
  const ports = sides.flatMap(({ cluster }) => cluster?.servicePorts ?? []);
  const inDns = groupBy(sides.flatMap(assumedInDns), ({ service }) => service);
  const withPods = new Set([
    ...ports.filter(({ endpoints }) => endpoints.some(({ status }) => status.assumed)).map(serviceName),
    ...inDns.keys(),
  ]);
  return (service) => {
    const own = new Set((inDns.get(service) ?? []).map(({ text }) => text));
    const isChosen = (value: string, port: string): boolean =>
      own.has(value) || (chosen.get(service) ?? []).some((each) => assignedTexts(each, port).includes(value));
    return {
      write: (value, port) => (isChosen(value, port) ? `${value}*` : value),
      hasAssumedPods: withPods.has(service),
    };
  };
}

/** Lists the DNS answers for headless Services with addresses of assumed Pods, in the form that `diffNames` gives them. */
function assumedInDns({ cluster, assumed }: Snapshot) {
  return (cluster?.services ?? []).flatMap((each) =>
    each.headlessEndpoints
      .filter(({ address }) => assumed?.pods.has(address))
      .flatMap(({ address, hostname }) => (hostname === undefined ? [address] : [address, `${hostname} ${address}`]))
      .map((text) => ({ service: fullName(each), text })),
  );
}

const severityRoles: Readonly<Record<EffectSeverity, Line['role']>> = {
  breaks: 'worse',
  unknown: 'other',
  changes: 'other',
  opens: 'better',
  'fails-otherwise': 'plain',
};

/** Describes what happens to packets, with the worst effects first. The first differences come with commands that show them. */
function packetLines(review: Review, { lines: limit }: ReportLimits, commands: number): Block {
  const { packets, diff, to } = review;
  const name = to.nodeName;
  const where = name === '' ? '' : ` on ${name}${to.assumed?.node ? ' (assumed)' : ''}`;
  const mode = to.assumed?.mode ? ` in ${modeFacts[to.mode].title} ${unnamedMode}` : '';
  const unknown = unknownWords(lacksOf(review, review));
  const isOnAny = to.kind === 'manifests' && to.anyOf !== undefined;
  const effects = (packets?.effects ?? []).filter(({ severity }) => severity !== 'fails-otherwise');
  const mixed = mixedServices([review.from, to]);
  const shown = effects.flatMap((each) => lines(severityRoles[each.severity], 1, effectWords(each, review, mixed)));
  const isAll = unknown.length === 0 && diff.gaps.length === 0;
  const none = packets?.effects.length === 0 ? (isAll ? noneDiffers : noneKnown) : onlyFailures;
  return [
    ...lines('heading', 0, `Packets${where}${mode}`),
    ...lines('plain', 2, packets && effects.length === 0 && none),
    ...cutBlock(shown, limit, 2, ' (--limit 0 shows all)'),
    ...lines(
      'command',
      2,
      ...effects
        .filter(({ shownBy }) => shownBy)
        .slice(0, review.trace === 'no-command' ? 0 : commands)
        .map((each) => traceEffect(review.trace, each)),
    ),
    ...lines('dim', 2, ...uncomparedPackets(review).map((what) => `… not compared: ${what}`)),
    ...lines(
      'dim',
      2,
      ...unknown.map((what) => `… ${what}: "kpc equivalence" ${isOnAny ? 'asks each node' : 'says why'}`),
    ),
  ];
}

function effectWords(effect: ServiceEffect, { from, to, diff }: Review, mixed: ReadonlySet<string>): string {
  const { target, senders, services: names, asked, example, lacks } = effect;
  const [service = '', ...others] = names;
  const added = others.length > 0 ? [] : addedTo(service, diff);
  const isMixed = names.some((each) => mixed.has(each));
  const sent = asked.map((each) => sentWords(each.example, isMixed));
  const what = others.length > 0 ? `such as ${sent[0] ?? ''}` : nameSome(sent, mostSent);
  const whose = names.length === 0 ? '' : ` of ${nameSome(names)}`;
  const at = example.node === from.nodeName || example.node === to.nodeName ? '' : `, on ${example.node}`;
  const who = joinWords(senderTexts(senders, (kind) => shortSenders[kind]));
  const why = lackWords(lacks);
  return `${targetWords[target]}${whose} (${what})${at}, from ${who}: ${effectEndWords(effect, added)}${why === undefined ? '' : ` (${why})`}`;
}

function uncomparedPackets({ packets, diff, from, to }: Review): readonly string[] {
  if (areSidesSame(diff)) return [];
  if (!packets)
    return ['packets, because there are too many Services to trace here: use "kpc equivalence" to compare packets'];
  const said = diff.gaps.flatMap(({ beyond }) => beyond ?? []);
  return [
    ...unaskedPods(from, to, said).map(beyondWords),
    ...(packets.touchesHairpins ? ['pods that reach themselves through a Service: "kpc equivalence" shows them'] : []),
  ];
}

/** Returns what a diff leaves unknown. If `review` is given, this includes what is unknown about packets. */
export function lacksOf(sides: Pick<Review, 'from' | 'to' | 'diff'>, review?: Review): ArgumentsOf<'answer-lacks'> {
  const notCompared = [...describeGaps(sides.diff.gaps), ...(review ? uncomparedPackets(review) : [])];
  const { unknown, unknownOnOne } = review?.packets ?? nothingLacks;
  return { notCompared, unknown, unknownOnOne, reasons: [], changed: sideChangeTexts(sides) };
}

const mostSent = 3;

/** Returns the Services that have ports with different protocols. */
function mixedServices(sides: readonly Snapshot[]): ReadonlySet<string> {
  const ports = sides.flatMap((side) => side.ports);
  const own = [...groupBy(ports, serviceName)];
  return new Set(own.flatMap(([name, all]) => (new Set(all.map(({ protocol }) => protocol)).size > 1 ? name : [])));
}

/** Names the destination. Adds the protocol, unless the packet and all ports of the Service use TCP. */
function sentWords({ to, nodePort, family, protocol }: Effect['example'], isMixed: boolean): string {
  const port = `every node's ${family === 'ipv6' ? 'IPv6 ' : ''}port ${nodePort}`;
  const where = nodePort === undefined ? to : port;
  return protocol === 'icmp' || (protocol === 'tcp' && !isMixed) ? where : `${where}/${protocol.toUpperCase()}`;
}

/** Returns the endpoints that a change adds to a Service. Empty if there are too many to name. */
function addedTo(service: string, { servicePorts }: SideDiff): readonly string[] {
  const reasons = servicePorts.filter((each) => each.service === service).flatMap((each) => each.reasons);
  const added = reasons.flatMap((each) => (each.kind === 'endpoint-added' ? [each.endpoint] : []));
  return new Set(added).size > mostAdded ? [] : [...new Set(added)];
}

const mostAdded = 3;

const noneDiffers = 'no packet is treated differently';
const noneKnown = 'no packet is known to be treated differently';
const onlyFailures = 'no packet that works on either side is treated differently';

/** Short names of senders. Undefined if only the full words are clear enough. */
const shortSenders: Readonly<Record<EffectSender['kind'], string | undefined>> = {
  outside: 'outside',
  'other-node': 'pods on other nodes',
  pod: 'pods',
  node: 'the node',
  endpoint: 'its own endpoints',
  'other-endpoint': 'its own endpoints on other nodes',
  'removed-endpoint': undefined,
  'added-endpoint': undefined,
  range: undefined,
};

function effectEndWords({ from, to, choice }: ServiceEffect, added: readonly string[]): string {
  if (!choice) return `${fateWords(from)} → ${fateWords(to)}`;
  const [before, after] = [choice.from.endpoints, choice.to.endpoints];
  const fresh = after - choice.kept;
  const { source, lost } = choice;
  const named = added.length === fresh ? `: ${added.join(', ')}` : '';
  const isOther = before === after && fresh > 0;
  const numbers = before === after ? count(after, 'endpoint') : `${before} → ${count(after, 'endpoint')}`;
  return [
    ...(isOther && after === 1 ? [`another endpoint${named}`] : [numbers]),
    ...(isOther && after > 1 ? [`${formatCount(fresh)} of them new${named}`] : []),
    ...(!isOther && fresh > 0 && choice.kept < before
      ? [choice.kept === 0 ? 'all of them different' : `${formatCount(fresh)} of them new`]
      : []),
    ...(after > 1 ? [shareWords(choice.to)] : []),
    ...(source ? [`with ${sourcesWords(source.to)} as source, before: ${sourcesWords(source.from)}`] : []),
    ...(lost ? [lossShareWords(lost)] : []),
  ].join(', ');
}

function lossShareWords({ from, to }: { readonly from: number; readonly to: number }): string {
  const [before, after] = [percent(from), percent(to)];
  return `of which ${before === after ? after : `${before} → ${after}`} fail`;
}

/** Smaller differences between shares come from rounding in iptables rules. */
const leastDifference = 0.0005;

function shareWords({ least, most }: EndpointShares): string {
  return most - least < leastDifference ? `${percent(most)} each` : `${percent(least)} to ${percent(most)}`;
}
