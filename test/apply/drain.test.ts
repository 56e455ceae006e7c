import { describe, expect, test } from 'vitest';
import { parseIpvsadm } from '../../src/kernel/ipvs/ipvs.ts';
import { readConnections } from '../../src/apply/node/open-traffic.ts';
import { planDrain } from '../../src/apply/change/drain-servers.ts';

const none = readConnections('');
const counted = (active: number, inactive: number) => readConnections(listing(active, inactive));
const servers = (text: string) => parseIpvsadm(text).virtualServers;
const listing = (active: number, inactive: number) => `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A60000A:0050 rr
  -> 0A01010A:1F90      Masq    0      ${active}          ${inactive}
TCP  [fd00:0096:0000:0000:0000:0000:0000:0010]:0050 rr persistent 10800
  -> [fd00:0001:0000:0000:0000:0000:0000:000a]:1F90      Masq    1      1          4
`;
const key = { virtualServer: 'TCP 10.96.0.10 80', realServer: '10.1.1.10 8080' };
const there = (weight: number) =>
  servers(`-A -t 10.96.0.10:80 -s rr
-a -t 10.96.0.10:80 -r 10.1.1.10:8080 -m -w ${weight}
-a -t 10.96.0.10:80 -r 10.1.2.10:8080 -m -w 1
`);
const wanted = servers('-A -t 10.96.0.10:80 -s rr\n-a -t 10.96.0.10:80 -r 10.1.2.10:8080 -m -w 1\n');
const policy = { timeout: undefined, now: 1_700_000_005_000, uptime: 5000, leavesIpvs: false };
const begun = { since: 1_700_000_001_000, sinceBoot: 1000 };
const weights = (list: ReturnType<typeof servers>) =>
  list.flatMap((server) => server.realServers.map(({ weight }) => weight));

describe('/proc/net/ip_vs', () => {
  test('counts active and inactive connections of both families', () => {
    const connections = readConnections(listing(2, 3));
    expect(connections('TCP 10.96.0.10 80', '10.1.1.10 8080')).toEqual({ active: 2, inactive: 3 });
    expect(connections('TCP fd00:96::10 80', 'fd00:1::a 8080')).toEqual({ active: 1, inactive: 4 });
  });

  test('counts nothing of what the kernel does not list', () => {
    const connections = readConnections(listing(2, 3));
    expect(connections('UDP 10.96.0.10 80', '10.1.1.10 8080')).toBeUndefined();
    expect(connections('TCP 10.96.0.10 80', '10.1.1.11 8080')).toBeUndefined();
    expect(connections('TCP fd00:96::10 80', '10.1.1.10 8080')).toBeUndefined();
  });

  test('keeps the real servers of a firewall mark apart from those of the virtual server before it', () => {
    const connections = readConnections(
      `${listing(2, 3)}FWM  00000001 rr\n  -> 0A01010B:0000      Route   1      5          6\n`,
    );
    expect(connections('TCP fd00:96::10 80', '10.1.1.11 0')).toBeUndefined();
    expect(connections('TCP fd00:96::10 80', 'fd00:1::a 8080')).toEqual({ active: 1, inactive: 4 });
  });
});

describe('a TCP real server that goes', () => {
  test('gets weight 0 first, even without connections: one may be opened just now', () => {
    const plan = planDrain(there(1), wanted, none, [], policy);
    expect(weights(plan.virtualServers)).toEqual([0, 1]);
    expect(plan.draining).toEqual([{ ...key, since: 1_700_000_005_000, sinceBoot: 5000 }]);
  });

  test('stays at weight 0 while it has connections', () => {
    const known = [{ ...key, ...begun }];
    const plan = planDrain(there(0), wanted, counted(0, 1), known, policy);
    expect(weights(plan.virtualServers)).toEqual([0, 1]);
    expect(plan.draining).toEqual(known);
  });

  test('goes when its connections have ended', () => {
    const plan = planDrain(there(0), wanted, counted(0, 0), [{ ...key, ...begun }], policy);
    expect(plan).toEqual({ virtualServers: wanted, draining: [], kept: 0, cut: 0 });
  });

  test('goes with its connections when its time is over, and not before', () => {
    const known = [{ ...key, ...begun }];
    const connections = counted(1, 0);
    const after = (timeout: number) => planDrain(there(0), wanted, connections, known, { ...policy, timeout });
    expect(weights(after(4001).virtualServers)).toEqual([0, 1]);
    expect(weights(after(4000).virtualServers)).toEqual([1]);
  });

  test.each([3_600_000, -3_600_000])('has the same time where the clock is set by %d ms meanwhile', (by) => {
    const known = [{ ...key, ...begun }];
    const after = (timeout: number) =>
      planDrain(there(0), wanted, counted(1, 0), known, { ...policy, timeout, now: policy.now + by });
    expect(weights(after(4001).virtualServers)).toEqual([0, 1]);
    expect(weights(after(4000).virtualServers)).toEqual([1]);
  });

  test('stays where its connections are not known', () => {
    expect(weights(planDrain(there(0), wanted, none, [], policy).virtualServers)).toEqual([0, 1]);
  });
});

test.each(['-u', '--sctp-service'])('a real server of %s goes at once', (flag) => {
  const text = (real: string) => `-A ${flag} 10.96.0.10:80 -s rr\n${real}`;
  const plan = planDrain(
    servers(text(`-a ${flag} 10.96.0.10:80 -r 10.1.1.10:8080 -m -w 1\n`)),
    servers(text('')),
    none,
    [],
    policy,
  );
  expect(weights(plan.virtualServers)).toEqual([]);
});

test('a virtual server that goes takes its real servers with it', () => {
  expect(planDrain(there(1), [], none, [], policy)).toEqual({ virtualServers: [], draining: [], kept: 0, cut: 0 });
});
