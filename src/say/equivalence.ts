import { joinPhrases, joinWords, count, formatCount } from '../base/printable.ts';
import { nameSome } from './words/rows.ts';
import type { Shaped } from '../base/json/schema.ts';
import { lines, section, type Block } from './lines.ts';
import { addressWords } from './port-facts.ts';
import { diagnose, type Finding } from '../base/findings/finding.ts';
import type { Place } from '../kernel/place.ts';
import { unnamedMode } from './grounds.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { Scene } from '../ask/trace/scene.ts';
import { isRequired } from '../ask/equivalence/change.ts';
import type { Compared } from '../ask/equivalence/findings.ts';
import type { Represented } from '../ask/equivalence/representatives.ts';
import { severities, type Divergence, type Effect, type EffectSeverity } from '../ask/equivalence/effects.ts';
import { senderTexts } from './way/sender.ts';
import { fateWords, lackWords, sourcesWords, unsettledWords } from './way/fate.ts';
import { unknownWords } from './words/answers.ts';
import { adviceOn, causeWords, reasonsOf } from './words/causes.ts';
import { traceCommand, sayFindings } from './words/said.ts';
import { wordsOf } from './words/words.ts';
import type { Answered } from './formats/answer.ts';
import { formatFindings, formatText } from './formats/text.ts';
import type { SaidByCommand } from './formats/json.ts';
import type { equivalence } from './outputs/compile-and-compare.ts';
import type { SnapshotJson } from './outputs/envelope.ts';
import { assumedSummary } from './snapshots.ts';
import type { TestCase } from './formats/junit.ts';
import { formatMarkdown } from './formats/markdown.ts';

/** A `kpc trace` command for each side. The packet's flags are still to be added. */
export interface Tracing {
  readonly old: readonly string[];
  readonly new: readonly string[];
}

export interface EquivalenceReport extends Compared {
  readonly from: string;
  readonly to: string;
  /** The text to add after the name of a side if nothing names the side's mode. */
  readonly modeFrom?: string | undefined;
  readonly modeTo?: string | undefined;
  readonly trace: TraceWords;
  /** Both sides of each node that was traced. */
  readonly snapshots: readonly SnapshotJson[];
  /** Set to the mode if both sides have the same mode and the name of neither side states it. */
  readonly sharedMode?: string | undefined;
  /** `nodes`: the number of all nodes. `standIns`: the number of nodes that were traced and represent all nodes. */
  readonly nodes: number;
  readonly standIns: number;
  /** Which traced nodes represent which other nodes. Used if there are several nodes. */
  readonly represented: readonly Represented[];
  /** Differences between the sides that no packet shows. */
  readonly beyond: readonly string[];
  /** What to do before a change of mode. Undefined if the comparison is not about a change of mode. */
  readonly preparations: readonly Finding[] | undefined;
}

/** Reports whether a change of mode breaks something, may break something, or needs preparation. */
export function needsWork({ findings, preparations = [] }: EquivalenceReport): boolean {
  const isBad = ({ severity }: Divergence): boolean => severity === 'breaks' || severity === 'unknown';
  return findings.some(isBad) || preparations.some(isRequired);
}

/** What a difference means to clients, in the singular ("1 breaks") and in the plural ("2 break"). */
const severityWords: Readonly<
  Record<EffectSeverity, { readonly title: string; readonly one: string; readonly many: string }>
> = {
  breaks: { title: 'what worked no longer does', one: 'breaks', many: 'break' },
  unknown: { title: 'not known', one: 'is not known', many: 'are not known' },
  changes: { title: 'it works differently', one: 'works differently', many: 'work differently' },
  opens: { title: 'what failed now works', one: 'starts to work', many: 'start to work' },
  'fails-otherwise': { title: 'it works on neither side', one: 'needs no action', many: 'need no action' },
};

export const targetWords: Readonly<Record<Effect['target'], string>> = {
  ...addressWords,
  'health-check': 'health check node port',
  ping: 'ping to a Service address',
  'unserved-port': 'other port of a Service address',
  'unserved-address': 'address of no Service',
  node: 'port of the node itself',
};

/** What no comparison of packets covers. */
const notCompared = [
  'connections that are open while the rules change',
  'multicast',
  'the effect of other hosts and network plugins',
  'DNS answers, such as those for headless and ExternalName Services',
] as const;

const mostNames = 5;

function findingLines(report: EquivalenceReport, of: readonly EffectSeverity[]): readonly Block[] {
  const { findings } = report;
  return findings.filter(({ severity }) => of.includes(severity)).map((finding) => describeFinding(finding, report));
}

