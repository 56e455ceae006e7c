import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Editable } from '../bundle/forge.ts';
import { callApply } from './call-apply.ts';
import { writeWithEndpoints } from './edited-bundle.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { diesDuring, heirOf, mortalHost } from './mortal-host.ts';

// Where node and bundle were settled, kpc-apply looks only at what changed since in either. It must come to the same as
// where it looks at everything.

const scratch = mkdtempSync(join(tmpdir(), 'kpc-focus-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

type Mode = 'ipvs' | 'iptables';
const index = '/var/lib/kpc/settled/index.json';

/** The dual-stack example with another endpoint in its first Service port. */
function moved(mode: Mode, address: string): string {
  return writeWithEndpoints(join(scratch, `${mode}-${address}`), mode, [address], { node: 'elsewhere' });
}

const readRecord = (node: FakeNode): string => {
  const { owned, ...others } = JSON.parse(node.files.get('/var/lib/kpc/record.json') ?? '{}') as Editable;
  const sorted = Object.entries(owned as Record<string, string[]>).map(([list, names]) => [list, names.toSorted()]);
  return JSON.stringify({ ...others, owned: Object.fromEntries(sorted) }, undefined, 1);
};
/** Sets, servers and tables; sets and servers print in no order that matters. */
const stateOf = (node: FakeNode): string => node.dump().split('\n').toSorted().join('\n');

async function settled(mode: Mode): Promise<FakeNode> {
  const node = createFakeNode();
  expect((await callApply(node.host, 'apply', moved(mode, '10.244.7.1'))).status).toBe(0);
  expect(node.files.has(index)).toBe(true);
  return node;
}

/** Applies to both a node that is settled and its twin that has forgotten so. */
async function expectAlike(
  mode: Mode,
  change: (node: FakeNode) => unknown,
  address: string,
): Promise<readonly FakeNode[]> {
  const twins = [await settled(mode), await settled(mode)] as const;
  twins[1].files.delete(index);
  const said: unknown[] = [];
  for (const node of twins) {
    await change(node);
    node.commands.length = 0;
    said.push(await callApply(node.host, 'apply', moved(mode, address)));
  }
  expect(said[0]).toEqual(said[1]);
  expect(stateOf(twins[0])).toBe(stateOf(twins[1]));
  expect(readRecord(twins[0])).toBe(readRecord(twins[1]));
  return twins;
}

describe.each(['ipvs', 'iptables'] as const)('%s', (mode) => {
  test('an endpoint that changes, again and again', async () => {
    const node = await settled(mode);
    for (const address of ['10.244.7.2', '10.244.7.3', '10.244.7.1', '10.244.7.1']) {
      expect((await callApply(node.host, 'apply', moved(mode, address))).status).toBe(0);
      const fresh = createFakeNode();
      await callApply(fresh.host, 'apply', moved(mode, address));
      expect(stateOf(node).replaceAll(/^-a .* -w 0\n/gm, '')).toBe(stateOf(fresh));
      expect((await callApply(node.host, 'verify', moved(mode, address))).status).toBe(0);
    }
  });

  test('the tools are given what changed and no more', async () => {
    const [node, twin] = await expectAlike(mode, () => undefined, '10.244.7.2');
    const given = (one: FakeNode | undefined) =>
      one?.commands.filter(({ tool, stdin }) => stdin !== undefined && tool !== 'perl');
    expect(given(node)).toEqual(given(twin));
  });

  const restore = (node: FakeNode, tool: string, args: readonly string[], stdin: string) =>
    node.host.run({ tool, args, stdin });
  const changeTables = (node: FakeNode, lines: string) =>
    restore(node, 'iptables-restore', ['--noflush'], `*nat\n${lines}COMMIT\n`);
  const anyChain = (node: FakeNode, pattern: RegExp): string => pattern.exec(node.dump())?.[1] ?? 'KUBE-SERVICES';

  test.each<[string, (node: FakeNode) => unknown]>([
    ['nothing', () => undefined],
    ["a chain's rules", (node) => changeTables(node, `:${anyChain(node, /^:(KUBE-SE[PR]\S+) /m)} - [0:0]\n`)],
    [
      'a chain of its own beside',
      (node) => changeTables(node, ':KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n-A KUBE-SVC-AAAAAAAAAAAAAAAA -j RETURN\n'),
    ],
    ['a rule in a chain', (node) => changeTables(node, `-A ${anyChain(node, /^:(KUBE-MARK-MASQ) /m)} -j RETURN\n`)],
    ['a jump of its own', (node) => changeTables(node, '-I PREROUTING 1 -p tcp -j ACCEPT\n')],
    [
      'a jump of ours',
      (node) =>
        changeTables(node, '-D PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\n'),
    ],
    ['a setting', (node) => void node.files.set('/proc/sys/net/ipv4/ip_forward', '0\n')],
  ])('what another program changes before the next apply: %s', async (_, change) => {
    await expectAlike(mode, change, '10.244.7.2');
  });

  test('what is settled goes with a rollback and a cleanup', async () => {
    const node = await settled(mode);
    await callApply(node.host, 'apply', moved(mode, '10.244.7.2'));
    expect(node.files.has(index)).toBe(true);
    await callApply(node.host, 'rollback');
    expect(node.files.has(index)).toBe(false);
    expect((await callApply(node.host, 'verify', moved(mode, '10.244.7.1'))).status).toBe(0);
    await callApply(node.host, 'apply', moved(mode, '10.244.7.2'));
    await callApply(node.host, 'cleanup');
    expect(node.files.has(index)).toBe(false);
    expect(node.dump()).not.toContain('KUBE-');
  });

  test('what was settled says nothing after a reboot, or where its files are damaged', async () => {
    for (const damage of [
      (node: FakeNode) => node.files.set(index, '{"id":'),
      (node: FakeNode) => node.files.set('/var/lib/kpc/settled/ipv4', ''),
      (node: FakeNode) => node.files.set('/var/lib/kpc/settled/bundle-services.json', '{}'),
      (node: FakeNode) => node.files.set('/var/lib/kpc/settled/bundle-manifest.json', 'null'),
      (node: FakeNode) => node.files.delete('/var/lib/kpc/settled/ipset'),
      (node: FakeNode) =>
        node.files.set(index, (node.files.get(index) ?? '').replace(/"version":"[^"]*"/, '"version":"0"')),
      (node: FakeNode) =>
        node.files.set(index, (node.files.get(index) ?? '').replace(/"bootId":"[^"]*"/, '"bootId":"x"')),
    ]) {
      await expectAlike(mode, damage, '10.244.7.2');
    }
  });

  test('killed while it changes the node: nothing is settled, and the next apply finishes', async () => {
    const node = await settled(mode);
    const dying = mortalHost(node.host, ({ stdin }) => stdin !== undefined);
    expect(await diesDuring(dying, 'apply', moved(mode, '10.244.7.2'))).toBe(true);
    expect(node.files.has(index)).toBe(false);
    expect((await callApply(heirOf(node), 'apply', moved(mode, '10.244.7.3'))).status).toBe(0);
    expect((await callApply(node.host, 'verify', moved(mode, '10.244.7.3'))).status).toBe(0);
  });
});

test('a set or a virtual server that another program changes is put right by the next apply', async () => {
  for (const [tool, args, stdin] of [
    ['ipset', ['restore'], 'del KUBE-CLUSTER-IP 10.96.0.30,tcp:80\n'],
    ['ipset', ['restore'], 'add KUBE-CLUSTER-IP 10.96.7.7,tcp:80\n'],
    ['ipvsadm', ['-R'], '-A -t 10.96.7.7:80 -s rr\n'],
  ] as const) {
    await expectAlike('ipvs', (node) => node.host.run({ tool, args, stdin }), '10.244.7.2');
  }
});
