import { describeError, hasCode } from '../../base/system-errors.ts';
import { claim as claimCheck } from '#checks';
import type { Shaped } from '../../base/json/schema.ts';
import { Failure } from './failure.ts';
import type { Host } from '../node/host.ts';
import { readBootId } from '../node/network.ts';
import { hidesProcesses, readStartTime } from '../node/processes.ts';
import { readJson, writeJson } from './record.ts';
import type { claimSchema, processSchema } from './schemas.ts';

/** One process of one boot of the kernel: process ids come again. */
type ProcessIdentity = Shaped<typeof processSchema>;

/** "out of sight": in another PID namespace, as a container's processes are, or the node's to a container; or hidden by /proc. */
type Whereabouts = 'running' | 'gone' | 'out of sight';

/** The identity of this process, for findProcess of a later one. */
export async function identifyOwnProcess(host: Host): Promise<ProcessIdentity> {
  const [started, bootId, namespace, network] = await Promise.all([
    readStartTime(host, host.pid),
    readBootId(host),
    readNamespace(host, 'pid'),
    readNamespace(host, 'net'),
  ]);
  return { pid: host.pid, started: started ?? '0', bootId, namespace, network };
}

/** Whether a process still runs, here or out of sight. */
export async function findProcess(host: Host, process: ProcessIdentity): Promise<Whereabouts> {
  if (process.bootId !== (await readBootId(host))) return 'gone';
  if (process.namespace !== undefined && process.namespace !== (await readNamespace(host, 'pid')))
    return 'out of sight';
  const started = await readStartTime(host, process.pid);
  if (started === undefined && (await hidesProcesses(host))) return 'out of sight';
  return started === process.started ? 'running' : 'gone';
}

function readNamespace(host: Host, kind: 'pid' | 'net'): Promise<string | undefined> {
  return host.readLink(`/proc/self/ns/${kind}`);
}

/** What a holder of the lock says about itself. */
type Claim = Shaped<typeof claimSchema>;

/** How long a claim counts whose process is out of sight: only waiting for a confirmation takes longer. */
const unseenMilliseconds = 10 * 60_000;

/**
 * Where claims to this node are laid down: what kpc-apply changes belongs to a network namespace, whatever state folder
 * it is told to use. A folder of root's and not an abstract socket of the namespace: any user may bind such a socket's
 * name and hold up root with it, and Node cannot ask the kernel whose it is. /run is empty after a boot.
 */
async function lockFolder(host: Host): Promise<string> {
  const namespace = await readNamespace(host, 'net');
  return `/run/kpc-apply/${namespace?.match(/\d+/)?.[0] ?? 'unknown'}`;
}

/**
 * Does some work while no other kpc-apply works on the same node or with the same state folder. Fails with "busy" at
 * once where one does. The state folder has claims of its own, for it may be shared by containers with a /run each; a
 * claim of another network keeps nobody out.
 *
 * Node has no flock(2), so each contender lays down a claim of its own name before it looks for others: of two that
 * come at the same moment at least one sees the other, and both giving way is the worst that can happen. A claim whose
 * process is gone has no owner, and since its name never comes again, taking it away cannot hit the wrong one.
 * Test: of two that come at once, never both get in.
 */
export async function withLock<T>(host: Host, folder: string, command: string, work: () => Promise<T>): Promise<T> {
  const claim: Claim = { ...(await identifyOwnProcess(host)), command, since: host.uptime() };
  const own = `${claim.pid}-${claim.started}`;
  const laid: string[] = [];
  try {
    for (const { claims, remedy } of await claimPlaces(host, folder)) {
      const path = `${claims}/${own}`;
      laid.push(path);
      try {
        await writeJson(host, path, claim);
      } catch (error) {
        const isTaken = hasCode(error, 'EEXIST') || hasCode(error, 'ENOTDIR');
        const advice = isTaken
          ? `remove the file in the place of ${claims}, or of a folder above it, and try again`
          : remedy;
        throw new Failure('write-failed', `cannot take the lock in ${claims}: ${describeError(error)}`, advice);
      }
      const { holder, abandoned } = await lookAtClaims(host, claims, own);
      if (holder) {
        const busy = `another kpc-apply is running: process ${holder.pid}, "${holder.command}"`;
        throw new Failure('busy', busy, 'wait until it has ended, then try again');
      }
      for (const each of abandoned) await host.remove(each);
    }
    return await work();
  } finally {
    // A claim that stays has no owner once this process has ended, and what was done is not undone by it.
    // Test: what was done is done, also where the claim cannot be taken away.
    for (const path of laid) await host.remove(path).catch(() => undefined);
  }
}

/** Another kpc-apply that works in this network, with whatever state folder. */
export async function findHolder(host: Host, folder: string): Promise<Claim | undefined> {
  for (const { claims } of await claimPlaces(host, folder)) {
    const { holder } = await lookAtClaims(host, claims);
    if (holder) return holder;
  }
  return undefined;
}

/** The folders with claims, and what to do where none can be laid down in them. */
async function claimPlaces(host: Host, folder: string) {
  return [
    { claims: await lockFolder(host), remedy: 'run it as root, and make sure that /run is writable' },
    {
      claims: `${folder}/lock`,
      remedy: 'free some space and make the folder writable, or choose another with --state-dir',
    },
  ];
}

/** The other kpc-apply that holds the lock, if one does, and the claims without an owner that come before its own. */
async function lookAtClaims(
  host: Host,
  claims: string,
  own?: string,
): Promise<{ readonly holder?: Claim | undefined; readonly abandoned: readonly string[] }> {
  const abandoned: string[] = [];
  const network = await readNamespace(host, 'net');
  for (const name of await host.list(claims)) {
    if (name === own || name.endsWith('.new')) continue;
    const claim = await readClaim(host, `${claims}/${name}`);
    if (!claim) continue;
    if (await isHeld(host, claim)) {
      // One of an earlier version names no network.
      if (claim.network === undefined || claim.network === network) return { holder: claim, abandoned };
    } else abandoned.push(`${claims}/${name}`);
  }
  return { abandoned };
}

async function isHeld(host: Host, claim: Claim): Promise<boolean> {
  const place = await findProcess(host, claim);
  if (place === 'out of sight') return host.uptime() - (claim.since ?? 0) < unseenMilliseconds;
  return place === 'running';
}

/** Undefined for what no kpc-apply laid down: a claim appears whole or not at all. */
async function readClaim(host: Host, path: string): Promise<Claim | undefined> {
  try {
    return await readJson(host, path, claimCheck, '');
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
