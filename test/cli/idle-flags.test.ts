import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addDescribeCommand } from '../../src/cli/kpc/describe-command.ts';
import { addDiffCommand } from '../../src/cli/kpc/diff-command.ts';
import { addEquivalenceCommand, addMigrateCommand } from '../../src/cli/kpc/equivalence-command.ts';
import { addLintCommand } from '../../src/cli/kpc/lint-command.ts';
import { addTestCommand, addTraceCommand } from '../../src/cli/kpc/trace-command.ts';
import { openFlags } from '../../src/library/options.ts';
import type { Terminal } from '../../src/cli/shared/terminal.ts';
import { triesAll } from '../support/rounds.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-idle-flags-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const service = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, clusterIP: 10.96.0.10, ports: [{ port: 80, nodePort: 30080 }] }
---
apiVersion: v1
kind: Node
metadata: { name: worker-1 }
status: { addresses: [{ type: InternalIP, address: 192.168.0.1 }] }
`;

beforeAll(async () => {
  writeFolder(cwd, {
    'in.yaml': service,
    'slices.yaml':
      'apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: { name: web-1, labels: { kubernetes.io/service-name: web } }\naddressType: IPv4\nports: [{ port: 80 }]\nendpoints: []\n',
    'host.json': '[{"ifname": "eth0", "addr_info": [{"local": "192.168.0.7", "prefixlen": 24}]}]',
    'config.yaml': 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n',
    'kpc.yaml.other': 'proxy-mode: iptables\n',
  });
  for (const mode of ['iptables', 'nftables']) {
    const run = await runKpc(['compile', '-f', 'in.yaml', '--node', 'worker-1', '--proxy-mode', mode, '-o', mode], {
      cwd,
    });
    if (run.status !== 0) throw new Error(run.stderr);
  }
  const { stdout } = await runKpc(['compile', '-f', 'in.yaml', '--proxy-mode', 'iptables', '--print', 'iptables'], {
    cwd,
  });
  writeFolder(cwd, {
    'many.yaml': service
      .replaceAll('name: web', 'name: many')
      .replace('10.96.0.10', '10.96.0.11')
      .replace('30080', '30081'),
    'dump.txt': `worker-1# iptables-save\n${stdout.replace('*filter\n', `*filter\n${policies}`)}`,
    'expected.yaml': 'tests:\n  - { from: external, to: 10.96.0.10:80, expect: refused }\n',
  });
});

/** As iptables-save prints them; compile says nothing of them. */
const policies = ['INPUT', 'FORWARD', 'OUTPUT'].map((chain) => `:${chain} ACCEPT [0:0]\n`).join('');

/** A value for each flag that says how manifests are read and compiled. Each differs from the default. */
const values: Readonly<Record<string, string>> = {
  '--file': 'in.yaml',
  '--exclude': 'x',
  '--namespace': 'shop',
  '--config': 'config.yaml',
  '--to-config': 'config.yaml',
  '--kpc-yaml': 'none',
  '--service-cluster-ip-range': '10.97.0.0/16',
  '--service-node-port-range': '31000-31999',
  '--load-balancer-ip-range': '203.0.113.0/24',
  '--assume-endpoints': '10.9.0.0/16',
  '--host-addresses': 'host.json',
  '--ip-family': 'ipv6',
  '--kubernetes-version': '1.33',
  '--node': 'worker-9',
  '--proxy-mode': 'ipvs',
  '--detect-local-mode': 'NodeCIDR',
  '--iptables-masquerade-bit': '7',
  '--ipvs-scheduler': 'sh',
  '--feature-gates': 'AllAlpha=true',
  '--bind-address': '192.168.0.9',
  '--hostname-override': 'worker-9',
  '--pod-bridge-interface': 'cni0',
  '--pod-interface-name-prefix': 'veth',
};
const usual = { cidr: '10.8.0.0/16', duration: '7s', number: '4096', name: 'x', cidrs: '10.8.0.0/16' } as const;

/** Flags that say nothing of what manifests compile to: how they are read, or where flags come from. */
const harmless = new Set([
  '--file',
  '--exclude',
  '--skip-invalid',
  '--kpc-yaml',
  '--namespace',
  '--assume',
  '--no-assume',
]);

