import { describe, expect, test } from 'vitest';
import type { ToolCommand, Host } from '../../src/apply/node/host.ts';
import { tooLarge } from '../../src/apply/node/output.ts';
import { findKubeProxy } from '../../src/apply/node/processes.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { diesDuring, mortalHost } from './mortal-host.ts';

const ipvs = 'fixtures/dual-stack/expected-ipvs';
const nftables = 'fixtures/dual-stack/expected-nftables';
/** All capabilities but CAP_SYS_PTRACE. */
const withoutPtrace = 'CapEff:\t000001fffff7ffff\n';
const mountOf = (options: string) => `25 30 0:23 / /proc rw,relatime shared:13 - proc proc rw${options}\n`;

function forbid(path: string): never {
  throw Object.assign(new Error(`EACCES: permission denied, '${path}'`), { code: 'EACCES', syscall: 'open' });
}

/** A node with a process of that name, which the files describe. */
function nodeWith(files: Readonly<Record<string, string | undefined>>, name = 'kube-proxy'): FakeNode {
  const node = createFakeNode();
  node.files.set('/proc/self/ns/net', 'net:[1]');
  node.files.set('/proc/77/comm', `${name}\n`);
  node.files.set('/proc/77/status', 'State:\tS (sleeping)\nUid:\t0\t0\t0\t0\nThreads:\t9\n');
  node.files.set('/proc/77/ns/net', 'net:[1]');
  for (const [path, text] of Object.entries(files)) {
    if (text === undefined) node.files.delete(path);
    else node.files.set(path, text);
  }
  return node;
}

/** The host, with files that may not be read. */
function blind({ host }: FakeNode, isHidden: RegExp): Host {
  return {
    ...host,
    readFile: async (path) => (isHidden.test(path) ? forbid(path) : host.readFile(path)),
    readLink: async (path) => (isHidden.test(path) ? forbid(path) : host.readLink(path)),
  };
}

const hidden = mountOf(',gid=7,hidepid=invisible');

/** Nodes on which something may be out of sight; with no process of that name but where it is said. */
const unseen: readonly (readonly [where: string, host: () => Host])[] = [
  ['it has a namespace of processes', () => nodeWith({ '/proc/self/ns/pid': 'pid:[4]' }, 'sh').host],
  [
    'the namespace of process 1 may not be read',
    () => blind(nodeWith({ '/proc/self/ns/pid': 'pid:[4]' }, 'sh'), /\/1\/ns/),
  ],
  ['there is no /proc', () => nodeWith({ '/proc/self/ns/pid': undefined }, 'sh').host],
  [
    '/proc hides processes',
    () => nodeWith({ '/proc/self/mountinfo': hidden, '/proc/self/status': withoutPtrace }, 'sh').host,
  ],
  [
    'a /proc over another hides them',
    () =>
      nodeWith(
        { '/proc/self/mountinfo': mountOf('') + mountOf(',hidepid=2'), '/proc/self/status': withoutPtrace },
        'sh',
      ).host,
  ],
  [
    'a capability is of a user namespace',
    () => nodeWith({ '/proc/self/mountinfo': mountOf(',hidepid=4'), '/proc/self/ns/user': 'user:[5]' }, 'sh').host,
  ],
  ['the network of a kube-proxy may not be read', () => blind(nodeWith({}), /77\/ns/)],
  ['the name of a process may not be read', () => blind(nodeWith({}, 'sh'), /77\/comm/)],
  [
    "a kube-proxy's user has no number here, and its network may not be read",
    () =>
      blind(
        nodeWith({
          '/proc/77/status': 'State:\tS\nUid:\t65534\t65534\t65534\t65534\nThreads:\t9\n',
          '/proc/self/ns/user': 'user:[5]',
        }),
        /77\/ns/,
      ),
  ],
];

