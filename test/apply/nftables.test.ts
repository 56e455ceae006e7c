import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ToolCommand, CommandResult, Host } from '../../src/apply/node/host.ts';
import { ended, failOnce, idleFaults, killed, type Fault } from '../support/tool-faults.ts';
import { resultOf } from '../support/printed-json.ts';
import { triesAll } from '../support/rounds.ts';
import { runKpc } from '../support/run-kpc.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { diesDuring, heirOf, mortalHost } from './mortal-host.ts';

const before = 'fixtures/dual-stack/expected-nftables';
const after = 'fixtures/loadbalancer-source-ranges/expected-nftables';
const table = 'ip kube-proxy';

function nft(node: FakeNode, stdin: string): Promise<CommandResult> {
  return node.host.run({ tool: 'nft', args: ['-f', '-'], stdin });
}

async function startNode(): Promise<FakeNode> {
  const node = createFakeNode();
  await nft(node, 'table ip filter {\n\tchain INPUT {\n\t\tdrop\n\t}\n}\n');
  const { status, err } = await callApply(node.host, 'apply', before);
  expect(err).toContain('done: ');
  expect(status).toBe(0);
  node.commands.length = 0;
  return node;
}

const isChange = ({ tool, args }: ToolCommand) => tool === 'nft' && args[0] === '-f';
const listed = ({ commands }: FakeNode) => commands.filter(({ tool, args }) => tool === 'nft' && args.includes('list'));

describe('apply', () => {
  test('makes the tables, one transaction a family, and a second apply changes nothing', async () => {
    const node = await startNode();
    const fresh = createFakeNode();
    await callApply(fresh.host, 'apply', before);
    expect(fresh.commands.filter(isChange).map(({ stdin = '' }) => stdin.split('\n')[0])).toEqual([
      'table ip kube-proxy',
      'table ip6 kube-proxy',
    ]);
    expect((await callApply(node.host, 'apply', before)).err).toBe('nothing to do: the node matches the bundle\n');
    expect(node.commands.filter(isChange)).toEqual([]);
    expect((await callApply(node.host, 'verify', before)).status).toBe(0);
  });

  test('goes from one bundle to another by what differs, without emptying the table', async () => {
    const node = await startNode();
    expect((await callApply(node.host, 'apply', after)).status).toBe(0);
    const changes = node.commands.filter(isChange).map(({ stdin = '' }) => stdin);
    expect(changes.some((text) => text.startsWith('delete table ip kube-proxy'))).toBe(false);
    expect(changes.join('')).not.toContain('flush chain ip kube-proxy nat-prerouting');
    const direct = createFakeNode();
    await nft(direct, 'table ip filter {\n\tchain INPUT {\n\t\tdrop\n\t}\n}\n');
    await callApply(direct.host, 'apply', after);
    expect(node.dump()).toBe(direct.dump());
  });

  test('reads back the tables, of both families at one moment', async () => {
    const node = await startNode();
    await nft(node, `add chain ${table} stray\n`);
    node.commands.length = 0;
    expect((await callApply(node.host, 'apply', before)).err).toMatch(/^done: 1 chain removed\n$/m);
    expect(listed(node).map(({ args }) => args.slice(-2).join(' '))).toEqual([
      'ip kube-proxy',
      'ip6 kube-proxy',
      'ip kube-proxy',
      'ip6 kube-proxy',
    ]);
  });

  test.each([
    `add chain ${table} stray`,
    `add element ${table} cluster-ips { 10.96.9.9 }`,
    `flush chain ${table} nat-prerouting`,
    `add set ${table} stray { type ipv4_addr; }`,
    `delete table ${table}`,
  ])('repairs what another program did: %s', async (line) => {
    const node = await startNode();
    const there = node.dump();
    expect(await nft(node, `${line}\n`)).toMatchObject({ status: 0 });
    expect((await callApply(node.host, 'verify', before)).status).toBe(1);
    expect((await callApply(node.host, 'apply', before)).status).toBe(0);
    expect(node.dump()).toBe(there);
  });

  test('puts a table in place of one that holds what kpc does not read', async () => {
    const node = await startNode();
    const there = node.dump();
    let isAsleep = true;
    const host: Host = {
      ...node.host,
      run: async (command) => {
        if (isChange(command)) isAsleep = false;
        const result = await node.host.run(command);
        if (!isAsleep || result.kind !== 'ended' || !command.args.includes('ip')) return result;
        return { ...result, stdout: result.stdout.replace('{\n', '{\n\tflags dormant\n') };
      },
    };
    expect((await callApply(host, 'verify', before)).status).toBe(1);
    expect((await callApply(host, 'apply', before)).status).toBe(0);
    expect(node.commands.find(isChange)?.stdin).toMatch(/^table ip kube-proxy\ndelete table ip kube-proxy\n/);
    expect(node.dump()).toBe(there);
  });

  test('keeps what rules have learned', async () => {
    const sticky = 'fixtures/session-affinity/expected-nftables';
    const node = createFakeNode();
    await callApply(node.host, 'apply', sticky);
    const set = /set (affinity-\S+)/.exec(node.dump())?.[1] ?? '';
    expect(set).not.toBe('');
    await nft(node, `add element ${table} ${set} { 10.244.9.9 }\nadd chain ${table} stray\n`);
    expect((await callApply(node.host, 'apply', sticky)).err).toMatch(/^done: 1 chain removed\n$/m);
    expect(node.dump()).toContain('10.244.9.9');
    const folder = join(mkdtempSync(join(tmpdir(), 'kpc-nft-dump-')), 'dump');
    expect((await callApply(node.host, 'dump', '-o', folder)).status).toBe(0);
    expect(readFileSync(join(folder, 'nftables.nft'), 'utf8')).toContain(`set ${set} {`);
    expect(readFileSync(join(folder, 'nftables.nft'), 'utf8')).not.toContain('10.244.9.9');
    expect((await callApply(node.host, 'verify', folder)).status).toBe(0);
    rmSync(dirname(folder), { recursive: true });
  });

  test('warns of a node that forwards nothing when it changes it, and not when it does not', async () => {
    const node = createFakeNode();
    const first = await callApply(node.host, 'apply', before);
    expect(first.err).toContain('warning: net.ipv4.ip_forward is 0');
    expect(node.files.get('/proc/sys/net/ipv4/ip_forward')).toBe('0\n');
    expect((await callApply(node.host, 'apply', before)).err).not.toContain('ip_forward');
  });
});

