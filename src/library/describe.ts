import { count } from '../base/printable.ts';
import type { Shaped } from '../base/json/schema.ts';
import type { ArgumentsOf } from '../base/findings/codes.ts';
import type { DumpNote } from '../base/findings/files.ts';
import { diagnose, distinct, type Finding } from '../base/findings/finding.ts';
import { describeService } from '../ask/describe/describe-services.ts';
import { findInDump, findSubject } from '../ask/describe/find-subject.ts';
import { nameInKubectl, nameToQualify } from '../ask/describe/parse-asked.ts';
import { knowsServices, readDumped, type DumpReading } from '../ask/describe/read-dumped.ts';
import {
  describeDumpInWords,
  describeFoundPorts,
  describeLeftovers,
  flowsJson,
  isPortAmong,
  decompiledJson,
  readingJson,
  remarksJson,
  serviceJson,
} from '../say/describe/dump.ts';
import { describeServiceInWords, nodeWords, rulesHint, describeSharedInWords } from '../say/describe/service.ts';
import { serviceRows, summarizeServices, tableOfRows, type ServiceSummary } from '../say/describe/table.ts';
import { summarizeSide } from '../say/bundle-text.ts';
import { formatText } from '../say/formats/text.ts';
import { lines } from '../say/lines.ts';
import { formatJson, type SaidByCommand } from '../say/formats/json.ts';
import { snapshotsJson } from '../say/snapshots.ts';
import { inOneLine } from '../say/words/words.ts';
import type { describe as described, describedDump } from '../say/outputs/describe.ts';
import { expectSnapshot } from './inputs.ts';
import { refuseFlag } from './refusal.ts';
import { answerInOptions } from './words.ts';
import { newestRelease, type Release } from '../kube-proxy/releases.ts';
import type { CompiledSnapshot, DumpedSnapshot, Snapshot } from '../snapshot/snapshot.ts';
import type { ModeSource } from '../kube-proxy/modes.ts';
import { modeFromWords } from '../say/grounds.ts';

interface DescriptionStyle {
  readonly output: 'text' | 'json';
  readonly limit: number;
  readonly rules?: boolean | undefined;
  readonly namespace?: string | undefined;
  readonly clusterDomain: string;
  readonly modeFrom: ModeSource | undefined;
  readonly width: number | undefined;
  readonly isColoured: boolean;
  /** Whether the subject may be a path with a typing error. */
  readonly mayBePath?: boolean;
}

interface Description {
  readonly text: string;
  readonly result?: Shaped<typeof described> | undefined;
  readonly isFound: boolean;
  readonly findings: readonly Finding[];
}

export const usualDomain = 'cluster.local';

/** A table may be this many times longer than other lists. Its rows are short, and the table is the result itself. */
const rowsPerLine = 5;

export function formatDescribed(side: Snapshot, { text, result }: Description, said: SaidByCommand): string {
  return result === undefined
    ? text
    : formatJson<typeof described>({ ...said, snapshots: snapshotsJson([side]), result });
}

export function describeAsData(side: Snapshot, what: string | undefined, namespace: string | undefined): Description {
  const style = {
    output: 'json',
    limit: Infinity,
    clusterDomain: usualDomain,
    modeFrom: undefined,
    width: undefined,
  } as const;
  return describeSnapshot(side, what, { ...style, namespace, isColoured: false });
}

/** Describes a subject. If there is no subject, describes all Services. */
export function describeSnapshot(side: Snapshot, what: string | undefined, style: DescriptionStyle): Description {
  if (side.kind === 'dump') return describeDump(side, what?.trim(), style);
  return what === undefined ? describeAllServices(side, style) : describeSubject(what, side, style);
}

/** Returns the release to mention. Undefined for the newest release and for a dump. */
export function followedRelease({ settings }: Snapshot): Release | undefined {
  return settings?.release === newestRelease ? undefined : settings?.release;
}

export function refuseIdleStyle(
  { clusterDomain, rules, output }: Pick<DescriptionStyle, 'clusterDomain' | 'rules' | 'output'>,
  kind: string,
  what: string | undefined,
): void {
  const hasDomain = clusterDomain !== usualDomain;
  if (what === undefined && hasDomain) refuseFlag('--cluster-domain', 'table-of-addresses');
  const noRules = rules ? whyNoRules(kind, what, output) : undefined;
  if (noRules !== undefined) refuseFlag('--rules', noRules);
  if (kind === 'dump' && hasDomain) refuseFlag('--cluster-domain', 'no-dns-names');
}

function whyNoRules(kind: string, what: string | undefined, output: DescriptionStyle['output']) {
  if (what === undefined) return 'table';
  if (kind === 'dump') return 'rules-of-dump';
  return output === 'json' ? 'always' : undefined;
}

function describeAllServices(
  side: CompiledSnapshot,
  { output, limit, width, isColoured, modeFrom }: DescriptionStyle,
): Description {
  const rows = serviceRows(side);
  const isFound = rows.length > 0;
  if (output === 'json') return { text: '', result: { services: summarizeServices(side) }, isFound, findings: [] };
  const table = tableOfRows(rows, { rows: limit * rowsPerLine, width });
  const text = formatText([table, lines('plain', 0, summarizeSide(side, modeFrom))], isColoured);
  return { text, isFound, findings: [] };
}

function nothing(why: ArgumentsOf<'not-found'>, notes: readonly Finding[] = []): Description {
  const findings = [...notes, diagnose('not-found', why)];
  return { text: '', isFound: false, findings };
}

function found(text: string, findings: readonly Finding[] = []): Description {
  return { text, isFound: true, findings };
}

function foundAsData(result: Shaped<typeof described>, findings: readonly Finding[] = []): Description {
  return { ...found('', findings), result };
}