describe('whether a kube-proxy runs', () => {
  test.each(unseen)('reports unknown, not none, where %s', async (_, host) => {
    expect(await findKubeProxy(host())).toMatchObject({ kind: 'unknown' });
  });

  test.each<readonly [name: string, kind: 'running' | 'none', host: () => Host]>([
    ['one of this network runs', 'running', () => nodeWith({}).host],
    ['one runs, whatever else is out of sight', 'running', () => nodeWith({ '/proc/self/ns/pid': 'pid:[4]' }).host],
    ['one is of another network', 'none', () => nodeWith({ '/proc/77/ns/net': 'net:[2]' }).host],
    [
      'one has ended and its parent has not heard of it',
      'none',
      () => nodeWith({ '/proc/77/status': 'State:\tZ (zombie)\nUid:\t0\t0\t0\t0\nThreads:\t1\n' }).host,
    ],
    [
      'the first thread of one has ended, and others have not',
      'running',
      () =>
        nodeWith({
          '/proc/77/status': 'State:\tZ (zombie)\nUid:\t0\t0\t0\t0\nThreads:\t2\n',
          '/proc/77/ns/net': undefined,
        }).host,
    ],
    [
      'a user calls a process so, whose network may not be read',
      'none',
      () => blind(nodeWith({ '/proc/77/status': 'State:\tS\nUid:\t1000\t1000\t1000\t1000\nThreads:\t1\n' }), /77\/ns/),
    ],
    [
      'a /proc of the whole node is used from a namespace below it',
      'none',
      () => nodeWith({ '/proc/self/ns/pid': 'pid:[4]', '/proc/1/ns/pid': 'pid:[4026531836]' }, 'sh').host,
    ],
    ['/proc hides processes from others', 'none', () => nodeWith({ '/proc/self/mountinfo': hidden }, 'sh').host],
  ])('is known where %s', async (_, kind, host) => {
    expect(await findKubeProxy(host())).toMatchObject({ kind });
  });
});

describe('where processes are out of sight', () => {
  async function leftByAnother(): Promise<FakeNode> {
    const node = createFakeNode();
    expect((await callApply(node.host, 'apply', ipvs)).status).toBe(0);
    node.files.delete('/var/lib/kpc/record.json');
    node.files.set('/proc/self/ns/pid', 'pid:[4]');
    return node;
  }

  test.each([
    ['apply', ipvs, '--adopt'],
    ['apply', ipvs, '--adopt', '--dry-run'],
    ['cleanup', '--adopt'],
    ['cleanup', '--adopt', '--dry-run'],
  ])('%s %s takes nothing, and says what to add', async (...args) => {
    const node = await leftByAnother();
    node.files.set('/proc/sys/net/ipv4/vs/conntrack', '0\n');
    const before = node.dump();
    const { status, err } = await callApply(node.host, ...args);
    expect([status, node.dump()]).toEqual([3, before]);
    expect(err).toMatch(/not visible here.* \[not-ready\]\n {2}help: .*--pid host.*--assume-alone/);
    expect((await callApply(node.host, ...args, '--assume-alone')).status).toBe(0);
  });

  test('cleanup and rollback remove nothing either, and an apply goes on', async () => {
    const node = createFakeNode();
    node.files.set('/proc/self/ns/pid', 'pid:[4]');
    expect((await callApply(node.host, 'apply', ipvs)).status).toBe(0);
    for (const command of ['rollback', 'cleanup']) {
      expect((await callApply(node.host, command)).err).toMatch(/\[not-ready\]/);
    }
    expect((await callApply(node.host, 'cleanup', '--assume-alone')).status).toBe(0);
  });

  test('a kube-proxy that is seen counts, whatever is assumed', async () => {
    const node = await leftByAnother();
    node.files.set('/proc/77/comm', 'kube-proxy\n');
    node.files.set('/proc/77/status', 'Uid:\t0\t0\t0\t0\n');
    const { err } = await callApply(node.host, 'cleanup', '--adopt', '--assume-alone');
    expect(err).toMatch(/kube-proxy is running \(process 77\)/);
  });

  test.each([
    ['tools', (node: FakeNode) => blind(node, /^\/proc\/78\/environ$/), 'SYS_PTRACE'],
    ['the node', (node: FakeNode) => (node.files.set('/proc/self/ns/pid', 'pid:[4]'), node.host), '--pid host'],
  ])('nothing follows a killed apply where %s may not be looked at', async (_, look, advice) => {
    const node = createFakeNode();
    node.files.set('/proc/78/status', 'State:\tS\nUid:\t0\t0\t0\t0\nThreads:\t1\n');
    node.files.set('/proc/78/environ', 'A=B\0');
    const dying = { ...node.host, toolMark: 'KPC_APPLY_RUN=00000000-0000-4000-8000-000000000500' };
    expect(
      await diesDuring(
        mortalHost(dying, ({ tool, args }) => tool === 'ipvsadm' && args[0] === '-R'),
        'apply',
        ipvs,
      ),
    ).toBe(true);
    const before = node.dump();
    for (const args of [['apply', ipvs], ['cleanup'], ['rollback']]) {
      const { status, err } = await callApply(look(node), ...args);
      expect([status, node.dump()]).toEqual([3, before]);
      expect(err).toMatch(new RegExp(`\\[not-ready\\]\\n {2}help: .*${advice}.*--assume-alone`));
    }
    expect((await callApply(look(node), 'apply', ipvs, '--assume-alone')).status).toBe(0);
  });
});

