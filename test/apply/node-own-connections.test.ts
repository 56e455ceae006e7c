import { describe, expect, test } from 'vitest';
import { parseSources } from '../../src/apply/node/open-traffic.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { resultOf } from '../support/printed-json.ts';

const ipvs = 'fixtures/quickstart/expected-ipvs';
const iptables = 'fixtures/quickstart/expected-iptables';
const address = '10.96.0.80';

const heading = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const line = (local: string, state = '01', peer = '5000600A:0050') =>
  `   0: ${local} ${peer} ${state} 00000000:00000000 00:00000000 00000000     0        0 4711 1\n`;
/** A connection from the example's cluster IP, as one that the node opened to it has it. */
const fromVirtualAddress = heading + line('5000600A:D2F0');

async function leftIpvs(...options: readonly string[]): Promise<FakeNode> {
  const node = createFakeNode();
  await callApply(node.host, 'apply', ipvs);
  node.files.set('/proc/net/tcp', fromVirtualAddress);
  expect((await callApply(node.host, 'apply', iptables, ...options)).status).toBe(0);
  return node;
}

describe("the node's own connections, at a change of mode to iptables rules", () => {
  test('keep the address that they come from, and no virtual server', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', ipvs);
    node.files.set('/proc/net/tcp', fromVirtualAddress);
    const { status, err } = await callApply(node.host, 'apply', iptables);
    expect([status, err]).toEqual([
      0,
      expect.stringMatching(
        /^warning: sysctls that only IPVS mode needs .*\ndone: .*; 1 address of IPVS mode stays for open connections; KUBE-IPVS-FILTER refuses new ones\n$/,
      ),
    ]);
    expect(node.dump()).toContain(`kube-ipvs0 ${address}/32\n`);
    expect(node.dump()).not.toMatch(/^-A -t /m);
    expect((await callApply(node.host, 'verify', iptables)).status).toBe(0);
    expect((await callApply(node.host, 'plan', iptables)).status).toBe(0);
    expect((await callApply(node.host, 'apply', iptables)).err).toBe(
      'nothing to do: the node matches the bundle; 1 address of IPVS mode stays for open connections; KUBE-IPVS-FILTER refuses new ones\n',
    );
    const { out } = await callApply(node.host, 'plan', iptables, '--output', 'json');
    expect(resultOf(out)).toMatchObject({ changes: [], addressesLeft: [address] });
  });

  test('are looked at once the rules are in place, and not before', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', ipvs);
    const late = {
      ...node.host,
      run: async (command: Parameters<FakeNode['host']['run']>[0]) => {
        if (command.tool === 'iptables-restore' && command.args.includes('--noflush')) {
          node.files.set('/proc/net/tcp', fromVirtualAddress);
        }
        return node.host.run(command);
      },
    };
    expect((await callApply(late, 'apply', iptables)).status).toBe(0);
    expect(node.dump()).toContain(`kube-ipvs0 ${address}/32\n`);
  });

  test('let it go, and the link with it, at the first apply after their end', async () => {
    const node = await leftIpvs();
    node.files.set('/proc/net/tcp', heading + line('5000600A:D2F0', '06'));
    expect((await callApply(node.host, 'apply', iptables)).status).toBe(0);
    expect(node.dump()).not.toContain('kube-ipvs0');
    expect(node.files.get('/var/lib/kpc/record.json')).not.toMatch(/kube-ipvs0|leftIpvs/);
  });

  test('have the time of --drain-timeout, from when the node left IPVS', async () => {
    const node = await leftIpvs('--drain-timeout', '10s');
    await node.host.sleep(9000);
    expect((await callApply(node.host, 'apply', iptables, '--drain-timeout', '10s')).err).toMatch(/^nothing to do/);
    await node.host.sleep(1000);
    expect((await callApply(node.host, 'apply', iptables, '--drain-timeout', '10s')).err).toMatch(/^done/);
    expect(node.dump()).not.toContain('kube-ipvs0');
  });

  test('have none with --drain-timeout 0', async () => {
    const node = await leftIpvs('--drain-timeout', '0');
    expect(node.dump()).not.toContain('kube-ipvs0');
  });

  test('do not keep cleanup from taking everything away, nor rollback from going back', async () => {
    const node = await leftIpvs();
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    expect((await callApply(node.host, 'verify', ipvs)).status).toBe(0);
    expect((await callApply(node.host, 'apply', iptables)).status).toBe(0);
    expect((await callApply(node.host, 'cleanup')).status).toBe(0);
    expect(node.dump()).not.toContain('kube-ipvs0');
  });
});

describe('the sources of connections', () => {
  test.each([
    ['one over IPv4', line('5000600A:D2F0'), ['10.96.0.80']],
    ['one that begins', line('5000600A:D2F0', '02'), ['10.96.0.80']],
    ['one over IPv4 of an IPv6 socket', line('0000000000000000FFFF00005000600A:D2F0'), ['10.96.0.80']],
    ['one over IPv6', line('960000FD000000000000000010000000:D2F0'), ['fd00:96::10']],
    ['a socket that listens', line('5000600A:0050', '0A', '00000000:0000'), []],
    ['one that has ended', line('5000600A:D2F0', '06'), []],
    ['a socket of UDP that is not connected', line('5000600A:0035', '07', '00000000:0000'), []],
    ['no socket', 'what is this\n', []],
  ])('%s', (_, table, expected) => {
    // As the kernel prints them on machines that store the low byte first, which all that run these tests do.
    expect(parseSources(heading + table)).toEqual(expected);
  });
});
