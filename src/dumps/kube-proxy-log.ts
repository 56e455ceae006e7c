import { endOfQuoted } from '../base/json/locate.ts';
import { parseDuration } from '../base/duration.ts';
import { fields as fieldsCheck } from '#checks';
import { parseChecked } from '../base/json/check.ts';
import { linesOf } from '../kernel/lines.ts';
import { findKnownLine, type LogFact, type KnownProblem } from '../kube-proxy/log-lines.ts';

export interface LogFinding {
  readonly problem: KnownProblem;
  readonly at: LogPlace;
  readonly detail: string;
  readonly count: number;
}

export interface LogPlace {
  readonly file: string;
  readonly line: number;
}

interface LogEntry {
  readonly severity: string;
  readonly time: string;
  readonly message: string;
  detail: string;
  readonly line: number;
  /** Whether the log is structured. In a structured log, the message is constant and the error is in a separate field. */
  readonly isStructured: boolean;
}

const klogHeader = /^([IWEF])(\d{4} \d\d:\d\d:\d\d)\.\d{6} +\d+ [\w.-]+:\d+\] /;

/** Matches the prefixes that journals, container runtimes and `kubectl logs --prefix` (node or pod name) add to lines. */
const wrapper =
  /^(?:\[pod\/([^/\s]{1,253})\/[^\]\s]{1,253}\] )?(?:(?:(?:[A-Z][a-z]{2} [ \d]\d )?[\d:]{8}|\d{4}-\d\d-\d\dT[\d:.,+-]{8,24}Z?) ([\w.-]{1,253}) [\w.-]{1,64}(?:\[\d+\])?: |\d{4}-\d\d-\d\dT[\d:.,+-]{8,24}Z? (?:std(?:out|err) [FP] )?)?/;

function unwrap(line: string) {
  const inside = line.startsWith('{"log":"') ? readJsonFields(line)?.['log'] : undefined;
  const text = typeof inside === 'string' ? inside.trimEnd() : line;
  const [whole = '', pod, host] = wrapper.exec(text) ?? [];
  return { text: text.slice(whole.length), from: pod ?? host };
}

function patternText({ source }: RegExp): string {
  return source.replace(/\((?!\?)/g, '(?:').slice(1);
}

/** Matches a trimmed line in klog's format or in Kubernetes' JSON log format. */
export const startsLogLine = new RegExp(
  `^${patternText(wrapper)}(?:${patternText(klogHeader)}|\\{"ts":[\\d.]+,"caller":"|\\{"log":"[IWEF]\\d{4} )`,
);

/** Matches a line that continues the one above, such as a command or rules that an error quotes. */
export const continuesLogLine = new RegExp(`^${patternText(wrapper)}[ \\t]`);

const podOfFile = /kube-system-(kube-proxy-[^/]{1,253}?)(?:-previous)?$/;

const longestDetail = 2000;

export class ProxyLog {
  lines = 0;
  firstTime: string | undefined;
  lastTime: string | undefined;
  /** The problems, keyed by code. They are in the order in which they first appear. */
  readonly problems = new Map<string, LogFinding>();
  readonly facts = new Map<LogFact, readonly string[]>();
  readonly flags = new Map<string, string>();
  readonly sysctls = new Map<string, string>();
  syncs = 0;
  slowest: (LogPlace & { readonly elapsed: string; readonly seconds: number }) | undefined;
  /** Counts lines whose message kpc does not know. `firstError`: the place of the first error among these lines. */
  readonly unknown = { lines: 0, errors: 0, firstError: undefined as LogPlace | undefined };
  /** Whether any line proves that kube-proxy wrote the log. Some known lines prove nothing, because other components write them too. */
  isKnown = false;
  #source: string | undefined;

  /** Reads lines, numbered from `firstLine`. Skips lines from another pod or node than the first line's, and returns the first of these. */
  read(file: string, text: string, firstLine: number): { readonly line: number; readonly from: string } | undefined {
    let entry: LogEntry | undefined;
    let foreign: { readonly line: number; readonly from: string } | undefined;
    const [, pod] = podOfFile.exec(file) ?? [];
    let number = firstLine - 1;
    for (const raw of linesOf(text)) {
      number++;
      if (raw === '') continue;
      const { text: line, from = pod } = unwrap(raw);
      const next = line === '' ? undefined : readEntry(line, number);
      if (next) {
        if (entry) this.#take(file, entry);
        this.#source ??= from;
        entry = from === undefined || from === this.#source ? next : undefined;
        if (!entry && from !== undefined) foreign ??= { line: number, from };
      } else if (entry && line !== '' && entry.detail.length < longestDetail) entry.detail += ` ${line.trim()}`;
    }
    if (entry) this.#take(file, entry);
    return foreign;
  }

  #take(file: string, { severity, time, message, detail, line, isStructured }: LogEntry): void {
    const at = { file, line };
    this.lines++;
    this.firstTime ??= time;
    this.lastTime = time;
    const known = findKnownLine(severity === 'F' ? `command failed ${message}` : message, detail);
    const isNamed =
      namesProxy.test(`${this.#source ?? ''} ${file} ${message} ${detail}`) || ownSelector.test(`${message} ${detail}`);
    const isOwn = isNamed || !sharedProblems.has(known?.problem?.code ?? '');
    this.isKnown ||= known !== undefined && known.fact !== 'shared' && isOwn;
    if (known?.problem) {
      const { code } = known.problem;
      const { at: first, count } = this.problems.get(code) ?? { at, count: 0 };
      this.problems.set(code, {
        problem: known.problem,
        at: first,
        detail: (isStructured && detail.trim()) || `${message}${detail}`,
        count: count + 1,
      });
    } else if (known) this.#takeFact(known.fact, known.values, at);
    else {
      this.unknown.lines++;
      if (severity !== 'E' && severity !== 'F') return;
      this.unknown.errors++;
      this.unknown.firstError ??= at;
    }
  }

  #takeFact(fact: LogFact, values: readonly string[], at: LogPlace): void {
    const [name = '', value = ''] = values;
    this.facts.set(fact, values);
    if (fact === 'flag') this.flags.set(name, value);
    if (fact === 'sysctl') this.sysctls.set(name, value);
    if (fact !== 'synced') return;
    this.syncs++;
    const seconds = parseDuration(name);
    if (seconds !== undefined && seconds > (this.slowest?.seconds ?? -1))
      this.slowest = { ...at, elapsed: name, seconds };
  }
}

