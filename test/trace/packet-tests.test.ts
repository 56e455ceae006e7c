import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { lastReleaseWith } from '../packet/lab.ts';
import { proxyModes } from '../../src/kube-proxy/modes.ts';
import { fixturesFolder } from '../support/fixtures.ts';
import { triesAll } from '../support/rounds.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';
import type { SaidFinding } from '../../src/say/words/said.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-test-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const flows = join(fixturesFolder, 'kube-proxy-flows');

interface Result {
  readonly name: string;
  readonly passed: boolean;
  readonly trace: { readonly mode: string };
  readonly faults: readonly string[];
}

async function resultsOf(args: readonly string[], cwd: string): Promise<readonly Result[]> {
  const run = await runKpc(['test', ...args, '-q', '--output', 'json'], { cwd });
  expect([0, 1], run.stderr).toContain(run.status);
  return resultOf(run.stdout).tests as readonly Result[];
}

/** Packets of each folder that kube-proxy's own unit tests send, in iptables and in nftables mode. */
const packetCounts: Readonly<Record<string, number>> = {
  'cluster-ip': 19,
  'cluster-ip-and-node-port-ipv6': 3,
  'external-policy-cluster': 14,
  'external-policy-local': 14,
  'health-check-node-port': 2,
  'internal-policy': 12,
  'load-balancer': 26,
  masquerade: 220,
  'no-endpoints': 12,
  'node-ports': 51,
  'several-services': 15,
  'terminating-policy-cluster': 20,
  'terminating-policy-local': 20,
};

describe("the packets of kube-proxy's unit tests", () => {
  test.each(Object.entries(packetCounts))('%s: %i', async (name, count) => {
    const results = await resultsOf(['flows.yaml'], join(flows, name));
    expect(results.filter(({ passed }) => !passed)).toEqual([]);
    expect(results.length).toBe(count);
  });

  test('all folders are here', () => {
    const folders = readdirSync(flows, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => name).toSorted()).toEqual(Object.keys(packetCounts).toSorted());
  });

  // Between them these expect every verdict and source.
  const few = ['cluster-ip', 'load-balancer', 'several-services'];
  test.each(triesAll ? Object.keys(packetCounts) : few)(
    '%s: none passes where something else is expected',
    async (name) => {
      const copy = mkdtempSync(join(scratch, 'flows-'));
      cpSync(flows, copy, { recursive: true });
      const file = join(copy, name, 'flows.yaml');
      const others: Readonly<Record<string, string>> = {
        'source: kept': 'source: masqueraded',
        'source: masqueraded': 'source: kept',
        'expect: refused': 'expect: dropped',
        'expect: dropped': 'expect: refused',
        'expect: local': 'expect: forwarded',
        'expect: forwarded': 'expect: delivered',
      };
      const changed = readFileSync(file, 'utf8').replaceAll(
        /(?:source|expect): [a-z]+/g,
        (found) => others[found] ?? found,
      );
      writeFileSync(file, changed);
      const results = await resultsOf(['flows.yaml'], join(copy, name));
      expect(results.filter(({ passed }) => passed)).toEqual([]);
    },
  );
});

const packets = join(projectFolder, 'test/kernel-lab/packets');
const input = ['-f', 'before', '-f', 'more', '-f', 'node.yaml', '--config', 'config.yaml'];
const node2 = join(scratch, 'node2.yaml');
writeFileSync(
  node2,
  '{apiVersion: v1, kind: Node, metadata: {name: node2}, spec: {podCIDRs: [10.1.2.0/24]}, status: {addresses: [{type: InternalIP, address: 192.168.0.2}]}}\n',
);

