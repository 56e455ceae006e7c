import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { retellServers } from '../../src/apply/quick/derive-servers.ts';
import { parseIpvsadm } from '../../src/kernel/ipvs/ipvs.ts';
import { callApply } from './call-apply.ts';
import { writeWithEndpoints } from './edited-bundle.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { tableOf } from './ipvs-table-file.ts';

const printed = `-A -t 10.96.0.10:80 -s rr
-a -t 10.96.0.10:80 -r 10.1.1.10:8080 -m -w 1
-a -t 10.96.0.10:80 -r 10.1.1.11:8080 -m -w 1 -x 100 -y 50
-A -t 10.96.0.10:8 -s mh -b mh-fallback
-a -t 10.96.0.10:8 -r 10.1.1.10:8080 -m -w 1
-A -u [fd00:96::10]:53 -s rr -p 10800
-a -u [fd00:96::10]:53 -r [fd00:1::a]:53 -m -w 1
`;

describe('what ipvsadm would print', () => {
  const after = (change: (text: string) => string, connections = 0) =>
    retellServers(printed, tableOf(printed), tableOf(change(printed), connections));

  test.each<[string, (text: string) => string]>([
    ['nothing changed', (text) => text],
    ['a weight changed', (text) => text.replace('10.1.1.10:8080 -m -w 1', '10.1.1.10:8080 -m -w 0')],
    ['of one with thresholds', (text) => text.replace('10.1.1.11:8080 -m -w 1', '10.1.1.11:8080 -m -w 7')],
    [
      'a real server came',
      (text) => text.replace(/(?=-A -t 10\.96\.0\.10:8 )/, '-a -t 10.96.0.10:80 -r 10.1.1.12:80 -m -w 3\n'),
    ],
    ['the last real server came', (text) => `${text}-a -u [fd00:96::10]:53 -r [fd00:1::b]:53 -m -w 1\n`],
    ['the only real server went', (text) => text.replace(/^-a -t 10\.96\.0\.10:8 .*\n/m, '')],
    ['the last real server went', (text) => text.replace(/^-a -u .*\n/m, '')],
    ['the forwarding method changed', (text) => text.replace('10.1.1.10:8080 -m', '10.1.1.10:8080 -g')],
  ])('where %s', (_, change) => {
    for (const connections of [0, 3, 12345678901]) {
      expect(parseIpvsadm(after(change, connections) ?? '')).toEqual(parseIpvsadm(change(printed)));
    }
  });

  test('is sorted as ipvsadm sorts it, whatever order the kernel has', () => {
    const added = '-a -t 10.96.0.10:80 -r 10.1.1.9:8080 -m -w 1\n';
    const table = tableOf(printed.replace(/(?=-a -t 10\.96\.0\.10:80 )/, added));
    const [, first = '', second = ''] = /(  -> 0A010109.*\n)(  -> .*\n)/.exec(table) ?? [];
    const turned = table.replace(first + second, second + first);
    expect(turned).not.toBe(table);
    expect(retellServers(printed, tableOf(printed), turned)).toBe(
      printed.replace(/(?=-a -t 10\.96\.0\.10:80 )/, added),
    );
  });

  test('is the same text where nothing but connections changed', () => {
    expect(after((text) => text, 77)).toBe(printed);
  });

  test.each<[string, (text: string) => string]>([
    ['a virtual server came', (text) => `${text}-A -t 10.96.0.99:80 -s rr\n`],
    ['one went', (text) => text.replace(/^-[Aa] -t 10\.96\.0\.10:8 .*\n/gm, '')],
    ['one went and another came', (text) => text.replaceAll('10.96.0.10:80 ', '10.96.0.11:80 ')],
    ['one has another scheduler', (text) => text.replace('-s rr', '-s wrr')],
    ['one is persistent for another time', (text) => text.replace('-p 10800', '-p 300')],
    ['a real server is reached by a tunnel', (text) => text.replace('10.1.1.10:8080 -m', '10.1.1.10:8080 -i')],
  ])('is for ipvsadm to tell where %s', (_, change) => {
    expect(after(change)).toBeUndefined();
  });

  test('is for ipvsadm to tell where the file is of other virtual servers, or of none', () => {
    expect(retellServers(printed, '', '')).toBeUndefined();
    expect(retellServers(printed, tableOf(''), tableOf(''))).toBeUndefined();
    const others = printed.replace(/^-[Aa] -t 10\.96\.0\.10:8 .*\n/gm, '');
    expect(retellServers(printed, tableOf(others), tableOf(others))).toBeUndefined();
    const [changed, elsewhere] = [printed.replace('-w 1', '-w 0'), printed.replaceAll('10.96.', '10.97.')];
    expect(retellServers(elsewhere, tableOf(printed), tableOf(changed))).toBeUndefined();
  });

  test('is for ipvsadm to tell where a line of the file cannot be read', () => {
    const now = tableOf(printed).replace('0A01010A:1F90      Masq    1 ', '0A01010A:1F90      Masq    one ');
    expect(retellServers(printed, tableOf(printed), now)).toBeUndefined();
    expect(
      retellServers(
        printed.trimEnd(),
        tableOf(printed),
        tableOf(printed.replace('-a -u [fd00:96::10]:53 -r [fd00:1::a]:53 -m -w 1', '')),
      ),
    ).toBeUndefined();
  });

  test('of a firewall mark is for ipvsadm to tell, too', () => {
    const mark = 'FWM  00000001 rr \n  -> 0A01010A:0000      Route   1      0          0         \n';
    const [all, table] = [`${printed}-A -f 1 -s rr\n-a -f 1 -r 10.1.1.10:0 -g -w 1\n`, `${tableOf(printed)}${mark}`];
    expect(retellServers(all, table, table)).toBe(all);
    expect(retellServers(all, table, table.replace(mark, mark.replace('Route   1', 'Route   2')))).toBeUndefined();
  });
});

