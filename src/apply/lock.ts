import { Failure, describeError } from './failure.ts';
import type { Host } from './host.ts';

/** What a holder of the lock says about itself. */
interface Claim {
  readonly pid: number;
  /** The process's start time (clock ticks since boot): process ids come again. */
  readonly started: string;
  readonly bootId: string;
  readonly command: string;
}

/**
 * Does some work while no other kpc-apply works with the same state folder. Fails with "busy" at once where one does.
 *
 * Node has no flock(2), so each contender lays down a claim of its own name before it looks for others: of two that
 * come at the same moment at least one sees the other, and both giving way is the worst that can happen. A claim whose
 * process is gone is nobody's, and since its name never comes again, taking it away cannot hit the wrong one.
 */
export async function withLock<T>(host: Host, folder: string, command: string, work: () => Promise<T>): Promise<T> {
  const bootId = await readBootId(host);
  const started = (await readStartTime(host, host.pid)) ?? '0';
  const own = `${host.pid}-${started}`;
  const claims = `${folder}/lock`;
  const claim: Claim = { pid: host.pid, started, bootId, command };
  try {
    await host.replaceFile(`${claims}/${own}`, `${JSON.stringify(claim)}\n`);
  } catch (error) {
    throw new Failure(
      'write-failed',
      `cannot take the lock in ${claims}: ${describeError(error)}`,
      'make room and see to it that the folder can be written, or name another with --state-dir',
    );
  }
  try {
    await assertAlone(host, claims, own, bootId);
    return await work();
  } finally {
    await host.remove(`${claims}/${own}`);
  }
}

async function assertAlone(host: Host, claims: string, own: string, bootId: string): Promise<void> {
  for (const name of await host.list(claims)) {
    if (name === own || name.endsWith('.new')) continue;
    const text = await host.readFile(`${claims}/${name}`);
    const claim = text === undefined ? undefined : parseClaim(text);
    if (!claim) continue;
    const alive = claim.bootId === bootId && (await readStartTime(host, claim.pid)) === claim.started;
    if (alive) {
      throw new Failure(
        'busy',
        `another kpc-apply is at work: process ${claim.pid}, "${claim.command}"`,
        'wait until it has ended and try again',
      );
    }
    await host.remove(`${claims}/${name}`);
  }
}

function parseClaim(text: string): Claim | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && 'pid' in value ? (value as Claim) : undefined;
  } catch {
    return undefined;
  }
}

/** The kernel's id of this boot: what was true of the kernel before it says nothing of the kernel now. */
export async function readBootId(host: Host): Promise<string> {
  return ((await host.readFile('/proc/sys/kernel/random/boot_id')) ?? '').trim();
}

/** Field 22 of /proc/PID/stat; the fields are counted after the command's name, which may hold anything. */
async function readStartTime(host: Host, pid: number): Promise<string | undefined> {
  const stat = await host.readFile(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}
