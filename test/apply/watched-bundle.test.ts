import { chownSync, cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { realHost } from '../../src/apply/node/real-host.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, examineAs, rootsLevel, type FakeNode } from './fake-node.ts';

const good = 'fixtures/dual-stack/expected-ipvs';
const other = 'fixtures/loadbalancer-source-ranges/expected-ipvs';
const scratch = mkdtempSync(join(tmpdir(), 'kpc-watch-'));
const folder = join(scratch, 'bundle');
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
beforeEach(() => replaceBundle(good));

function replaceBundle(source: string): void {
  rmSync(folder, { recursive: true, force: true });
  cpSync(source, folder, { recursive: true });
}

const damage = () => writeFileSync(join(folder, 'ipvsadm.restore'), 'x\n');

/** Runs a watch of the folder for some seconds of its own clock, with something done at some of them. */
async function watchFor(
  node: FakeNode,
  seconds: number,
  events: Readonly<Record<number, () => void | Promise<void>>> = {},
  examine: Host['examine'] = node.host.examine,
): Promise<{ readonly said: string }> {
  const begun = node.host.uptime();
  const due = new Map(Object.entries(events).map(([second, event]) => [Number(second), event]));
  const host: Host = {
    ...node.host,
    examine,
    sleep: async (milliseconds) => {
      await node.host.sleep(milliseconds);
      const elapsed = (node.host.uptime() - begun) / 1000;
      for (const [second, event] of due) {
        if (second > elapsed) continue;
        due.delete(second);
        await event();
      }
      if (elapsed >= seconds) process.emit('SIGTERM');
    },
  };
  const { err } = await callApply(host, 'watch', folder, '--sync-period', '10s');
  return { said: err };
}

async function wanted(bundle: string): Promise<string> {
  const node = createFakeNode();
  await callApply(node.host, 'apply', bundle);
  return node.dump();
}

const flush = (node: FakeNode) => () =>
  void node.host.run({ tool: 'ipvsadm', args: ['-R'], stdin: '-D -t 10.96.32.60:443\n' });

test.each<[string, () => void, RegExp]>([
  ['with a damaged file', damage, /ipvsadm\.restore/],
  ['that is missing', () => rmSync(folder, { recursive: true }), /there is no such folder/],
  ['without a manifest', () => rmSync(join(folder, 'manifest.json')), /manifest\.json/],
  [
    'whose folder is a file',
    () => (rmSync(folder, { recursive: true }), writeFileSync(folder, '')),
    /it is neither a folder nor a pack/,
  ],
])('goes by the last good bundle in the place of one %s, and says so once', async (_, spoil, why) => {
  const node = createFakeNode();
  const want = await wanted(good);
  const drifted: boolean[] = [];
  const { said } = await watchFor(node, 65, {
    2: spoil,
    15: async () => {
      await flush(node)();
      drifted.push(node.dump() !== want);
    },
    35: () => void drifted.push(node.dump() !== want),
  });
  expect(drifted).toEqual([true, false]);
  expect(said.match(/\[bad-bundle\]/g)).toHaveLength(1);
  expect(said).toMatch(why);
  expect(said).toMatch(/warning: the node stays on the last good bundle until there is a new good one\n/);
  expect(node.dump()).toBe(want);
});

test('takes up the next good bundle at once, and says so', async () => {
  const node = createFakeNode();
  const want = await wanted(good);
  const seen: boolean[] = [];
  const { said } = await watchFor(node, 24, {
    2: damage,
    12: () => rmSync(join(folder, 'manifest.json')),
    16: () => (seen.push(node.dump() === want), replaceBundle(other)),
    18: () => void seen.push(node.dump() === want),
  });
  expect(seen).toEqual([true, false]);
  expect(said.match(/\[bad-bundle\]/g)).toHaveLength(2);
  expect(said.match(/ is a good bundle again\n/g)).toHaveLength(1);
  expect((await callApply(node.host, 'verify', other)).status).toBe(0);
});

test('a file that is put right is seen at once, though the manifest is the same', async () => {
  const node = createFakeNode();
  const { said } = await watchFor(node, 7, { 2: damage, 5: () => replaceBundle(good) });
  expect(said).toMatch(/ is a good bundle again\n$/);
});

test('a watch that starts with a damaged bundle goes by the one that the watch before it applied', async () => {
  const node = createFakeNode();
  await watchFor(node, 1);
  await flush(node)();
  damage();
  const { said } = await watchFor(node, 1);
  expect(said).toMatch(/stays on the last good bundle/);
  expect(node.dump()).toBe(await wanted(good));
});

test.each<[string, (node: FakeNode) => void]>([
  ['none is known', () => {}],
  ['the one that is known is damaged', ({ files }) => void files.set('/var/lib/kpc/last-good-bundle.json', '{')],
  [
    'the one that is known has been tampered with',
    ({ files }) => {
      const kept = { folder, files: { 'manifest.json': '{}' } };
      files.set('/var/lib/kpc/last-good-bundle.json', JSON.stringify(kept));
    },
  ],
  [
    'the one that is known is of another folder',
    ({ files }) => {
      const kept = { folder: '/etc/kpc/bundle', files: {} };
      files.set('/var/lib/kpc/last-good-bundle.json', JSON.stringify(kept));
    },
  ],
])('leaves the node as it is where the bundle is damaged and %s', async (_, prepare) => {
  const node = createFakeNode();
  await callApply(node.host, 'apply', other);
  const there = node.dump();
  prepare(node);
  damage();
  const { said } = await watchFor(node, 35);
  expect(node.dump()).toBe(there);
  expect(said.match(/\[bad-bundle\]/g)).toHaveLength(1);
  expect(said).toMatch(/warning: no good bundle is known: the node is left as it is until there is one\n$/);
});

test('a folder in the place of a file of the bundle holds nothing up', async () => {
  const node = createFakeNode();
  const { said } = await watchFor(node, 15, {
    2: () => {
      renameSync(join(folder, 'manifest.json'), join(scratch, 'manifest.json'));
      mkdirSync(join(folder, 'manifest.json'));
    },
    8: () => replaceBundle(good),
  });
  expect(said).toMatch(/it is a folder, not a file[^]* is a good bundle again\n$/);
});

test('a bundle that another user may change is refused until that is mended', async () => {
  const node = createFakeNode();
  const want = await wanted(good);
  let owner = 0;
  const seen: boolean[] = [];
  const { said } = await watchFor(
    node,
    45,
    {
      2: () => ((owner = 1000), replaceBundle(other)),
      15: flush(node),
      28: () => (seen.push(node.dump() === want), void (owner = 0)),
    },
    examineAs((path) => [{ ...rootsLevel(path), owner: path === folder ? owner : 0 }]),
  );
  expect(seen).toEqual([true]);
  expect(said.match(/other users can change the bundle .* belongs to user 1000 \[bad-bundle\]/g)).toHaveLength(1);
  expect(said).toMatch(/the node stays on the last good bundle[^]* is a good bundle again\n/);
  expect((await callApply(node.host, 'verify', other)).status).toBe(0);
});

test.runIf(process.getuid?.() === 0)('a bundle that another user puts where none was is refused', async () => {
  const node = createFakeNode();
  const before = node.dump();
  const seen: boolean[] = [];
  rmSync(folder, { recursive: true });
  const { said } = await watchFor(
    node,
    25,
    {
      5: () => (replaceBundle(good), chownSync(folder, 65534, 65534)),
      18: () => (seen.push(node.dump() === before), replaceBundle(good)),
    },
    realHost.examine,
  );
  expect(seen).toEqual([true]);
  expect(said).toMatch(
    /there is no such folder or file[^]* belongs to user 65534 \[bad-bundle\][^]* is a good bundle again\n/,
  );
  expect(node.dump()).toBe(await wanted(good));
});
