import { describe, expect, test } from 'vitest';
import { parseNodeTables } from '../../src/apply/node/node-reading.ts';
import { decideOwnership } from '../../src/apply/plan/ownership.ts';
import { nftTableKey, nothingOwned } from '../../src/apply/state/owned-names.ts';
import { emptyState, type KernelState } from '../../src/kernel/state.ts';
import { some, triesAll } from '../support/rounds.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { moveInto, neighbours, readBundleFiles } from './neighbours.ts';

const bundles = {
  ipvs: 'fixtures/dual-stack/expected-ipvs',
  iptables: 'fixtures/dual-stack/expected-iptables',
  other: 'fixtures/loadbalancer-source-ranges/expected-ipvs',
  otherIptables: 'fixtures/loadbalancer-source-ranges/expected-iptables',
};
const names = Object.keys(neighbours) as (keyof typeof neighbours)[];

/** What a node holds except for sysctls, which stay where a cleanup leaves them. */
function dumpRules({ dump }: FakeNode): string {
  const text = dump();
  return text.slice(0, text.indexOf('/proc/sys/'));
}

/** Lines of `text` that are not in `whole`, in the order that they have there. */
function missingLines(text: string, whole: string): readonly string[] {
  const lines = whole.split('\n');
  let at = 0;
  return text.split('\n').filter((line) => {
    const found = lines.indexOf(line, at);
    if (found >= 0) at = found + 1;
    return found < 0;
  });
}

/** Feeds one tool. */
async function feed({ host }: FakeNode, tool: string, ...lines: readonly string[]): Promise<void> {
  const args = tool === 'ip' ? ['-batch', '-'] : tool === 'ipvsadm' ? ['-R'] : tool === 'ipset' ? ['restore'] : [];
  const result = await host.run({ tool, args, stdin: `${lines.join('\n')}\n` });
  expect(result).toMatchObject({ status: 0, stderr: '' });
}

function loseRecord({ files }: FakeNode): void {
  for (const path of files.keys()) if (path.startsWith('/var/lib/kpc/')) files.delete(path);
}

function startKubeProxy({ files }: FakeNode): void {
  files.set('/proc/77/comm', 'kube-proxy\n');
  files.set('/proc/77/status', 'Name:\tkube-proxy\nUid:\t0\t0\t0\t0\n');
}

describe.each(names)('beside %s', (name) => {
  // An old kubelet's KUBE-POSTROUTING differs from that of IPVS mode: see below.
  const isOldKubelet = name === 'oldKubelet';

  const changes = [
    [bundles.iptables, bundles.otherIptables],
    ...(isOldKubelet
      ? []
      : [
          [bundles.ipvs, bundles.other],
          [bundles.iptables, bundles.ipvs],
          [bundles.ipvs, bundles.iptables],
        ]),
  ];
  // Each neighbour begins with another one.
  const turn = names.indexOf(name) % changes.length;

  test.each(some([...changes.slice(turn), ...changes.slice(0, turn)]))(
    '%s, then %s, drift, rollback and cleanup leave it as it is',
    async (first, second) => {
      const node = createFakeNode();
      await moveInto(node.host, neighbours[name]);
      const before = dumpRules(node);
      expect((await callApply(node.host, 'apply', first)).status).toBe(0);
      const applied = dumpRules(node);
      expect(missingLines(before, applied)).toEqual([]);
      expect((await callApply(node.host, 'verify', first)).status).toBe(0);
      // Another program flushes an owned chain; the repair is of that chain.
      await feed(node, 'iptables-restore', '*nat', ':KUBE-SERVICES - [0:0]', 'COMMIT');
      expect((await callApply(node.host, 'apply', first)).status).toBe(0);
      expect(dumpRules(node)).toBe(applied);
      expect((await callApply(node.host, 'apply', second)).status).toBe(0);
      expect(missingLines(before, dumpRules(node))).toEqual([]);
      expect((await callApply(node.host, 'rollback')).status).toBe(0);
      expect(dumpRules(node)).toBe(applied);
      const { status, err } = await callApply(node.host, 'cleanup');
      expect([status, dumpRules(node)]).toEqual([0, before]);
      expect(err).not.toContain('[conflict]');
    },
  );

  const adopted = [...(isOldKubelet ? [] : [bundles.ipvs]), bundles.iptables];
  test.each(triesAll ? adopted : adopted.slice(turn % adopted.length).slice(0, 1))(
    '--adopt takes over %s, and nothing else',
    async (bundle) => {
      const node = createFakeNode();
      const without = createFakeNode();
      await moveInto(node.host, neighbours[name]);
      const before = dumpRules(node);
      await moveInto(without.host, readBundleFiles(bundle));
      expect((await callApply(without.host, 'cleanup', '--adopt')).status).toBe(0);
      expect(dumpRules(without)).toBe(dumpRules(createFakeNode()));
      expect((await callApply(node.host, 'apply', bundle)).status).toBe(0);
      loseRecord(node);
      expect((await callApply(node.host, 'cleanup', '--adopt')).status).toBe(0);
      expect(missingLines(before, dumpRules(node))).toEqual([]);
      expect(dumpRules(node)).not.toContain('kubernetes service portals');
    },
  );

  test('an apply that fails puts back all but it', async () => {
    const node = createFakeNode();
    await moveInto(node.host, neighbours[name]);
    const before = node.dump();
    for (const [bundle, failing] of [
      ...(isOldKubelet ? [] : [[bundles.ipvs, 'ipvsadm'] as const]),
      [bundles.iptables, 'ip6tables-restore'],
    ] as const) {
      const host: FakeNode['host'] = {
        ...node.host,
        run: async (command) =>
          command.tool === failing && command.stdin !== undefined
            ? { kind: 'ended', status: 1, stdout: '', stderr: 'no memory' }
            : node.host.run(command),
      };
      expect((await callApply(host, 'apply', bundle)).status).toBe(3);
      expect(node.dump()).toBe(before);
    }
  });
});

