import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Command } from '../../src/apply/node/host.ts';
import type { Editable } from '../bundle/forge.ts';
import { callApply } from './call-apply.ts';
import { writeWithEndpoints } from './edited-bundle.ts';
import { createNetlinkNode, type NetlinkNode } from './fake-netlink.ts';

// Where iptables keeps its rules in nftables, the kernel counts each change of them. So a node need not be read before a
// change where the count is what it was after the last one. Wherever that is unknown, the rules are read.

const scratch = mkdtempSync(join(tmpdir(), 'kpc-rules-in-nftables-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

type Mode = 'iptables' | 'ipvs';
/** The dual-stack example with an endpoint more in its first Service port. */
function moved(mode: Mode, address: string): string {
  return writeWithEndpoints(join(scratch, `${mode}-${address}`), mode, [address], { node: 'elsewhere' });
}

const [first, second, third] = ['10.244.7.1', '10.244.7.2', '10.244.7.3'];
const settledFolder = '/var/lib/kpc/settled';
const isReading = ({ tool, args }: Command) => tool.endsWith('tables-save') && args.length === 0;
const readings = ({ commands }: NetlinkNode) => commands.filter(isReading).map(({ tool }) => tool);
const stampOf = ({ node }: NetlinkNode) =>
  (JSON.parse(node.files.get(`${settledFolder}/index.json`) ?? '{}') as Editable)['nftables'];

async function settled(mode: Mode): Promise<NetlinkNode> {
  const made = createNetlinkNode({ hasRules: true });
  expect((await callApply(made.host, 'apply', moved(mode, first))).status).toBe(0);
  expect(stampOf(made)).toMatchObject({ hasRules: true });
  made.commands.length = 0;
  return made;
}

/** Whether it is as a node that never had anything but this bundle, and everything was found by a full reading. */
async function expectAsFresh({ node }: NetlinkNode, bundle: string): Promise<void> {
  const fresh = createNetlinkNode();
  await callApply(fresh.host, 'apply', bundle);
  const sorted = (text: string) =>
    text
      .replaceAll(/^-a .* -w 0\n/gm, '')
      .split('\n')
      .toSorted();
  expect(sorted(node.dump())).toEqual(sorted(fresh.node.dump()));
  expect((await callApply(node.host, 'verify', bundle)).status).toBe(0);
}

describe('the rules are not read before a change', () => {
  test('in iptables mode: only the family that changed, after it', async () => {
    const made = await settled('iptables');
    for (const address of [second, third, first]) {
      made.commands.length = 0;
      expect((await callApply(made.host, 'apply', moved('iptables', address))).err).toMatch(/^done: /);
      expect(readings(made)).toEqual(['iptables-save']);
      await expectAsFresh(made, moved('iptables', address));
    }
  });

  test('in IPVS mode, where the rules stay the same, not at all', async () => {
    const made = await settled('ipvs');
    expect((await callApply(made.host, 'apply', moved('ipvs', second))).err).toMatch(/^done: /);
    expect(readings(made)).toEqual([]);
    await expectAsFresh(made, moved('ipvs', second));
  });

  test('where nothing is to be changed', async () => {
    const made = await settled('iptables');
    expect((await callApply(made.host, 'apply', moved('iptables', first))).err).toBe(
      'nothing to do: the node matches the bundle\n',
    );
    expect(readings(made)).toEqual([]);
  });

  test('and rollback puts back what was there', async () => {
    const made = await settled('iptables');
    const there = made.node.dump();
    await callApply(made.host, 'apply', moved('iptables', second));
    expect((await callApply(made.host, 'rollback')).status).toBe(0);
    expect(made.node.dump()).toBe(there);
  });
});

describe('the rules are read', () => {
  test('by verify and plan, always', async () => {
    const made = await settled('iptables');
    await callApply(made.host, 'verify', moved('iptables', first));
    await callApply(made.host, 'plan', moved('iptables', second));
    expect(readings(made)).toHaveLength(4);
  });

  test('where another program changed them, and that is mended', async () => {
    const made = await settled('iptables');
    const chain = /^:(KUBE-SEP-\S+) /m.exec(made.node.dump())?.[1] ?? '';
    await made.host.run({
      tool: 'iptables-restore',
      args: ['--noflush'],
      stdin: `*nat\n:${chain} - [0:0]\n-A ${chain} -j RETURN\nCOMMIT\n`,
    });
    made.commands.length = 0;
    expect((await callApply(made.host, 'apply', moved('iptables', first))).err).toMatch(/^done: /);
    expect(readings(made)).toContain('ip6tables-save');
    await expectAsFresh(made, moved('iptables', first));
  });

  test('once, where another program changed something else in nftables', async () => {
    const made = await settled('iptables');
    await made.disturb();
    expect((await callApply(made.host, 'apply', moved('iptables', first))).err).toContain('nothing to do');
    expect(readings(made)).toEqual(['iptables-save', 'ip6tables-save']);
    made.commands.length = 0;
    await callApply(made.host, 'apply', moved('iptables', second));
    expect(readings(made)).toEqual(['iptables-save']);
  });

  test('the next time, where another program changed the other family while kpc-apply was at work', async () => {
    const made = await settled('iptables');
    const isRestore = ({ tool }: Command) => tool === 'iptables-restore';
    const host = {
      ...made.host,
      run: async (command: Command) => {
        const result = await made.host.run(command);
        const stray = '*nat\n:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]\nCOMMIT\n';
        if (isRestore(command)) await made.host.run({ tool: 'ip6tables-restore', args: ['--noflush'], stdin: stray });
        return result;
      },
    };
    await callApply(host, 'apply', moved('iptables', second));
    expect(stampOf(made)).toBeUndefined();
    made.commands.length = 0;
    await callApply(made.host, 'apply', moved('iptables', second));
    expect(readings(made)).toContain('ip6tables-save');
  });

  test.each<[string, (made: NetlinkNode) => unknown]>([
    ['after a reboot', ({ node }) => node.files.set('/proc/sys/kernel/random/boot_id', 'another\n')],
    ['in another network namespace', ({ node }) => node.files.set('/proc/self/ns/net', 'net:[1]')],
    [
      'where what was read then is damaged',
      ({ node }) => node.files.set(`${settledFolder}/ipv6`, (node.files.get(`${settledFolder}/ipv6`) ?? '').slice(40)),
    ],
  ])('%s', async (_, change) => {
    const made = await settled('iptables');
    await change(made);
    await callApply(made.host, 'apply', moved('iptables', second));
    expect(readings(made)).toContain('ip6tables-save');
  });

  test('where the tools are those of the legacy variant by now', async () => {
    const made = await settled('iptables');
    const legacy = {
      ...made.host,
      run: (command: Command) => (command.args[0] === '--version' ? made.node.host : made.host).run(command),
    };
    expect((await callApply(legacy, 'apply', moved('iptables', second))).status).toBe(0);
    expect(readings(made)).toContain('ip6tables-save');
  });

  test('where the kernel cannot be asked, or iptables is the legacy variant', async () => {
    const made = createNetlinkNode({ hasRules: true });
    for (const withheld of ['perl', 'iptables-save']) {
      const host = {
        ...made.host,
        run: (command: Command) =>
          (command.tool === withheld && !isReading(command) ? made.node.host : made.host).run(command),
      };
      await callApply(host, 'apply', moved('iptables', withheld === 'perl' ? first : second));
      expect(stampOf(made)).toBeUndefined();
    }
  });

  test('and the kernel is not asked where it has no nftables: that would load them', async () => {
    const made = createNetlinkNode({ hasRules: true });
    made.node.files.set('/proc/modules', createNetlinkNode().node.files.get('/proc/modules') ?? '');
    made.node.files.set('/lib/modules/6.1.0/modules.dep', 'kernel/net/netfilter/nf_tables.ko:\n');
    await callApply(made.host, 'apply', moved('iptables', first));
    expect(made.commands.filter(({ tool }) => tool === 'perl')).toHaveLength(0);
  });
});