describe('an apply of real servers alone', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'kpc-retell-'));
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));
  const bundleWith = (address: string, node = 'elsewhere') =>
    writeWithEndpoints(join(scratch, `${address}-${node}`), 'ipvs', [address], { node });

  /** A node that shows in /proc/net/ip_vs what it has. `disturb` is done once, right after the first change of a real server. */
  function withTable(node: FakeNode, disturb?: (host: Host) => Promise<unknown>): Host {
    let isDone = disturb === undefined;
    return {
      ...node.host,
      readFile: async (path) => {
        if (path !== '/proc/net/ip_vs') return node.host.readFile(path);
        const result = await createTwin(node).run({ tool: 'ipvsadm', args: ['-Sn'] });
        return tableOf(result.kind === 'ended' ? result.stdout : '');
      },
      run: async (command) => {
        const result = await node.host.run(command);
        if (!isDone && command.args[0] === '-R') {
          isDone = true;
          await disturb?.(node.host);
        }
        return result;
      },
    };
  }

  /** The node without a trace in its commands. */
  function createTwin(node: FakeNode): Pick<Host, 'run'> {
    return {
      run: async (command) => {
        const result = await node.host.run(command);
        node.commands.pop();
        return result;
      },
    };
  }

  async function settled(): Promise<FakeNode> {
    const node = createFakeNode();
    expect((await callApply(withTable(node), 'apply', bundleWith('10.244.7.1'))).status).toBe(0);
    node.commands.length = 0;
    return node;
  }

  const listings = (node: FakeNode) => node.commands.filter(({ args }) => args[0] === '-Sn').length;

  test('runs ipvsadm once to read, and what it settles is what the node has', async () => {
    const node = await settled();
    for (const address of ['10.244.7.2', '10.244.7.3', '10.244.7.1']) {
      expect((await callApply(withTable(node), 'apply', bundleWith(address))).status).toBe(0);
      expect(listings(node)).toBe(1);
      const result = await node.host.run({ tool: 'ipvsadm', args: ['-Sn'] });
      const kept = node.files.get('/var/lib/kpc/settled/ipvsadm') ?? '';
      expect(parseIpvsadm(kept)).toEqual(parseIpvsadm(result.kind === 'ended' ? result.stdout : ''));
      node.commands.length = 0;
      expect((await callApply(withTable(node), 'verify', bundleWith(address))).status).toBe(0);
      node.commands.length = 0;
    }
  });

  test.each([
    ['a virtual server goes', '-D -t [fd00:96::3260]:443\n'],
    ['a real server of ours goes', '-d -t [fd00:96::3260]:443 -r [fd00:244:1::160]:8443\n'],
    ['a real server of ours gets another weight', '-e -t [fd00:96::3260]:443 -r [fd00:244:1::160]:8443 -m -w 9\n'],
    ['a real server that came goes at once', '-d -t 10.96.32.60:443 -r 10.244.7.2:8443\n'],
  ])('finds by ipvsadm itself that %s meanwhile', async (_, stdin) => {
    const node = await settled();
    const host = withTable(node, (real) => real.run({ tool: 'ipvsadm', args: ['-R'], stdin }));
    const { status, err } = await callApply(host, 'apply', bundleWith('10.244.7.2'));
    expect([status, err]).toEqual([3, expect.stringContaining('the node is not as it should be; still to do:')]);
    expect((await callApply(withTable(node), 'verify', bundleWith('10.244.7.1'))).status).toBe(0);
  });
});