describe('of a killed apply', () => {
  /** A node on which process 100, which started at 4711, was killed while it changed it, and process 78 may not be looked at. */
  async function afterKill(environment: string | undefined): Promise<FakeNode> {
    const node = createFakeNode();
    node.files.set('/proc/78/status', 'State:\tS\nUid:\t0\t0\t0\t0\nThreads:\t1\n');
    node.files.set('/proc/78/environ', environment ?? '');
    const dying = { ...node.host, toolMark: 'KPC_APPLY_RUN=00000000-0000-4000-8000-000000000500' };
    const mortal = mortalHost(dying, ({ tool, args }) => tool === 'ipvsadm' && args[0] === '-R');
    expect(await diesDuring(mortal, 'apply', ipvs)).toBe(true);
    return node;
  }

  test.each([
    [4710, 0],
    [4711, 3],
    [50_000, 3],
  ])('a process out of sight that started at %s is a reason to refuse if it may be a tool', async (started, status) => {
    const node = await afterKill(undefined);
    node.files.set('/proc/78/stat', `78 (init) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${started} 0`);
    expect((await callApply(blind(node, /^\/proc\/78\/environ$/), 'rollback')).status).toBe(status);
  });

  test('an environment of gigabytes is not read', async () => {
    const node = await afterKill(undefined);
    const host: Host = {
      ...node.host,
      readFile: async (path, listing) => {
        if (path !== '/proc/78/environ') return node.host.readFile(path, listing);
        if (listing?.room?.take(8 * 2 ** 30) === false) throw tooLarge({ problem: 'file', path }, listing.room);
        throw new Error('it was read');
      },
    };
    expect((await callApply(host, 'rollback')).status).toBe(0);
  });
});

describe('adopts nothing', () => {
  /** Says of some listings that they are not permitted. */
  function refusing({ host }: FakeNode, isRefused: (command: ToolCommand) => boolean): Host {
    const stderr = 'Operation not permitted (you must be root)\n';
    return {
      ...host,
      run: async (command, patience) =>
        isRefused(command) ? { kind: 'ended', status: 1, stdout: '', stderr } : host.run(command, patience),
    };
  }

  test.each<readonly [what: string, isRefused: (command: ToolCommand) => boolean]>([
    ["kube-proxy's table of one family", ({ tool, args }) => tool === 'nft' && args.includes('ip6')],
    ['what nft lists', ({ tool, args }) => tool === 'nft' && args.includes('list')],
    ['the rules of one family', ({ tool }) => tool === 'ip6tables-save'],
  ])('adopts nothing where %s may not be read', async (_, isRefused) => {
    const node = createFakeNode();
    node.files.set('/proc/modules', `${node.files.get('/proc/modules') ?? ''}nf_tables 1 0 - Live\n`);
    const isListing = (command: ToolCommand) => !command.args.includes('--version') && isRefused(command);
    const host = refusing(node, isListing);
    const before = node.dump();
    for (const args of [
      ['cleanup', '--adopt'],
      ['cleanup', '--adopt', '--dry-run'],
    ]) {
      const { status, err } = await callApply(host, ...args);
      expect([status, node.dump()]).toEqual([3, before]);
      expect(err).toMatch(/\[unreadable-node\]\n {2}help: .*NET_ADMIN.*--assume-alone/);
      expect((await callApply(host, ...args, '--assume-alone')).status).toBe(0);
    }
    expect((await callApply(node.host, 'apply', nftables, '--adopt')).status).toBe(0);
  });

  test('a /proc without /proc/net shows no virtual servers, which is not that there are none', async () => {
    const node = createFakeNode();
    for (const path of node.files.keys()) if (path.startsWith('/proc/net/')) node.files.delete(path);
    const { status, err } = await callApply(node.host, 'plan', ipvs);
    expect([status, err]).toEqual([3, expect.stringContaining('subset=pid')]);
  });
});