describe('a dump', () => {
  const theirs = 'table inet theirs {\n\tchain forward {\n\t\ttype filter hook forward priority 0; policy drop;\n';
  const other = `${theirs}\t\tip saddr 10.244.0.0/16 accept comment "secret"\n\t}\n}\n`;

  /** `rules`: those of programs of iptables, by the tool that prints them. */
  async function dump(ruleset: string | undefined, rules: Readonly<Record<string, string>> = {}) {
    const node = createFakeNode();
    node.files.set('/proc/sys/net/ipv4/ip_forward', '1\n');
    await callApply(node.host, 'apply', before);
    const run: Host['run'] = async (command) => {
      const saved = command.args.length === 0 ? rules[command.tool] : undefined;
      if (saved !== undefined) return { kind: 'ended', status: 0, stdout: saved, stderr: '' };
      if (command.args.at(-1) !== 'ruleset') return node.host.run(command);
      const whole = await node.host.run({ ...command, keeps: undefined });
      const own = whole.kind === 'ended' ? whole.stdout : '';
      if (ruleset === undefined) return { kind: 'ended', status: 1, stdout: '', stderr: 'netlink: Error\n' };
      const stdout = (own + ruleset)
        .split('\n')
        .filter((line) => line === '' || command.keeps?.(line) !== false)
        .join('\n');
      return { kind: 'ended', status: 0, stdout, stderr: '' };
    };
    const folder = join(mkdtempSync(join(tmpdir(), 'kpc-nft-others-')), 'dump');
    const { status, err } = await callApply({ ...node.host, run }, 'dump', '-o', folder);
    expect(status, err).toBe(0);
    const network = readFileSync(join(folder, 'network.txt'), 'utf8');
    const args = ['trace', folder, '--from', '203.0.113.77', '--to', '10.96.32.60:443', '--output', 'json', '-q'];
    const { stdout, stderr } = await runKpc(args);
    rmSync(dirname(folder), { recursive: true });
    return { network, err, trace: stdout === '' ? stderr : (resultOf(stdout).traces[0] as unknown) };
  }

  test('has the tables of other programs, without comments and kube-proxy’s own', async () => {
    const { network, trace } = await dump(other);
    expect(network).toContain(`}\n${other.replace(' comment "secret"', '')}`);
    expect(trace).toMatchObject({ verdict: 'dropped' });
  });

  test('knows that there are none', async () => {
    const { network, trace } = await dump('');
    // The order of all tables, without what nftables.nft holds.
    expect(network).toMatch(/\ntable ip kube-proxy \{\n\}\n/);
    expect(trace).toMatchObject({ verdict: 'delivered' });
  });

  test.each(['iptables-save', 'iptables-nft-save'])('has the rules that %s prints', async (tool) => {
    const declared = ':INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n';
    const rules = { [tool]: `*filter\n${declared}-A FORWARD -s 203.0.113.77/32 -j DROP\nCOMMIT\n` };
    expect((await dump('', rules)).trace).toMatchObject({ verdict: 'dropped' });
  });

  test('has the chains of kube-proxy that iptables mode left', async () => {
    const declared = ':INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE-FORWARD - [0:0]\n';
    const jump = '-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD\n';
    const own = '-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\n';
    const { network, trace } = await dump('', { 'iptables-save': `*filter\n${declared}${jump}${own}COMMIT\n` });
    expect(network).toContain(own);
    expect(trace).toMatchObject({ verdict: 'delivered' });
  });

  test('has nothing of a line of nft that says no more what its quotes hold', async () => {
    const { network, trace } = await dump(`${theirs}\t\tip saddr 10.0.0.1 drop comment "a" accept # secret"\n\t}\n}\n`);
    expect(network).not.toContain('secret');
    expect(trace).toMatchObject({ verdict: 'unknown' });
  });

  test.each([
    [undefined, 'netlink: Error'],
    ['table inet theirs {\n$ sysctl -a\n}\n', 'line 6 has another format'],
  ])('whose tables cannot be read (%j) decides nothing', async (ruleset, why) => {
    const { network, err, trace } = await dump(ruleset);
    expect(err).toMatch(/so the dump lacks what it lists of other programs/);
    expect(err).toContain(why);
    expect(network).not.toContain('nft list ruleset');
    expect(trace).toMatchObject({
      verdict: 'unknown',
      reasons: [{ kind: 'missing-listing', command: 'nft list ruleset' }],
    });
  });
});