test("an old kubelet's KUBE-POSTROUTING is in the way of IPVS mode; with --adopt it is written, but never taken away", async () => {
  const node = createFakeNode();
  await moveInto(node.host, neighbours.oldKubelet);
  const before = dumpRules(node);
  const refused = await callApply(node.host, 'apply', bundles.ipvs);
  expect([refused.status, dumpRules(node)]).toEqual([3, before]);
  expect(refused.err).toMatch(
    /error: .*: chain ipv4 nat KUBE-POSTROUTING, chain ipv6 nat KUBE-POSTROUTING \[conflict\]\n.*--adopt/,
  );
  expect((await callApply(node.host, 'apply', bundles.ipvs, '--adopt')).status).toBe(0);
  expect((await callApply(node.host, 'verify', bundles.ipvs)).status).toBe(0);
  expect((await callApply(node.host, 'rollback')).status).toBe(0);
  expect(dumpRules(node)).toBe(before);
  await callApply(node.host, 'apply', bundles.ipvs, '--adopt');
  expect((await callApply(node.host, 'cleanup', '--adopt')).status).toBe(0);
  // The same rule, as kpc-apply writes it.
  const rewritten = '-A KUBE-POSTROUTING -j MARK --set-xmark 0x00004000/0x00000000';
  expect(missingLines(before, dumpRules(node)).filter((line) => line !== rewritten)).toEqual([]);
  expect(node.dump()).toContain('-A KUBE-POSTROUTING -j MARK --xor-mark 0x00004000\n');
  expect(node.dump()).not.toContain('KUBE-SERVICES');
});

