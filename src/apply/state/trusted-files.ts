import type { Exposure, TrustedKind } from '../../base/findings/apply.ts';
import type { PathLevel } from '../../base/held-path.ts';
import { renameInError } from '../../base/system-errors.ts';
import type { ExaminedPath, Host } from '../node/host.ts';
import { Failure } from './failure.ts';

interface Trusted {
  readonly owners: ReadonlySet<number>;
  readonly groups: ReadonlySet<number>;
}

const root: Trusted = { owners: new Set([0]), groups: new Set([0]) };

/** Levels of folders to examine. The deepest file in the state folder is lock/ID; a bundle has no folders. */
const depths = { state: 2, bundle: 1 };

/** Throws a Failure if anyone but root could change the content of the state folder. */
export async function assertTrustedState(host: Host, folder: string): Promise<void> {
  if (host.user.uid !== 0) return;
  const examined = await host.examine(folder);
  try {
    const exposure = await findExposure(host, examined, root, depths.state);
    if (exposure === undefined) return;
    throw new Failure('bad-state-folder', { problem: 'exposed', path: folder, exposure });
  } finally {
    examined.close();
  }
}

/**
 * Reads a bundle, or the keys that sign bundles. Throws a Failure if anyone but root or the sudo user could have placed or could change
 * it. `read` gets the examined path; errors name the original path. An unprivileged run cannot harm others, so it checks nothing.
 * Test: apply/trust.test.ts.
 */
export async function readTrusted<T>(
  { host, path, of }: { readonly host: Host; readonly path: string; readonly of: TrustedKind },
  read: (examined: string) => T | Promise<T>,
): Promise<T> {
  if (host.user.uid !== 0) return read(path);
  const { uid, gid } = host.user.invoker ?? { uid: 0, gid: 0 };
  // A group with the user's number is the user's own, as useradd makes it. A group such as "users" has other members.
  const trusted = { owners: new Set([0, uid]), groups: new Set([0, gid === uid ? gid : 0]) };
  const examined = await host.examine(path);
  try {
    const exposure = await findExposure(host, examined, trusted, depths.bundle);
    if (exposure) throw new Failure('bad-bundle', { problem: 'exposed', of, path, exposure });
    // Read first, because this throws the system's error if the path is missing or not a file.
    const content = await read(examined.path);
    if (examined.levels.some(({ isParent }) => !isParent)) return content;
    throw new Failure('bad-bundle', { problem: 'replaced', of, path });
  } catch (error) {
    throw renameInError(error, examined.path, path);
  } finally {
    examined.close();
  }
}

/** Returns a way in which others could change a file, or a folder and its content; undefined if there is none. */
async function findExposure(
  host: Host,
  { levels, path, examine }: ExaminedPath,
  trusted: Trusted,
  depth: number,
): Promise<Exposure | undefined> {
  for (const level of levels) {
    const exposure = exposureOf(level, trusted) ?? (await findGrant(host, level, trusted));
    if (exposure) return exposure;
  }
  for (const name of depth === 0 ? [] : await host.list(path)) {
    const below = await examine(name);
    try {
      const exposure = await findExposure(host, below, trusted, depth - 1);
      if (exposure) return exposure;
    } finally {
      below.close();
    }
  }
  return undefined;
}

const sticky = 0o1000;
const groupMayWrite = 0o020;
const allMayWrite = 0o002;

/** In a sticky folder such as /tmp, users cannot rename or remove others' files. A ConfigMap's volume is read-only, with mode 777. */
function isSafeToWrite({ mode, isParent, isReadOnly }: PathLevel): boolean {
  return isReadOnly || (isParent && (mode & sticky) !== 0);
}

function exposureOf(level: PathLevel, trusted: Trusted): Exposure | undefined {
  const { path, owner, group, mode } = level;
  if (!trusted.owners.has(owner)) return { kind: 'owner', path, owner };
  if (isSafeToWrite(level)) return undefined;
  if ((mode & allMayWrite) !== 0) return { kind: 'all', path, mode: showMode(mode) };
  if ((mode & groupMayWrite) === 0 || trusted.groups.has(group)) return undefined;
  return { kind: 'group', path, group, mode: showMode(mode) };
}

function showMode(mode: number): string {
  return (mode & 0o7777).toString(8);
}

/**
 * Returns the user or group that an access control list lets write. If a path has a list, its mode shows the list's mask instead of the
 * group's rights (acl(5)), so only a path that looks group-writable can have such an entry. Node cannot read the list, so this runs
 * getfacl. Test: apply/trust.test.ts.
 */
async function findGrant(host: Host, level: PathLevel, trusted: Trusted): Promise<Exposure | undefined> {
  const { path, mode } = level;
  if (isSafeToWrite(level) || (mode & groupMayWrite) === 0) return undefined;
  const list = await host.run({ tool: 'getfacl', args: ['-cnpE', '--', path] });
  if (list.kind === 'missing' || list.status !== 0) {
    return { kind: 'hidden-list', path, mode: showMode(mode), isMissing: list.kind === 'missing' };
  }
  for (const [, of = '', id = ''] of list.stdout.matchAll(/^(user|group):(\d+):.w.$/gm)) {
    const known = of === 'user' ? trusted.owners : trusted.groups;
    if (!known.has(Number(id))) return { kind: 'list', path, of, id };
  }
  return undefined;
}