describe('whose a table is', () => {
  async function leftByKubeProxy(): Promise<FakeNode> {
    const node = createFakeNode();
    await callApply(node.host, 'apply', before);
    node.files.delete('/var/lib/kpc/record.json');
    node.files.set('/proc/modules', `${node.files.get('/proc/modules')}nf_tables 1 0 - Live\n`);
    return node;
  }

  test('one without a record is a kube-proxy’s: apply refuses, cleanup keeps it, and --adopt takes it over', async () => {
    const node = await leftByKubeProxy();
    const there = node.dump();
    const refused = await callApply(node.host, 'apply', after);
    expect(refused).toMatchObject({ status: 3, err: expect.stringContaining('table ip kube-proxy') as string });
    expect(refused.err).toContain('--adopt');
    const kept = await callApply(node.host, 'cleanup');
    expect(kept.err).toContain('ip kube-proxy');
    expect(node.dump()).toBe(there);
    expect((await callApply(node.host, 'apply', '--adopt', after)).status).toBe(0);
    expect((await callApply(node.host, 'verify', after)).status).toBe(0);
    expect((await callApply(node.host, 'cleanup')).status).toBe(0);
    expect(node.dump()).not.toContain('kube-proxy');
  });

  test('a bundle of another mode is refused beside it, too', async () => {
    const node = await leftByKubeProxy();
    const there = node.dump();
    const { status, err } = await callApply(node.host, 'apply', 'fixtures/dual-stack/expected-iptables');
    expect([status, err]).toEqual([3, expect.stringContaining('table ip kube-proxy')]);
    expect(node.dump()).toBe(there);
    expect((await callApply(node.host, 'apply', '--adopt', 'fixtures/dual-stack/expected-iptables')).status).toBe(0);
    expect(node.dump()).not.toContain('table ip kube-proxy');
  });

  test('cleanup leaves other tables', async () => {
    const node = await startNode();
    expect((await callApply(node.host, 'cleanup')).status).toBe(0);
    expect(node.dump()).toContain('table ip filter');
    expect(node.dump()).not.toContain('kube-proxy');
  });
});

