// What the library answers about packets is what the commands print as JSON.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  compile,
  describeServices,
  diff,
  equivalence,
  lint,
  migrate,
  open,
  testPackets,
  trace,
} from '../../src/library/index.ts';
import { portAddresses } from '../../src/cluster/model.ts';
import { fixturesFolder } from '../support/fixtures.ts';
import { runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

const paths = ['cluster/shop.yaml', 'cluster/nodes.yaml'];
const manifests = paths.map((name) => ({ name, text: readFileSync(join(fixturesFolder, name), 'utf8') }));
const files = paths.flatMap((path) => ['-f', path]);

/** What a command prints as JSON. */
async function printed(...words: readonly string[]): Promise<unknown> {
  const { stdout } = await runKpc([...words, '--output', 'json'], { cwd: fixturesFolder });
  return resultOf(stdout);
}

/** As JSON has it: without what is undefined. */
function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

const quickstart = { 'svc.yaml': readFileSync(join(fixturesFolder, 'quickstart', 'svc.yaml'), 'utf8') };
const dumped = compile({ manifests: quickstart, proxyMode: 'iptables' }).bundle?.files.get('iptables.restore') ?? '';

const named = '{ apiVersion: v1, kind: Service, metadata: { name: a }, spec: { ports: [{ name: http, port: 80 }] } }';
const ofNamed = compile({ manifests: { 'a.yaml': named }, proxyMode: 'iptables', assume: true }).bundle?.files;
const [shown] = open({ 'node.txt': ofNamed?.get('iptables.restore') ?? '' }).snapshots;
const [nameless] = open({ 'ipvsadm.txt': '-A -t 10.96.0.10:80 -s rr\n' }).snapshots;
if (!shown || !nameless) throw new Error('no dump');

describe('a destination', () => {
  const argumentsOf = (side: typeof shown, to: string) => {
    const { diagnostics, snapshots } = trace({ side, from: 'external', to });
    expect(snapshots.map(({ name }) => name)).toEqual([side.name]);
    return diagnostics[0]?.arguments;
  };

  test('is a port of an address by its name, which is what is wrong if it has none of that name', () => {
    const [{ address: { text: address = '' } = {} } = {}] = shown.ports.flatMap(portAddresses);
    const endOf = (port: unknown) => trace({ side: shown, from: 'external', to: `${address}:${String(port)}` }).trace;
    expect(endOf('http')).toBeDefined();
    expect(endOf('http')).toEqual(endOf(80));
    expect(argumentsOf(shown, `${address}:nothing`)).toMatchObject({ problem: 'no-port', service: address, near: [] });
    expect(argumentsOf(shown, `${address}:htp`)).toMatchObject({ problem: 'no-port', near: ['http'] });
    expect(argumentsOf(shown, 'svc/a:htp')).toMatchObject({ problem: 'no-port', near: ['http'] });
  });

  test('that is a number may be a port of the node, and a name is in no dump that holds none', () => {
    expect(argumentsOf(shown, '30080')).toMatchObject({ problem: 'no-such', near: ['node:30080'] });
    expect(argumentsOf(nameless, 'svc/web')).toMatchObject({ problem: 'no-such', nameless: 'ipvs' });
    expect(argumentsOf(shown, 'svc/web')).not.toHaveProperty('nameless');
  });
});

describe('trace', () => {
  const question = { from: 'pod', to: 'svc/shop/cart' } as const;

  test('answers as the command does', async () => {
    const found = trace({ manifests, proxyMode: 'nftables', node: 'worker-1', ...question });
    const flags = ['--proxy-mode', 'nftables', '--node', 'worker-1'];
    const expected = await printed('trace', ...files, ...flags, '--from', 'pod', '--to', 'svc/shop/cart');
    // Places are of the files as they are named.
    expect(asJson(found.trace)).toEqual(expected);
  });

  test('with all nodes, and with all senders', async () => {
    const onAll = trace({ manifests, proxyMode: 'iptables', allNodes: true, ...question });
    const nodes = await printed(
      'trace',
      ...files,
      '--proxy-mode',
      'iptables',
      '--all-nodes',
      '--from',
      'pod',
      '--to',
      question.to,
    );
    expect(asJson(onAll.trace)).toEqual(nodes);
    const all = trace({ manifests, proxyMode: 'iptables', node: 'worker-1', all: 'shop/cart' });
    const cells = await printed(
      'trace',
      ...files,
      '--proxy-mode',
      'iptables',
      '--node',
      'worker-1',
      '--all',
      'shop/cart',
    );
    expect(asJson(all.trace)).toEqual(cells);
  });

  test('reads a dump', () => {
    const [side] = open({ 'iptables-save': dumped }, { name: 'node.txt' }).snapshots;
    if (!side) throw new Error('no side');
    expect(trace({ side, from: 'external', to: '10.96.0.80:80' }).trace?.traces).toMatchObject([
      { verdict: 'unknown', otherwise: { verdict: 'delivered', endpoints: [{ port: 8080 }, { port: 8080 }] } },
    ]);
  });

  test('names the options that would settle it', () => {
    const policies = ['INPUT', 'FORWARD', 'OUTPUT'].map((chain) => `:${chain} ACCEPT [0:0]\n`).join('');
    const listed = dumped
      .replace('*filter\n', `*filter\n${policies}`)
      .replace(/(\*filter[^]*?)COMMIT/, '$1-A FORWARD -i docker0 -j DROP\nCOMMIT')
      .replace('*nat\n', `*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n${policies}`);
    const texts = { 'iptables-save': listed, 'ip-addr': '2: eth0    inet 192.168.50.11/24 scope global eth0\n' };
    const [side] = open(texts, { name: 'node.txt' }).snapshots;
    if (!side) throw new Error('no side');
    const answer = trace({ side, from: '203.0.113.9', to: '10.96.0.80:80' });
    expect(JSON.stringify(answer.trace?.traces[0]?.reasons)).toContain('inInterface');
    expect(JSON.stringify({ ...answer, steps: undefined })).not.toMatch(/[" ]--(?:in-interface|host-addresses)/);
    expect(() => trace({ side, from: 'pod' })).toThrow('with all SERVICE');
  });

  test('a wrong question has a diagnostic, and a wrong option a TypeError', () => {
    const { trace: none, diagnostics } = trace({ manifests, proxyMode: 'ipvs', from: 'pod', to: 'svc/shop/nothing' });
    expect(none).toBeUndefined();
    expect(diagnostics[0]).toMatchObject({ severity: 'error', code: 'bad-packet' });
    const { side } = compile({ manifests: quickstart, proxyMode: 'ipvs' }).bundle ?? {};
    if (!side) throw new Error('no side');
    expect(() => trace({ side, proxyMode: 'ipvs', from: 'pod', to: 'svc/nginx' } as never)).toThrow(
      /only for manifests/,
    );
    expect(() => trace({ side, from: 'pod' })).toThrow(/no destination is named/);
    expect(() => describeServices({ manifests } as never)).toThrow(TypeError);
    expect(() => describeServices({ manifests } as never)).toThrow('side');
    expect(() => trace({ side, from: '', to: 'svc/nginx' })).toThrow(/from is not set/);
  });
});

describe('test', () => {
  test('an empty sender or destination is only missing', () => {
    const text = '{ tests: [{ from: "", to: web, expect: delivered }, { from: node, to: "", expect: delivered }] }';
    const { results, diagnostics } = testPackets({ tests: [{ name: 't.yaml', text }], manifests });
    expect(results).toBeUndefined();
    const faults = diagnostics.filter(({ severity }) => severity === 'error');
    expect(faults.map((each) => each.arguments)).toEqual([
      { problem: 'missing', field: 'from' },
      { problem: 'missing', field: 'to' },
    ]);
  });

  const tests = {
    'packets.yaml':
      'tests:\n  - { from: pod, to: svc/nginx, expect: delivered }\n  - { from: pod, to: svc/nginx, expect: refused, mode: nftables }\n',
  };

  test('says which packets fare otherwise', () => {
    const { passed, results } = testPackets({ manifests: quickstart, tests });
    expect(passed).toBe(false);
    expect(results?.map((each) => [each.passed, each.trace.mode, each.place.line])).toEqual([
      [true, 'ipvs', 2],
      [false, 'nftables', 3],
    ]);
  });

  test('an option counts more than the file', () => {
    const { results } = testPackets({ manifests: quickstart, tests, proxyMode: 'iptables' });
    expect(results?.map(({ trace: { mode } }) => mode)).toEqual(['iptables', 'iptables']);
  });

  test('says what is wrong with the file, and passes nothing', () => {
    const { passed, results, diagnostics } = testPackets({
      manifests: quickstart,
      tests: { 'p.yaml': 'tests: [{ from: pod }]\n' },
    });
    expect({ passed, results }).toEqual({ passed: false, results: undefined });
    expect(diagnostics.map(({ code }) => code)).toContain('bad-expectation');
  });
});

describe('equivalence and migrate', () => {
  test('report what the commands do', async () => {
    const found = equivalence({ manifests, allNodes: true, from: 'iptables', to: 'nftables' });
    const command = await printed('equivalence', 'iptables', 'nftables', ...files, '--all-nodes');
    expect(asJson(found.report)).toEqual(command);
    expect(new Set(found.snapshots.map(({ name }) => name))).toEqual(new Set(['iptables', 'nftables']));
    const moved = migrate({ manifests, from: 'ipvs', to: 'nftables' });
    expect(asJson(moved.report)).toEqual(await printed('migrate', ...files, '--from', 'ipvs', '--to', 'nftables'));
    expect(moved.passed).toBe(false);
  });

  test('an upgrade', async () => {
    const moved = migrate({ manifests: quickstart, toKubernetesVersion: '1.37', kubernetesVersion: '1.33' });
    expect(moved.report?.summary).toContain("1.33 iptables (kube-proxy's default) → 1.37");
    expect(() => migrate({ manifests: quickstart, from: 'ipvs', to: 'ipvs' })).toThrow('from and to are both ipvs');
  });

  test('a mode that nobody named is said in the report alone', () => {
    const { diagnostics, snapshots } = migrate({
      manifests: quickstart,
      kubernetesVersion: '1.36',
      toKubernetesVersion: '1.37',
    });
    expect(snapshots[0]).toMatchObject({ mode: 'iptables', assumed: { mode: true } });
    expect(diagnostics.map(({ code }) => code)).not.toContain('default-mode');
  });

  test('commands have the options of the input', async () => {
    const input = { manifests, node: 'worker-1', assume: false, clusterCidr: '10.244.0.0/16' } as const;
    const given = ['--node', 'worker-1', '--no-assume', '--cluster-cidr', '10.244.0.0/16'];
    const { report } = equivalence({ ...input, from: 'iptables', to: 'nftables' });
    const printedReport = await printed('equivalence', 'iptables', 'nftables', ...files, ...given);
    const [own, others] = [report, printedReport].map((each) => {
      const { causes } = each as NonNullable<typeof report>;
      return causes.flatMap(({ effects }) => effects.map(({ trace: words }) => words.split(' ').toSorted()));
    });
    expect(own?.length).toBeGreaterThan(0);
    expect(own).toEqual(others);
  });

  test('two sides, one of them a dump', () => {
    const { bundle } = compile({ manifests: quickstart, proxyMode: 'iptables' });
    const [side] = open([{ name: 'iptables-save', text: dumped }], { name: 'node.txt' }).snapshots;
    if (!bundle || !side) throw new Error('no side');
    expect(equivalence({ from: bundle.side, to: bundle.side })).toMatchObject({ passed: true, notes: [] });
    expect(equivalence({ from: bundle.side, to: side }).notes.join()).toContain('node.txt does not show');
  });
});

test('diff returns what kpc diff prints, with each packet in words in place of a command', async () => {
  const path = 'quickstart/svc.yaml';
  const text = quickstart['svc.yaml'].replace('ready: false', 'ready: true');
  const settings = { proxyMode: 'iptables', node: 'worker-1' } as const;
  const [from] = open({ [path]: quickstart['svc.yaml'] }, { name: path, ...settings }).snapshots;
  const [to] = open({ '-': text }, { name: '-', ...settings }).snapshots;
  if (!from || !to) throw new Error('no sides');
  type Said = { readonly packets: readonly { readonly trace: string }[]; readonly unknown: number };
  const withoutTraces = ({ packets, ...others }: Said) => {
    return { ...others, packets: packets.map(({ trace: _, ...each }) => each) };
  };
  const words = ['diff', path, '-', '--proxy-mode', 'iptables', '--node', 'worker-1', '--output', 'json'];
  const { stdout } = await runKpc(words, { cwd: fixturesFolder, stdin: text });
  expect(withoutTraces(asJson(diff(from, to)) as Said)).toEqual(
    withoutTraces(resultOf(stdout.replaceAll('"stdin"', '"-"')) as Said),
  );
});

test('describe of a dump is what kpc describe prints of it', async () => {
  const text = dumped;
  const [side] = open({ 'node.txt': text }, { name: 'node.txt' }).snapshots;
  if (side?.kind !== 'dump') throw new Error('no side');
  const { stdout } = await runKpc(['describe', '-', '--output', 'json'], { stdin: text });
  const { notes, ...described } = describeServices(side);
  expect(asJson(described)).toEqual(resultOf(stdout));
  const { findings } = JSON.parse(stdout) as { readonly findings: readonly { readonly text: string }[] };
  expect(findings.map(({ text: said }) => said)).toEqual(notes);
  expect(describeServices(side).servicePorts.length).toBeGreaterThan(0);
});

test('describe of a dump shows the flows that go nowhere, as the command does', async () => {
  const flow =
    'udp      17 25 src=10.244.1.5 dst=10.96.0.10 sport=4000 dport=53 [UNREPLIED] src=10.244.9.9 dst=10.244.1.5 sport=53 dport=4000 mark=0 use=1\n';
  const [side] = open({ 'node.txt': dumped, 'conntrack.txt': flow }, { name: 'node.txt' }).snapshots;
  if (side?.kind !== 'dump') throw new Error('no side');
  const { stdout } = await runKpc(['describe', '-', '--output', 'json'], { stdin: `${dumped}\n${flow}` });
  const { flows } = resultOf(stdout) as { readonly flows: unknown };
  expect(flows).toBeDefined();
  expect(asJson(describeServices(side).flows)).toEqual(flows);
});

test('a diagnostic names options, and the commands of others as they are', () => {
  const text = 'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { ports: [{ port: 80 }] }\n';
  const { diagnostics } = compile({ manifests: { 'web.yaml': text } });
  const said = diagnostics.map(({ text: words, help }) => `${words}; ${help}`).join('\n');
  expect(said).toContain('add assume, ');
  expect(said).toContain('add allowEmpty');
  expect(said).not.toContain('--');
  const assumed = compile({ manifests: { 'web.yaml': text }, assume: true });
  expect(assumed.bundle?.files.size).toBeGreaterThan(0);
  expect(assumed.diagnostics.map(({ code }) => code)).toContain('assumed');
});

test('lint reports what the command does', async () => {
  const { findings, report, passed } = lint({ manifests });
  const command = (await printed('lint', ...files)) as { readonly errors: number };
  expect(asJson(report)).toEqual(command);
  expect(passed).toBe(command.errors === 0);
  const codes = findings.map(({ code }) => code);
  const left = lint({ manifests, ignore: codes as never });
  expect(left.findings).toEqual([]);
  expect(left.report?.ignored).toBe(codes.length);
  const text = readFileSync(join(fixturesFolder, 'codes/no-ready-endpoint/example/in.yaml'), 'utf8');
  const inMode = lint({ manifests: { 'in.yaml': text }, proxyMode: 'iptables' });
  const commands = inMode.findings.flatMap((each) => each.trace?.command ?? []);
  expect(commands.join('\n')).toMatch(/^kpc trace in\.yaml --proxy-mode iptables /);
  expect(() => lint({ manifests, ignore: ['nothing-such' as never] })).toThrow(/no message has the code/);
});

test('what is not found lists the node that was looked at, as JSON too', async () => {
  const words = [...files, '--node', 'worker-1', '--output', 'json'];
  const asked = [
    ['describe', 'nothing', ...words],
    ['trace', '--from', 'pod', '--to', 'svc/nothing', ...words],
  ];
  for (const call of asked) {
    const { stdout } = await runKpc(call, { cwd: fixturesFolder });
    const nodes = (JSON.parse(stdout) as { readonly snapshots: readonly { readonly node: string }[] }).snapshots;
    expect(nodes.map(({ node }) => node)).toEqual(['worker-1']);
  }
});

test('no tests are an error, and strict makes errors of warnings', () => {
  expect(testPackets({ manifests, tests: {} })).toMatchObject({
    passed: false,
    diagnostics: [{ code: 'bad-call', arguments: { problem: 'no-tests' } }],
  });
  const web = {
    'web.yaml':
      '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { externalIPs: [203.0.113.9], ports: [{ port: 80 }] } }',
  };
  const severities = (strict: boolean) =>
    new Set(lint({ manifests: web, strict }).findings.map(({ severity }) => severity));
  expect([severities(false).has('warning'), severities(true).has('warning')]).toEqual([true, false]);
});
