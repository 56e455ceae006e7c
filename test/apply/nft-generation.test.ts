import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { ToolCommand, Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { writeWithEndpoints } from './edited-bundle.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

// In nftables mode the kernel counts transactions. Where it has counted none but kpc-apply's own, the tables are known and
// nothing is listed. Wherever that is not certain, they are listed.

const scratch = mkdtempSync(join(tmpdir(), 'kpc-generation-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const bundleWith = (...addresses: readonly string[]): string =>
  writeWithEndpoints(join(scratch, addresses.join('_') || 'none'), 'nftables', addresses);
const [first, second] = [bundleWith('10.244.7.1'), bundleWith('10.244.7.2')];

/** A fake node whose kernel counts transactions, and says so to perl. */
interface CountingNode {
  readonly node: FakeNode;
  readonly host: Host;
  /** The network namespace, and the module as it is loaded. */
  counter: string;
  count: number;
  hasPerl: boolean;
  /** Runs before the nth transaction from now on. */
  before: { nth: number; work: () => Promise<void> } | undefined;
}

function createCountingNode(): CountingNode {
  const node = createFakeNode();
  const run = async (command: ToolCommand) => {
    const { tool, args } = command;
    if (tool === 'perl') {
      if (!made.hasPerl) return { kind: 'missing' } as const;
      return { kind: 'ended', status: 0, stdout: `${made.counter} ${made.count}\n`, stderr: '' } as const;
    }
    const isChange = tool === 'nft' && args[0] === '-f';
    if (isChange && made.before && --made.before.nth === 0) await made.before.work();
    const result = await node.host.run(command);
    if (isChange && result.kind === 'ended' && result.status === 0) made.count++;
    return result;
  };
  const made: CountingNode = {
    node,
    host: { ...node.host, run },
    counter: '3 0',
    count: 1,
    hasPerl: true,
    before: undefined,
  };
  return made;
}

async function applied(): Promise<CountingNode> {
  const made = createCountingNode();
  expect((await callApply(made.host, 'apply', first)).status).toBe(0);
  made.node.commands.length = 0;
  return made;
}

/** Another program's transaction. */
async function disturb(made: CountingNode, stdin = 'add table ip another\n'): Promise<void> {
  await made.node.host.run({ tool: 'nft', args: ['-f', '-'], stdin });
  made.count++;
}

const isListing = ({ tool, args }: ToolCommand) => tool === 'nft' && args.includes('table') && args.includes('list');

function takeListings({ node }: CountingNode): number {
  return node.commands.splice(0).filter(isListing).length;
}

async function expectApplied(made: CountingNode, bundle: string, listings: number): Promise<void> {
  const { status, err } = await callApply(made.host, 'apply', bundle);
  expect([status, takeListings(made)], err).toEqual([0, listings]);
  const fresh = createFakeNode();
  await callApply(fresh.host, 'apply', bundle);
  expect(made.node.dump()).toBe(fresh.dump());
}

describe('nothing is listed', () => {
  test('where the rules are as kpc-apply left them, before a change and after it', async () => {
    const made = await applied();
    for (const bundle of [first, second, second, first]) await expectApplied(made, bundle, 0);
  });

  test('by rollback and cleanup either', async () => {
    const made = await applied();
    await callApply(made.host, 'apply', second);
    const before = made.node.dump();
    for (const command of ['rollback', 'rollback']) {
      expect((await callApply(made.host, command)).status).toBe(0);
    }
    expect(made.node.dump()).toBe(before);
    expect((await callApply(made.host, 'cleanup')).status).toBe(0);
    expect(takeListings(made)).toBe(0);
    expect(made.node.dump()).not.toContain('kube-proxy');
  });

  test('but by plan and verify, which prove what apply took for granted', async () => {
    const made = await applied();
    await callApply(made.host, 'verify', first);
    expect(takeListings(made)).toBe(2);
  });
});

describe('the tables are listed', () => {
  test('once after another program changed anything', async () => {
    const made = await applied();
    await disturb(made);
    made.node.commands.length = 0;
    await callApply(made.host, 'apply', second);
    expect(takeListings(made)).toBe(2);
    await callApply(made.host, 'apply', first);
    expect(takeListings(made)).toBe(0);
  });

  test.each<readonly [string, (made: CountingNode) => void]>([
    ['after a reboot', ({ node }) => node.files.set('/proc/sys/kernel/random/boot_id', 'another\n')],
    ['in another network namespace', (made) => (made.counter = '4 0')],
    ['where the module was loaded anew', (made) => (made.counter = '3 77')],
    ['where what was known is damaged', ({ node }) => node.files.set('/var/lib/kpc/tables.json', '{')],
    ['where what was known is lost', ({ node }) => node.files.delete('/var/lib/kpc/tables.json')],
  ])('%s, though the count is the same', async (_, change) => {
    const made = await applied();
    change(made);
    await callApply(made.host, 'apply', '--adopt', first);
    expect(takeListings(made)).toBe(2);
  });

  test('where there is no perl: before the change, and after it', async () => {
    const made = createCountingNode();
    made.hasPerl = false;
    await callApply(made.host, 'apply', first);
    takeListings(made);
    await expectApplied(made, first, 2);
    await expectApplied(made, second, 4);
  });

  test('after a change during which another program made one, and what it did is found', async () => {
    const made = await applied();
    const there = made.node.dump();
    made.before = { nth: 1, work: () => disturb(made, 'add chain ip kube-proxy theirs\n') };
    const { status, err } = await callApply(made.host, 'apply', second);
    expect(status).toBe(3);
    expect(err).toContain('[wrong-result]');
    expect(made.node.dump()).toBe(there);
  });
});

test('a transaction that may have changed nothing counts for nothing: another may have come in its place', async () => {
  // Only elements come: the kernel does not count it where another program has just added them, with a chain besides.
  const file = 'fixtures/no-endpoints/expected-nftables';
  const made = createCountingNode();
  await callApply(made.host, 'apply', file);
  await disturb(made, 'delete element ip kube-proxy no-endpoint-services { 10.96.31.40 . tcp . 9200 }\n');
  made.before = {
    nth: 1,
    work: async () => {
      await disturb(made, 'add chain ip kube-proxy theirs\n');
      made.count--;
    },
  };
  const { status } = await callApply(made.host, 'apply', file);
  expect(status).toBe(3);
});

test('what is known saves time and no more: without space for it an apply lists, and ends well', async () => {
  const made = await applied();
  const host: Host = {
    ...made.host,
    replaceFile: async (path, text) => {
      if (!path.endsWith('/tables.json')) return made.host.replaceFile(path, text);
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    },
  };
  for (const bundle of [second, first]) expect((await callApply(host, 'apply', bundle)).status).toBe(0);
  expect([...made.node.files.keys()].filter((path) => path.includes('tables.json'))).toEqual([]);
});