function describeFinding(finding: Divergence, report: EquivalenceReport): Block {
  const { cause, severity, effects, servicePorts } = finding;
  const telling = effects.filter((each) => each.severity !== 'fails-otherwise' || severity === each.severity);
  return [
    ...lines('heading', 0, `${causeWords[cause].title}: ${severityWords[severity].title}`),
    ...lines('plain', 1, ...reasonsOf(finding)),
    ...telling.flatMap((effect) => effectLines(effect, severity, report)),
    ...lines('plain', 1, servicePorts.length > 0 && `Services: ${nameSome(servicePorts, mostNames)}`),
    ...lines('plain', 1, nodeWords(finding, report)),
    ...lines('good', 1, ...adviceOn(finding).map((advice) => `To do: ${advice}.`)),
  ];
}

/** Names the nodes with this difference, if several nodes were traced. Counts the nodes that they represent. */
function nodeWords({ nodes }: Divergence, { asked, represented }: EquivalenceReport): string {
  const alike = represented.filter(({ node, by }) => !nodes.includes(node) && by.some((each) => nodes.includes(each)));
  const others =
    alike.length === 0 ? '' : `, and ${formatCount(alike.length)} more like ${nodes.length === 1 ? 'it' : 'these'}`;
  return asked.length > 1 ? `nodes: ${nameSome(nodes, mostNames)}${others}` : '';
}

/** Describes packets that fail on both sides in different ways. Each cause gets one line. */
function harmlessLines({ findings }: EquivalenceReport): Block {
  const harmless = findings.flatMap(({ cause, effects }) => {
    const own = effects.filter(({ severity }) => severity === 'fails-otherwise');
    if (own.length === 0) return [];
    const ways = [...new Set(own.map(({ from, to }) => `${fateWords(from)} → ${fateWords(to)}`))].join('; ');
    return lines('plain', 1, `${causeWords[cause].title}: ${ways} (${countClasses(own)})`);
  });
  return section('No action needed, because these packets work on neither side', harmless, Infinity);
}

function countClasses(effects: readonly Effect[]): string {
  return count(
    effects.reduce((sum, { classes }) => sum + classes, 0),
    'class',
  );
}

function wayWords({ target, senders, ...ends }: Effect): string {
  const [from, to] = [fateWords(ends.from), fateWords(ends.to)];
  const both = from === to ? `${from}, with different endpoints on each side` : `${from} → ${to}`;
  return `${targetWords[target]}, from ${senderTexts(senders).join(', ')}: ${both}`;
}

/** `title`: the severity that the heading already gives. */
function effectLines(effect: Effect, title: EffectSeverity, { trace }: EquivalenceReport): Block {
  const { severity, lacks } = effect;
  const ending = severity === title ? '' : `, ${severityWords[severity].one}`;
  return [
    ...lines(severity === 'breaks' ? 'bad' : 'plain', 1, `${wayWords(effect)} (${countClasses([effect])}${ending})`),
    ...lines('plain', 2, lackWords(lacks)),
    ...lines(trace === 'no-command' || effect.shownBy ? 'command' : 'plain', 2, traceEffect(trace, effect)),
  ];
}

/** The command that traces a packet. 'no-command' is for readers who have no command line. */
export type TraceWords = Tracing | 'no-command';

/** Returns the command that shows an effect, on the side that explains it. If there is none, describes the packet in words. */
export function traceEffect(trace: TraceWords, { example, shownBy }: Pick<Effect, 'example' | 'shownBy'>): string {
  if (trace === 'no-command' || !shownBy) return `${example.protocol} from ${example.from} to ${example.to}`;
  return traceCommand(trace[shownBy], example);
}

function preparationLines(title: string, own: readonly Finding[]): Block {
  const rows = own
    .map((each) => wordsOf(each))
    .flatMap(({ text, help }) => [...lines('plain', 1, text), ...lines('plain', 2, help)]);
  return section(title, rows, Infinity);
}