const disturbances: Readonly<Record<string, Fault>> = {
  ...idleFaults,
  'changes the node and is killed': async (command, host) => {
    await host.run(command);
    return killed;
  },
  'changes something else, and says nothing': async (command, host) => {
    await host.run({ ...command, stdin: `add chain ${table} stray\n` });
    return ended(0);
  },
};

async function countChanges(): Promise<number> {
  const node = await startNode();
  await callApply(node.host, 'apply', after);
  return node.commands.filter(isChange).length;
}

describe('nft goes wrong', async () => {
  const steps = await countChanges();
  for (const [kind, [how, disturb]] of Object.entries(disturbances).entries()) {
    for (let at = 0; at < steps; at++) {
      // In `npm test`, each disturbance in one place, in turn.
      if (!triesAll && (at + kind) % steps !== 0) continue;
      test(`the node is as before where transaction ${at + 1} of ${steps} ${how}`, async () => {
        const node = await startNode();
        const there = node.dump();
        const host = failOnce(node.host, isChange, disturb, at + 1);
        const { status, err } = await callApply(host, 'apply', after);
        expect(err).toContain('help: ');
        expect(status).toBe(3);
        expect(node.dump()).toBe(there);
      });

      test.each(['apply', 'rollback'])(`killed at transaction ${at + 1} of ${steps}, ${how}: then %s`, async (next) => {
        const node = await startNode();
        const there = node.dump();
        let seen = 0;
        const dying = mortalHost(node.host, async (command) => {
          if (!isChange(command) || seen++ !== at) return false;
          await disturb(command, node.host);
          return true;
        });
        expect(await diesDuring(dying, 'apply', after)).toBe(true);
        const heir = heirOf(node);
        const onward = [
          ...(next === 'apply'
            ? [
                ['apply', after],
                ['verify', after],
              ]
            : []),
          ['rollback'],
        ];
        for (const args of onward) expect((await callApply(heir, ...args)).status).toBe(0);
        expect(node.dump()).toBe(there);
      });
    }
  }

  test.each(['cannot read the node', 'cannot read the node back'])(
    'the node is as before where nft %s',
    async (how) => {
      const node = await startNode();
      const there = node.dump();
      let seen = 0;
      const nth = how.endsWith('back') ? 3 : 1;
      const host: Host = {
        ...node.host,
        run: async (command) => {
          const isReading = command.tool === 'nft' && command.args.includes('list') && ++seen === nth;
          return isReading
            ? { kind: 'ended', status: 1, stdout: '', stderr: 'netlink: Error: cache initialization failed' }
            : node.host.run(command);
        },
      };
      const { status, err } = await callApply(host, 'apply', after);
      expect([status, err]).toEqual([3, expect.stringContaining('cache initialization failed')]);
      expect(node.dump()).toBe(there);
    },
  );

  test('the line that nft complains of is shown', async () => {
    const node = await startNode();
    const host: Host = {
      ...node.host,
      run: async (command) =>
        isChange(command)
          ? {
              kind: 'ended',
              status: 1,
              stdout: '',
              stderr: '/dev/stdin:2:1-9: Error: Could not process rule: File exists',
            }
          : node.host.run(command),
    };
    const { err } = await callApply(host, 'apply', after);
    expect(err).toMatch(/^line 2: \w+ /m);
  });
});

