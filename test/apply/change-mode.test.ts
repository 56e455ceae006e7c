import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConnections } from '../../src/apply/node/open-traffic.ts';
import { planDrain } from '../../src/apply/change/drain-servers.ts';
import type { Host } from '../../src/apply/node/host.ts';
import { parseIpvsadm } from '../../src/kernel/ipvs/ipvs.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { diesDuring, heirOf, mortalHost } from './mortal-host.ts';
import { resultOf } from '../support/printed-json.ts';

const ipvs = 'fixtures/quickstart/expected-ipvs';
const iptables = 'fixtures/quickstart/expected-iptables';
const address = '10.96.0.80';

/** What /proc/net/ip_vs says of the example's cluster IP: connections to its two endpoints. */
const listing = (first: number, second: number) => `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A600050:0050 rr
  -> 0AF4010A:1F90      Masq    1      ${first}          0
  -> 0AF4020A:1F90      Masq    1      ${second}          0
`;
const count = (node: FakeNode, first: number, second: number) =>
  node.files.set('/proc/net/ip_vs', listing(first, second));

async function inIpvsMode(first: number, second: number): Promise<FakeNode> {
  const node = createFakeNode();
  await callApply(node.host, 'apply', ipvs);
  count(node, first, second);
  return node;
}

describe('from IPVS to iptables rules', () => {
  test('keeps a virtual server with its address for the connections it has, at weight 0, and no other', async () => {
    const node = await inIpvsMode(3, 0);
    const { status, err } = await callApply(node.host, 'apply', iptables);
    expect([status, err]).toEqual([
      0,
      expect.stringMatching(
        /^done: .*; 1 real server waits for 3 connections to end; 1 address of IPVS mode stays for open connections/m,
      ),
    ]);
    const dump = node.dump();
    expect(dump.match(/^-[Aa] -t .*$/gm)).toEqual([
      `-A -t ${address}:80 -s rr`,
      `-a -t ${address}:80 -r 10.244.1.10:8080 -m -w 0`,
    ]);
    expect(dump).toContain(`kube-ipvs0 ${address}/32\n`);
    expect((await callApply(node.host, 'verify', iptables)).status).toBe(0);
  });

  test('is dumped with the virtual server that is left', async () => {
    const node = await inIpvsMode(3, 0);
    await callApply(node.host, 'apply', iptables);
    const folder = join(mkdtempSync(join(tmpdir(), 'kpc-change-mode-')), 'dump');
    expect((await callApply(node.host, 'dump', '-o', folder)).err).toContain('1 virtual server, ');
    expect(readFileSync(join(folder, 'ipvsadm.restore'), 'utf8')).toContain(`-A -t ${address}:80 `);
    expect((await callApply(node.host, 'verify', folder)).out).toBe('the node matches the bundle\n');
    rmSync(dirname(folder), { recursive: true });
  });

  test('puts the rules in place before it looks which virtual servers have connections', async () => {
    const node = await inIpvsMode(0, 0);
    const late: Host = {
      ...node.host,
      run: async (command) => {
        const result = await node.host.run(command);
        // A connection that came just before the rules did.
        if (command.tool === 'iptables-restore' && command.args.includes('--noflush')) count(node, 0, 1);
        return result;
      },
    };
    await callApply(late, 'apply', iptables);
    expect(node.dump()).toContain(`-a -t ${address}:80 -r 10.244.2.10:8080 -m -w 0`);
  });

  test('lets it go at a later apply, when its connections have ended', async () => {
    const node = await inIpvsMode(3, 1);
    await callApply(node.host, 'apply', iptables);
    expect((await callApply(node.host, 'apply', iptables)).err).toEqual(
      expect.stringMatching(
        /^nothing to do: the node matches the bundle; 2 real servers wait for 4 connections to end; /,
      ),
    );
    count(node, 0, 0);
    expect((await callApply(node.host, 'apply', iptables)).status).toBe(0);
    expect(node.dump()).not.toContain(`${address}/32\n`);
    expect(node.dump()).not.toMatch(/^-A -t /m);
  });

  test.each(['0', '1s'])('cuts them when --drain-timeout %s is over, and says how many', async (timeout) => {
    const node = await inIpvsMode(3, 1);
    if (timeout !== '0') {
      await callApply(node.host, 'apply', iptables, '--drain-timeout', timeout);
      await node.host.sleep(1000);
    }
    const { status, err } = await callApply(node.host, 'apply', iptables, '--drain-timeout', timeout);
    expect([status, err]).toEqual([0, expect.stringMatching(/^done: .*; 4 connections were cut\n$/m)]);
    expect(node.dump()).not.toMatch(/^-A -t /m);
  });

  test('is planned with the number of connections that wait, and of those that would be cut', async () => {
    const node = await inIpvsMode(3, 1);
    expect((await callApply(node.host, 'plan', iptables)).out).toContain(
      '4 connections open to real servers that drain\n',
    );
    const cutting = ['plan', iptables, '--drain-timeout', '0'];
    expect((await callApply(node.host, ...cutting)).out).toContain('! 4 connections would be cut\n');
    const { out } = await callApply(node.host, ...cutting, '--output', 'json');
    expect(resultOf(out)).toMatchObject({ connections: { draining: 0, cut: 4 } });
  });

  test('and back again gives the virtual servers that drain their weight back', async () => {
    const node = await inIpvsMode(3, 0);
    const before = node.dump();
    await callApply(node.host, 'apply', iptables);
    await callApply(node.host, 'apply', ipvs);
    const lines = (text: string) => text.slice(0, text.indexOf('/proc/sys/')).split('\n').toSorted();
    expect(lines(node.dump())).toEqual(lines(before));
  });

  test('is undone by rollback, weights and all, and cleanup leaves nothing of it', async () => {
    const node = await inIpvsMode(3, 1);
    const before = node.dump();
    await callApply(node.host, 'apply', iptables);
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    expect(node.dump().split('\n').toSorted()).toEqual(
      expect.arrayContaining(before.split('\n').filter((line) => line.startsWith('-a -t '))),
    );
    await callApply(node.host, 'apply', iptables);
    expect((await callApply(node.host, 'cleanup')).err).toContain('; 4 connections were cut\n');
    expect(node.dump()).not.toMatch(/^-A -t |kube-ipvs0/m);
  });

  /** A node on which kpc-apply was killed when it had put the rules in place. */
  async function killedAfterRules(): Promise<{ readonly node: FakeNode; readonly heir: Host }> {
    const node = await inIpvsMode(3, 0);
    const dying = mortalHost(node.host, ({ args: [first] }) => first === '-R' || first === '-batch');
    expect(await diesDuring(dying, 'apply', iptables)).toBe(true);
    expect(node.dump()).toContain('KUBE-SVC-');
    expect(node.dump()).toContain('-a -t 10.96.0.80:80 -r 10.244.1.10:8080 -m -w 1');
    return { node, heir: heirOf(node) };
  }

  test('killed after the rules, the next apply goes on from there', async () => {
    const { node, heir } = await killedAfterRules();
    expect((await callApply(heir, 'apply', iptables)).status).toBe(0);
    expect(node.dump().match(/^-a -t .*$/gm)).toEqual([`-a -t ${address}:80 -r 10.244.1.10:8080 -m -w 0`]);
  });

  test('killed after the rules, rollback brings IPVS mode back', async () => {
    const { node, heir } = await killedAfterRules();
    expect((await callApply(heir, 'rollback')).status).toBe(0);
    expect(node.dump()).not.toContain('KUBE-SVC-');
    expect((await callApply(heir, 'verify', ipvs)).status).toBe(0);
  });
});