describe('over what a kube-proxy left', () => {
  const { ipvs, iptables, other, otherIptables } = bundles;
  test.each([
    [iptables, ipvs],
    [iptables, otherIptables],
    [ipvs, iptables],
    [ipvs, other],
  ])('%s, apply of %s refuses without --adopt and names it; with --adopt it is as if alone', async (left, bundle) => {
    const [node, alone] = [createFakeNode(), createFakeNode()];
    await moveInto(node.host, readBundleFiles(left));
    const before = node.dump();
    const { status, err } = await callApply(node.host, 'apply', bundle);
    expect([status, node.dump()]).toEqual([3, before]);
    expect(err).toMatch(/error: .*(chain ipv4 nat KUBE-|set KUBE-).*\[conflict\].*--adopt/s);
    const plan = await callApply(node.host, 'plan', bundle);
    expect(plan.status).toBe(1);
    expect(plan.out).toMatch(
      /! apply would refuse: (chain ipv4 nat|set) KUBE-[-A-Z0-9]+ exists already, but kpc-apply did not make it: --adopt takes it over/,
    );
    expect((await callApply(node.host, 'apply', bundle, '--adopt')).status).toBe(0);
    await callApply(alone.host, 'apply', bundle);
    expect(dumpRules(node)).toBe(dumpRules(alone));
    expect((await callApply(node.host, 'cleanup')).status).toBe(0);
    expect(dumpRules(node)).toBe(dumpRules(createFakeNode()));
  });

  test.each([ipvs, iptables])('%s, cleanup leaves it and says so; --adopt takes it away', async (left) => {
    const node = createFakeNode();
    await moveInto(node.host, readBundleFiles(left), neighbours.kubeRouter);
    const before = node.dump();
    const { status, err } = await callApply(node.host, 'cleanup');
    expect([status, node.dump()]).toEqual([0, before]);
    expect(err).toMatch(
      /^nothing to do: .*\nkept, because kpc-apply did not make it: ipv4 nat KUBE-.*--adopt removes it too/,
    );
    expect((await callApply(node.host, 'cleanup', '--adopt')).status).toBe(0);
    const clean = createFakeNode();
    await moveInto(clean.host, neighbours.kubeRouter);
    expect(dumpRules(node)).toBe(dumpRules(clean));
  });

  test.each([ipvs, iptables])('%s, as it is wanted: nothing is to be done, and it stays its', async (bundle) => {
    const node = createFakeNode();
    await moveInto(node.host, readBundleFiles(bundle));
    for (const command of [['apply', bundle], ['verify', bundle], ['apply', bundle], ['cleanup']]) {
      const before = dumpRules(node);
      expect((await callApply(node.host, ...command)).status).toBe(0);
      expect(dumpRules(node)).toBe(before);
    }
  });

  test('rules that packets still meet are in the way, though none of their names is wanted', async () => {
    const node = createFakeNode();
    await feed(
      node,
      'iptables-restore',
      '*filter',
      ':KUBE-EXTERNAL-SERVICES - [0:0]',
      '-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES',
      '-A KUBE-EXTERNAL-SERVICES -d 192.168.50.11/32 -p tcp -m comment --comment "default/web has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable',
      'COMMIT',
    );
    const before = node.dump();
    const { status, err } = await callApply(node.host, 'apply', ipvs);
    expect([status, node.dump()]).toEqual([3, before]);
    expect(err).toContain(': chain ipv4 filter KUBE-EXTERNAL-SERVICES [conflict]');
    expect((await callApply(node.host, 'apply', ipvs, '--adopt')).status).toBe(0);
    expect(node.dump()).not.toContain('KUBE-EXTERNAL-SERVICES');
  });

  test('chains of old releases and canaries go with --adopt', async () => {
    const node = createFakeNode();
    await moveInto(node.host, readBundleFiles(iptables));
    await feed(
      node,
      'iptables-restore',
      '*nat',
      ':KUBE-XLB-ABCDEFGHIJKLMNOP - [0:0]',
      ':KUBE-PROXY-CANARY - [0:0]',
      '-A KUBE-XLB-ABCDEFGHIJKLMNOP -j RETURN',
      'COMMIT',
      '*mangle',
      ':KUBE-PROXY-CANARY - [0:0]',
      'COMMIT',
      '*filter',
      ':KUBE-PROXY-CANARY - [0:0]',
      'COMMIT',
    );
    expect((await callApply(node.host, 'cleanup', '--adopt')).status).toBe(0);
    expect(dumpRules(node)).toBe(dumpRules(createFakeNode()));
  });
});

