import { parseDuration } from '../../base/duration.ts';
import { count, formatCount, joinWords } from '../../base/printable.ts';
import { loggedAddresses, modeOfLog, modeSource } from '../../ask/describe/read-dumped.ts';
import type { ProxyLog } from '../../dumps/kube-proxy-log.ts';
import { unlessEmpty } from '../formats/json.ts';
import { logProblemWords } from '../words/log-problems.ts';
import { cutBlock, lines, type Block } from '../lines.ts';

/** Matches flags that determine the rules, and flags that name settings which do. */
const shapingFlag =
  /^--(?:bind-address|cluster-cidr|config|conntrack-.*|detect-local-mode|feature-gates|hostname-override|ip(?:tables|vs)-.*|masquerade-all|nftables-.*|nodeport-addresses|pod-.*|proxy-mode)$/;

const unsetFlags: ReadonlySet<string> = new Set(['', '[]', '0', '0s', 'false']);

/** Describes a kube-proxy log: first the setup, then the problems and what to do about them. */
export function describeLog(log: ProxyLog, limit: number): Block {
  const { firstTime, lastTime, unknown } = log;
  const span = firstTime === undefined ? '' : `, from ${firstTime} to ${lastTime ?? firstTime}`;
  const problems = [...log.problems.values()].flatMap(
    ({ problem: { code }, at: { file, line }, count: times, detail }) => {
      const [meaning, advice] = logProblemWords[code];
      return [
        ...lines('bad', 1, `${times === 1 ? '' : `${formatCount(times)} times: `}${meaning}  (${file}:${line})`),
        ...lines('dim', 2, shorten(detail)),
        ...lines('plain', 2, `→ ${advice}`),
      ];
    },
  );
  return [
    ...lines('heading', 0, `kube-proxy's log: ${count(log.lines, 'line')}${span}`),
    ...lines('plain', 1, ...setUpWords(log)),
    ...lines('good', 1, problems.length === 0 && 'no problem that kpc knows'),
    ...cutBlock(problems, limit * 3, 1),
    ...lines('dim', 1, unknown.lines > 0 && unknownLinesWords(log)),
  ];
}

function setUpWords(log: ProxyLog): readonly (string | false | undefined)[] {
  const { facts, sysctls, slowest } = log;
  const mode = modeOfLog(log);
  const version = facts.get('version')?.[0] ?? '';
  const addresses = loggedAddresses(log);
  const flags = [...log.flags].filter(([name, value]) => shapingFlag.test(name) && !unsetFlags.has(value));
  const sets = [...sysctls].map(([name, value]) => `${name.replaceAll('/', '.')}=${value}`);
  const inMode = mode ? `mode ${mode}${modeReason(log)}` : version && 'mode unknown';
  return [
    version ? `${inMode}, ${version}` : inMode,
    addresses.length > 0 && `node addresses ${addresses.join(', ')}`,
    flags.length > 0 && `flags ${flags.map(([name, value]) => `${name}=${value}`).join(' ')}`,
    sets.length > 0 && `sysctls set: ${joinWords(sets)}`,
    slowest && syncWords(slowest, facts.get('periods')?.[0], log.syncs),
  ];
}

function modeReason(log: ProxyLog): string {
  switch (modeSource(log)) {
    case 'fallback':
      return ', because IPVS does not work here';
    case 'default':
      return ', the default, because none is configured';
    case 'config':
      return `, from ${log.flags.get('--config')} or the default`;
    case 'flag':
      return ', from --proxy-mode';
    case undefined:
      return '';
  }
}

function syncWords(slowest: NonNullable<ProxyLog['slowest']>, period: string | undefined, syncs: number): string {
  const least = period === undefined ? undefined : parseDuration(period);
  const isSlow = least !== undefined && least > 0 && slowest.seconds > least;
  const beside = isSlow
    ? `; this is longer than minSyncPeriod (${period}), so changes wait; nftables mode is faster`
    : '';
  return `${count(syncs, 'sync')}, the slowest in ${slowest.elapsed}${beside}  (${slowest.file}:${slowest.line})`;
}

const longestShown = 300;

function shorten(text: string): string {
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
}

function unknownLinesWords({ unknown }: ProxyLog): string {
  const { errors, firstError } = unknown;
  const first = firstError
    ? `, ${count(errors, 'error')} among them, the first at ${firstError.file}:${firstError.line}`
    : '';
  return `${count(unknown.lines, 'line')} that kpc does not know${first}`;
}

export function logJson(log: ProxyLog) {
  const { firstTime, lastTime, problems, facts, flags, sysctls, syncs, slowest, unknown } = log;
  const mode = modeOfLog(log);
  return {
    lines: log.lines,
    firstTime,
    lastTime,
    mode,
    modeFrom: mode && modeSource(log),
    version: facts.get('version')?.[0],
    nodeAddresses: unlessEmpty(loggedAddresses(log)),
    flags: Object.fromEntries(flags),
    sysctls: Object.fromEntries(sysctls),
    syncs,
    slowestSync: slowest?.seconds,
    slowestSyncAt: slowest && { file: slowest.file, line: slowest.line },
    minSyncPeriod: facts.get('periods')?.[0],
    problems: [...problems.values()].map(({ problem, at, count: times, detail }) => {
      const { code, releases, source } = problem;
      const [meaning, advice] = logProblemWords[code];
      return { code, meaning, advice, releases, source, count: times, ...at, detail };
    }),
    unknown,
  };
}