describe('a change of mode', () => {
  const modes = ['ipvs', 'iptables', 'nftables'] as const;
  const bundle = (mode: string) => `fixtures/quickstart/expected-${mode}`;
  const isOfMode: Readonly<Record<(typeof modes)[number], (command: ToolCommand) => boolean>> = {
    ipvs: ({ tool, args }) => tool === 'ipvsadm' && args[0] === '-R',
    iptables: ({ tool, args, stdin = '' }) =>
      tool === 'iptables-restore' && args[0] === '--noflush' && stdin.includes('KUBE-SVC-'),
    nftables: isChange,
  };
  const pairs = [
    ['iptables', 'nftables'],
    ['nftables', 'iptables'],
    ['ipvs', 'nftables'],
    ['nftables', 'ipvs'],
  ] as const;

  test.each(pairs)(
    'from %s to %s: the new rules stand before the old ones go, and nothing is left',
    async (from, to) => {
      const node = createFakeNode();
      expect((await callApply(node.host, 'apply', bundle(from))).status).toBe(0);
      node.commands.length = 0;
      expect((await callApply(node.host, 'apply', bundle(to))).status).toBe(0);
      const firstNew = node.commands.findIndex(isOfMode[to]);
      const lastOld = node.commands.findLastIndex(isOfMode[from]);
      expect(firstNew).toBeGreaterThanOrEqual(0);
      expect(lastOld).toBeGreaterThan(firstNew);
      expect((await callApply(node.host, 'verify', bundle(to))).status).toBe(0);
      const rules = (dump: string) => dump.replaceAll(/^\/proc.*\n/gm, '');
      const direct = createFakeNode();
      await callApply(direct.host, 'apply', bundle(to));
      expect(rules(node.dump())).toBe(rules(direct.dump()));
      expect((await callApply(node.host, 'cleanup')).status).toBe(0);
      expect(rules(node.dump())).toBe(rules(createFakeNode().dump()));
    },
  );

  test.each(pairs)('from %s to %s and back by rollback', async (from, to) => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundle(from));
    const there = node.dump();
    await callApply(node.host, 'apply', bundle(to));
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    const rules = (dump: string) => dump.replaceAll(/^\/proc.*\n/gm, '');
    expect(rules(node.dump())).toBe(rules(there));
  });

  test('says which sysctls of the other mode stay', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundle('ipvs'));
    const { err } = await callApply(node.host, 'apply', bundle('nftables'));
    expect(err).toMatch(/warning: sysctls that only IPVS mode needs stay as they are: net\.ipv4\.vs\.conntrack, /);
  });

  test('virtual servers stay for their connections, with their addresses and what guards these', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundle('ipvs'));
    node.files.set(
      '/proc/net/ip_vs',
      'IP Virtual Server version 1.2.1 (size=4096)\nTCP  0A600050:0050 rr\n  -> 0AF4010A:1F90      Masq    1      3          0\n',
    );
    const { status, err } = await callApply(node.host, 'apply', bundle('nftables'));
    expect([status, err]).toEqual([0, expect.stringContaining('1 real server waits for 3 connections to end')]);
    expect(node.dump()).toContain('-a -t 10.96.0.80:80 -r 10.244.1.10:8080 -m -w 0');
    expect(node.dump()).toContain('KUBE-IPVS-FILTER');
    expect((await callApply(node.host, 'verify', bundle('nftables'))).status).toBe(0);
    node.files.set(
      '/proc/net/ip_vs',
      'IP Virtual Server version 1.2.1 (size=4096)\nTCP  0A600050:0050 rr\n  -> 0AF4010A:1F90      Masq    0      0          0\n',
    );
    expect((await callApply(node.host, 'apply', bundle('nftables'))).status).toBe(0);
    expect(node.dump()).not.toMatch(/KUBE-|^-A -t/m);
  });
});