describe('a record that is lost', () => {
  test.each([bundles.ipvs, bundles.iptables])(
    'after apply of %s: all of it is foreign until --adopt',
    async (bundle) => {
      const node = createFakeNode();
      await callApply(node.host, 'apply', bundle);
      loseRecord(node);
      const before = node.dump();
      expect((await callApply(node.host, 'verify', bundle)).status).toBe(0);
      expect((await callApply(node.host, 'apply', bundle)).err).toContain('nothing to do');
      expect((await callApply(node.host, 'cleanup')).status).toBe(0);
      expect((await callApply(node.host, 'apply', bundles.otherIptables)).status).toBe(3);
      expect(node.dump()).toBe(before);
      expect((await callApply(node.host, 'cleanup', '--adopt')).status).toBe(0);
      expect(dumpRules(node)).toBe(dumpRules(createFakeNode()));
    },
  );

  test('of another boot holds nothing: what is there now is not what it speaks of', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundles.iptables);
    node.files.set('/proc/sys/kernel/random/boot_id', 'another\n');
    const before = node.dump();
    expect((await callApply(node.host, 'cleanup')).status).toBe(0);
    expect(node.dump()).toBe(before);
  });

  test('names in a record that kube-proxy does not give are not believed', async () => {
    const node = createFakeNode();
    await moveInto(node.host, neighbours.docker, neighbours.kubeRouter);
    const before = dumpRules(node);
    await callApply(node.host, 'apply', bundles.ipvs);
    const path = '/var/lib/kpc/record.json';
    const record = JSON.parse(node.files.get(path) ?? '');
    record.owned.chains.push('ipv4 nat DOCKER', 'ipv4 filter KUBE-ROUTER-INPUT');
    record.owned.sets.push('kube-router-local-pods');
    record.owned.links.push('eth0');
    node.files.set(path, JSON.stringify(record));
    expect((await callApply(node.host, 'cleanup')).status).toBe(0);
    expect(dumpRules(node)).toBe(before);
  });
});

describe('KUBE-FIREWALL, which kubelet makes too', () => {
  const jumps = ['-A INPUT -j KUBE-FIREWALL', '-A OUTPUT -j KUBE-FIREWALL'];
  const marks = ['*mangle', ':KUBE-IPTABLES-HINT - [0:0]', ':KUBE-KUBELET-CANARY - [0:0]', 'COMMIT'];

  test('goes with --adopt whether the record is there or not, where no kubelet is', async () => {
    const [kept, lost] = [createFakeNode(), createFakeNode()];
    for (const node of [kept, lost]) await callApply(node.host, 'apply', bundles.iptables);
    loseRecord(lost);
    for (const node of [kept, lost]) {
      expect((await callApply(node.host, 'cleanup', '--adopt')).status).toBe(0);
      expect(dumpRules(node)).toBe(dumpRules(createFakeNode()));
    }
  });

  test.each(['with its record', 'with a lost record'])(
    'stays with its jumps where a kubelet came later, %s',
    async (how) => {
      const node = createFakeNode();
      await callApply(node.host, 'apply', bundles.iptables);
      await feed(node, 'iptables-restore', ...marks);
      if (how === 'with a lost record') loseRecord(node);
      for (const command of [
        ['apply', bundles.ipvs, '--adopt'],
        ['cleanup', '--adopt'],
      ]) {
        expect((await callApply(node.host, ...command)).status).toBe(0);
        const there = node.dump();
        for (const jump of jumps) expect(there).toContain(`${jump}\n`);
        expect(there).toContain('-A KUBE-FIREWALL -m comment --comment "block incoming localnet connections"');
      }
      // Its empty one in IPv6 is no kubelet's.
      const [ipv4 = '', ipv6 = ''] = node.dump().split('\n\n');
      expect(ipv4).not.toContain('KUBE-SERVICES');
      expect(ipv6).not.toContain('KUBE-');
    },
  );

  test('goes where kpc-apply made it although a kubelet was there', async () => {
    const node = createFakeNode();
    await feed(node, 'iptables-restore', ...marks);
    const before = dumpRules(node);
    await callApply(node.host, 'apply', bundles.iptables);
    await callApply(node.host, 'apply', bundles.otherIptables);
    expect((await callApply(node.host, 'cleanup')).status).toBe(0);
    expect(dumpRules(node)).toBe(before);
  });

  test('gets the rule that it lacks, and keeps it where it is', async () => {
    const node = createFakeNode();
    const other = '-A KUBE-FIREWALL -s 198.51.100.9/32 -j DROP';
    await feed(node, 'iptables-restore', '*filter', ':KUBE-FIREWALL - [0:0]', jumps[0] ?? '', other, 'COMMIT');
    expect((await callApply(node.host, 'apply', bundles.iptables)).status).toBe(0);
    expect(node.dump()).toMatch(new RegExp(`${other}\n-A KUBE-FIREWALL .*localnet`));
    expect((await callApply(node.host, 'verify', bundles.iptables)).status).toBe(0);
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    const lines = node.dump().split('\n');
    expect(lines.filter((line) => line.startsWith('-A'))).toEqual([jumps[0], other]);
  });
});

