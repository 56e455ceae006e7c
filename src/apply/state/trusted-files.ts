import { Failure } from './failure.ts';
import type { Host, PathLevel } from '../node/host.ts';

/** Whose files root goes by: root's, and for a bundle also those of the person who became root to run this. */
interface Trusted {
  readonly owners: ReadonlySet<number>;
  readonly groups: ReadonlySet<number>;
}

const root: Trusted = { owners: new Set([0]), groups: new Set([0]) };

/** Throws a Failure where others than root could change what is in the state folder. */
export async function assertTrustedState(host: Host, folder: string): Promise<void> {
  const exposure = await findExposure(host, folder, root);
  if (exposure === undefined) return;
  throw new Failure(
    'bad-state-folder',
    `users other than root can change the state folder ${folder}: ${exposure.text}`,
    `${exposure.advice}, or choose another folder with --state-dir`,
  );
}

/** Throws a Failure where others than root, and than who became root by sudo, could change the bundle. */
export async function assertTrustedBundle(host: Host, folder: string, what = 'the bundle'): Promise<void> {
  const { invoker } = host.user;
  const trusted = {
    owners: new Set([...root.owners, ...(invoker ? [invoker.uid] : [])]),
    groups: new Set([...root.groups, ...(invoker ? [invoker.gid] : [])]),
  };
  const exposure = await findExposure(host, folder, trusted);
  if (exposure === undefined) return;
  throw new Failure('bad-bundle', `other users can change ${what} ${folder}: ${exposure.text}`, exposure.advice);
}

interface Exposure {
  readonly text: string;
  readonly advice: string;
}

/** Who is not root does no harm to others by what they read. */
async function findExposure(host: Host, folder: string, trusted: Trusted): Promise<Exposure | undefined> {
  if (host.user.uid !== 0) return undefined;
  const paths = [folder, ...(await host.list(folder)).map((name) => `${folder}/${name}`)];
  for (const path of paths) {
    for (const level of await host.examine(path)) {
      const exposure = describeExposure(level, trusted);
      if (exposure) return exposure;
    }
  }
  return undefined;
}

const sticky = 0o1000;
const groupMayWrite = 0o020;
const allMayWrite = 0o002;

function describeExposure(
  { path, owner, group, mode, isParent, isReadOnly }: PathLevel,
  trusted: Trusted,
): Exposure | undefined {
  // A volume that is mounted read-only, as that of a ConfigMap is, belongs to who made it.
  if (isReadOnly) return undefined;
  if (!trusted.owners.has(owner)) {
    // Of a link too: not of what it leads to.
    return {
      text: `${path} belongs to user ${owner}`,
      advice: `check what it holds, then run "chown -h root ${path}"`,
    };
  }
  // In a folder like /tmp no user may move what is another's.
  if (isParent && (mode & sticky) !== 0) return undefined;
  const shown = (mode & 0o7777).toString(8);
  if ((mode & allMayWrite) !== 0) {
    return { text: `any user can write to ${path} (mode ${shown})`, advice: `run "chmod go-w ${path}"` };
  }
  if ((mode & groupMayWrite) !== 0 && !trusted.groups.has(group)) {
    return { text: `group ${group} can write to ${path} (mode ${shown})`, advice: `run "chmod g-w ${path}"` };
  }
  return undefined;
}