/** Finds the Service with this name in the namespace. If there is none, finds another object, if the text may be its name. */
function findIn<F extends { readonly kind: string }>(
  namespace: string | undefined,
  what: string,
  find: (text: string) => F,
): F {
  const name = nameToQualify(what);
  const own = namespace === undefined || name === undefined ? undefined : find(`${namespace}/${name}`);
  return own && (own.kind !== 'nothing' || nameInKubectl(what) !== undefined) ? own : find(what);
}

function describeSubject(what: string, side: CompiledSnapshot, style: DescriptionStyle): Description {
  const { namespace, limit, output, clusterDomain, rules, modeFrom, isColoured, width, mayBePath } = style;
  const finding = findIn(namespace, what, (text) => findSubject(text, side));
  if (finding.kind === 'nothing') {
    const isNoPath = mayBePath && finding.why.kind === 'no-match' ? true : undefined;
    return nothing({ problem: 'no-subject', nothing: finding.why, isNoPath });
  }
  const isJson = output === 'json';
  if (finding.kind === 'shared') {
    const { subjects } = finding;
    const blocks = subjects.map((subject) => describeSharedInWords(subject, limit));
    return isJson ? foundAsData({ subjects }) : found(formatText(blocks, isColoured));
  }
  const { matches } = finding;
  const services = (isJson ? matches : matches.slice(0, limit)).map(({ service, labels, because }) => {
    return { because, ...describeService(service, labels, side, clusterDomain) };
  });
  if (isJson) {
    return foundAsData({ services: services.map(({ because, ...each }) => ({ because, ...serviceJson(each) })) });
  }
  const blocks = services.map((each) => {
    const hasRules = rules === true || each.because.some(({ kind }) => ofKernel.has(kind));
    return describeServiceInWords(each, each.because, { node: nodeWords(side), limit, width, hasRules });
  });
  const hidden = matches.length - services.length;
  const closing = [...(modeFrom ? [`mode ${side.mode}${modeFromWords(modeFrom)}`] : []), ...(rules ? [] : [rulesHint])];
  const rest = [
    lines('dim', 0, hidden > 0 && `… and ${count(hidden, 'more Service')}`),
    lines('dim', 0, closing.join('; ')),
  ];
  return found(formatText([...blocks, ...rest], isColoured));
}

const ofKernel: ReadonlySet<string> = new Set(['chain', 'affinity-set', 'rule', 'rule-elsewhere']);

/** Describes all Services, leftovers of another mode and stale flows. With `what`, describes only the ports, chains and sets it names. */
function describeDump(side: DumpedSnapshot, what: string | undefined, style: DescriptionStyle): Description {
  const { output, limit, isColoured, width, namespace } = style;
  const read = readDumped(side);
  const { flows, nothing: lack } = read;
  const notes = notesOf(read);
  const { ports: all, leftovers } = side.shown;
  if (what === undefined) {
    const hasLeftovers = describeLeftovers(leftovers).length > 0;
    const isFound =
      all.length > 0 || hasLeftovers || (flows !== undefined && knowsServices(side)) || side.log !== undefined;
    const lists = lack && side.flows ? 'flows' : 'nothing';
    const none = nothing({ problem: 'no-service', why: lack?.why, lists }, notes);
    if (!isFound && read.ruleless.length === 0) return none;
    const said = isFound ? [...notes, ...(lack ? [asNote({ note: 'no-service', why: lack.why })] : [])] : none.findings;
    if (output === 'json') return { ...foundAsData(readingJson(read), said), isFound };
    const blocks = describeDumpInWords(read, limit, { rows: limit * rowsPerLine, width });
    return { ...found(formatText(blocks, isColoured), said), isFound };
  }
  const subject = findIn(namespace, what, (text) => findInDump(text, side));
  if (subject.kind === 'nothing') return nothing({ problem: 'no-subject', nothing: subject.why }, notes);
  const { ports, subjects } = subject;
  if (output === 'text')
    return found(formatText(describeFoundPorts(ports, subjects ?? [], read, limit), isColoured), notes);
  const left = new Set(leftovers.ports);
  const result = {
    ...remarksJson(read),
    servicePorts: ports.filter((port) => !left.has(port)).map(decompiledJson),
    subjects,
    flows: flows && flowsJson(flows, isPortAmong(ports)),
  };
  return foundAsData(result, notes);
}

function notesOf({ notes }: DumpReading): readonly Finding[] {
  return distinct(notes.map(asNote));
}

function asNote(note: DumpNote): Finding {
  return diagnose('reading', { problem: 'dump', ...note });
}

/** A dump's Services as in `kpc describe --output json`, with notes. */
export type DumpDescription = Shaped<typeof describedDump> & { readonly notes: readonly string[] };

/**
 * Returns a side's Services, as in `kpc describe --output json`.
 *
 * ```ts
 * import { describeServices, open } from 'kube-proxy-compiler';
 *
 * const [side] = open({ 'ipvsadm.txt': '-A -t 10.96.0.10:80 -s rr\\n' }).snapshots;
 * if (side?.kind === 'dump') console.log(describeServices(side).servicePorts.map(({ servicePort }) => servicePort).join()); // 10.96.0.10:80/TCP
 * ```
 */
export function describeServices(side: DumpedSnapshot): DumpDescription;
export function describeServices(side: CompiledSnapshot): readonly ServiceSummary[];
export function describeServices(side: Snapshot): readonly ServiceSummary[] | DumpDescription;
export function describeServices(side: Snapshot): readonly ServiceSummary[] | DumpDescription {
  expectSnapshot(side, 'side');
  if (side.kind !== 'dump') return summarizeServices(side);
  const read = readDumped(side);
  return answerInOptions({ ...readingJson(read), notes: notesOf(read).map(inOneLine) });
}
