import type { Host } from '../../src/apply/node/host.ts';
import { describe, expect, test } from 'vitest';
import { withLock } from '../../src/apply/state/lock.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { diesDuring, heirOf, mortalHost } from './mortal-host.ts';

const modes = ['nftables', 'ipvs', 'iptables'] as const;
const first = (mode: string) => `fixtures/quickstart/expected-${mode}`;
const second = (mode: string) => `fixtures/loadbalancer-source-ranges/expected-${mode}`;
const base = '/var/lib/kpc';
const mark = 'kpc-0123456789abcdef';
const journals = ({ files }: FakeNode) => [...files.keys()].filter((path) => path.endsWith('/journal.json'));

/** A node with a bundle, applied in its first network or in another one with that mark. */
async function applied(mode: string, place: 'first' | 'other' = 'first'): Promise<FakeNode> {
  const node = createFakeNode();
  if (place === 'other') node.enterNetwork('4026532281', ['lo-of-ops', mark]);
  expect((await callApply(node.host, 'apply', first(mode))).status).toBe(0);
  return node;
}

/** The same, and half of another bundle: its process was killed. Gives the node as the next process sees it. */
async function killed(mode: string, place: 'first' | 'other' = 'first'): Promise<FakeNode> {
  const node = await applied(mode, place);
  const dying = mortalHost(node.host, async (command) => {
    if (command.stdin === undefined) return false;
    await node.host.run(command);
    return true;
  });
  expect(await diesDuring(dying, 'apply', second(mode))).toBe(true);
  return { ...node, host: heirOf(node) };
}

const isElsewhere = {
  'another network': (node: FakeNode) => node.enterNetwork('4026532999', []),
  'a network of the same number that was made anew': (node: FakeNode) => node.enterNetwork('4026532281', []),
  'a network that has the same mark by chance': (node: FakeNode) => node.enterNetwork('4026532999', [mark]),
  'the first network': (node: FakeNode) => node.leaveNetwork(),
} as const;
const places = Object.keys(isElsewhere) as readonly (keyof typeof isElsewhere)[];

describe.each(modes)('in mode %s, what was made in one network', (mode) => {
  test.each(places)("is not kpc-apply's in %s", async (place) => {
    const node = await applied(mode, 'other');
    const record = node.files.get(`${base}/network-4026532281-${mark}/record.json`);
    expect(record).toContain('"owned"');
    // The tools show the same there, as if a kube-proxy had made it.
    isElsewhere[place](node);
    const there = node.dump();
    const run = await callApply(node.host, 'apply', second(mode));
    expect([run.status, node.dump()]).toEqual([3, there]);
    expect(run.err).toMatch(/network namespace 4026532281\b.*owns nothing/);
    await callApply(node.host, 'cleanup');
    expect(node.dump()).toBe(there);
    expect((await callApply(node.host, 'rollback')).err).toMatch(/\[nothing-to-(roll-back|undo)\]/);
    expect(node.files.get(`${base}/network-4026532281-${mark}/record.json`)).toBe(record);
    // Back where it was made, all is as before.
    node.enterNetwork('4026532281', [mark]);
    expect((await callApply(node.host, 'apply', second(mode))).status).toBe(0);
  });

  test.each(places)('half of it waits while commands run in %s, which name it', async (place) => {
    const node = await killed(mode, 'other');
    isElsewhere[place](node);
    const [journal = ''] = journals(node);
    const [there, text] = [node.dump(), node.files.get(journal)];
    for (const args of [['rollback'], ['cleanup'], ['apply', first(mode)], ['confirm'], ['plan', first(mode)]]) {
      const { err } = await callApply(node.host, ...args);
      expect(err).toMatch(
        /journal\.json belongs to an apply that is running or did not finish, in .*network namespace 4026532281/,
      );
    }
    expect([node.dump(), node.files.get(journal)]).toEqual([there, text]);
    node.enterNetwork('4026532281', [mark]);
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    expect((await callApply(node.host, 'verify', first(mode))).status).toBe(0);
  });
});

test('two networks keep records of their own in one state folder, and the first needs no mark', async () => {
  const node = await applied('nftables');
  expect(node.commands.filter(({ args }) => args.includes('altname'))).toEqual([]);
  node.enterNetwork('4026532281', []);
  expect((await callApply(node.host, 'apply', first('nftables'), '--adopt')).status).toBe(0);
  const folders = new Set([...node.files.keys()].flatMap((path) => /^.*\/network-[^/]+/.exec(path) ?? []));
  expect([...folders]).toEqual([expect.stringMatching(/\/network-4026532281-kpc-[\da-f]{16}$/)]);
  expect((await callApply(node.host, 'cleanup')).status).toBe(0);
  node.leaveNetwork();
  expect((await callApply(node.host, 'apply', first('nftables'))).status).toBe(0);
  // Of this boot, a record stays; of an earlier one, it goes.
  node.files.set('/proc/sys/kernel/random/boot_id', 'another');
  await callApply(node.host, 'plan', first('nftables'));
  expect([...node.files.keys()].some((path) => path.includes('/network-'))).toBe(true);
  await callApply(node.host, 'apply', second('nftables'));
  expect([...node.files.keys()].some((path) => path.includes('/network-'))).toBe(false);
});

