import { expect, test } from 'vitest';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const bundle = 'fixtures/quickstart/expected-iptables';
const drop = '-s 192.168.77.0/24 -j DROP';

/** A node with the bundle, and a rule that an operator put before its jumps. */
async function guardedNode(): Promise<FakeNode> {
  const node = createFakeNode();
  expect((await callApply(node.host, 'apply', bundle)).status).toBe(0);
  await insertDrop(node);
  return node;
}

async function insertDrop(node: FakeNode): Promise<void> {
  await edit(node, `-I FORWARD 1 ${drop}`);
}

async function edit(node: FakeNode, line: string): Promise<void> {
  const stdin = `*filter\n${line}\nCOMMIT\n`;
  const result = await node.host.run({ tool: 'iptables-restore', args: ['--noflush'], stdin });
  expect(result).toMatchObject({ status: 0 });
}

test.each([
  ['a cleanup that is not confirmed', [['cleanup', '--confirm-timeout', '1s']]],
  ['a rollback of a cleanup', [['cleanup'], ['rollback']]],
  ['a rollback of another mode', [['apply', 'fixtures/quickstart/expected-nftables'], ['rollback']]],
  ['a rollback of IPVS mode', [['apply', 'fixtures/quickstart/expected-ipvs'], ['rollback']]],
])('%s puts jumps back where they were', async (_, commands) => {
  const node = await guardedNode();
  const before = node.dump();
  for (const args of commands) await callApply(node.host, ...args);
  const rulesOf = (dump: string) => dump.split('\n').filter((line) => line.startsWith('-A FORWARD'));
  expect(rulesOf(before)[0]).toContain(drop);
  expect(rulesOf(node.dump())).toEqual(rulesOf(before));
});

test('a repair of one jump leaves the others where they are', async () => {
  const node = await guardedNode();
  const before = node.dump();
  const jumps = before.split('\n').filter((line) => /^-A FORWARD .*KUBE-/.test(line));
  expect(jumps.length).toBeGreaterThan(2);
  for (const jump of jumps) {
    await edit(node, jump.replace(/^-A/, '-D'));
    expect((await callApply(node.host, 'apply', bundle)).status).toBe(0);
    expect(node.dump()).toBe(before);
  }
});