describe('a kube-proxy that runs', () => {
  const refusal = /^error: kube-proxy is running \(process 77\): .*\[not-ready\]\n {2}help: stop it first/;

  test.each([
    [bundles.iptables, ['cleanup']],
    [bundles.iptables, ['cleanup', '--adopt']],
    [bundles.ipvs, ['cleanup']],
    [bundles.ipvs, ['cleanup', '--adopt']],
  ])('with %s: %j is refused, and goes on with --force', async (left, command) => {
    const node = createFakeNode();
    await moveInto(node.host, readBundleFiles(left));
    startKubeProxy(node);
    const before = node.dump();
    const { status, err } = await callApply(node.host, ...command);
    expect([status, node.dump()]).toEqual([3, before]);
    expect(err).toMatch(refusal);
    expect((await callApply(node.host, ...command, '--force')).status).toBe(0);
  });

  test('keeps cleanup and rollback from what kpc-apply made, too', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundles.ipvs);
    await callApply(node.host, 'apply', bundles.iptables);
    startKubeProxy(node);
    const before = node.dump();
    for (const command of ['rollback', 'cleanup']) {
      const { status, err } = await callApply(node.host, command);
      expect([status, node.dump()]).toEqual([3, before]);
      expect(err).toMatch(refusal);
    }
    // The cleanup that was refused is the last command.
    expect((await callApply(node.host, 'rollback', '--force')).err).toContain('[nothing-to-undo]');
    expect((await callApply(node.host, 'rollback', '--force', '--to', '2')).status).toBe(0);
    expect((await callApply(node.host, 'verify', bundles.ipvs)).status).toBe(0);
  });

  test('keeps rollback from an apply that did not finish', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundles.iptables);
    node.files.set('/var/lib/kpc/journal.json', node.files.get('/var/lib/kpc/state-1.json') ?? '');
    startKubeProxy(node);
    const before = node.dump();
    const { status, err } = await callApply(node.host, 'rollback');
    expect([status, node.dump()]).toEqual([3, before]);
    expect(err).toMatch(refusal);
  });

  test('is named before its rules are: --adopt would not help', async () => {
    const node = createFakeNode();
    await moveInto(node.host, readBundleFiles(bundles.iptables));
    startKubeProxy(node);
    for (const adopt of [[], ['--adopt']]) {
      const { status, err } = await callApply(node.host, 'apply', bundles.ipvs, ...adopt);
      expect(status).toBe(3);
      expect(err).toMatch(/kube-proxy is running \(process 77\).*\[not-ready\]/);
    }
  });

  test('in another network, or on a node with nothing of it, is no matter', async () => {
    const node = createFakeNode();
    startKubeProxy(node);
    expect((await callApply(node.host, 'cleanup')).status).toBe(0);
    node.files.set('/proc/77/ns/net', 'net:[2]');
    node.files.set('/proc/self/ns/net', 'net:[1]');
    await callApply(node.host, 'apply', bundles.ipvs);
    expect((await callApply(node.host, 'cleanup')).status).toBe(0);
    expect(dumpRules(node)).toBe(dumpRules(createFakeNode()));
  });

  test('and starts while kpc-apply watches: the watch says so, and takes nothing from it', async () => {
    const node = createFakeNode();
    const begun = node.host.uptime();
    let taken = '';
    const host: FakeNode['host'] = {
      ...node.host,
      sleep: async (milliseconds) => {
        await node.host.sleep(milliseconds);
        const elapsed = node.host.uptime() - begun;
        if (taken === '' && elapsed > 5000) {
          startKubeProxy(node);
          await feed(
            node,
            'iptables-restore',
            '*nat',
            ':KUBE-SERVICES - [0:0]',
            ':KUBE-SVC-ABCDEFGHIJKLMNOP - [0:0]',
            '-A KUBE-SERVICES -d 10.96.0.99/32 -j KUBE-SVC-ABCDEFGHIJKLMNOP',
            'COMMIT',
          );
          taken = node.dump();
        }
        if (elapsed > 70_000) process.emit('SIGTERM');
      },
    };
    const { status, err } = await callApply(host, 'watch', bundles.ipvs);
    expect([status, node.dump()]).toEqual([0, taken]);
    expect(err.match(/kube-proxy is running \(process 77\)/g)).toHaveLength(2);
  });
});