const namesProxy = /\bkube-?proxy\b/i;

/** Matches a selector that no other component than kube-proxy sends to the API server (ProxyServer.Run). */
const ownSelector = /(?:!|%21)service\.kubernetes\.io(?:\/|%2F)(?:headless|service-proxy-name)/i;

/** The problems that other programs log too. They also call the API server, or also end with an error. */
const sharedProblems: ReadonlySet<string> = new Set(['ended', 'watch']);

function readEntry(line: string, number: number): LogEntry | undefined {
  const [header, severity, time] = klogHeader.exec(line) ?? [];
  if (header === undefined || severity === undefined || time === undefined) return readJsonEntry(line, number);
  const rest = line.slice(header.length);
  const at = { severity, time: `${time.slice(0, 2)}-${time.slice(2)}`, line: number };
  const end = rest.startsWith('"') ? endOfQuoted(rest, 0) : undefined;
  // In unstructured logs, and with klog.Errorf, the error is part of the message. The closing quote may be cut off too.
  if (end === undefined) return { ...at, message: rest.replace(/^"/, ''), detail: '', isStructured: false };
  return { ...at, message: rest.slice(1, end - 1), detail: rest.slice(end + 1), isStructured: true };
}

function readJsonEntry(line: string, number: number): LogEntry | undefined {
  const values = line.startsWith('{"ts":') ? readJsonFields(line) : undefined;
  const { ts, msg, caller: _caller, v: _verbosity, ...others } = values ?? {};
  if (typeof ts !== 'number' || typeof msg !== 'string') return undefined;
  const moment = new Date(ts < 1e11 ? ts * 1000 : ts);
  const time = Number.isNaN(moment.getTime()) ? '' : moment.toISOString().slice(5, 19).replace('T', ' ');
  const detail = Object.entries(others).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const severity = 'err' in others ? 'E' : 'I';
  return { severity, time, message: msg, detail: detail.join(' '), line: number, isStructured: true };
}

function readJsonFields(text: string): Readonly<Record<string, unknown>> | undefined {
  const read = parseChecked(fieldsCheck, text);
  return 'value' in read ? read.value : undefined;
}
