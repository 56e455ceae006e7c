import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import type { PathLevel } from '../../src/base/held-path.ts';
import { realHost } from '../../src/apply/node/real-host.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, examineAs, rootsLevel } from './fake-node.ts';

const bundle = 'fixtures/dual-stack/expected-ipvs';
const scratch = mkdtempSync(join(tmpdir(), 'kpc-trust-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const level = (change: Partial<PathLevel>): PathLevel => ({ ...rootsLevel('/x'), ...change });

/** What getfacl prints where there is no more than the mode. */
const plain = 'user::rwx\ngroup::rwx\nother::r-x\n\n';

/** A node on which the bundle, or the state folder, is reached over that level. Its tool getfacl prints `acl`. */
function hostWith(
  which: 'bundle' | 'state',
  change: Partial<PathLevel>,
  user?: Host['user'],
  acl: string | undefined = plain,
): Host {
  const { host } = createFakeNode();
  const examine = examineAs((path) =>
    path.startsWith(which === 'bundle' ? bundle : '/var/lib/kpc') ? [level(change), level({ path })] : [],
  );
  const run: Host['run'] = async (command) => {
    if (command.tool !== 'getfacl') return host.run(command);
    return acl === 'missing' ? { kind: 'missing' } : { kind: 'ended', status: 0, stdout: acl, stderr: '' };
  };
  return { ...host, examine, run, user: user ?? host.user };
}

const sudo: Host['user'] = { uid: 0, invoker: { uid: 1000, gid: 1000 } };

describe('a bundle that root applies', () => {
  test.each<readonly [name: string, change: Partial<PathLevel>, user: Host['user'] | undefined]>([
    ["is root's", {}, undefined],
    ["may be written to by root's group", { mode: 0o775 }, undefined],
    ['belongs to who ran sudo', { owner: 1000, group: 1000 }, sudo],
    ['may be written to by the own group of who ran sudo', { owner: 1000, group: 1000, mode: 0o775 }, sudo],
    ['lies below a folder like /tmp', { mode: 0o1777, isParent: true }, undefined],
    ['is on a volume that is mounted read-only', { mode: 0o777, isReadOnly: true }, undefined],
    ["may be any user's where root does not read it", { owner: 7, mode: 0o777 }, { uid: 1000, invoker: undefined }],
  ])('%s', async (_, change, user) => {
    expect(await callApply(hostWith('bundle', change, user), 'apply', bundle)).toMatchObject({ status: 0 });
  });

  test.each<readonly [name: string, change: Partial<PathLevel>, user: Host['user'] | undefined, reason: RegExp]>([
    [
      'belongs to another user',
      { owner: 1000 },
      undefined,
      /\/x belongs to user 1000 .*\n {2}help: check the content, then run "chown -h root \/x"/,
    ],
    ["is another user's on a volume that is mounted read-only", { owner: 5, isReadOnly: true }, undefined, /user 5/],
    ['belongs to another user than who ran sudo', { owner: 1001 }, sudo, /belongs to user 1001/],
    [
      'may be written to by all',
      { mode: 0o777 },
      undefined,
      /any user can write to \/x \(mode 777\).*\n {2}help: run "chmod go-w \/x"/,
    ],
    ['may be written to by all, in a folder like /tmp', { mode: 0o1777 }, undefined, /mode 1777/],
    ['may be written to by a group', { mode: 0o775, group: 100 }, sudo, /group 100 can write to \/x/],
    [
      'may be written to by a group of who ran sudo that others are in',
      { owner: 1000, group: 100, mode: 0o775 },
      { uid: 0, invoker: { uid: 1000, gid: 100 } },
      /group 100 can write to \/x \(mode 775\).*\n {2}help: run "chmod g-w \/x"/,
    ],
    [
      "may be written to by a group of the user's number that is not the user's own",
      { owner: 1000, group: 1000, mode: 0o775 },
      { uid: 0, invoker: { uid: 1000, gid: 100 } },
      /group 1000 can write/,
    ],
    [
      'lies below a folder of another user',
      { owner: 1000, isParent: true, mode: 0o1777 },
      undefined,
      /belongs to user 1000/,
    ],
    ['lies below a folder that all may write to', { isParent: true, mode: 0o777 }, undefined, /any user can write/],
  ])('is refused where it %s', async (_, change, user, reason) => {
    for (const command of ['apply', 'plan', 'verify', 'doctor']) {
      const { status, err } = await callApply(hostWith('bundle', change, user), command, bundle);
      expect(status).toBe(2);
      expect(err).toMatch(reason);
    }
  });
});

describe('a list of rights behind the mode', () => {
  const listed = (...entries: readonly string[]) => ['user::rwx', ...entries, 'group::r-x', 'mask::rwx', ''].join('\n');
  test.each<readonly [name: string, acl: string, reason: RegExp]>([
    [
      'that lets another user write',
      listed('user:1000:rwx'),
      /an access control list lets user 1000 write to \/x \[bad-bundle\]\n {2}help: see "getfacl \/x", then run "setfacl -b \/x"/,
    ],
    ['that lets another group write', listed('group:7:-w-'), /lets group 7 write to \/x/],
    [
      'that cannot be seen',
      'missing',
      /\/x: its mode 775 may hide an access control list, and getfacl, which shows it, is missing/,
    ],
  ])('%s is refused', async (_, acl, reason) => {
    for (const which of ['bundle', 'state'] as const) {
      const { status, err } = await callApply(hostWith(which, { mode: 0o775 }, undefined, acl), 'apply', bundle);
      expect(status).toBe(which === 'bundle' ? 2 : 3);
      expect(err).toMatch(which === 'bundle' ? reason : /can change the state folder/);
    }
  });

  test.each([
    ['that lets others read', listed('user:1000:r-x', 'group:7:r--'), { mode: 0o775 }],
    ['of the user who ran sudo', listed('user:1000:rwx', 'group:1000:rwx'), { mode: 0o775 }],
    ['in a folder like /tmp', listed('user:7:rwx'), { mode: 0o1775, isParent: true }],
    ['that the mode shows to let nobody write', listed('user:7:rwx'), { mode: 0o755 }],
  ])('%s is not', async (_, acl, change) => {
    expect(await callApply(hostWith('bundle', change, sudo, acl), 'plan', bundle)).toMatchObject({
      status: 1,
      err: '',
    });
  });
});

test('a file of another user deep in the state folder is found', async () => {
  const { host, files } = createFakeNode();
  files.set('/var/lib/kpc/lock/100-1', '{}');
  const examine = examineAs((path) => [level({ path, owner: path.endsWith('/lock/100-1') ? 1000 : 0 })]);
  const { status, err } = await callApply({ ...host, examine }, 'rollback');
  expect(err).toContain('/var/lib/kpc/lock/100-1 belongs to user 1000');
  expect(status).toBe(3);
});

test('watch looks in each round who may change its state folder', async () => {
  let mode = 0o700;
  const { host } = createFakeNode();
  const examine = examineAs((path) => [level({ path, mode: path === '/var/lib/kpc' ? mode : 0o755 })]);
  const { status, err } = await callApply(
    {
      ...host,
      examine,
      sleep: async (milliseconds) => {
        await host.sleep(milliseconds);
        if (mode === 0o777) process.emit('SIGTERM');
        mode = 0o777;
      },
    },
    'watch',
    bundle,
    '--sync-period',
    '200ms',
    '--min-sync-period',
    '100ms',
  );
  expect(err).toMatch(/users other than root can change the state folder .* any user can write to/);
  expect(status).toBe(0);
});

test.runIf(process.getuid?.() === 0)('an access control list of the system is seen', async (context) => {
  const folder = join(scratch, 'listed');
  cpSync(bundle, folder, { recursive: true });
  const { status } = spawnSync('setfacl', ['-m', 'u:1234:rwx', folder]);
  context.skip(status !== 0, 'no setfacl, or a file system without such lists');
  const { host } = createFakeNode();
  const { examine, list, run } = realHost;
  const look: Host['run'] = (command) => (command.tool === 'getfacl' ? run(command) : host.run(command));
  const { err } = await callApply({ ...host, examine, list, run: look }, 'apply', folder);
  expect(err).toContain(`an access control list lets user 1234 write to ${folder}`);
});

test.runIf(process.getuid?.() === 0)(
  'reads the folder that was examined, not one that has taken its place',
  async () => {
    const [folder, other] = [join(scratch, 'examined'), join(scratch, 'other')];
    cpSync(bundle, folder, { recursive: true });
    mkdirSync(other);
    writeFileSync(join(other, 'manifest.json'), 'not a bundle');
    const { host } = createFakeNode();
    const swapped: Host = {
      ...host,
      list: (path) => (path.startsWith('/proc/self/fd/') ? realHost : host).list(path),
      async examine(path) {
        if (path !== folder) return host.examine(path);
        const examined = await realHost.examine(path);
        renameSync(folder, `${folder}.aside`);
        symlinkSync(other, folder);
        return examined;
      },
    };
    const { status, err } = await callApply(swapped, 'plan', folder);
    expect(status, err).toBe(1);
  },
);

test('a folder that others can change is not listed', async () => {
  const { host } = createFakeNode();
  const listed: string[] = [];
  const list: Host['list'] = async (path) => (listed.push(path), host.list(path));
  const examine = examineAs((path) => [level({ path, owner: path === bundle ? 1000 : 0 })]);
  expect((await callApply({ ...host, examine, list }, 'apply', bundle)).status).toBe(2);
  expect(listed).not.toContain(bundle);
});

test('a bundle that appears after it was looked for is refused', async () => {
  const { host } = createFakeNode();
  const examine = examineAs((path) =>
    path === bundle ? [level({ path: '/tmp', mode: 0o1777, isParent: true })] : [rootsLevel(path)],
  );
  const { status, err } = await callApply({ ...host, examine }, 'apply', bundle);
  expect(err).toMatch(/the bundle .* was replaced after its owner and mode were checked \[bad-bundle\]/);
  expect(status).toBe(2);
});

describe('a state folder', () => {
  test.each<readonly [name: string, change: Partial<PathLevel>]>([
    ['belongs to another user', { owner: 1000 }],
    ['belongs to who ran sudo', { owner: 1000 }],
    ['may be written to by all', { mode: 0o777 }],
    ['may be written to by the own group of who ran sudo', { mode: 0o775, group: 1000 }],
  ])('is refused where it %s', async (_, change) => {
    for (const args of [['apply', bundle], ['rollback'], ['confirm'], ['cleanup']]) {
      const { status, err } = await callApply(hostWith('state', change, sudo), ...args);
      expect(status).toBe(3);
      expect(err).toMatch(
        /users other than root can change the state folder \/var\/lib\/kpc: .* \[bad-state-folder\]\n {2}help: (check the content, then )?run "ch/,
      );
    }
  });
});

async function levelsOf(path: string): Promise<readonly PathLevel[]> {
  const examined = await realHost.examine(path);
  examined.close();
  return examined.levels;
}

test.runIf(process.getuid?.() === 0)('the levels of a path are those of the link and of what it leads to', async () => {
  const [mine, theirs] = [join(scratch, 'mine'), join(scratch, 'theirs')];
  mkdirSync(mine);
  mkdirSync(theirs);
  cpSync(bundle, join(theirs, 'bundle'), { recursive: true });
  symlinkSync(join(theirs, 'bundle'), join(mine, 'link'));
  chownSync(theirs, 1234, 1234);
  chmodSync(theirs, 0o770);
  const levels = await levelsOf(join(mine, 'link'));
  expect(levels.find(({ path }) => path === theirs)).toEqual(
    level({ path: theirs, owner: 1234, group: 1234, mode: 0o770, isParent: true }),
  );
  expect(levels.map(({ path }) => path)).toEqual(expect.arrayContaining([mine, join(theirs, 'bundle'), '/']));
  expect(await levelsOf(join(scratch, 'none/at/all'))).not.toEqual([]);
});

test.runIf(process.getuid?.() === 0)(
  'a link belongs to the levels, and so does each folder that a chain of links passes',
  async () => {
    const [open, target] = [join(scratch, 'open'), join(scratch, 'kpc.pub')];
    mkdirSync(open);
    chmodSync(open, 0o777);
    writeFileSync(target, '');
    symlinkSync(target, join(open, 'middle'));
    lchownSync(join(open, 'middle'), 1234, 1234);
    symlinkSync('open/middle', join(scratch, 'chain'));
    const levels = await levelsOf(join(scratch, 'chain'));
    expect(levels[0]).toEqual(level({ path: target, mode: 0o644 }));
    expect(levels).toContainEqual(level({ path: join(scratch, 'chain'), isParent: true }));
    expect(levels).toContainEqual(level({ path: open, mode: 0o777, isParent: true }));
    expect(levels).toContainEqual(level({ path: join(open, 'middle'), owner: 1234, group: 1234, isParent: true }));
    symlinkSync('loop', join(scratch, 'loop'));
    expect(await levelsOf(join(scratch, 'loop'))).toContainEqual(
      level({ path: join(scratch, 'loop'), isParent: true }),
    );
  },
);

test.runIf(process.getuid?.() === 0)('".." after a link is the folder above what the link leads to', async () => {
  mkdirSync(join(scratch, 'far/away'), { recursive: true });
  chownSync(join(scratch, 'far'), 1234, 1234);
  symlinkSync('far/away', join(scratch, 'near'));
  expect(await levelsOf(`${scratch}/near/..`)).toContainEqual(
    level({ path: join(scratch, 'far'), owner: 1234, group: 1234 }),
  );
});
