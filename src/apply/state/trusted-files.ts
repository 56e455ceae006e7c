import { Failure } from './failure.ts';
import type { Host, PathLevel } from '../node/host.ts';

/** Whose files root trusts: root's, and for a bundle also those of the person who became root to run this. */
interface Trusted {
  readonly owners: ReadonlySet<number>;
  readonly groups: ReadonlySet<number>;
}

const root: Trusted = { owners: new Set([0]), groups: new Set([0]) };

/** Throws a Failure if others than root could change what is in the state folder. */
export async function assertTrustedState(host: Host, folder: string): Promise<void> {
  const { exposure } = await examineTrust(host, folder, root);
  if (exposure === undefined) return;
  const text = `users other than root can change the state folder ${folder}: ${exposure.text}`;
  throw new Failure('bad-state-folder', text, `${exposure.advice}, or choose another folder with --state-dir`);
}

/**
 * Reads a bundle, or the keys that sign one. Throws a Failure if others than root, and than who became root by sudo, could
 * change it, or could have put it there.
 */
export async function readTrusted<T>(
  { host, path, what }: { readonly host: Host; readonly path: string; readonly what: string },
  read: () => T | Promise<T>,
): Promise<T> {
  const { uid, gid } = host.user.invoker ?? { uid: 0, gid: 0 };
  // A group of the same number is the user's own, as useradd makes it; one like "users" has others in it.
  const trusted = { owners: new Set([0, uid]), groups: new Set([0, gid === uid ? gid : 0]) };
  const { exposure, isThere } = await examineTrust(host, path, trusted);
  if (exposure) {
    throw new Failure('bad-bundle', `other users can change ${what} ${path}: ${exposure.text}`, exposure.advice);
  }
  // Of what is not there, or is no file, this says so.
  const content = await read();
  if (isThere) return content;
  throw new Failure('bad-bundle', `${what} ${path} was not there before it was read`, 'run the command again');
}

interface Exposure {
  readonly text: string;
  readonly advice: string;
}

/**
 * How others could change a file, or a folder and what is in it, and whether it is there. Who is not root does no harm to others
 * by what they read.
 */
async function examineTrust(
  host: Host,
  folder: string,
  trusted: Trusted,
): Promise<{ readonly exposure?: Exposure | undefined; readonly isThere: boolean }> {
  if (host.user.uid !== 0) return { isThere: true };
  const levels = [...(await host.examine(folder))];
  const isThere = levels.some(({ isParent }) => !isParent);
  for (const name of await host.list(folder)) levels.push(...(await host.examine(`${folder}/${name}`)));
  const [exposure] = levels.flatMap((level) => describeExposure(level, trusted) ?? []);
  return { exposure, isThere };
}

const sticky = 0o1000;
const groupMayWrite = 0o020;
const allMayWrite = 0o002;

function describeExposure(
  { path, owner, group, mode, isParent, isReadOnly }: PathLevel,
  trusted: Trusted,
): Exposure | undefined {
  if (!trusted.owners.has(owner)) {
    // Of a link too: not of what it leads to.
    const advice = `check what it holds, then run "chown -h root ${path}"`;
    return { text: `${path} belongs to user ${owner}`, advice };
  }
  // In a folder like /tmp no user may move what is another's. The volume of a ConfigMap is mounted read-only, with mode 777.
  if (isReadOnly || (isParent && (mode & sticky) !== 0)) return undefined;
  const shown = (mode & 0o7777).toString(8);
  if ((mode & allMayWrite) !== 0) {
    return { text: `any user can write to ${path} (mode ${shown})`, advice: `run "chmod go-w ${path}"` };
  }
  if ((mode & groupMayWrite) !== 0 && !trusted.groups.has(group)) {
    return { text: `group ${group} can write to ${path} (mode ${shown})`, advice: `run "chmod g-w ${path}"` };
  }
  return undefined;
}
