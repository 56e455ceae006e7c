import { describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { triesAll } from '../support/rounds.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { diesDuring, heirOf, mortalHost } from './mortal-host.ts';
import { resultOf } from '../support/printed-json.ts';

// In IPVS mode, the addresses of Services are on kube-ipvs0: to the kernel they are the node's own. KUBE-IPVS-FILTER keeps
// clients from what listens on all addresses of the node, for as long as one of them is there.

const ipvs = 'fixtures/quickstart/expected-ipvs';
const iptables = 'fixtures/quickstart/expected-iptables';
const address = '10.96.0.80';
const listing = (first: number) => `TCP  0A600050:0050 rr
  -> 0AF4010A:1F90      Masq    1      ${first}          0
  -> 0AF4020A:1F90      Masq    1      0          0
`;
const count = (node: FakeNode, first: number) => node.files.set('/proc/net/ip_vs', listing(first));

/** The addresses on kube-ipvs0 at which a program that listens on all addresses would answer. */
function openAddresses(node: FakeNode): readonly string[] {
  const dump = node.dump();
  const bound = /^kube-ipvs0 (.*)$/m.exec(dump)?.[1]?.match(/[\d.]+(?=\/32)/g) ?? [];
  const refuses = [
    /^-A INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER$/m,
    /^-A KUBE-IPVS-FILTER -m conntrack --ctstate NEW -m set --match-set KUBE-IPVS-IPS dst -j REJECT$/m,
  ].every((rule) => rule.test(dump));
  return bound.filter((each) => !refuses || !dump.includes(`add KUBE-IPVS-IPS ${each}\n`));
}

/** The node with a host that looks after each tool whether all addresses are closed. */
function underWatch(node: FakeNode, seen: string[]): Host {
  return {
    ...node.host,
    run: async (command) => {
      const result = await node.host.run(command);
      const open = openAddresses(node);
      if (open.length > 0) seen.push(`${open.join(', ')} after ${command.tool} ${command.args.join(' ')}`);
      return result;
    },
  };
}

async function inIpvsMode(connections: number): Promise<FakeNode> {
  const node = createFakeNode();
  await callApply(node.host, 'apply', ipvs);
  count(node, connections);
  return node;
}

/** What a dump has of the guard: rules, jumps and sets. */
const guardLines = (node: FakeNode) =>
  node
    .dump()
    .match(/^.*(?:KUBE-IPVS-|(?:create|add) KUBE-).*$/gm)
    ?.filter((line) => !line.startsWith(':')) ?? [];

describe('while a node leaves IPVS mode', () => {
  test('the filter stays with the address, and refuses all new connections, but not flows that are never answered', async () => {
    const node = await inIpvsMode(3);
    await callApply(node.host, 'apply', iptables);
    expect(node.dump()).toContain(`kube-ipvs0 ${address}/32\n`);
    expect(guardLines(node)).toEqual([
      '-A INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER',
      '-A KUBE-IPVS-FILTER ! -i lo -m conntrack --ctstatus CONFIRMED -m set --match-set KUBE-EXTERNAL-IP dst,dst -j RETURN',
      '-A KUBE-IPVS-FILTER -m conntrack --ctstate NEW -m set --match-set KUBE-IPVS-IPS dst -j REJECT',
      `add KUBE-EXTERNAL-IP ${address},tcp:80`,
      `add KUBE-IPVS-IPS ${address}`,
      expect.stringMatching(/^create KUBE-EXTERNAL-IP /),
      expect.stringMatching(/^create KUBE-IPVS-IPS /),
    ]);
  });

  test('the rules of iptables mode come first: what these refuse in their own way, or let in, is theirs', async () => {
    const node = await inIpvsMode(3);
    await callApply(node.host, 'apply', iptables);
    const jumps = node.dump().match(/^-A INPUT .*$/gm) ?? [];
    expect(jumps.length).toBeGreaterThan(3);
    expect(jumps.findIndex((jump) => jump.endsWith('-j KUBE-IPVS-FILTER'))).toBe(jumps.length - 1);
  });

  test.each([0, 3])('no address is open at any moment, with %i connections, there and back', async (connections) => {
    const node = await inIpvsMode(connections);
    const seen: string[] = [];
    const host = underWatch(node, seen);
    for (const args of [
      ['apply', iptables],
      ['apply', ipvs],
      ['apply', iptables],
      ['rollback'],
      ['cleanup'],
    ] as const) {
      expect((await callApply(host, ...args)).status).toBe(0);
    }
    expect(seen).toEqual([]);
    expect(node.dump()).not.toMatch(/KUBE-/);
  });

  test('it goes with the last address, all of it', async () => {
    const node = await inIpvsMode(3);
    await callApply(node.host, 'apply', iptables);
    count(node, 0);
    const seen: string[] = [];
    expect((await callApply(underWatch(node, seen), 'apply', iptables)).status).toBe(0);
    expect(seen).toEqual([]);
    expect(guardLines(node)).toEqual([]);
    expect(node.dump()).not.toMatch(/KUBE-IPVS|kube-ipvs0/);
    expect((await callApply(node.host, 'verify', iptables)).out).toBe('the node matches the bundle\n');
    const fresh = createFakeNode();
    await callApply(fresh.host, 'apply', iptables);
    const tables = (text: string) => text.slice(0, text.indexOf('/proc/sys/'));
    expect(tables(node.dump())).toBe(tables(fresh.dump()));
  });

  test('verify says what is there besides, and finds the filter missing', async () => {
    const node = await inIpvsMode(3);
    await callApply(node.host, 'apply', iptables);
    const { status, out } = await callApply(node.host, 'verify', iptables);
    expect([status, out]).toEqual([
      0,
      expect.stringContaining(
        '\n1 address of IPVS mode stays for open connections; KUBE-IPVS-FILTER refuses new ones\n',
      ),
    ]);
    const { out: json } = await callApply(node.host, 'verify', iptables, '--output', 'json');
    expect(resultOf(json)).toMatchObject({ changes: [], addressesLeft: [address] });
    await node.host.run({
      tool: 'iptables-restore',
      args: ['--noflush'],
      stdin: '*filter\n-D INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER\nCOMMIT\n',
    });
    const missing = await callApply(node.host, 'verify', iptables);
    expect([missing.status, missing.out]).toEqual([1, expect.stringContaining('KUBE-IPVS-FILTER')]);
    await callApply(node.host, 'apply', iptables);
    expect(openAddresses(node)).toEqual([]);
  });

  test('a rollback to a time of it brings no filter back that nothing needs', async () => {
    const node = await inIpvsMode(3);
    await callApply(node.host, 'apply', iptables);
    count(node, 0);
    await callApply(node.host, 'apply', iptables);
    await callApply(node.host, 'rollback');
    expect(guardLines(node)).toEqual([]);
    expect((await callApply(node.host, 'verify', iptables)).status).toBe(0);
    const record = JSON.parse(node.files.get('/var/lib/kpc/record.json') ?? '{}') as { owned: unknown };
    expect(JSON.stringify(record.owned)).not.toContain('KUBE-IPVS');
  });

  test("cleanup takes it away, and another program's rules in INPUT stay where they are", async () => {
    const node = await inIpvsMode(3);
    const foreign = '-A INPUT -p tcp --dport 22 -j ACCEPT';
    await node.host.run({ tool: 'iptables-restore', args: [], stdin: `*filter\n${foreign}\nCOMMIT\n` });
    await callApply(node.host, 'apply', iptables);
    expect((node.dump().match(/^-A INPUT .*$/gm) ?? []).at(-1)).toBe(foreign);
    await callApply(node.host, 'cleanup');
    expect(node.dump().match(/^-A INPUT .*$/gm)).toEqual([foreign]);
    expect(node.dump()).not.toContain('KUBE-');
  });

  test('what an older kube-proxy left without a filter gets one', async () => {
    const node = createFakeNode();
    for (const [tool, args, stdin] of [
      [
        'ipset',
        ['restore'],
        `create KUBE-CLUSTER-IP hash:ip,port family inet\nadd KUBE-CLUSTER-IP ${address},tcp:80\n`,
      ],
      ['ipvsadm', ['-R'], `-A -t ${address}:80 -s rr\n-a -t ${address}:80 -r 10.244.1.10:8080 -m -w 1\n`],
      ['ip', ['-batch', '-'], `link add kube-ipvs0 type dummy\naddr add ${address}/32 dev kube-ipvs0\n`],
    ] as const) {
      await node.host.run({ tool, args, stdin });
    }
    count(node, 3);
    expect((await callApply(node.host, 'apply', iptables, '--adopt')).err).toContain('1 real server waits');
    expect(openAddresses(node)).toEqual([]);
    count(node, 0);
    await callApply(node.host, 'apply', iptables);
    expect(node.dump()).not.toMatch(/KUBE-IPVS|kube-ipvs0/);
  });
});

describe('killed between any two tools of the change of mode', () => {
  const from = { out: [ipvs, iptables], back: [iptables, ipvs] } as const;

  /** Applies the second bundle over the first, and dies before the tool of this number changes anything. */
  async function dieBefore(step: number, [first, second]: readonly [string, string]): Promise<FakeNode | undefined> {
    const node = createFakeNode();
    await callApply(node.host, 'apply', first);
    if (first === ipvs) count(node, 3);
    let changes = 0;
    const dying = mortalHost(node.host, ({ stdin }) => stdin !== undefined && changes++ === step);
    return (await diesDuring(dying, 'apply', second)) ? node : undefined;
  }

  // In `npm test`, each other place where it may die, in turn.
  const stride = triesAll ? 1 : 2;

  test.each(['out', 'back'] as const)('%s: every address is closed, and the next apply finishes', async (way) => {
    let steps = 0;
    for (; ; steps += stride) {
      const node = await dieBefore(steps, from[way]);
      if (!node) break;
      expect(openAddresses(node), `killed before change ${steps}`).toEqual([]);
      const heir = heirOf(node);
      expect((await callApply(heir, 'apply', from[way][1])).status).toBe(0);
      expect(openAddresses(node)).toEqual([]);
      count(node, 0);
      await callApply(heir, 'apply', from[way][1]);
      expect(guardLines(node).length > 0).toBe(way === 'back');
      expect((await callApply(heir, 'verify', from[way][1])).status).toBe(0);
    }
    expect(steps).toBeGreaterThan(3);
  });

  test.each(['out', 'back'] as const)('%s: rollback brings back what was there', async (way) => {
    for (let steps = 1; ; steps += stride) {
      const node = await dieBefore(steps, from[way]);
      if (!node) break;
      const seen: string[] = [];
      const heir = { ...underWatch(node, seen), pid: heirOf(node).pid };
      expect((await callApply(heir, 'rollback')).status).toBe(0);
      expect((await callApply(heir, 'verify', from[way][0])).status).toBe(0);
      expect(seen, `killed before change ${steps}`).toEqual([]);
    }
  });
});
