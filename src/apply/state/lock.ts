import { hasCode } from '../../base/system-errors.ts';
import { claim as claimCheck } from '#checks';
import type { Shaped } from '../../base/json/schema.ts';
import { causeOf, Failure } from './failure.ts';
import type { Host } from '../node/host.ts';
import { readBootId } from '../node/network.ts';
import { hidesProcesses, readStartTime } from '../node/processes.ts';
import { readJsonFile, writeJson } from './record.ts';
import type { claimSchema, processSchema } from './schemas.ts';

type ProcessIdentity = Shaped<typeof processSchema>;

export async function identifyOwnProcess(host: Host): Promise<ProcessIdentity> {
  const [started, bootId, namespace, network] = await Promise.all([
    readStartTime(host, host.pid),
    readBootId(host),
    namespaceLink(host, 'pid'),
    namespaceLink(host, 'net'),
  ]);
  return { pid: host.pid, started: started ?? '0', bootId, namespace, network };
}

/**
 * Reports whether a process runs. "unseen": in another PID namespace (a container and its node, for example), or hidden by /proc.
 */
export async function findProcess(host: Host, process: ProcessIdentity) {
  if (process.bootId !== (await readBootId(host))) return 'gone';
  if (process.namespace !== undefined && process.namespace !== (await namespaceLink(host, 'pid'))) return 'unseen';
  const started = await readStartTime(host, process.pid);
  if (started === undefined && (await hidesProcesses(host))) return 'unseen';
  return started === process.started ? 'running' : 'gone';
}

function namespaceLink(host: Host, kind: 'pid' | 'net'): Promise<string | undefined> {
  return host.readLink(`/proc/self/ns/${kind}`);
}

type LockClaim = Shaped<typeof claimSchema>;

/** How long the claim of an unseen process counts. Only waiting for a confirmation takes longer. */
const unseenMilliseconds = 10 * 60_000;

/**
 * Returns the folder for claims in this network namespace, whatever the state folder. Uses a folder that belongs to root, not an abstract
 * socket, because any user could bind that socket first and lock root out. /run is empty after a boot.
 */
async function lockFolder(host: Host): Promise<string> {
  const namespace = await namespaceLink(host, 'net');
  return `/run/kpc-apply/${namespace?.match(/\d+/)?.[0] ?? 'unknown'}`;
}

/**
 * Does some work while no other kpc-apply works in this network or state folder. Otherwise throws a Failure "busy" at once. The state
 * folder has claims of its own, because containers with separate /run folders may share it. A claim from another network blocks nobody.
 *
 * Node has no flock(2), so each process writes a claim with a unique name, then looks for others. If two do this at the same moment, at
 * least one sees the other; at worst both give way. The claim of a dead process can be removed safely, because its name is never reused.
 * Test: apply/lock.test.ts.
 */
export async function withLock<T>(host: Host, folder: string, command: string, work: () => Promise<T>): Promise<T> {
  const claim: LockClaim = { ...(await identifyOwnProcess(host)), command, since: host.uptime() };
  const own = `${claim.pid}-${claim.started}`;
  const laid: string[] = [];
  try {
    for (const { claims, of } of await claimPlaces(host, folder)) {
      const path = `${claims}/${own}`;
      laid.push(path);
      try {
        await writeJson(host, path, claim);
      } catch (error) {
        const isTaken = hasCode(error, 'EEXIST') || hasCode(error, 'ENOTDIR');
        const lock = { problem: 'lock', folder: claims, of: isTaken ? 'file' : of, cause: causeOf(error) } as const;
        throw new Failure('write-failed', lock);
      }
      const { holder, abandoned } = await lookAtClaims(host, claims, own);
      if (holder) throw new Failure('busy', { pid: holder.pid, command: holder.command });
      for (const each of abandoned) await host.remove(each);
    }
    return await work();
  } finally {
    // A claim that cannot be removed has no owner once this process ends. This must not undo the work. Test: apply/lock.test.ts.
    for (const path of laid) await host.remove(path).catch(() => undefined);
  }
}

export async function findHolder(host: Host, folder: string): Promise<LockClaim | undefined> {
  for (const { claims } of await claimPlaces(host, folder)) {
    const { holder } = await lookAtClaims(host, claims);
    if (holder) return holder;
  }
  return undefined;
}

async function claimPlaces(host: Host, folder: string) {
  return [
    { claims: await lockFolder(host), of: 'run' },
    { claims: `${folder}/lock`, of: 'state-folder' },
  ] as const;
}

async function lookAtClaims(host: Host, claims: string, own?: string) {
  const abandoned: string[] = [];
  const network = await namespaceLink(host, 'net');
  for (const name of await host.list(claims)) {
    if (name === own || name.endsWith('.new')) continue;
    const claim = await readClaim(host, `${claims}/${name}`);
    if (!claim) continue;
    if (await isHeld(host, claim)) {
      // A claim by an earlier version has no network.
      if (claim.network === undefined || claim.network === network) return { holder: claim, abandoned };
    } else abandoned.push(`${claims}/${name}`);
  }
  return { abandoned };
}

async function isHeld(host: Host, claim: LockClaim): Promise<boolean> {
  const place = await findProcess(host, claim);
  if (place === 'unseen') return host.uptime() - (claim.since ?? 0) < unseenMilliseconds;
  return place === 'running';
}

/** Returns undefined for a file that is not a claim. A claim is written whole or not at all, so a partial one is no claim. */
async function readClaim(host: Host, path: string): Promise<LockClaim | undefined> {
  try {
    return await readJsonFile(host, path, claimCheck, 'copy');
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