describe('a virtual server that gives way to rules', () => {
  const policy = { timeout: undefined, now: 0, uptime: 0, leavesIpvs: true };
  const kernel = (active: number, inactive: number) =>
    readConnections(`UDP  0A60000B:0035 rr\n  -> 0A01010A:1F90      Masq    1      ${active}          ${inactive}\n`);
  const present = parseIpvsadm('-A -u 10.96.0.11:53 -s rr\n-a -u 10.96.0.11:53 -r 10.1.1.10:8080 -m -w 1\n');

  test('stays for UDP flows, too: the kernel sends their packets on by it alone', () => {
    const { virtualServers, kept } = planDrain(present.virtualServers, [], kernel(0, 2), [], policy);
    expect(virtualServers.map((server) => server.realServers.map((real) => real.weight))).toEqual([[0]]);
    expect(kept).toBe(2);
  });

  test('goes where its flows have been idle', () => {
    expect(planDrain(present.virtualServers, [], kernel(0, 0), [], policy).virtualServers).toEqual([]);
  });
});

test('a Service that goes from IPVS mode goes at once, and the connections that this cuts are counted', async () => {
  const node = await inIpvsMode(2, 3);
  expect((await callApply(node.host, 'apply', 'fixtures/dns/expected-ipvs')).err).toContain(
    '; 5 connections were cut\n',
  );
});