const flags = openFlags('looks').flatMap(({ name: long, usage, kind: takes }) => {
  if (takes === 'off' || harmless.has(long)) return [];
  const kind = /[<[](\w+)/.exec(usage)?.[1] ?? '';
  const value = values[long] ?? usual[kind as keyof typeof usual];
  return [[long, ...(value === undefined ? [] : [value])]];
});

/** Commands that look at an input, with their arguments. */
const commands: Readonly<Record<string, (input: string) => readonly string[]>> = {
  describe: (input) => [input],
  trace: (input) => [input, '--from', 'external', '--to', '10.96.0.10:80'],
  diff: (input) => [`./${input}`, `./${input}`],
  equivalence: (input) => [`./${input}`, `./${input}`],
  test: (input) => ['-f', `./${input}`, 'expected.yaml'],
  'test --init': (input) => [input],
};

test('the namespace of a name counts for any input', async () => {
  const to = ['--from', 'external', '--to', 'svc/web'];
  expect(await runKpc(['trace', 'nftables', '-n', 'default', ...to], { cwd })).toMatchObject({ status: 0 });
});

describe.each(['iptables', 'nftables', 'dump.txt'])('over %s, which is compiled already,', (input) => {
  test.each(Object.entries(commands))(
    'no flag of kpc %s is taken that has no effect',
    async (command, argumentsFor) => {
      const words = [...command.split(' '), ...argumentsFor(input)];
      const plain = await runKpc(words, { cwd });
      const idle: string[] = [];
      for (const [i, flag] of [...flags, ['--node', 'worker-9']].entries()) {
        // The two bundles are of one kind: in `npm test` each is asked of every other flag.
        if (!triesAll && input !== 'dump.txt' && (i % 2 === 0) !== (input === 'iptables')) continue;
        // Only packets to addresses of the node depend on them.
        if ((command === 'trace' || command.startsWith('test')) && flag[0] === '--host-addresses') continue;
        const run = await runKpc([...words, ...flag], { cwd });
        const isRefused = run.status === 2 && run.stderr.includes(flag[0] ?? '');
        if (!isRefused && run.stdout === plain.stdout) idle.push(flag.join(' '));
      }
      expect(idle).toEqual([]);
    },
  );
});

/** The commands with flags of their own, and calls of each: `@` is the input. */
const calls = {
  describe: {
    add: addDescribeCommand,
    of: [['@'], ['@', '--output', 'json'], ['web', '@'], ['web', '@', '--output', 'json']],
  },
  diff: {
    add: addDiffCommand,
    of: [
      ['@', 'many.yaml'],
      ['@', 'many.yaml', '--output', 'json'],
      ['@', 'many.yaml', '--output', 'unified'],
    ],
  },
  trace: {
    add: addTraceCommand,
    of: [
      ['@', '--from', 'external', '--to', 'web'],
      ['@', '--from', 'node', '--to', '10.96.0.10:80'],
      ['@', '--all', 'web'],
      ['@', '--all', 'web', '--output', 'json'],
    ],
  },
  test: {
    add: addTestCommand,
    of: [
      ['-f', '@', 'expected.yaml'],
      ['--init', '@'],
    ],
  },
  equivalence: { add: addEquivalenceCommand, of: [['@', 'many.yaml']] },
  migrate: {
    add: addMigrateCommand,
    of: [
      ['@', 'slices.yaml'],
      ['@', 'slices.yaml', '--kubernetes-version', '1.35', '--to-kubernetes-version', '1.36'],
      ['@', 'slices.yaml', '--from', 'iptables'],
    ],
  },
  lint: { add: addLintCommand, of: [['@'], ['@', '--output', 'json']] },
} as const;

/** Values of these flags, which no call above has; with what makes a difference to every call. */
const ownValues: Readonly<Record<string, readonly string[]>> = {
  '--from-dump': ['dump.txt'],
  '--cluster-domain': ['other.local'],
  '--output': ['json'],
  '--limit': ['1'],
  '--rules': [],
  '--foreign': [],
  '--to-kubernetes-version': ['1.32'],
  '--from': ['192.168.9.9'],
  '--to': ['10.96.0.10:81'],
  '--proto': ['udp'],
  '--in-interface': ['docker0'],
  '--all': ['web'],
  '--all-nodes': [],
  '--node': ['worker-2'],
  '--init': [],
  '--ignore': ['selects-nothing'],
};

/** Flags whose effect depends on what an input holds, or on a cluster: a call that has neither shows none. */
const elsewhere: ReadonlySet<string> = new Set([
  ...Object.keys(calls).flatMap((name) => [`${name} --cluster`, `${name} --context`]),
  // Rules of other programs.
  'diff --foreign',
  // The file is a dump already, or its rules name their Services.
  'describe --from-dump',
  // The table of few Services, and few findings.
  'describe --limit',
  'lint --limit',
  'describe --from-node',
  'describe --debug-image',
  // Rules that match interfaces; the calls that it would do nothing for are below.
  'trace --in-interface',
  // Always shown for a dump, as its help says.
  'diff --rules',
  // Another release, sender or code that fares alike.
  'diff --to-kubernetes-version',
  'lint --ignore',
  'migrate --to',
]);

describe('a flag of a command has an effect, or is refused by its name', () => {
  const general = new Set<string | undefined>(openFlags('compares').map(({ name }) => name));
  const cases = Object.entries(calls).flatMap(([name, { add, of }]) => {
    const program = new Command();
    add(program, {} as Terminal, () => undefined);
    const options = program.commands.find((each) => each.name() === name)?.options ?? [];
    const own = options.flatMap(({ long }) =>
      long && !general.has(long) && !['--quiet', '--strict', '--node'].includes(long) ? [long] : [],
    );
    return ['in.yaml', 'dump.txt', 'nftables'].map((input) => [name, input, of, [...own, '--node']] as const);
  });

  test.each(cases)('kpc %s over %s', async (name, input, of, own) => {
    const isOfManifests = name === 'lint' || name === 'migrate';
    if (isOfManifests && input !== 'in.yaml') return;
    const idle: string[] = [];
    // Rules are read alike from the bundle and the dump: in `npm test` one call over the bundle is tried.
    for (const call of triesAll || input !== 'nftables' ? of : of.slice(0, 1)) {
      const node = input === 'in.yaml' && !isOfManifests ? ['--node', 'worker-1'] : [];
      const words = [name, ...call.map((word) => (word === '@' ? `./${input}` : word)), ...node];
      const plain = await runKpc(words, { cwd });
      expect(plain.stderr, words.join(' ')).not.toMatch(
        /error: (?!.*(?:no such|nothing to test|\[(?:bad-packet|not-found)\]))/,
      );
      for (const flag of own) {
        const value = ownValues[flag] ?? values[flag];
        if (elsewhere.has(`${name} ${flag}`) || words.includes(flag)) continue;
        expect(value, `a value of ${flag}, to try it with`).toBeDefined();
        const run = await runKpc([...words, flag, ...[value ?? []].flat()], { cwd });
        const isRefused = run.status === 2 && run.stderr.includes(flag);
        if (!isRefused && run.stdout === plain.stdout) idle.push([...words, flag, ...[value ?? []].flat()].join(' '));
      }
    }
    expect(idle).toEqual([]);
  });
});

test.each([
  ['trace in.yaml --from node --to web --in-interface eth0', '--in-interface'],
  ['trace in.yaml --all web --in-interface eth0', '--in-interface'],
  ['trace in.yaml --all-nodes --node worker-1 --from node --to web', '--node'],
  ['trace dump.txt --all-nodes --from node --to web', '--all-nodes'],
  ['diff in.yaml many.yaml --output unified --rules', '--rules'],
  ['diff in.yaml --to-kubernetes-version 1.33 --rules', '--rules'],
  ['diff in.yaml many.yaml --output json --limit 3', '--limit'],
  ['describe in.yaml --output json --limit 3', '--limit'],
  ['lint in.yaml --output junit --limit 3', '--limit'],
  ['describe in.yaml --cluster-domain other.local', '--cluster-domain'],
  ['equivalence iptables nftables -f in.yaml --proxy-mode ipvs', '--proxy-mode'],
  ['equivalence iptables nftables -f in.yaml --node worker-1 --all-nodes', '--node'],
  ['equivalence in.yaml many.yaml -f in.yaml', '-f'],
  ['equivalence 1.35 1.36 -f in.yaml --kubernetes-version 1.33', '--kubernetes-version'],
  ['migrate in.yaml --from iptables --proxy-mode ipvs', '--proxy-mode'],
  ['trace dump.txt --from node --to 10.96.0.10:80 --namespace shop', '--namespace'],
  ['trace nftables --from external --to 10.96.0.10:80 --namespace shop', '--namespace'],
  ['test --init in.yaml --node worker-1 --all-nodes', '--node'],
  ['compile -f in.yaml --node worker-1 --jobs 2 -o out', '--jobs'],
])('kpc %s refuses %s', async (command, flag) => {
  const run = await runKpc(command.split(' '), { cwd });
  expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining(`error: ${flag}`) });
});
