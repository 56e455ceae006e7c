import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findingsOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

let cwd = '';
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'kpc-silent-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

function write(files: Readonly<Record<string, string>>): void {
  writeFolder(cwd, files);
}

const service = (port: string, name = 'web', more = ''): string =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { clusterIP: 10.96.0.10, ${more}ports: [{ ${port} }] }\n---\n`;
const slice = (port: string, name = 'web', namespace = 'default'): string =>
  `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: { name: ${name}-1, namespace: ${namespace}, labels: { kubernetes.io/service-name: ${name} } }\naddressType: IPv4\nports: [{ ${port} }]\nendpoints: [{ addresses: [10.244.0.1] }]\n---\n`;
const container = 'containers: [{ name: c, image: c, ports: [{ name: http, containerPort: 8080 }] }]';

const compile = (...more: string[]) =>
  runKpc(['compile', '-f', 'in.yaml', '--proxy-mode', 'ipvs', '--print', 'ipvsadm', ...more], { cwd });

/** The findings of this code about in.yaml. */
async function told(code: string, ...more: readonly string[]) {
  const { stdout } = await runKpc(['compile', '-f', 'in.yaml', '--proxy-mode', 'ipvs', '--output', 'json', ...more], {
    cwd,
  });
  return findingsOf(stdout, code);
}

describe('a target port that no container has', () => {
  const selecting = (targetPort: string, protocol = 'TCP'): string =>
    service(`port: 80, targetPort: ${targetPort}, protocol: ${protocol}`, 'web', 'selector: { app: web }, ');
  const deployment = `apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec: { selector: { matchLabels: { app: web } }, template: { metadata: { labels: { app: web } }, spec: { ${container} } } }\n`;
  const pod = (status: string): string =>
    `apiVersion: v1\nkind: Pod\nmetadata: { name: web, labels: { app: web } }\nspec: { nodeName: w1, ${container} }\n${status}`;

  test.each([
    ['of a Deployment', deployment, ['--assume-endpoints=10.244.0.0/16']],
    ['of a Pod', pod('status: { podIP: 10.244.0.3, phase: Running }\n'), []],
    ['of the manifest of a Pod', pod(''), []],
  ])('%s', async (_, workload, flags) => {
    write({ 'in.yaml': selecting('htpp') + workload });
    expect(await told('unknown-port', ...flags)).toMatchObject([
      {
        severity: 'warning',
        arguments: { service: 'default/web', of: 'pods', port: 80, protocol: 'TCP', name: 'htpp' },
        place: { file: 'in.yaml', line: 4, column: 88 },
      },
    ]);
    expect(await compile(...flags, '--strict')).toMatchObject({ status: 2 });
    write({ 'in.yaml': selecting('http') + workload });
    expect((await compile(...flags)).stderr).not.toContain('unknown-port');
  });

  test('a port of another protocol has the name', async () => {
    write({ 'in.yaml': selecting('http', 'UDP') + deployment });
    expect(await told('unknown-port', '--assume-endpoints=10.244.0.0/16')).toMatchObject([
      { arguments: { service: 'default/web', of: 'pods', port: 80, protocol: 'UDP', name: 'http' } },
    ]);
  });
});

describe('slices that miss their Service', () => {
  test.each([
    ['name: http, port: 80', 'port: 8080', 'TCP'],
    ['port: 80', 'name: http, port: 8080', 'http/TCP'],
    ['name: http, port: 80', 'name: htpp, port: 8080', 'htpp/TCP'],
    ['name: dns, port: 53, protocol: UDP', 'name: dns, port: 53', 'dns/TCP'],
  ])('Service port { %s }, slice port { %s }', async (port, its, found) => {
    write({ 'in.yaml': service(port) + slice(its) });
    expect(await compile()).toMatchObject({ status: 0 });
    expect(await told('unknown-port')).toMatchObject([
      {
        severity: 'warning',
        arguments: { service: 'default/web', of: 'slices', found: [found] },
        place: { file: 'in.yaml', line: 10, column: 9 },
      },
    ]);
  });

  test('a slice without endpoints misses none', async () => {
    write({
      'in.yaml': service('name: http, port: 80') + slice('port: 8080').replace(/endpoints: .*/, 'endpoints: []'),
    });
    expect((await compile()).stderr).not.toContain('unknown-port');
  });

  test('the port of another slice of the Service counts', async () => {
    const other = slice('name: http, port: 8080').replace('name: web-1', 'name: web-2');
    write({ 'in.yaml': service('name: http, port: 80') + slice('port: 8080') + other });
    expect((await compile()).stderr).not.toContain('unknown-port');
  });

  const endpoints = (name: string): string =>
    `apiVersion: v1\nkind: Endpoints\nmetadata: { name: ${name} }\nsubsets: [{ addresses: [{ ip: 10.1.1.1 }], ports: [{ port: 80 }] }]\n`;

  test.each([
    ['a slice of webs', service('port: 80') + slice('port: 80', 'webs'), 'default/webs'],
    ['Endpoints of databse', service('port: 80', 'database') + endpoints('databse'), 'default/databse'],
    ['a slice in another namespace', service('port: 80') + slice('port: 80', 'web', 'shop'), 'shop/web'],
  ])('%s', async (_, text, name) => {
    write({ 'in.yaml': text });
    expect(await told('no-such-service')).toMatchObject([
      { severity: 'note', arguments: { services: [name] }, place: { file: 'in.yaml' } },
    ]);
  });

  test('slices of many other Services make one note', async () => {
    const others = ['alpha', 'beta', 'gamma', 'delta'].map((name) => slice('port: 80', name)).join('');
    const headless = service('port: 80', 'headless').replace('10.96.0.10', 'None') + slice('port: 80', 'headless');
    write({ 'in.yaml': service('port: 80') + slice('port: 80') + headless + others });
    expect(await compile('--strict')).toMatchObject({ status: 0 });
    expect(await told('no-such-service')).toMatchObject([
      { arguments: { services: ['default/alpha', 'default/beta', 'default/delta', 'default/gamma'] } },
    ]);
  });
});

describe('kinds', () => {
  const of = (apiVersion: string, kind: string): string =>
    `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: { name: web }\n`;

  test.each([
    ['v1', 'Servcie', 'Service (v1)'],
    ['v1', 'service', 'Service (v1)'],
    ['apps/v1', 'Service', 'Service (v1)'],
    ['v2', 'Service', 'Service (v1)'],
    ['discovery.k8s.io/v1', 'EndpointSlices', 'EndpointSlice (discovery.k8s.io/v1)'],
    ['discovery.k8s.io/v2', 'EndpointSlice', 'EndpointSlice (discovery.k8s.io/v1)'],
    ['discovery.k8.io/v1', 'EndpointSlice', 'EndpointSlice (discovery.k8s.io/v1)'],
  ])('%s %s', async (apiVersion, kind, meant) => {
    write({ 'in.yaml': of(apiVersion, kind) });
    const run = await compile();
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/^in.yaml:\d+:\d+: error: .*\[no-input\]/m);
    for (const command of ['lint', 'describe', 'migrate'])
      expect(await runKpc([command, '-f', 'in.yaml'], { cwd })).toMatchObject({ status: 2 });
    expect(await told('unknown-kind')).toMatchObject([{ severity: 'warning', arguments: { meant } }]);
    expect(await compile('--allow-empty')).toMatchObject({ status: 0 });
    // Beside a Service it is a warning alone.
    write({ 'in.yaml': `${service('port: 80', 'other')}${of(apiVersion, kind)}` });
    expect(await compile()).toMatchObject({ status: 0, stderr: expect.stringContaining(meant) });
    expect(await told('unknown-kind')).toMatchObject([{ severity: 'warning', arguments: { meant } }]);
  });

  test.each([
    ['serving.knative.dev/v1', 'Service'],
    ['apiregistration.k8s.io/v1', 'APIService'],
    ['v1', 'ServiceAccount'],
    ['v1', 'Secret'],
    ['batch/v1', 'Job'],
    ['kubelet.config.k8s.io/v1beta1', 'KubeletConfiguration'],
    ['rbac.authorization.k8s.io/v1', 'Role'],
    ['storage.k8s.io/v1', 'CSINode'],
  ])('%s %s is a kind of its own', async (apiVersion, kind) => {
    write({ 'in.yaml': of(apiVersion, kind) });
    const run = await compile('--allow-empty');
    expect(run.status).toBe(0);
    expect(run.stderr).not.toContain('unknown-kind');
  });

  test('slices alone are nothing to compile', async () => {
    write({ 'in.yaml': slice('port: 80') });
    const run = await compile();
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('[nothing-programmed]') });
    expect((await compile('--allow-empty')).stderr).not.toContain('[nothing-programmed]');
  });
});

describe('folders', () => {
  const into = (...more: string[]) => runKpc(['compile', '-f', 'in.yaml', '--proxy-mode', 'ipvs', ...more], { cwd });

  test('--golden does not replace a bundle', async () => {
    write({ 'in.yaml': service('port: 80') });
    expect(await into('-o', 'g')).toMatchObject({ status: 0 });
    expect(await into('--golden', 'g')).toMatchObject({ status: 2 });
    expect(await told('bad-call', '--golden', 'g')).toMatchObject([
      { severity: 'error', arguments: { problem: 'folder', wrong: { folder: 'g', kind: 'is-no-golden' } } },
    ]);
    expect(existsSync(join(cwd, 'g', 'manifest.json'))).toBe(true);
    expect(await into('--golden', 'g2')).toMatchObject({ status: 0 });
    expect(await into('--golden', 'g2')).toMatchObject({ status: 0 });
  });

  test.each([
    ['one node', [], 'g'],
    ['all nodes', ['--all-nodes'], 'g'],
  ])('annotations name the flag that wrote the folder, for %s', async (_, flags, folder) => {
    const node = 'apiVersion: v1\nkind: Node\nmetadata: { name: w1 }\n';
    const check = async () => (await into(...flags, '--check', folder, '--output', 'github')).stdout;
    for (const flag of ['--golden', '-o']) {
      write({ 'in.yaml': service('port: 80') + node });
      expect(await into(...flags, flag, folder)).toMatchObject({ status: 0 });
      write({ 'in.yaml': service('port: 81') + node });
      expect(await check()).toContain(` ${flag} ${folder}\n`);
      rmSync(join(cwd, folder), { recursive: true });
    }
  });

  test.each([[['-o']], [['--golden']], [['--all-nodes', '-o']]])('%s with a file', async (flags) => {
    write({
      'in.yaml': `${service('port: 80')}apiVersion: v1\nkind: Node\nmetadata: { name: w1 }\n`,
      'svc2.yaml': 'x',
    });
    expect(await into(...flags, 'svc2.yaml')).toMatchObject({ status: 2 });
    expect(await told('bad-call', ...flags, 'svc2.yaml')).toMatchObject([
      { severity: 'error', arguments: { problem: 'folder', wrong: { folder: 'svc2.yaml', kind: 'is-a-file' } } },
    ]);
  });

  test('a subchart is a part of its chart', async () => {
    const chart = { 'Chart.yaml': 'name: shop\n', 'templates/a.yaml': 'a: {{ .Values.a }}\n' };
    for (const below of ['shop', 'shop/charts/redis', 'shop/charts/redis/charts/common']) {
      write(Object.fromEntries(Object.entries(chart).map(([name, text]) => [`${below}/${name}`, text])));
    }
    cpSync(join(cwd, 'shop'), join(cwd, 'other'), { recursive: true });
    const run = await runKpc(['compile', '-f', '.', '--output', 'json'], { cwd });
    const charts = findingsOf(run.stdout, 'unrendered-template').map((each) => each.arguments);
    expect(charts).toMatchObject([
      { chart: 'other', count: 3 },
      { chart: 'shop', count: 3 },
    ]);
  });

  test.each([
    ['LF', '\n'],
    ['CRLF', '\r\n'],
  ])('a merge conflict, %s', async (_, end) => {
    const lines = ['spec:', '<<<<<<< HEAD', '  clusterIP: 10.0.0.1', '=======', '  clusterIP: 10.0.0.2', '>>>>>>> b'];
    write({ 'in.yaml': ['apiVersion: v1', 'kind: Service', 'metadata: { name: web }', ...lines, ''].join(end) });
    const run = await compile();
    expect(run).toMatchObject({ status: 2 });
    expect(run.stderr.match(/error:/g)).toHaveLength(1);
    expect(run.stderr).toMatch(/^in\.yaml:5:1: error: .*\[merge-conflict\]$/m);
  });
});

describe('flags', () => {
  beforeEach(() => write({ 'in.yaml': service('port: 80') }));

  test.each(['--masquerade-all', '--ipvs-strict-arp'])('%s does not take a file for its value', async (flag) => {
    const words = ['compile', '--proxy-mode', 'ipvs', '--print', 'ipvsadm', flag];
    expect(await runKpc([...words, 'in.yaml'], { cwd })).toMatchObject({ status: 0 });
    expect(await runKpc([...words, 'false', 'in.yaml'], { cwd })).toMatchObject({ status: 0 });
    expect(await runKpc([...words, 'maybe', '-f', 'in.yaml'], { cwd })).toMatchObject({ status: 2 });
  });

  test.each([
    ['1.30', { status: 0 }],
    ['[1.30]', { stderr: expect.stringMatching(/kubernetes-version .*\[bad-kpc-yaml\]/) }],
    ['1.90', { stderr: expect.stringMatching(/--kubernetes-version .*"1\.90".*\[bad-value\]/) }],
  ])('a version that YAML takes for a number: %s', async (version, expected) => {
    write({ 'kpc.yaml': `node: w1\nkubernetes-version: ${version}\n` });
    expect(await compile()).toMatchObject(expected);
  });

  test('kpc diff of two releases takes the manifests of kpc.yaml', async () => {
    write({ 'kpc.yaml': 'file: in.yaml\nkubernetes-version: 1.36\nproxy-mode: ipvs\n' });
    const diff = (...words: string[]) => runKpc(['diff', ...words, '--to-kubernetes-version', '1.33'], { cwd });
    expect(await diff()).toMatchObject({ stderr: expect.stringContaining('from kpc.yaml: --file,') });
    // What is named takes its place.
    write({ 'b.yaml': service('port: 81') });
    expect((await diff('b.yaml')).stderr).not.toContain('--file');
    expect((await diff('-f', 'b.yaml')).stderr).not.toContain('--file');
  });
});
