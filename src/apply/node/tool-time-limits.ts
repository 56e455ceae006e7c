import type { Unseen } from '../../base/findings/apply.ts';
import { doing as doingCheck } from '#checks';
import { countLines } from '../../kernel/lines.ts';
import type { Shaped } from '../../base/json/schema.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';
import { findUnseen, isRoots, readStartTime, unlessForbidden } from './processes.ts';
import { Room } from './output.ts';
import type { NodeReading } from './node-reading.ts';
import { readJsonFile, writeJson, type StateFolder } from '../state/record.ts';
import type { doingSchema } from '../state/schemas.ts';

/** Base time limit in milliseconds while an operator may be cut off from the node. */
export const shortLimit = 20_000;

/** Milliseconds added per thousand lines of the node's state and of the tool's input, and the highest limit. */
const perThousandPresent = 200;
const perThousandFed = 1000;
const longestLimit = 180_000;

type Doing = Shaped<typeof doingSchema>;

export function readDoing(host: Host, folder: StateFolder): Promise<Doing | undefined> {
  return readJsonFile<Doing>(host, folder.doing, doingCheck, 'copy').catch(() => undefined);
}

interface Haste {
  readonly reading: NodeReading;
  readonly unconfirmed?: string | undefined;
  /** Whether a signal may cut tools short. False during a rollback, because a signal may have started the rollback. */
  readonly mayBeCut: boolean;
}

/** Returns the host with time limits that grow with the node. `announce` tells the standby processes how long the next step may take. */
export function inHaste(host: Host, folder: StateFolder, { reading, unconfirmed, mayBeCut }: Haste) {
  const { settings: _, variants: __, ...texts } = reading;
  const present = Object.values(texts).reduce((sum, part) => sum + countLines(part ?? ''), 0);
  // Several tools may run at once; the last one started sets the deadline.
  let writing = Promise.resolve();
  const announce = (milliseconds: number): Promise<void> => {
    if (unconfirmed === undefined) return writing;
    const doing: Doing = { id: unconfirmed, until: host.uptime() + milliseconds };
    writing = writing.then(() => writeJson(host, folder.doing, doing)).catch(() => undefined);
    return writing;
  };
  const run: Host['run'] = async (command, patience) => {
    const longer = (present * perThousandPresent + countLines(command.stdin ?? '') * perThousandFed) / 1_000_000;
    // Round to seconds, because messages show the limit.
    const limit = Math.min(shortLimit + Math.floor(longer) * 1000, longestLimit);
    await announce(limit);
    return host.run(command, { ...patience, limit, ...(mayBeCut ? {} : { signal: undefined }) });
  };
  return { host: { ...host, run }, announce };
}

const pollMilliseconds = 200;
const mostPolls = 25;

export interface Changer {
  readonly toolMark: string;
  readonly started?: string | undefined;
}

/** Kills tools that outlived another kpc-apply. Returns why some may be out of sight, if so. Test: apply/hanging-tools.test.ts. */
export async function endOrphans(host: Host, changer: Changer | undefined): Promise<Unseen | undefined> {
  if (changer === undefined || changer.toolMark === host.toolMark) return undefined;
  let unseen: Unseen | undefined;
  for (let i = 0; i < mostPolls; i++) {
    const marked = await findMarked(host, changer);
    unseen = marked.unseen;
    if (marked.pids.length === 0) break;
    for (const pid of marked.pids) await host.kill(pid).catch(() => undefined);
    await host.sleep(pollMilliseconds);
  }
  return unseen;
}

/** Like endOrphans, but throws a Failure if some processes may be out of sight, unless `assumesAlone`. */
export async function assertNoOrphans(host: Host, changer: Changer | undefined, assumesAlone: boolean): Promise<void> {
  const unseen = await endOrphans(host, changer);
  if (!unseen || assumesAlone) return;
  throw new Failure('not-ready', { problem: 'unseen-tools', unseen });
}

/** Bytes. The environment that kpc-apply gives a tool is shorter. */
const longestEnvironment = 2 ** 18;

async function findMarked(host: Host, { toolMark, started }: Changer) {
  const pids = (await host.list('/proc')).filter((name) => /^[1-9]\d*$/.test(name)).map(Number);
  let unseen = await findUnseen(host);
  const marked: number[] = [];
  // Read one process after another, because any user can start many.
  for (const pid of pids) {
    if (pid === host.pid) continue;
    const environment = await unlessForbidden(readEnvironment(host, pid));
    if (environment === 'forbidden') unseen ??= (await mayBeTool(host, pid, started)) ? 'forbidden' : undefined;
    else if (environment?.split('\0').includes(toolMark)) marked.push(pid);
  }
  return { pids: marked, unseen };
}

/** Returns undefined for a longer text. A process can declare gigabytes as its environment (PR_SET_MM_MAP). Test: apply/unseen.test.ts. */
async function readEnvironment(host: Host, pid: number): Promise<string | undefined> {
  try {
    return await host.readFile(`/proc/${pid}/environ`, { room: new Room(longestEnvironment) });
  } catch (error) {
    if (error instanceof Failure && error.code === 'node-too-large') return undefined;
    throw error;
  }
}

/**
 * Reports whether an unreadable process may be a tool of the kpc-apply that started at `started`. Such a tool runs as root and started
 * later. An older process is no such tool; a security module may be hiding it.
 */
async function mayBeTool(host: Host, pid: number, started: string | undefined): Promise<boolean> {
  if (!(await isRoots(host, `${pid}`))) return false;
  const own = await readStartTime(host, pid);
  return started === undefined || own === undefined || BigInt(own) >= BigInt(started);
}
