// Measures kpc-apply after a change of one endpoint, compared with reading the node once with the tools alone.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @typedef {{ wall: number, cpu: number }} Times */

const here = dirname(fileURLToPath(import.meta.url));
const script = join(here, 'small-change.sh');
const inKernel = join(here, '..', '..', 'test', 'kernel-lab', 'in-kernel.sh');

/**
 * Where the change is made: in a network namespace of this kernel, or in the kernel tests' own kernel, which has IPVS.
 * @type {{ name: string, mode: 'iptables' | 'ipvs', variant: string, enter: [string, ...string[]] }[]}
 */
const places = [
  { name: 'iptables mode, legacy', mode: 'iptables', variant: 'legacy', enter: ['unshare', '-n', '-m'] },
  { name: 'iptables mode, nft', mode: 'iptables', variant: 'nft', enter: ['unshare', '-n', '-m'] },
  { name: 'IPVS mode, in the test kernel', mode: 'ipvs', variant: 'any', enter: [inKernel] },
];

/**
 * `bundles`: the bundles before and after, by mode. Returns the medians of both sides and of their ratios, and the ratio for
 * the work that no apply can avoid. For a place that this machine lacks, returns why.
 * @param {{
 *   bundles: Record<'iptables' | 'ipvs', { before: string, after: string }>, program: string, runs: number,
 * }} bench
 */
export function benchSmallChange({ bundles, program, runs }) {
  return places.map(({ name, mode, variant, enter: [command, ...args] }) => {
    const { before, after } = bundles[mode];
    const argv = [...args, 'bash', script, variant, before, after, `${runs}`, process.execPath, program];
    const run = spawnSync(command, argv, { encoding: 'utf8', maxBuffer: 1 << 26 });
    if (run.error || run.status !== 0) return { name, skipped: whyNot(run) };
    const { stdout } = run;
    const [applied, read, floor] = /** @type {[Times[], Times[], Times[]]} */ (
      ['apply', 'read', 'floor'].map((word) => readTimes(stdout, word))
    );
    /** @param {Times[]} some */
    const over = (some) =>
      some.map((own, i) => {
        const other = /** @type {Times} */ (read[i]);
        return { wall: own.wall / other.wall, cpu: own.cpu / other.cpu };
      });
    return {
      name,
      own: middle(applied),
      other: middle(read),
      ratio: middle(over(applied)),
      floor: middle(over(floor)),
    };
  });
}

/**
 * Returns why a place gave no figures, in one line. A separate kernel prints everything on standard output.
 * @param {import('node:child_process').SpawnSyncReturns<string>} run
 */
export function whyNot({ error, stderr, stdout, status, signal }) {
  if (error) return error.message;
  const ending = status === null ? `ended by ${signal}` : `ended with status ${status}`;
  const said = [stderr, stdout].map((text) => text.trim().split('\n').at(-1)?.trim()).find(Boolean);
  return said ? `${said} (${ending})` : `${ending}, and said nothing`;
}

/**
 * @param {string} text
 * @param {string} word
 */
function readTimes(text, word) {
  return [...text.matchAll(new RegExp(`^${word} (\\S+) (\\S+) (\\S+)$`, 'gm'))].map(([, wall, user, system]) => ({
    wall: Number(wall),
    cpu: Number(user) + Number(system),
  }));
}

/**
 * @param {Times[]} rows
 */
function middle(rows) {
  /** @param {keyof Times} key */
  const median = (key) =>
    /** @type {number} */ (rows.map((row) => row[key]).toSorted((a, b) => a - b)[rows.length >> 1]);
  return { wall: median('wall'), cpu: median('cpu') };
}