describe('kpc test --init writes what passes', () => {
  test.each(proxyModes)('in %s mode, whatever the order of the input', async (mode) => {
    const folder = mkdtempSync(join(scratch, 'init-'));
    cpSync(packets, folder, { recursive: true });
    const init = (args: readonly string[]) =>
      runKpc(['test', '--init', ...args, '--proxy-mode', mode, '--kubernetes-version', lastReleaseWith(mode), '-q'], {
        cwd: folder,
      });
    const written = await init(input);
    const turned = ['-f', 'node.yaml', '-f', 'more', '-f', 'before', '--config', 'config.yaml'];
    const testsOf = (text: string): string => text.slice(text.indexOf('\ntests:'));
    for (const order of triesAll || mode === 'iptables' ? [turned] : [])
      expect(testsOf((await init(order)).stdout)).toBe(testsOf(written.stdout));
    writeFileSync(join(folder, 'expectations.yaml'), written.stdout);
    const results = await resultsOf(['expectations.yaml'], folder);
    expect(results.filter(({ passed }) => !passed)).toEqual([]);
    expect(results.length).toBeGreaterThan(200);
    expect(new Set(results.map(({ trace }) => trace.mode))).toEqual(new Set([mode]));
  });

  test('with -n, for objects that name no namespace', async () => {
    const folder = mkdtempSync(join(scratch, 'init-'));
    const service = [
      'apiVersion: v1',
      'kind: Service',
      'metadata: { name: web }',
      'spec: { clusterIP: 10.96.0.10, selector: { app: web }, ports: [{ port: 80 }] }',
      '---',
      'apiVersion: v1',
      'kind: Pod',
      'metadata: { name: web-0, labels: { app: web } }',
      'spec: { containers: [{ name: web, image: web }] }',
      '',
    ].join('\n');
    writeFileSync(join(folder, 'svc.yaml'), service);
    const { stdout } = await runKpc(['test', '--init', 'svc.yaml', '-n', 'shop', '-q'], { cwd: folder });
    writeFileSync(join(folder, 'expectations.yaml'), stdout);
    const results = await resultsOf(['expectations.yaml'], folder);
    expect(results.map(({ name }) => name).join()).toContain('shop/web');
    expect(results.filter(({ passed }) => !passed)).toEqual([]);
  });

  test('on all nodes, one test for those that agree', async () => {
    const folder = mkdtempSync(join(scratch, 'init-'));
    cpSync(packets, folder, { recursive: true });
    cpSync(node2, join(folder, 'node2.yaml'));
    const few = ['-f', 'before', '-f', 'node.yaml', '--config', 'config.yaml'];
    const args = [...(triesAll ? input : few), '-f', 'node2.yaml', '--proxy-mode', 'nftables', '--all-nodes', '-q'];
    const { stdout } = await runKpc(['test', '--init', ...args], { cwd: folder });
    expect(stdout).toContain('\nnode: all\n');
    expect(stdout).toContain('    node: node2\n');
    writeFileSync(join(folder, 'expectations.yaml'), stdout);
    const results = await resultsOf(['expectations.yaml'], folder);
    expect(results.filter(({ passed }) => !passed)).toEqual([]);
    expect(results.some(({ name }) => name.endsWith('(node1, nftables)'))).toBe(true);
    expect(results.some(({ name }) => name.endsWith('(node2, nftables)'))).toBe(true);
  });

  test('on nodes of several releases, whose file names none', async () => {
    const folder = mkdtempSync(join(scratch, 'init-'));
    const nodeOf = (name: string, version: string) =>
      `---\n{ apiVersion: v1, kind: Node, metadata: { name: ${name} }, status: { nodeInfo: { kubeletVersion: ${version} } } }\n`;
    const services = readFileSync(join(fixturesFolder, 'quickstart', 'svc.yaml'), 'utf8');
    writeFileSync(join(folder, 'all.yaml'), [services, nodeOf('n1', 'v1.33.5'), nodeOf('n2', 'v1.34.1')].join('\n'));
    const args = ['--proxy-mode', 'iptables', '--all-nodes', '-q'];
    const { stdout } = await runKpc(['test', '--init', 'all.yaml', ...args], { cwd: folder });
    expect(stdout).not.toContain('\nrelease:');
    writeFileSync(join(folder, 'expectations.yaml'), stdout);
    const results = await resultsOf(['expectations.yaml'], folder);
    expect(results.filter(({ passed }) => !passed)).toEqual([]);
  });

  test('and names the flags that no file of expectations holds', async () => {
    const init = async (...flags: readonly string[]) =>
      (await runKpc(['test', '--init', ...input, '--proxy-mode', 'iptables', '-q', ...flags], { cwd: packets })).stdout;
    expect(await init('--masquerade-all', '--nodeport-addresses', '10.0.0.0/8')).toContain(
      '\n# Made with --masquerade-all --nodeport-addresses 10.0.0.0/8: run kpc test with them.\n',
    );
    expect(await init()).not.toContain('# Made with');
  });

  test('of a bundle and of a dump', async () => {
    const bundle = join(scratch, 'bundle');
    await runKpc(['compile', ...input, '--proxy-mode', 'iptables', '-o', bundle], { cwd: packets });
    const dump = join(fixturesFolder, 'dumps', 'kube-proxy-iptables-session-affinity');
    for (const path of [bundle, dump]) {
      const { stdout } = await runKpc(['test', '--init', path, '-q']);
      const file = join(scratch, 'of-a-node.yaml');
      writeFileSync(file, stdout);
      const results = await resultsOf([file], scratch);
      expect(results.filter(({ passed }) => !passed)).toEqual([]);
      expect(results.length).toBeGreaterThan(3);
    }
  });
});

