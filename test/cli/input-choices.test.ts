import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { compile as compileInLibrary } from '../../src/library/index.ts';
import { triesAll } from '../support/rounds.ts';
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

describe('the mode that nothing names', () => {
  test('is ipvs without a configuration, and iptables with one', async () => {
    const without = await compile();
    expect(JSON.parse(without.stdout)).toMatchObject({ mode: 'ipvs' });
    expect(without.stderr).toContain(
      'note: mode ipvs, because neither --proxy-mode nor --config is given [default-mode]\n',
    );
    const empty = config({ mode: '' });
    for (const args of [
      ['--config', empty],
      ['-f', empty],
    ]) {
      const run = await compile(...args);
      expect(JSON.parse(run.stdout)).toMatchObject({ mode: 'iptables' });
      expect(run.stderr).toContain(
        "note: mode iptables, kube-proxy's default before Kubernetes 1.40, because neither the configuration",
      );
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
    expect(run.stderr).toContain('error: there is another KubeProxyConfiguration before this one');
    const named = await compile('-f', config({ mode: 'ipvs' }), '--config', config({ mode: 'iptables' }));
    expect(JSON.parse(named.stdout)).toMatchObject({ mode: 'iptables' });
  });

  test('diff and describe say it too', async () => {
    const bundle = join(scratch, 'bundle');
    await runKpc(['compile', '-f', web, '-o', bundle, '--proxy-mode', 'iptables']);
    expect((await runKpc(['diff', web, web])).stderr).toContain('mode ipvs (nothing names a mode), ipv4');
    expect((await runKpc(['diff', bundle, web])).stderr).not.toContain('nothing names one');
    expect((await runKpc(['describe', '-f', web])).stdout).toContain('mode ipvs (nothing names a mode), ipv4');
  });
});

describe('Services whose endpoints are not in the input', () => {
  const selector = { selector: { app: 'x' } };
  const many = ['a', 'b', 'c', 'd'].map((name, i) => service(name, { ...selector, clusterIP: `10.96.1.${i + 1}` }));

  test('are counted in one warning', async () => {
    const headless = service('headless', { ...selector, clusterIP: 'None' });
    const bare = service('bare', { clusterIP: '10.96.1.9' });
    const file = write(...many, headless, bare, service('e', { ...selector, clusterIP: '10.96.1.8' }), slice('e', []));
    const { stderr } = await runKpc(['compile', '-f', file, '--print', 'modules', '--proxy-mode', 'ipvs']);
    expect(stderr.match(/\[no-endpoints-given\]/g)).toHaveLength(1);
    expect(stderr).toContain(
      `${file}:1:56: warning: the input holds no EndpointSlices or Endpoints for 4 of 5 Services with a selector (default/a, default/b, default/c and 1 more), so the compiled rules refuse all connections to them [no-endpoints-given]\n`,
    );
  });

  test('describe does not say that they have none', async () => {
    const file = write(service('a', { ...selector, clusterIP: '10.96.1.1' }));
    const { stdout, stderr } = await runKpc(['describe', 'a', '-f', file]);
    expect(stdout).toContain('no endpoints were given: the input holds no EndpointSlice or Endpoints for this Service');
    expect(stdout).not.toContain('refused');
    expect(stderr).toContain('the input holds no EndpointSlice or Endpoints for default/a');
  });

  test.each([
    ['an empty slice', slice('a', [])],
    ['a slice without a ready endpoint', slice('a', [{ addresses: ['10.0.0.1'], conditions: { ready: false } }])],
    ['empty Endpoints', { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'a' }, subsets: [] }],
  ])('describe says so of %s', async (_, object) => {
    const file = write(service('a', { ...selector, clusterIP: '10.96.1.1' }), object);
    const { stdout, stderr } = await runKpc(['describe', 'a', '-f', file]);
    expect(stdout).toContain('no endpoint can accept connections, so kube-proxy refuses them');
    expect(stderr).not.toContain('no-endpoints-given');
  });
});

describe('the node', () => {
  const nodes = write(node('worker-1'), node('worker-2'));

  test('that no Node is', async () => {
    const near = await compile('-f', nodes, '--node', 'wroker-1');
    expect(near).toMatchObject({ status: 2, stdout: '' });
    expect(near.stderr).toContain('error: --node "wroker-1": the input holds no such Node [unknown-node]\n');
    const far = await compile('-f', nodes, '--node', 'master');
    expect(far.stderr).toContain('it holds worker-1, worker-2 [unknown-node]\n  help: name one of them');
    expect((await compile('-f', nodes, '--hostname-override', 'master')).stderr).toContain('hostnameOverride "master"');
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
    expect(without.stderr).toContain('give the Node object as the cluster has it, with -f (kubectl get nodes -o yaml)');
    const none = write(node('worker-1'));
    expect((await compile('-f', none, ...local)).stderr).toMatch(
      /:\d+:\d+: error: detectLocalMode NodeCIDR needs the pod CIDRs of the Node: .* \[no-pod-cidr\]\n.*\n.*\n {2}help: give the Node object for worker-1 /,
    );
    const other = write(node('worker-1', { podCIDRs: ['fd00:244::/64'] }));
    const wrong = await compile('-f', other, ...local);
    expect(wrong.status).toBe(2);
    expect(wrong.stderr).toMatch(/:\d+:\d+: error: the address of node worker-1 is IPv4, but podCIDRs .* is not/);
    expect(await compile('-f', other, ...local, '--bind-address', 'fd00::1')).toMatchObject({ status: 0 });
    const right = write(node('worker-1', { podCIDRs: ['fd00:244::/64', '10.244.0.0/24'] }));
    expect(await compile('-f', right, ...local)).toMatchObject({ status: 0 });
  });

  test('whose family no cluster CIDR has', async () => {
    const run = await compile('-f', write(node('worker-1')), '--cluster-cidr', 'fd00:244::/56');
    expect(run.status).toBe(0);
    expect(run.stderr).toContain('warning: the address of node worker-1 is IPv4, but clusterCIDR fd00:244::/56 is not');
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
    expect(run.stderr).toContain(
      'error: nothing is programmed for any of the 6 Services ' +
        '(default/a, default/b have no cluster IP): the result would remove all Services from a node [nothing-programmed]\n' +
        '  help: add --assume, so that kpc chooses what manifests from git lack, ',
    );
    const asked = await runKpc(['compile', '-f', file, ...printIpvs, '--allow-empty']);
    expect(asked).toMatchObject({ status: 0, stdout: '' });
    expect(asked.stderr).not.toContain('nothing-programmed');
    const assigned = await runKpc(['compile', '-f', file, ...printIpvs, '--service-cluster-ip-range', '10.96.0.0/16']);
    expect(assigned).toMatchObject({ status: 0, stdout: expect.stringContaining('-A -t 10.96.') });
  });

  test('is an error where --ip-family leaves all out', async () => {
    const run = await runKpc(['compile', '-f', web, ...printIpvs, '--ip-family', 'ipv6']);
    expect(run.status).toBe(2);
    expect(run.stderr).toContain('nothing is programmed for the one Service');
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
      expect(run.stderr).toMatch(/^error: .*would remove all Services from a node.*\]\n {2}help: .*add --allow-empty/);
      expect(run.stderr).toContain('[nothing-programmed]');
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
    expect(run.stderr).toContain('warning: the input holds no Services [nothing-programmed]');
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
