import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { compile as compileInLibrary } from '../../src/library/index.ts';
import { triesAll } from '../support/rounds.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';
import { kpcProgram, projectFolder, runKpc, runProgram } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-choices-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let files = 0;

/** Writes documents to a file of its own. */
function write(...documents: readonly object[]): string {
  const file = join(scratch, `${++files}.json`);
  writeFileSync(file, documents.map((document) => JSON.stringify(document)).join('\n'));
  return file;
}

/** Path → text of all files below a folder. */
function readAll(folder: string): ReadonlyMap<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    entries.map((entry) => join(entry.parentPath, entry.name)).map((path) => [path, readFileSync(path, 'utf8')]),
  );
}

function service(name: string, spec: object = {}, metadata: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, ...metadata },
    spec: { clusterIP: '10.96.0.10', ports: [{ port: 80 }], ...spec },
  };
}

function slice(name: string, endpoints: readonly object[]): object {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ port: 8080 }],
    endpoints,
  };
}

function node(name: string, spec: object = {}, address = '192.0.2.1'): object {
  const status = { addresses: [{ type: 'InternalIP', address }] };
  return { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec, status };
}

function config(fields: object): string {
  return write({ apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration', ...fields });
}

const web = write(service('web'));

function compile(...args: readonly string[]) {
  return runKpc(['compile', '-f', web, '--print', 'manifest', ...args], { cwd: scratch });
}

/** The findings of this code about the Service web. */
async function told(code: string, ...args: readonly string[]) {
  const { stdout } = await runKpc(['compile', '-f', web, '--output', 'json', ...args], { cwd: scratch });
  return findingsOf(stdout, code);
}

describe('the mode that nothing names', () => {
  test('is ipvs without a configuration, and iptables with one', async () => {
    const without = await compile();
    expect(JSON.parse(without.stdout)).toMatchObject({ mode: 'ipvs' });
    expect(await told('default-mode')).toMatchObject([{ severity: 'note', arguments: { named: 'nothing' } }]);
    const empty = config({ mode: '' });
    for (const args of [
      ['--config', empty],
      ['-f', empty],
    ]) {
      expect(JSON.parse((await compile(...args)).stdout)).toMatchObject({ mode: 'iptables' });
      expect(await told('default-mode', ...args)).toMatchObject([
        { severity: 'note', arguments: { named: 'configuration' }, place: { file: empty } },
      ]);
    }
  });

  test('is not spoken of where a flag names it, nor where nothing is compiled', async () => {
    expect((await compile('--proxy-mode', 'ipvs')).stderr).not.toContain('default-mode');
    expect((await compile('--config', config({ mode: 'iptables' }))).stderr).not.toContain('default-mode');
    expect((await compile('--config', join(scratch, 'nowhere'))).stderr).not.toContain('default-mode');
  });

  test('of several configurations none is chosen', async () => {
    const run = await compile('-f', config({ mode: 'ipvs' }), '-f', config({ mode: 'iptables' }));
    expect(run.status).toBe(2);
    expect(run.stderr).toMatch(/error: .*\[duplicate-configuration\]/);
    const named = await compile('-f', config({ mode: 'ipvs' }), '--config', config({ mode: 'iptables' }));
    expect(JSON.parse(named.stdout)).toMatchObject({ mode: 'iptables' });
  });

  test('diff and describe say it too', async () => {
    const bundle = join(scratch, 'bundle');
    await runKpc(['compile', '-f', web, '-o', bundle, '--proxy-mode', 'iptables']);
    expect((await runKpc(['diff', web, web])).stderr).toMatch(/mode ipvs \(.*\), ipv4/);
    expect((await runKpc(['diff', bundle, web])).stderr).toMatch(/mode iptables, ipv4/);
    expect((await runKpc(['describe', '-f', web])).stdout).toMatch(/mode ipvs \(.*\), ipv4/);
  });
});

describe('Services whose endpoints are not in the input', () => {
  const selector = { selector: { app: 'x' } };
  const many = ['a', 'b', 'c', 'd'].map((name, i) => service(name, { ...selector, clusterIP: `10.96.1.${i + 1}` }));

  test('are counted in one warning', async () => {
    const headless = service('headless', { ...selector, clusterIP: 'None' });
    const bare = service('bare', { clusterIP: '10.96.1.9' });
    const file = write(...many, headless, bare, service('e', { ...selector, clusterIP: '10.96.1.8' }), slice('e', []));
    const { stdout } = await runKpc(['compile', '-f', file, '--output', 'json', '--proxy-mode', 'ipvs']);
    expect(findingsOf(stdout, 'no-endpoints-given')).toMatchObject([
      {
        severity: 'warning',
        arguments: { services: ['default/a', 'default/b', 'default/c', 'default/d'], selecting: 5 },
        place: { file, line: 1, column: 56 },
      },
    ]);
  });

  /** Where the packets to the one port of the one Service go without an endpoint. */
  const fallbacksOf = (stdout: string): readonly unknown[] =>
    resultOf(stdout).services[0].ports[0].families.map((each: { readonly fallback?: unknown }) => each.fallback);

  test('describe does not say that they have none', async () => {
    const file = write(service('a', { ...selector, clusterIP: '10.96.1.1' }));
    expect((await runKpc(['describe', 'a', '-f', file])).stdout).not.toContain('refused');
    const { stdout } = await runKpc(['describe', 'a', '-f', file, '--output', 'json']);
    expect(fallbacksOf(stdout)).toEqual(['no-endpoints-given']);
    expect(findingsOf(stdout, 'no-endpoints-given')).toMatchObject([{ arguments: { services: ['default/a'] } }]);
  });

  test.each([
    ['an empty slice', slice('a', [])],
    ['a slice without a ready endpoint', slice('a', [{ addresses: ['10.0.0.1'], conditions: { ready: false } }])],
    ['empty Endpoints', { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'a' }, subsets: [] }],
  ])('describe says so of %s', async (_, object) => {
    const file = write(service('a', { ...selector, clusterIP: '10.96.1.1' }), object);
    const { stdout } = await runKpc(['describe', 'a', '-f', file, '--output', 'json']);
    expect(fallbacksOf(stdout)).toEqual(['no-endpoints']);
    expect(findingsOf(stdout, 'no-endpoints-given')).toEqual([]);
  });
});

describe('the node', () => {
  const nodes = write(node('worker-1'), node('worker-2'));

  test('that no Node is', async () => {
    const near = await compile('-f', nodes, '--node', 'wroker-1');
    expect(near).toMatchObject({ status: 2, stdout: '' });
    const known = ['worker-1', 'worker-2'];
    const unknown = async (flag: string, name: string) =>
      (await told('unknown-node', '-f', nodes, flag, name)).map((each) => each.arguments);
    expect(await unknown('--node', 'wroker-1')).toEqual([{ flag: '--node', names: ['wroker-1'], known }]);
    expect(await unknown('--node', 'master')).toEqual([{ flag: '--node', names: ['master'], known }]);
    expect(await unknown('--hostname-override', 'master')).toEqual([
      { flag: 'hostnameOverride', names: ['master'], known },
    ]);
    expect(await compile('--node', 'master')).toMatchObject({ status: 0 });
  });

  test('that no Node is, of several, or to describe and diff', async () => {
    const out = join(scratch, 'fleet');
    const fleet = await runKpc(['compile', '-f', web, '-f', nodes, '--node', 'worker-1', '--node', 'x', '-o', out]);
    expect(fleet).toMatchObject({ status: 2, stderr: expect.stringContaining('[unknown-node]') });
    const described = await runKpc(['describe', 'web', '-f', web, '-f', nodes, '--node', 'x']);
    expect(described).toMatchObject({ status: 2, stderr: expect.stringContaining('[unknown-node]') });
    const diffed = await runKpc(['diff', web, web, '-f', nodes, '--node', 'x']);
    expect(diffed).toMatchObject({ status: 2, stderr: expect.stringContaining('[unknown-node]') });
  });

  test('whose local traffic NodeCIDR cannot tell', async () => {
    const local = ['--detect-local-mode', 'NodeCIDR'];
    const without = await compile(...local);
    expect(without).toMatchObject({ status: 2, stdout: '' });
    expect(await told('no-pod-cidr', ...local)).toMatchObject([{ severity: 'error', arguments: { names: [] } }]);
    const none = write(node('worker-1'));
    expect(await told('no-pod-cidr', '-f', none, ...local)).toMatchObject([
      { severity: 'error', arguments: { names: ['worker-1'] }, place: { file: none } },
    ]);
    const other = write(node('worker-1', { podCIDRs: ['fd00:244::/64'] }));
    expect(await compile('-f', other, ...local)).toMatchObject({ status: 2 });
    expect(await told('wrong-family', '-f', other, ...local)).toMatchObject([
      { severity: 'error', arguments: { of: 'podCIDRs', node: 'worker-1', family: 'ipv4' }, place: { file: other } },
    ]);
    expect(await compile('-f', other, ...local, '--bind-address', 'fd00::1')).toMatchObject({ status: 0 });
    const right = write(node('worker-1', { podCIDRs: ['fd00:244::/64', '10.244.0.0/24'] }));
    expect(await compile('-f', right, ...local)).toMatchObject({ status: 0 });
  });

  test('whose family no cluster CIDR has', async () => {
    const args = ['-f', write(node('worker-1')), '--cluster-cidr', 'fd00:244::/56'];
    expect(await compile(...args)).toMatchObject({ status: 0 });
    expect(await told('wrong-family', ...args)).toMatchObject([
      {
        severity: 'warning',
        arguments: { of: 'clusterCIDR', node: 'worker-1', family: 'ipv4', cidrs: ['fd00:244::/56'] },
      },
    ]);
    expect((await compile('--cluster-cidr', 'fd00::/56,10.0.0.0/8')).stderr).not.toContain('wrong-family');
  });
});

describe('a result without a Service', () => {
  const bare = { clusterIP: undefined };
  const printIpvs = ['--print', 'ipvsadm', '--proxy-mode', 'ipvs'];

  test('is an error where they lack addresses', async () => {
    const file = write(
      service('a', bare),
      service('b', bare),
      service('c', { clusterIP: 'None' }),
      service('d', { type: 'ExternalName', externalName: 'example.com', clusterIP: undefined }),
      service('e', {}, { labels: { 'service.kubernetes.io/service-proxy-name': 'other' } }),
      service('f', { clusterIP: '10.96.0.11', ports: [] }),
    );
    const run = await runKpc(['compile', '-f', file, ...printIpvs]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/^error: .*\[nothing-programmed\]\n {2}help: .*--assume/m);
    const { stdout } = await runKpc(['compile', '-f', file, '--output', 'json', '--proxy-mode', 'ipvs']);
    expect(findingsOf(stdout, 'nothing-programmed')).toMatchObject([
      { severity: 'error', arguments: { services: 6, lacking: ['default/a', 'default/b'], isRefused: true } },
    ]);
    const asked = await runKpc(['compile', '-f', file, ...printIpvs, '--allow-empty']);
    expect(asked).toMatchObject({ status: 0, stdout: '' });
    expect(asked.stderr).not.toContain('nothing-programmed');
    const assigned = await runKpc(['compile', '-f', file, ...printIpvs, '--service-cluster-ip-range', '10.96.0.0/16']);
    expect(assigned).toMatchObject({ status: 0, stdout: expect.stringContaining('-A -t 10.96.') });
  });

  test('is an error where --ip-family leaves all out', async () => {
    const run = await runKpc(['compile', '-f', web, ...printIpvs, '--ip-family', 'ipv6']);
    expect(run.status).toBe(2);
    const programmed = await told('nothing-programmed', '--proxy-mode', 'ipvs', '--ip-family', 'ipv6');
    expect(programmed).toMatchObject([{ severity: 'error', arguments: { services: 1, lacking: [] } }]);
  });

  const ways: readonly (readonly string[])[] = [['-o'], ['--golden'], ['--check'], ['--all-nodes', '-o']];

  test.each([
    ['no Service at all', [{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a' } }]],
    ['a Service of another program', [{ apiVersion: 'serving.knative.dev/v1', kind: 'Service' }]],
    ['a slice', [slice('web', [])]],
    ['headless Services', [service('c', { clusterIP: 'None' })]],
    [
      'ExternalName Services',
      [service('d', { type: 'ExternalName', externalName: 'example.com', clusterIP: undefined })],
    ],
    ['Services without an address', [service('a', bare)]],
    ['Services without ports', [service('f', { ports: [] })]],
  ])('is refused for %s, and what is there stays as it is', async (what, objects) => {
    const file = write(...objects);
    const good = write(service('web'), node('worker-1'));
    for (const [i, way] of ways.entries()) {
      // In `npm test` each in one way, in turn.
      if (!triesAll && (i + what.length) % ways.length !== 0) continue;
      const folder = join(scratch, `kept-${file.replace(/.*\//, '')}-${i}`);
      const makes = way.map((word) => (word === '--check' ? '-o' : word));
      expect(await runKpc(['compile', '-f', good, '-q', ...makes, folder])).toMatchObject({ status: 0 });
      const before = readAll(folder);
      const run = await runKpc(['compile', '-f', file, '-f', write(node('worker-1')), '-q', ...way, folder]);
      expect(run).toMatchObject({ status: 2, stdout: '' });
      expect(run.stderr).toMatch(/^error: .*\[nothing-programmed\]\n {2}help: .*--allow-empty/);
      expect(readAll(folder)).toEqual(before);
      rmSync(join(folder, 'manifest.json'), { force: true });
      const damaged = await runKpc(['compile', '-f', file, '-f', write(node('worker-1')), '-q', ...way, folder]);
      expect(damaged.status).toBe(2);
    }
    const stdin = readFileSync(file, 'utf8');
    expect(await runKpc(['compile', '-f', '-', ...printIpvs], { stdin })).toMatchObject({ status: 2, stdout: '' });
    expect(await runKpc(['compile', '-f', file, ...printIpvs, '--allow-empty'])).toMatchObject({ status: 0 });
    const manifests = [{ name: 'in.json', text: stdin }];
    const compiled = compileInLibrary({ manifests });
    expect(compiled.bundle).toBeUndefined();
    expect(compiled.diagnostics).toContainEqual(
      expect.objectContaining({ code: 'nothing-programmed', severity: 'error' }),
    );
    expect(compileInLibrary({ manifests, allowEmpty: true }).bundle).toBeDefined();
  });

  test('is shown, for nothing is written', async () => {
    const nodes = write(node('worker-1'));
    const run = await runKpc(['describe', '-f', nodes]);
    expect(run.stderr).toMatch(/warning: .*\[nothing-programmed\]/);
    const file = write(service('c', { clusterIP: 'None' }));
    expect(await runKpc(['describe', '-f', file])).toMatchObject({ status: 0 });
    expect(await runKpc(['diff', file, file])).toMatchObject({ status: 0 });
  });

  test('is what one asks for', async () => {
    const empty = join(scratch, 'empty.yaml');
    writeFileSync(empty, '');
    expect(await runKpc(['compile', '-f', empty, ...printIpvs])).toMatchObject({ status: 2 });
    expect(await runKpc(['compile', '-f', empty, ...printIpvs, '--allow-empty'])).toMatchObject({ status: 0 });
    const nodes = write(node('worker-1'));
    expect((await runKpc(['compile', '-f', nodes, ...printIpvs, '--allow-empty'])).stderr).toBe('');
  });

  test('is an error for a fleet as well', async () => {
    const file = write(service('a', bare), node('worker-1'));
    const out = join(scratch, 'empty-fleet');
    const run = await runKpc(['compile', '-f', file, '--all-nodes', '-o', out]);
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('[nothing-programmed]') });
    expect(await runKpc(['compile', '-f', file, '--all-nodes', '-o', out, '--allow-empty'])).toMatchObject({
      status: 0,
    });
  });
});

test('flags of kube-proxy reach what is written', async () => {
  const nodes = write(node('worker-1'));
  const out = join(scratch, 'flags');
  const flags = ['--conntrack-min', '5', '--conntrack-tcp-be-liberal', '--conntrack-udp-timeout', '7s'];
  const more = ['--ipvs-scheduler', 'twos', '--bind-address', '192.0.2.9', '--feature-gates', 'AllAlpha=false'];
  const run = await runKpc(['compile', '-f', web, '-f', nodes, '-o', out, '--proxy-mode', 'ipvs', ...flags, ...more]);
  expect(run.status, run.stderr).toBe(0);
  expect(readFileSync(join(out, 'ipvsadm.restore'), 'utf8')).toBe('-A -t 10.96.0.10:80 -s twos\n');
  expect(readFileSync(join(out, 'modules.conf'), 'utf8')).toContain('ip_vs_twos\n');
  expect(JSON.parse(readFileSync(join(out, 'manifest.json'), 'utf8'))).toMatchObject({
    node: { nodeIPs: { ipv4: '192.0.2.9' } },
    settings: { conntrack: { min: 5, tcpBeLiberal: true, udpTimeout: 7 } },
  });
});

describe('what the shell hands over in a file’s place', () => {
  const kpc = `'${process.execPath}' '${kpcProgram}'`;
  const run = (command: string) => runProgram('bash', ['-c', command], { cwd: scratch });

  test.each(['describe -q <(cat svc.json)', 'describe -q -f <(cat svc.json)', 'describe -q -f /dev/stdin < svc.json'])(
    'is read once, and counts: %s',
    async (command) => {
      writeFileSync(join(scratch, 'svc.json'), JSON.stringify(service('web')));
      const { status, stdout } = await run(`${kpc} ${command}`);
      expect(status).toBe(0);
      expect(stdout).toContain('default/web');
    },
  );

  test('may be a dump', async () => {
    const dump = join(projectFolder, 'fixtures/dumps/kube-proxy-nftables-loadbalancer-source-ranges/nft-ruleset');
    expect((await run(`${kpc} trace -q <(cat '${dump}') --from external --to 10.98.154.163:80`)).status).toBe(0);
  });
});