/** Summarizes how much was compared, how much differs, and what the differences mean to clients. */
function summarizeEquivalence(report: EquivalenceReport): string {
  const { from, to, modeFrom = '', modeTo = '', sharedMode, nodes, classes, findings, preparations = [] } = report;
  const mode = sharedMode === undefined ? '' : ` in ${sharedMode}`;
  const where = nodes > 1 ? ` on ${formatCount(nodes)} nodes` : '';
  const counts = severities.flatMap((severity) => {
    const causes = findings.filter(({ effects }) => effects.some((each) => each.severity === severity)).length;
    return causes === 0 ? [] : [{ severity, causes }];
  });
  const telling = counts.filter(({ severity }) => severity !== 'unknown' && severity !== 'fails-otherwise');
  const isKnown = report.unknown + report.unknownOnOne === 0 && counts.every(({ severity }) => severity !== 'unknown');
  const all = count(classes, 'class of packets');
  const open = [
    ...(report.unknown > 0 ? [`; ${formatCount(report.unknown)} not known on either side`] : []),
    ...(report.unknownOnOne > 0 ? [`; ${formatCount(report.unknownOnOne)} known on one side only`] : []),
  ].join('');
  const result =
    counts.length === 0
      ? `${all}, no difference`
      : [
          ...(telling.length === 0 ? [] : [telling.map(countWords).join('; ')]),
          ...counts.filter(({ severity }) => severity === 'unknown').map(countWords),
          `nothing ${telling.length === 0 ? '' : 'else '}that works ${isKnown ? 'changes' : 'is known to change'} (${all})`,
        ].join('; ');
  const required = preparations.filter(isRequired).length;
  const first = required === 0 ? '' : `; ${formatCount(required)} to set before the change`;
  return `${from}${modeFrom} → ${to}${modeTo}${mode}${where}: ${result}${open}${first}`;
}

/** Returns "2 things break". */
function countWords({ severity, causes }: { readonly severity: EffectSeverity; readonly causes: number }): string {
  const { one, many } = severityWords[severity];
  return `${count(causes, 'thing')} ${causes === 1 ? one : many}`;
}

function notes(report: EquivalenceReport): readonly string[] {
  const { nodes, standIns, snapshots, beyond } = report;
  const rest = nodes - standIns;
  const like = standIns === 1 ? 'it' : 'one of these';
  const represented = `Compared on ${formatCount(standIns)} of ${count(nodes, 'node')}: ${rest === 1 ? `the other is like ${like}` : `the others are ${standIns === 1 ? '' : 'each '}like ${like}`}.`;
  const assumed = assumedSummary(snapshots);
  return [
    ...(assumed === undefined ? [] : [`${assumed}.`]),
    ...unknownWords(lacksOf(report)).map((what) => `${what}.`),
    ...(standIns < nodes ? [represented] : []),
    `Not compared: ${joinPhrases([...beyond, joinWords(notCompared)])}.`,
  ];
}

function lacksOf({ unknown, unknownOnOne, reasons }: Compared) {
  return { unknown, unknownOnOne, reasons: unsettledWords(reasons).toSorted() };
}

/**
 * Reports a comparison in all formats. What breaks or needs preparation comes first; harmless differences come last. `placeOf` finds the
 * place of a Service port in the manifests.
 */
export function equivalenceAnswer(
  report: EquivalenceReport,
  isColoured: boolean,
  said: SaidByCommand,
  placeOf: PlaceOf = () => undefined,
): Answered {
  const { from, to, preparations = [] } = report;
  return {
    said: { ...said, findings: [...said.findings, ...sayFindings(preparations)] },
    text: () => equivalenceText(report, isColoured),
    result: () => equivalenceJson(report),
    markdown: () => equivalenceMarkdown(report),
    findings: () =>
      sayFindings([...preparations, ...report.findings.map((each) => divergenceFinding(each, report, placeOf))]),
    snapshots: () => report.snapshots,
    // Leaves out what no comparison covers.
    lacks: () => ({ notCompared: report.beyond, ...lacksOf(report) }),
    suite: `${said.command} ${from} ${to}`,
    cases: () => casesOfReport(report, placeOf),
  };
}

type PlaceOf = (servicePort: string) => Place | undefined;

function firstPlace(servicePorts: readonly string[], placeOf: PlaceOf): Place | undefined {
  return servicePorts.map((each) => placeOf(each)).find((each) => each !== undefined);
}

function divergenceFinding(divergence: Divergence, { asked }: EquivalenceReport, placeOf: PlaceOf): Finding {
  const { cause, severity, effects, services, servicePorts } = divergence;
  const ways = [...new Set(effects.map((each) => wayWords(each)))];
  const nodes = asked.length > 1 ? divergence.nodes : [];
  const details = {
    cause: causeWords[cause].title,
    effect: severity,
    ways,
    services,
    nodes,
    advice: adviceOn(divergence),
  };
  return diagnose('packets-differ', details, firstPlace(servicePorts, placeOf));
}

function equivalenceText(report: EquivalenceReport, isColoured: boolean): string {
  const { preparations = [] } = report;
  const saidPreparations = (own: readonly Finding[]): string => formatFindings(sayFindings(own), () => '', isColoured);
  const isBad = report.preparations ? needsWork(report) : report.findings.length > 0;
  const parts = [
    formatText([lines(isBad ? 'heading' : 'good', 0, summarizeEquivalence(report))], isColoured),
    saidPreparations(preparations.filter(isRequired)),
    formatText(worstLines(report), isColoured),
    saidPreparations(preparations.filter((each) => !isRequired(each))),
    formatText([...otherLines(report), lines('dim', 0, ...notes(report))], isColoured),
  ];
  return parts.filter((part) => part !== '').join('\n');
}