describe('what another program ties to kube-proxy names', () => {
  const shapes = {
    'a jump of its own': ['*filter', '-A FORWARD -i cni0 -j KUBE-FORWARD', 'COMMIT'],
    'a jump with a comment of its own': [
      '*nat',
      '-A PREROUTING -m comment --comment "mine" -j KUBE-SERVICES',
      'COMMIT',
    ],
    'a chain that jumps there': [
      '*nat',
      ':CNI-HOSTPORT-SETMARK - [0:0]',
      '-A CNI-HOSTPORT-SETMARK -s 10.1.0.0/16 -j KUBE-MARK-MASQ',
      'COMMIT',
    ],
    'a chain that uses a set': [
      '*filter',
      ':MINE - [0:0]',
      '-A MINE -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT',
      'COMMIT',
    ],
    'a target that fills a set': ['*mangle', '-A FORWARD -j SET --add-set KUBE-LOOP-BACK dst,dst,src', 'COMMIT'],
  };

  test.each(Object.entries(shapes))(
    '%s: stays, with what it needs, and that goes when it has gone',
    async (_, lines) => {
      const node = createFakeNode();
      await callApply(node.host, 'apply', bundles.ipvs);
      await feed(node, 'iptables-restore', ...lines);
      const rules = lines.filter((line) => line.startsWith('-A'));
      expect((await callApply(node.host, 'verify', bundles.ipvs)).status).toBe(0);
      expect((await callApply(node.host, 'cleanup')).status).toBe(0);
      for (const rule of rules) expect(node.dump()).toContain(`${rule}\n`);
      const needed = /-j (KUBE-[-A-Z]+)|-set (KUBE-[-A-Z]+)/.exec(rules[0] ?? '');
      expect(node.dump()).toMatch(new RegExp(`(:|create )${needed?.[1] ?? needed?.[2]} `));
      expect((await callApply(node.host, 'cleanup')).err).toContain('nothing to do');
      await feed(
        node,
        'iptables-restore',
        ...lines.filter((line) => !line.startsWith(':')).map((line) => line.replace(/^-A/, '-D')),
      );
      expect((await callApply(node.host, 'cleanup')).status).toBe(0);
      expect(node.dump()).not.toMatch(/KUBE-/);
    },
  );

  test('a rule inside an owned chain goes with the next repair, as kube-proxy writes its chains whole', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundles.ipvs);
    const applied = node.dump();
    await feed(node, 'iptables-restore', '*nat', '-A KUBE-SERVICES -s 198.51.100.9/32 -j RETURN', 'COMMIT');
    expect((await callApply(node.host, 'verify', bundles.ipvs)).status).toBe(1);
    expect((await callApply(node.host, 'apply', bundles.ipvs)).status).toBe(0);
    expect(node.dump()).toBe(applied);
  });

  test('jumps as kube-proxy writes them, that were there, stay where they stand', async () => {
    const node = createFakeNode();
    await feed(
      node,
      'iptables-restore',
      '*filter',
      ':KUBE-FIREWALL - [0:0]',
      '-A INPUT -s 198.51.100.9/32 -j DROP',
      '-A INPUT -j KUBE-FIREWALL',
      'COMMIT',
    );
    const before = dumpRules(node);
    await callApply(node.host, 'apply', bundles.iptables);
    expect((await callApply(node.host, 'verify', bundles.iptables)).status).toBe(0);
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    expect(dumpRules(node)).toBe(before);
  });
});

describe('virtual servers with --adopt', () => {
  const port = /^-A -t \S+:(3\d{4}) /m.exec(readBundleFiles(bundles.ipvs).ipvsadm ?? '')?.[1];

  test.each([
    `-A -t 100.64.9.1:${port} -s rr`,
    `-A -t 192.168.50.12:${port} -s rr\n-a -t 192.168.50.12:${port} -r 100.64.9.7:${port} -m -w 1`,
    `-A -t 100.64.9.1:${port} -s rr\n-a -t 100.64.9.1:${port} -r 100.64.9.7:80 -g -w 7`,
    `-A -u 192.168.50.11:${port} -s rr`,
  ])('%j is not kube-proxy’s for its port, which a set of node ports lists', async (theirs) => {
    const node = createFakeNode();
    await feed(node, 'ipvsadm', ...theirs.split('\n'));
    const before = dumpRules(node);
    await moveInto(node.host, readBundleFiles(bundles.ipvs));
    expect(port).toBeDefined();
    expect((await callApply(node.host, 'cleanup', '--adopt')).status).toBe(0);
    expect(dumpRules(node)).toBe(before);
  });
});