/** Runs tests in a file of their own, over a Service with two Pods. */
async function runFile(text: string, ...flags: readonly string[]) {
  const folder = mkdtempSync(join(scratch, 'file-'));
  cpSync(join(fixturesFolder, 'quickstart', 'svc.yaml'), join(folder, 'svc.yaml'));
  const pod = (name: string, address: string): string =>
    `{apiVersion: v1, kind: Pod, metadata: {name: ${name}, labels: {app: nginx}}, spec: {nodeName: worker-1}, status: {podIPs: [{ip: ${address}}]}}\n`;
  writeFileSync(join(folder, 'pods.yaml'), `${pod('nginx-a', '10.244.1.10')}---\n${pod('nginx-b', '10.244.2.10')}`);
  writeFileSync(join(folder, 't.yaml'), text);
  return runKpc(['test', 't.yaml', '-q', ...flags], { cwd: folder });
}

const head = 'inputs: [svc.yaml, pods.yaml]\nmode: nftables\ntests:\n';

test('the example for an endpoint without a port has its own port', async () => {
  const { stderr } = await runFile(`${head}  - { from: pod, to: svc/nginx, expect: { 10.244.1.10: 1.0 } }\n`);
  expect(stderr).toContain('help: write 10.244.1.10:8080, for example');
});

describe('expectations', () => {
  test.each([
    ['Pods by their names', 'expect: [nginx-a, pod/default/nginx-b]', 0],
    ['a Pod with its port', 'expect: ["nginx-a:8080", "nginx-b:8080"]', 0],
    ['a Pod with another port', 'expect: ["nginx-a:8081", "nginx-b:8080"]', 1],
    ['too few', 'expect: [nginx-a]', 1],
    ['too many', 'expect: [nginx-a, nginx-b, "10.244.2.11:8080"]', 1],
    ['shares', 'expect: {nginx-a: 0.5, nginx-b: 0.5}', 0],
    ['other shares', 'expect: {nginx-a: 0.4, nginx-b: 0.6}', 1],
    ['any endpoint', 'expect: delivered', 0],
    ['the address that they see', 'expect: delivered\n    source: 10.244.1.99', 0],
    ['another address', 'expect: delivered\n    source: 10.244.1.98', 1],
    ['a source that is kept', 'expect: delivered\n    source: kept', 0],
    ['a source that is not', 'expect: delivered\n    source: mixed', 1],
    ['another verdict', 'expect: forwarded', 1],
  ])('%s', async (_, expectation, status) => {
    const run = await runFile(`${head}  - from: 10.244.1.99\n    to: svc/nginx\n    ${expectation}\n`);
    expect(run, run.stderr + run.stdout).toMatchObject({ status });
  });

  test('a Pod that reaches itself is masqueraded, and sees others as they are', async () => {
    const run = await runFile(`${head}  - {from: nginx-a, to: svc/nginx, expect: [nginx-a, nginx-b], source: mixed}\n`);
    expect(run, run.stderr + run.stdout).toMatchObject({
      status: 0,
      stdout: '1 packet as expected, on worker-1, nftables, 1.37\n',
    });
  });

  test('several modes and releases', async () => {
    const text = head.replace('nftables', '[iptables, ipvs, nftables]\nrelease: ["1.36", "1.37"]');
    const run = await runFile(`${text}  - {from: pod, to: svc/nginx, expect: [nginx-a, nginx-b]}\n`);
    expect(run, run.stderr).toMatchObject({
      status: 0,
      stdout: '6 packets as expected, on worker-1, iptables, ipvs and nftables, 1.36 and 1.37\n',
    });
  });
});