test('where other programs have filled the place for names of lo, it says so, and what to remove', async () => {
  const node = createFakeNode();
  node.enterNetwork('4026532281', []);
  const host: Host = {
    ...node.host,
    run: async (command) =>
      command.args[1] === 'property'
        ? { kind: 'ended', status: 2, stdout: '', stderr: 'Error: effective property list too long.\n' }
        : node.host.run(command),
  };
  const { status, err } = await callApply(host, 'apply', first('nftables'));
  expect([status, err]).toEqual([3, expect.stringContaining('ip link property del dev lo altname')]);
});

test('commands that only look leave no mark', async () => {
  const node = createFakeNode();
  node.enterNetwork('4026532281', []);
  for (const args of [
    ['plan', first('nftables')],
    ['verify', first('nftables')],
    ['doctor'],
    ['cleanup', '--dry-run'],
  ]) {
    await callApply(node.host, ...args);
  }
  expect(node.commands.filter(({ args }) => args.includes('altname'))).toEqual([]);
});

test('of two that leave a mark at once, both take the first', async () => {
  const node = createFakeNode();
  const names: string[] = [];
  node.enterNetwork('4026532281', names);
  const run: typeof node.host.run = async (command, patience) => {
    if (command.args.includes('altname')) names.push(mark);
    return node.host.run(command, patience);
  };
  await callApply({ ...node.host, run }, 'apply', first('nftables'));
  expect(names).toHaveLength(2);
  expect(node.files.has(`${base}/network-4026532281-${mark}/record.json`)).toBe(true);
});

test('where no mark can be left, nothing is changed, and the message says what can be done', async () => {
  const node = createFakeNode();
  node.enterNetwork('4026532281', undefined);
  const there = node.dump();
  const { status, err } = await callApply(node.host, 'apply', first('nftables'));
  expect([status, node.dump()]).toEqual([3, there]);
  expect(err).toMatch(/\[unreadable-node\]\n {2}help: .*hostNetwork/);
});

test.each(['/proc/self/ns/net', '/proc/sys/kernel/random/boot_id'])(
  'without %s, nothing is known, so nothing is done',
  async (path) => {
    const node = await applied('nftables');
    node.files.delete(path);
    const there = node.dump();
    for (const args of [['apply', second('nftables')], ['cleanup'], ['rollback']]) {
      expect([(await callApply(node.host, ...args)).status, node.dump()]).toEqual([3, there]);
    }
  },
);

describe('what an earlier version left', () => {
  const forgetNetwork = (text: string) => text.replaceAll(/"network":\{[^}]*\},/g, '');

  test('a record owns nothing, until --adopt takes it over', async () => {
    const node = await applied('nftables');
    const path = `${base}/record.json`;
    node.files.set(path, forgetNetwork(node.files.get(path) ?? ''));
    const there = node.dump();
    const run = await callApply(node.host, 'apply', second('nftables'));
    expect([run.status, node.dump()]).toEqual([3, there]);
    expect(run.err).toMatch(/made by an earlier version.*--adopt/s);
    expect((await callApply(node.host, 'apply', second('nftables'), '--adopt')).status).toBe(0);
    expect((await callApply(node.host, 'apply', first('nftables'))).status).toBe(0);
  });

  test('a journal that names no network stops each change, and stays', async () => {
    const node = await killed('nftables');
    const path = `${base}/journal.json`;
    const text = forgetNetwork(node.files.get(path) ?? '');
    node.files.set(path, text);
    const there = node.dump();
    for (const args of [['apply', first('nftables')], ['rollback'], ['cleanup']]) {
      const { status, err } = await callApply(node.host, ...args);
      expect([status, node.dump(), node.files.get(path)]).toEqual([3, there, text]);
      expect(err).toContain('an earlier version wrote it');
    }
  });
});

test('an apply that waits for its confirmation is confirmed in its own network alone', async () => {
  const node = await applied('nftables');
  const sleep = async (milliseconds: number): Promise<void> => {
    await node.host.sleep(milliseconds);
    if (!node.files.has(`${base}/awaiting.json`)) return;
    node.enterNetwork('4026532281', []);
    const { err } = await callApply(node.host, 'confirm');
    expect(err).toMatch(/did not finish, in network namespace 4026531840.*\[nothing-to-confirm\]/s);
    node.leaveNetwork();
  };
  const run = await callApply({ ...node.host, sleep }, 'apply', second('nftables'), '--confirm-timeout', '1s');
  expect(run.err).toContain('[not-confirmed]');
});

test('a claim of another network keeps nobody out of the state folder', async () => {
  const node = createFakeNode();
  node.files.set('/proc/200/stat', '200 (node) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 200 0');
  await withLock({ ...node.host, pid: 200 }, base, 'watch bundle', async () => {
    await expect(withLock(node.host, base, 'apply', async () => 1)).rejects.toMatchObject({
      finding: { code: 'busy', arguments: { command: 'watch bundle' } },
    });
    node.enterNetwork('4026532281', [mark]);
    expect(await withLock(node.host, base, 'apply', async () => 1)).toBe(1);
    expect([...node.files.keys()].filter((path) => path.startsWith(`${base}/lock/`))).toHaveLength(1);
  });
});