describe('a link of another program named kube-ipvs0', () => {
  test('stays with the address that was on it', async () => {
    const node = createFakeNode();
    await feed(node, 'ip', 'link add kube-ipvs0 type dummy', 'addr add 198.51.100.9/32 dev kube-ipvs0');
    const before = dumpRules(node);
    expect((await callApply(node.host, 'apply', bundles.ipvs)).status).toBe(0);
    expect((await callApply(node.host, 'verify', bundles.ipvs)).status).toBe(0);
    expect((await callApply(node.host, 'apply', bundles.other)).status).toBe(0);
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    expect((await callApply(node.host, 'verify', bundles.ipvs)).status).toBe(0);
    expect(missingLines(before, dumpRules(node))).toEqual(['kube-ipvs0 198.51.100.9/32']);
    expect((await callApply(node.host, 'cleanup')).status).toBe(0);
    expect(dumpRules(node)).toBe(before);
  });

  test('and of another kind is in the way, also of --adopt', async () => {
    const node = createFakeNode();
    await feed(node, 'ip', 'link add kube-ipvs0 type bridge');
    const before = node.dump();
    for (const adopt of [[], ['--adopt']]) {
      const { status, err } = await callApply(node.host, 'apply', bundles.ipvs, ...adopt);
      expect([status, node.dump()]).toEqual([3, before]);
      expect(err).toContain(': link kube-ipvs0 [conflict]');
    }
  });

  test('addresses that are put on an owned link are taken away, as kube-proxy does', async () => {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundles.ipvs);
    const applied = node.dump();
    await feed(node, 'ip', 'addr add 10.96.0.99/32 dev kube-ipvs0');
    expect((await callApply(node.host, 'apply', bundles.ipvs)).status).toBe(0);
    expect(node.dump()).toBe(applied);
  });
});

describe('dump', () => {
  test.each([bundles.ipvs, bundles.iptables])(
    'beside a kubelet and a kube-router, of %s: plan finds nothing to change',
    async (bundle) => {
      const node = createFakeNode();
      await moveInto(node.host, neighbours.kubelet, neighbours.kubeRouter, readBundleFiles(bundle));
      const folder = `/tmp/kpc-dump-${process.pid}-${Math.random().toString(36).slice(2)}`;
      expect((await callApply(node.host, 'dump', '-o', folder)).status).toBe(0);
      const { status, out } = await callApply(node.host, 'plan', folder);
      expect([status, out]).toEqual([0, 'Plan: nothing to change\n']);
    },
  );
});

test('a set that is in a set of sets of another program stays: the kernel would refuse to destroy it', () => {
  const member = 'KUBE-CLUSTER-IP';
  const present = {
    ...emptyState,
    sets: [
      { name: member, type: 'hash:ip,port', entries: [] },
      { name: 'THEIRS', type: 'list:set', entries: [{ other: member }] },
    ],
  };
  const owned = { ...nothingOwned, sets: [member] };
  const claims = { owned, variants: { ipv4: 'nft', ipv6: 'nft' } as const, adopt: false, excluded: [] };
  expect(decideOwnership(present, emptyState, claims)).toMatchObject({
    owned: { sets: [] },
    ownedAfter: { sets: [member] },
  });
});

test("a table that a program has to itself is that program's, even if the record has one of that name", () => {
  const listed = (flags: string): KernelState => ({
    ...emptyState,
    nftables: parseNodeTables(`table ip kube-proxy {\n${flags}\tchain services {\n\t}\n}\n`),
  });
  const owned = { ...nothingOwned, nftTables: [nftTableKey('ipv4', 'kube-proxy')] };
  const claims = { owned, variants: { ipv4: 'nft', ipv6: 'nft' } as const, adopt: true, excluded: [] };
  const ownedOf = (present: KernelState) => decideOwnership(present, emptyState, claims).owned.nftTables.length;
  expect([ownedOf(listed('')), ownedOf(listed('\tflags owner\n'))]).toEqual([1, 0]);
});