describe('a flag wins over the file', () => {
  const text = `${head}  - {from: pod, to: svc/nginx, mode: ipvs, release: "1.36", node: worker-1, expect: delivered}\n`;

  test.each([
    [[], 'on worker-1, ipvs, 1.36'],
    [['--proxy-mode', 'iptables'], 'on worker-1, iptables, 1.36'],
    [['--kubernetes-version', '1.34'], 'on worker-1, ipvs, 1.34'],
    [['--proxy-mode', 'nftables', '--kubernetes-version', '1.35'], 'on worker-1, nftables, 1.35'],
  ])('%j', async (flags, where) => {
    const run = await runFile(text, ...flags);
    expect(run, run.stderr).toMatchObject({ status: 0, stdout: `1 packet as expected, ${where}\n` });
  });

  test('also the namespace, the addresses of the node and the nodes', async () => {
    const named = text.replace('inputs:', 'namespace: else\ninputs:');
    expect((await runFile(named, '-n', 'default')).status).toBe(0);
    const addresses = await runFile(`hostAddresses: gone.json\n${text}`, '--host-addresses', 'svc.yaml');
    expect(addresses.stderr).toContain('svc.yaml');
    expect((await runFile(text, '--node', 'worker-9')).stderr).toContain(
      '--node "worker-9": the input holds no such Node',
    );
    const other = text.replace('node: worker-1', 'node: worker-9');
    expect((await runFile(other, '--all-nodes')).stdout).toBe('1 packet as expected, on worker-1, ipvs, 1.36\n');
  });
});

const failing = `${head}  - name: 'a & "b" # c'
    from: node
    to: 127.0.0.1:30080
    expect: [nginx-a]
  - {from: node, to: 127.0.0.1:30080, expect: local}
`;

describe('a test that fails', () => {
  test('says where and why, and how it comes', async () => {
    const { status, stdout } = await runFile(failing);
    expect(status).toBe(1);
    expect(stdout).toContain('t.yaml:4:5: a & "b" # c: tcp from node to 127.0.0.1:30080 (worker-1, nftables)\n');
    expect(stdout).toContain('  expected nginx-a, but the packet is local\n');
    expect(stdout).toContain('1. 127.0.0.1 is an address of the node\n');
    expect(stdout.endsWith('\n1 failed, 1 as expected, on worker-1, nftables, 1.37\n')).toBe(true);
  });

  test.each([
    ['github', '::error file=t.yaml,line=4,col=5,title=unexpected-packet::a & "b" # c'],
    ['markdown', '**error** `t.yaml:4` a & "b" \\# c'],
    ['gitlab', '"check_name": "unexpected-packet"'],
    ['sarif', '"ruleId": "unexpected-packet"'],
  ])('as %s', async (output, finding) => {
    expect((await runFile(failing, '--output', output)).stdout).toContain(finding);
  });

  test('as JUnit', async () => {
    const { stdout } = await runFile(failing, '--output', 'junit');
    expect(stdout).toContain('<testsuite name="kpc test" tests="2" failures="1">');
    expect(stdout).toContain('name="a &amp; &quot;b&quot; # c: tcp from node to 127.0.0.1:30080 (worker-1, nftables)"');
    expect(stdout).toContain('file="t.yaml" line="4"');
    expect(stdout).toContain('<failure message="expected nginx-a, but the packet is local">');
  });

  test('as JSON', async () => {
    const { stdout } = await runFile(failing, '--output', 'json');
    expect(resultOf(stdout).tests).toMatchObject([
      { passed: false, place: { file: 't.yaml', line: 4 }, trace: { verdict: 'local', node: 'worker-1' } },
      { passed: true, faults: [] },
    ]);
  });
});