function equivalenceMarkdown(report: EquivalenceReport): string {
  const { preparations = [] } = report;
  const others = preparations.filter((each) => !isRequired(each));
  return formatMarkdown([
    lines('summary', 0, summarizeEquivalence(report)),
    preparationLines('Set before the change', preparations.filter(isRequired)),
    ...worstLines(report),
    preparationLines('Check before the change', others),
    ...otherLines(report),
    lines('dim', 0, ...notes(report)),
  ]);
}

function worstLines(report: EquivalenceReport): readonly Block[] {
  return findingLines(report, ['breaks', 'unknown']);
}

function otherLines(report: EquivalenceReport): readonly Block[] {
  return [...findingLines(report, ['changes', 'opens']), harmlessLines(report)];
}

export function effectJson<E extends Effect>(effect: E, trace: TraceWords) {
  const { senders, from, to, choice, lacks } = effect;
  const source = choice?.source && { from: sourcesWords(choice.source.from), to: sourcesWords(choice.source.to) };
  return {
    ...effect,
    senders: senderTexts(senders),
    from: fateWords(from),
    to: fateWords(to),
    choice: choice && { ...choice, source },
    lacks: lackWords(lacks),
    trace: traceEffect(trace, effect),
  };
}

export function equivalenceJson(report: EquivalenceReport): Shaped<typeof equivalence> {
  const { from, to, nodes, standIns, represented, classes, trace, findings, beyond } = report;
  const causes = findings.map((finding) => {
    const { cause, severity, services, servicePorts, effects, classes: own, nodes: at } = finding;
    return {
      cause,
      title: causeWords[cause].title,
      reasons: reasonsOf(finding),
      help: adviceOn(finding),
      severity,
      services,
      servicePorts,
      effects: effects.map((effect) => effectJson(effect, trace)),
      classes: own,
      nodes: at,
    };
  });
  return {
    from,
    to,
    nodes,
    standIns,
    represented,
    classes,
    ...lacksOf(report),
    notCompared: [...beyond, ...notCompared],
    summary: summarizeEquivalence(report),
    causes,
  };
}

/** Returns test cases: for each cause, one that fails if the difference matters; for each preparation, one that fails if it is required. */
function casesOfReport(report: EquivalenceReport, placeOf: PlaceOf): readonly TestCase[] {
  const causes = report.findings.map((finding): TestCase => {
    const { title } = causeWords[finding.cause];
    const all = describeFinding(finding, report).map(({ text }) => text);
    const place = firstPlace(finding.servicePorts, placeOf);
    // For a change of mode, the case fails only if something breaks or may break. For sides that should be equal, the case fails for every
    // difference that needs action.
    const isBad = report.preparations
      ? finding.severity === 'breaks' || finding.severity === 'unknown'
      : divergenceFinding(finding, report, placeOf).severity !== 'note';
    return { name: title, place: place?.locate(), failure: isBad ? { title, lines: all } : undefined, output: all };
  });
  const passed = { name: 'no class of packets differs' };
  const steps = (report.preparations ?? []).map((each): TestCase => {
    const { text: name, help = '' } = wordsOf(each);
    const failure = isRequired(each) ? { title: name, lines: [help] } : undefined;
    return { name, failure, output: [help] };
  });
  return [...(causes.length > 0 ? causes : [passed]), ...steps];
}

type Named = Pick<Snapshot, 'name'>;

/** Names the mode that both sides share. If they do not share one, names the mode of each side whose own name does not state it. */
export function modesOf(
  [old, fresh]: readonly [Scene, Scene],
  [first, second]: readonly [Named, Named],
): Pick<EquivalenceReport, 'sharedMode' | 'modeFrom' | 'modeTo'> {
  const titleOf = ({ side: { mode } }: Scene) => mode && modeFacts[mode].title;
  const isAssumed = ({ side: { assumed } }: Scene) => assumed?.mode === true;
  const isSame = titleOf(old) === titleOf(fresh);
  if (isSame && isAssumed(old) === isAssumed(fresh)) {
    const shared = titleOf(fresh);
    return { sharedMode: shared && `${shared}${isAssumed(fresh) ? ` ${unnamedMode}` : ''}` };
  }
  const modeWords = (scene: Scene, { name }: Named) => {
    if (isAssumed(scene)) return ` (${titleOf(scene)}, which nothing names)`;
    return isSame || scene.side.mode === undefined || name === scene.side.mode ? '' : ` (${titleOf(scene)})`;
  };
  return { modeFrom: modeWords(old, first), modeTo: modeWords(fresh, second) };
}
