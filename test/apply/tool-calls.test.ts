import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { fixtureBundle, forgeWhole } from '../bundle/forge.ts';
import { writeFolder } from '../support/write-folder.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-tool-calls-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A copy of the example's bundle, compiled as if one endpoint had another address. */
function moveEndpoint(mode: 'ipvs' | 'iptables', endpoint = '10.244.2.10'): string {
  const folder = join(scratch, `${mode}-${endpoint}`);
  const files = forgeWhole(fixtureBundle(`quickstart/expected-${mode}`), (bundle) => {
    bundle.set('services.json', (bundle.get('services.json') ?? '').replaceAll(endpoint, '10.244.2.99'));
  });
  return writeFolder(folder, Object.fromEntries(files));
}

const bundleOf = (mode: 'ipvs' | 'iptables') => `fixtures/quickstart/expected-${mode}`;
const spoken = (node: FakeNode) => node.commands.map(({ tool, args }) => [tool, ...args].join(' ')).toSorted();

async function countCalls(mode: 'ipvs' | 'iptables', endpoint?: string): Promise<readonly string[]> {
  const node = createFakeNode();
  await callApply(node.host, 'apply', bundleOf(mode));
  node.commands.length = 0;
  expect((await callApply(node.host, 'apply', moveEndpoint(mode, endpoint))).status).toBe(0);
  return spoken(node);
}

describe('where one endpoint has changed', () => {
  test("each tool reads what is kpc-apply's once, and what was touched once more: iptables mode", async () => {
    expect(await countCalls('iptables')).toEqual([
      'ip -j -d addr',
      'ip6tables-save',
      'ip6tables-save --version',
      'ipset list -t',
      'ipset save',
      'iptables-restore --noflush --wait 10',
      'iptables-restore --version',
      'iptables-save',
      'iptables-save',
      'iptables-save --version',
      'ipvsadm -Sn',
    ]);
  });

  // The real server that leaves gets weight 0, and goes when it has no connections.
  const changes = ['ipvsadm -R', 'ipvsadm -R'];
  const remote = [
    'ip -j -d addr',
    'ip6tables-save',
    'ip6tables-save --version',
    'ipset list -t',
    'ipset save',
    'iptables-save',
    'iptables-save --version',
    'ipvsadm --version',
    ...changes,
    'ipvsadm -Sn',
    'ipvsadm -Sn',
  ];

  test('the same in IPVS mode, of an endpoint elsewhere', async () => {
    expect(await countCalls('ipvs')).toEqual(remote);
  });

  test('the same in IPVS mode, of an endpoint here, which stands in a set', async () => {
    const sets = ['ipset --version', 'ipset list -t', 'ipset restore', 'ipset restore', 'ipset save'];
    expect(await countCalls('ipvs', '10.244.1.10')).toEqual([...remote, ...sets].toSorted());
  });
});

describe.each(['iptables', 'ipvs'] as const)('in %s mode, what another program does meanwhile', (mode) => {
  /** A node on which another program changes something once, right after the first tool that changes anything. */
  const disturbed = (node: FakeNode, disturb: (host: Host) => Promise<unknown>): Host => {
    let isDone = false;
    return {
      ...node.host,
      run: async (command) => {
        const result = await node.host.run(command);
        const changes = command.args[0] === '-R' || command.args[0] === '--noflush';
        if (changes && !isDone) {
          isDone = true;
          await disturb(node.host);
        }
        return result;
      },
    };
  };

  test('to the part that is changed is found, far from what was changed as well', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundleOf(mode));
    const host = disturbed(node, (real) =>
      mode === 'ipvs'
        ? real.run({ tool: 'ipvsadm', args: ['-R'], stdin: '-D -t 192.168.50.11:30080\n' })
        : real.run({
            tool: 'iptables-restore',
            args: ['--noflush'],
            stdin: '*filter\n:KUBE-FORWARD - [0:0]\nCOMMIT\n',
          }),
    );
    const { status, err } = await callApply(host, 'apply', moveEndpoint(mode));
    expect(status).toBe(3);
    expect(err).toMatch(/the node is not as it should be; still to do:/);
    expect((await callApply(node.host, 'verify', bundleOf(mode))).status).toBe(0);
  });
});