test('all that is wrong with a file is reported in one run', async () => {
  const { status, stdout, stderr } = await runFile(`inputs: svc.yaml
mode: nftables
nodse: all
tests:
  - from: [pod, externl]
    to: svc/nginxx
    expect: refuse
  - from: pod
    to: [svc/nginx, 10.0.0.1]
    proto: tpc
    expect: [10.0.0.1]
    source: kep
  - from: pod
    to: svc/nginx
    expect: {10.244.1.10:8080: 1.5, 10.244.2.10:8080: half}
  - from: pod
    to: svc/nginx
    expect: dropped
    source: kept
    node: worker-1
    nodes: all
  - from: pod
  - hello
`);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  const errors = [...stderr.matchAll(/^t\.yaml:(\d+:\d+): error: (.*) \[.*\n.*\n +\^\n(?: {2}help: (.*)\n)?/gm)].map(
    ([, at, text, help]) => `${at} ${text}${help === undefined ? '' : ` -> ${help}`}`,
  );
  expect(errors).toEqual([
    '3:1 this file has no field "nodse" -> did you mean node?',
    '5:17 from: there is no Pod externl in the input, and externl is none of pod, remote-pod, node, external -> did you mean external?',
    '6:9 to: no Service nginxx here -> did you mean default/nginx?',
    '7:13 expect: refuse is not one of delivered, refused, dropped, forwarded, local, unknown, fails -> did you mean refused?',
    '9:21 to: which port of 10.0.0.1? -> write 10.0.0.1:80, for example',
    '10:12 proto cannot be "tpc" -> write tcp, udp, sctp or icmp',
    '11:13 expect: which port of 10.0.0.1? -> write 10.0.0.1:80, for example',
    '12:13 source: kep is neither kept, masqueraded, mixed nor an address',
    '15:32 10.244.1.10:8080 cannot be 1.5 -> write a share of connections, from 0 to 1',
    '15:55 10.244.2.10:8080 cannot be "half" -> write a share of connections, from 0 to 1',
    '19:13 source applies only to delivered packets -> set expect to delivered, or to endpoints',
    '21:12 node and nodes mean the same -> keep one of them',
    '22:5 a test has no expect -> add expect: a test needs from, to and expect',
    '22:5 a test has no to -> add to: a test needs from, to and expect',
    '23:5 tests[5] cannot be "hello" -> write a mapping of fields',
  ]);
});

test('a flag that a bundle cannot follow is one error, and a setting of a file has its place', async () => {
  const bundle = mkdtempSync(join(scratch, 'bundle-'));
  await runKpc(['compile', ...input, '--proxy-mode', 'iptables', '-o', join(bundle, 'b')], { cwd: packets });
  const to = '{ to: svc/web, expect: delivered, from:';
  const write = (settings: string) =>
    writeFileSync(join(bundle, 't.yaml'), `inputs: b\n${settings}tests: [${to} node }, ${to} pod }]\n`);
  const errors = async (...flags: readonly string[]) => {
    const { stdout } = await runKpc(['test', 't.yaml', '--output', 'json', ...flags], { cwd: bundle });
    return (JSON.parse(stdout).findings as readonly SaidFinding[]).flatMap((each) =>
      each.code === 'bad-expectation' ? [[each.arguments, each.place?.line]] : [],
    );
  };
  const details = { problem: 'other-input', kind: 'bundle' };
  for (const settings of ['', 'mode: ipvs\n']) {
    write(settings);
    const mode = { ...details, field: '--proxy-mode', what: 'mode', known: 'iptables' };
    expect(await errors('--proxy-mode', 'nftables')).toEqual([[mode, undefined]]);
  }
  write('nodes: [node1, other]\n');
  expect(await errors()).toEqual([[{ ...details, field: 'nodes', what: 'node', known: 'node1' }, 2]]);
});

test.each([
  ['a bundle', 'mode: ipvs', 'mode: the input is a bundle of iptables, but only manifests can be compiled for another'],
  [
    'a bundle',
    'release: "1.36"',
    'release: the input is a bundle of 1.37, but only manifests can be compiled for another',
  ],
  ['a bundle', 'node: other', 'node: the input is a bundle of node1, but only manifests can be compiled for another'],
])('%s has one node, mode and release: %s', async (_, setting, text) => {
  const bundle = mkdtempSync(join(scratch, 'bundle-'));
  await runKpc(['compile', ...input, '--proxy-mode', 'iptables', '-o', join(bundle, 'b')], { cwd: packets });
  writeFileSync(
    join(bundle, 't.yaml'),
    `inputs: b\n${setting}\ntests: [{from: node, to: svc/web, expect: delivered}]\n`,
  );
  const run = await runKpc(['test', 't.yaml'], { cwd: bundle });
  expect(run).toMatchObject({ status: 2, stdout: '' });
  expect(run.stderr).toContain(text);
});

test.each([
  ['', 'no tests here'],
  ['inputs: svc.yaml\n', 'no tests here'],
  ['tests: [{from: pod, to: svc/nginx, expect: refused}]\n', 'the tests name no cluster'],
  ['- from: pod\n', 'help: write a mapping of fields'],
  ['inputs: svc.yaml\ntests: [{from: a b\n', 'error: '],
])('a file without tests, or without a cluster: %j', async (text, words) => {
  const run = await runFile(text);
  expect(run).toMatchObject({ status: 2, stdout: '' });
  expect(run.stderr).toContain(words);
});

test('a packet that comes as expected, and that a policy would refuse, is not passed over in silence', async () => {
  const folder = mkdtempSync(join(scratch, 'policy-'));
  const objects = [
    '{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.96.0.1, selector: {app: a}, ports: [{port: 80}]}}',
    '{apiVersion: v1, kind: Pod, metadata: {name: a-1, labels: {app: a}}, spec: {nodeName: worker}, status: {phase: Running, podIP: 10.244.1.9, conditions: [{type: Ready, status: "True"}]}}',
    '{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny}, spec: {podSelector: {}, ingress: []}}',
  ];
  writeFileSync(join(folder, 'a.yaml'), objects.join('\n---\n'));
  writeFileSync(join(folder, 't.yaml'), 'inputs: a.yaml\ntests: [{from: 10.244.2.7, to: svc/a, expect: delivered}]\n');
  for (const output of ['text', 'markdown', 'junit', 'github', 'gitlab', 'sarif']) {
    const run = await runKpc(['test', '-q', join(folder, 't.yaml'), '--node', 'other', '--output', output]);
    expect(run.status).toBe(0);
    expect(run.stdout).toContain('default/deny');
  }
});

test('a file of another program is one error', async () => {
  const run = await runFile('apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---\nkind: Node\n');
  expect(run).toMatchObject({ status: 2, stdout: '' });
  expect(run.stderr.match(/error: .*/g)).toEqual([
    'error: not a file of kpc test: it has apiVersion, kind, metadata, but no tests [bad-expectation]',
  ]);
});

test('an item that is wrong has one error, whatever its packet would say', async () => {
  const folder = mkdtempSync(join(scratch, 'wrong-'));
  const service =
    '{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.96.0.1, ports: [{port: 80}]}}\n';
  writeFileSync(join(folder, 'a.yaml'), service);
  const tests = 'inputs: a.yaml\ntests:\n- {from: [192.0.2.1, null, 3], to: [svc/a, 4], expect: [5]}\n';
  writeFileSync(join(folder, 'tests.yaml'), tests);
  const { stderr } = await runKpc(['test', 'tests.yaml', '-q'], { cwd: folder });
  expect(stderr.match(/^tests\.yaml:\d+:\d+: \w+|\[[\w-]+\]$/gm)).toEqual(
    [22, 28, 44, 57].flatMap((column) => [`tests.yaml:3:${column}: error`, '[bad-value]']),
  );
});

const bare = `apiVersion: v1
kind: Service
metadata: { name: a }
spec: { selector: { app: a }, ports: [{ port: 80 }] }
`;

test.each(['mode: []', 'nodes: []', 'release: []', 'node: []'])(
  '%s tests nothing, so it does not pass',
  async (choice) => {
    const cwd = mkdtempSync(join(scratch, 'none-'));
    writeFileSync(join(cwd, 'in.yaml'), bare);
    for (const [at, text] of [
      ['top', `inputs: in.yaml\n${choice}\ntests: [{ from: pod, to: svc/a, expect: unknown }]\n`],
      ['test', `inputs: in.yaml\ntests: [{ from: pod, to: svc/a, expect: unknown, ${choice} }]\n`],
    ] as const) {
      writeFileSync(join(cwd, `${at}.yaml`), text);
      const { status, stderr } = await runKpc(['test', `${at}.yaml`, '-q'], { cwd });
      expect([status, stderr], at).toEqual([2, expect.stringContaining('[bad-expectation]')]);
    }
  },
);

test("a fault of the file's settings is reported once, at the setting", async () => {
  const cwd = mkdtempSync(join(scratch, 'settings-'));
  const node = '{apiVersion: v1, kind: Node, metadata: {name: n1}}';
  const served = bare.replace('spec: { ', 'spec: { clusterIP: 10.96.0.10, ');
  writeFileSync(join(cwd, 'in.yaml'), `${served}---\n${node}\n`);
  await runKpc(['compile', '-f', 'in.yaml', '--proxy-mode', 'ipvs', '-o', 'bundle', '-q'], { cwd });
  const faultsOf = async (lines: readonly string[], ...flags: readonly string[]) => {
    writeFileSync(join(cwd, 't.yaml'), lines.join('\n'));
    const { stdout } = await runKpc(['test', 't.yaml', '-q', '--output', 'json', ...flags], { cwd });
    const { findings } = JSON.parse(stdout) as { findings: readonly SaidFinding[] };
    return findings.map(({ code, place }) => [code, place?.line, place?.column]);
  };
  const first = '- {from: pod, to: svc/a, expect: unknown}';
  const two = (last: string) => ['tests:', first, `- {from: node, to: svc/a, ${last}}`];
  expect(await faultsOf(['inputs: bundle', 'mode: nftables', ...two('expect: unknown')])).toEqual([
    ['bad-expectation', 2, 7],
  ]);
  expect(await faultsOf(['input: in.yaml', ...two('expect: unknown')])).toEqual([['unknown-field', 1, 1]]);
  const nodes = ['inputs: in.yaml', 'node: n9', ...two('node: n8, expect: delivered')];
  expect(await faultsOf(nodes)).toEqual([
    ['unknown-node', 2, 7],
    ['unknown-node', 5, 33],
  ]);
  expect(await faultsOf(nodes, '--node', 'n7')).toEqual([['unknown-node', undefined, undefined]]);
});

test('a packet whose end is unknown comes as expected where unknown is', async () => {
  const cwd = mkdtempSync(join(scratch, 'unknown-'));
  writeFileSync(join(cwd, 'in.yaml'), bare);
  writeFileSync(join(cwd, 't.yaml'), 'inputs: in.yaml\ntests: [{ from: pod, to: svc/a, expect: unknown }]\n');
  expect((await resultsOf(['t.yaml'], cwd)).map(({ passed }) => passed)).toEqual([true]);
});

test('shares leave out connections that fail, and what they do not sum to fails', async () => {
  const cwd = mkdtempSync(join(scratch, 'shares-'));
  const objects = [
    '{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {podCIDR: 10.244.1.0/24}, status: {addresses: [{type: InternalIP, address: 192.168.50.11}]}}',
    '{apiVersion: v1, kind: Node, metadata: {name: n2}, spec: {podCIDR: 10.244.2.0/24}}',
    '{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: NodePort, clusterIP: 10.96.0.1, externalTrafficPolicy: Local, ports: [{port: 80, nodePort: 30080}]}}',
    '{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a, labels: {kubernetes.io/service-name: a}}, addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [10.244.1.10], nodeName: n1}, {addresses: [10.244.2.10], nodeName: n2}, {addresses: [10.244.2.11], nodeName: n2}]}',
  ];
  writeFileSync(join(cwd, 'in.yaml'), objects.join('\n---\n'));
  const expected = [
    ['remote-pod', '{10.244.1.10:80: 0.333}', true],
    ['remote-pod', '{10.244.1.10:80: 0.333, 10.244.2.10:80: 0, 10.244.2.11:80: 0}', true],
    ['remote-pod', '{10.244.1.10:80: 0.333, 10.244.2.10:80: 0.333}', false],
    ['remote-pod', '{10.244.2.10:80: 0}', false],
    ['remote-pod', 'delivered', false],
    // It sends a third to itself.
    ['10.244.2.10', '{10.244.1.10:80: 0.333}', true],
    ['10.244.2.10', 'delivered', false],
  ] as const;
  const tests = expected.map(([from, end]) => `- {from: ${from}, to: "192.168.50.11:30080", expect: ${end}}`);
  writeFileSync(join(cwd, 't.yaml'), `inputs: in.yaml\ntests:\n${tests.join('\n')}\n`);
  const call = ['t.yaml', '--node', 'n1', '--cluster-cidr', '10.244.0.0/16', '--proxy-mode', 'nftables'];
  const results = await resultsOf(call, cwd);
  expect(results.map(({ passed }) => passed)).toEqual(expected.map(([, , passes]) => passes));
  // One fault sums what fails.
  expect(results.map(({ faults, trace }) => [faults.length > 1, trace])).toEqual(
    results.map(() => [false, expect.objectContaining({ verdict: 'delivered', failing: 0.666667 })]),
  );
});

test('on all Nodes, a Pod sends to Services from its own only', async () => {
  const cwd = mkdtempSync(join(scratch, 'home-'));
  const objects = [
    ...['n1', 'n2'].map((name) => `{apiVersion: v1, kind: Node, metadata: {name: ${name}}}`),
    '{apiVersion: v1, kind: Pod, metadata: {name: client}, spec: {nodeName: n2, containers: [{name: c, image: c}]}, status: {podIP: 10.244.2.9}}',
    '{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {clusterIP: 10.96.0.1, internalTrafficPolicy: Local, ports: [{port: 80}]}}',
    '{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: db, labels: {kubernetes.io/service-name: db}}, addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [10.244.2.10], nodeName: n2}]}',
  ];
  writeFileSync(join(cwd, 'in.yaml'), objects.join('\n---\n'));
  writeFileSync(join(cwd, 't.yaml'), 'inputs: in.yaml\ntests: [{from: client, to: db, expect: delivered}]\n');
  const results = await resultsOf(['t.yaml', '--all-nodes'], cwd);
  expect(results.map(({ passed, trace }) => [passed, trace])).toEqual([
    [true, expect.objectContaining({ node: 'n2' })],
  ]);
  const elsewhere = await runKpc(['test', 't.yaml', '--node', 'n1', '-q'], { cwd });
  expect(elsewhere).toMatchObject({ status: 2, stdout: '' });
  expect(elsewhere.stderr).toContain('its own node, n2, handles them');
});
