// Times whole processes from outside.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, release, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';

/** @typedef {{ argv: string[], ok?: (number | null)[], env?: NodeJS.ProcessEnv }} Command what to run, the statuses it may end with, and its environment where that is not this one's */
/** @typedef {{ wall: number, cpu?: number, peak?: number }} Figures */
/** @typedef {{ wall: number, cpu: number, peak: number }} Ratios */
/** @typedef {{ own: Figures, other: Figures, ratio: Ratios }} Comparison */

const scratch = mkdtempSync(join(tmpdir(), 'kpc-measure-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

/** GNU time reports peak memory, and bash CPU time in milliseconds. Without them, there is only wall time. */
const hasTime = spawnSync('bash', ['-c', 'time command time -f %M true']).status === 0;
const timed = `{ TIMEFORMAT='%3U %3S'; time command time -q -o "$0" -f %M "$@" 2>&3; } 3>&2 2>"$0.cpu"`;

/**
 * Runs a command. `wall` and `cpu` are seconds, `peak` is MiB; the last two are undefined if nothing reports them.
 * @param {Command} command
 * @returns {Figures}
 */
export function runOnce({ argv, ok = [0], env = process.env }) {
  const report = join(scratch, 'report');
  const [program, ...args] = /** @type {[string, ...string[]]} */ (
    hasTime ? ['bash', '-c', timed, report, ...argv] : argv
  );
  const start = process.hrtime.bigint();
  const { status, stderr, error } = spawnSync(program, args, {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
    maxBuffer: 1 << 28,
    encoding: 'utf8',
  });
  const wall = Number(process.hrtime.bigint() - start) / 1e9;
  if (error) throw error;
  if (!ok.includes(status)) throw new Error(`${argv.join(' ')} ended with ${status}: ${stderr.slice(-2000)}`);
  if (!hasTime) return { wall };
  const [user, system] = /** @type {[number, number]} */ (
    readFileSync(`${report}.cpu`, 'utf8').trim().split(' ').map(Number)
  );
  return { wall, cpu: user + system, peak: Number(readFileSync(report, 'utf8')) / 1024 };
}

/**
 * Runs a command after a warm-up. Returns the median of each figure.
 * @param {Command} command
 * @param {number} runs
 */
export function measure(command, runs) {
  runOnce(command);
  return medians(Array.from({ length: runs }, () => runOnce(command)));
}

/**
 * Runs two commands in turn, after a warm-up of each. Returns the medians of both, and the medians of the ratios pair by
 * pair, which hold even on a busy machine.
 * @param {Command} command
 * @param {Command} other
 * @param {number} runs
 * @returns {Comparison}
 */
export function compare(command, other, runs) {
  runOnce(command);
  runOnce(other);
  const pairs = Array.from({ length: runs }, () => /** @type {const} */ ([runOnce(command), runOnce(other)]));
  return {
    own: medians(pairs.map(([own]) => own)),
    other: medians(pairs.map(([, theirs]) => theirs)),
    ratio: medians(
      pairs.map(([own, theirs]) => ({
        wall: own.wall / theirs.wall,
        cpu: (own.cpu ?? NaN) / (theirs.cpu ?? NaN),
        peak: (own.peak ?? NaN) / (theirs.peak ?? NaN),
      })),
    ),
  };
}

/**
 * @template {Figures} T
 * @param {T[]} results one or more, all with the same figures
 * @returns {T}
 */
export function medians(results) {
  const keys = /** @type {(keyof Figures)[]} */ (Object.keys(/** @type {T} */ (results[0])));
  return /** @type {T} */ (
    Object.fromEntries(keys.map((key) => [key, median(results.map((result) => /** @type {number} */ (result[key])))]))
  );
}

/** @param {number[]} numbers */
function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [below, above] = /** @type {[number, number]} */ ([sorted[middle - 1], sorted[middle]]);
  return sorted.length % 2 === 1 ? above : (below + above) / 2;
}

/**
 * Returns the exponent e of the curve y = c * x^e nearest to the points, on logarithmic axes.
 * @param {[number, number][]} points
 */
export function fitExponent(points) {
  const logs = points.map(([x, y]) => /** @type {const} */ ([Math.log(x), Math.log(y)]));
  /** @param {0 | 1} index */
  const mean = (index) => logs.reduce((sum, log) => sum + log[index], 0) / logs.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const slope = logs.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  return slope / logs.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
}

/** Describes the machine in one line. */
export function describeMachine() {
  const [first] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  // Name these variables, because Node reads them at each start, and reading certificates takes as long as everything else.
  const settings = ['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS'].filter((name) => process.env[name]);
  const node = `Node ${process.versions.node}${settings.length > 0 ? ` with ${settings.join(' and ')} set` : ''}`;
  return `${cpus().length} CPUs (${first?.model.trim() ?? 'unknown'}), ${memory} GiB, Linux ${release()}, ${node}`;
}
