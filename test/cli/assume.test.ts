// What kpc assumes where manifests from git lack what only a cluster gives.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-assume-'));
afterAll(() => rmSync(cwd, { recursive: true }));

const service = (name: string, spec: string): string =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { ${spec} }\n---\n`;
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec: { replicas: 2, template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: c, image: x }] } } }
---
`;
const web = service('web', 'type: LoadBalancer, selector: { app: web }, ports: [{ port: 80 }]');
const real = service('real', 'type: LoadBalancer, clusterIP: 10.43.0.7, ports: [{ port: 80, nodePort: 30080 }]');

function write(name: string, text: string): string {
  writeFileSync(join(cwd, name), text);
  return name;
}

const git = write('git.yaml', web + deployment);
const mixed = write('mixed.yaml', web + deployment + real);

/** What it rests on follows. */
const isSame = /^No difference\.\n\nassumed: .*1 cluster IP, /;

describe('manifests from git', () => {
  test('are described without flags, and each value is marked', async () => {
    const run = await runKpc(['describe', git, '--proxy-mode', 'iptables'], { cwd });
    expect(run.status).toBe(0);
    expect(run.stderr).toContain(
      'assumed, because the input lacks them: 1 cluster IP from 10.96.0.0/12, 1 node port, ' +
        '1 load balancer address from 192.0.2.0/24, 2 ready Pods from 10.244.0.0/16, clusterCIDR 10.244.0.0/16, 2 Nodes (node-1, node-2); --no-assume turns this off',
    );
    expect(run.stdout).toMatch(
      /default\/web +LoadBalancer +10\.\d+\.\d+\.\d+\*, 192\.0\.2\.\d+\* +80\/TCP +3\d{4}\* +2\/2\*/,
    );
    expect(run.stdout).toContain('on node node-1 (assumed), mode iptables');
    const again = await runKpc(['describe', git, '--proxy-mode', 'iptables'], { cwd });
    expect(again.stdout).toBe(run.stdout);
  });

  test('whose Pods an operator makes are not told of other Pods, however long the keys of labels are', async () => {
    const labels = (name: string) =>
      `app.kubernetes.io/name: ${name}, app.kubernetes.io/instance: main, app.kubernetes.io/part-of: shop`;
    const file = write(
      'operator.yaml',
      service('alerts', `selector: { ${labels('alertmanager')} }, ports: [{ port: 80 }]`) +
        deployment.replace('app: web', labels('prometheus-operator')),
    );
    const { stderr } = await runKpc(['describe', file], { cwd });
    expect(stderr).toContain('default/alerts matches no Pod');
    expect(stderr).not.toMatch(/\n {2}help: .*\?/);
  });

  test('are compiled with --assume, and no flag is named that the command does not have', async () => {
    const { stderr } = await runKpc(['compile', git, '--assume', '--print', 'ipvsadm'], { cwd });
    expect(stderr).toContain('[assumed]');
    expect(stderr).not.toContain('--no-assume');
  });

  test('are not assumed anything of with --no-assume', async () => {
    const run = await runKpc(['describe', git, '--no-assume'], { cwd });
    expect(run.stdout).toContain('none yet');
    expect(run.stderr).not.toContain('[assumed]');
  });

  test('keep what a cluster gave', async () => {
    const run = await runKpc(['describe', mixed], { cwd });
    expect(run.stdout).toMatch(/default\/real +LoadBalancer +10\.43\.0\.7 .*no load balancer address/);
  });

  test('take the ranges and the node that flags name', async () => {
    const flags = ['--service-cluster-ip-range', '172.20.0.0/16', '--assume-endpoints=10.9.0.0/16', '--node', 'a'];
    const run = await runKpc(['describe', git, ...flags], { cwd });
    expect(run.stdout).toMatch(/172\.20\.\d+\.\d+\*/);
    expect(run.stderr).toContain('2 ready Pods from 10.9.0.0/16, clusterCIDR 10.9.0.0/16, 2 Nodes (a, node-2)');
  });

  test('differ only where they were changed', async () => {
    const scaled = write('scaled.yaml', (web + deployment).replace('replicas: 2', 'replicas: 3'));
    const run = await runKpc(['diff', git, scaled, '-q', '--proxy-mode', 'iptables'], { cwd });
    expect(run.status).toBe(1);
    expect(run.stdout).toMatch(
      /~ default\/web {2}endpoints 2 → 3\*, endpoint \S+ added.*\*\n {4}\* assumed\n\nPackets on node-1 \(assumed\)\n/,
    );
    expect(run.stdout).not.toMatch(/KUBE-/);
    expect((await runKpc(['diff', git, git], { cwd })).stdout).toMatch(isSame);
  });

  test('are compiled with --assume alone, which the error without it prints', async () => {
    const command = ['compile', git, '--proxy-mode', 'iptables', '-o', 'out'];
    const refused = await runKpc(command, { cwd });
    expect(refused).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/\[nothing-programmed\]\n {2}help: .*--assume/),
    });
    expect(await runKpc([...command, '--assume'], { cwd })).toMatchObject({ status: 0 });
    expect(await runKpc(['diff', 'out', git], { cwd })).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(isSame),
    });
  });

  test('have the Pods, too, that are all a golden assumes, and a difference tells of them', async () => {
    const node = 'apiVersion: v1\nkind: Node\nmetadata: { name: n1 }\nspec: { podCIDR: 10.244.0.0/24 }\n';
    const text = service('web', 'clusterIP: 10.96.0.80, selector: { app: web }, ports: [{ port: 80 }]') + deployment;
    const [given, moved] = [write('given.yaml', text + node), write('moved.yaml', text.replace('80 }', '81 }') + node)];
    const flags = ['--proxy-mode', 'ipvs', '--assume', '--output', 'markdown', '-q'];
    expect(await runKpc(['compile', '-f', given, ...flags.slice(0, 3), '--golden', 'pods'], { cwd })).toMatchObject({
      status: 0,
    });
    for (const sides of [
      ['pods', given],
      [given, 'pods'],
    ])
      expect(await runKpc(['diff', ...sides], { cwd })).toMatchObject({
        status: 0,
        stdout: 'No difference.\n\nassumed: 2 ready Pods\n',
      });
    const runs = [
      await runKpc(['diff', 'pods', moved], { cwd }),
      await runKpc(['diff', 'pods', moved, '--output', 'markdown'], { cwd }),
      await runKpc(['compile', '-f', moved, ...flags, '--check', 'pods'], { cwd }),
    ];
    for (const run of runs)
      expect(run).toMatchObject({ status: 1, stdout: expect.stringMatching(/^(- )?assumed: 2 ready Pods$/m) });
  });

  test('are traced, and the trace names what is assumed', async () => {
    const run = await runKpc(['trace', '--from', 'pod', '--to', 'svc/web', git, '-q'], { cwd });
    expect(run.status).toBe(0);
    expect(run.stdout).toMatch(
      /^ {2}assumed: cluster IP 10\.\d+\.\d+\.\d+, node node-1, clusterCIDR 10\.244\.0\.0\/16, Pods? 10\.244\./m,
    );
  });

  test('have Pods behind workloads of old API versions, too', async () => {
    const old = ['extensions/v1beta1', 'apps/v1beta1', 'apps/v1beta2'].map((version, i) =>
      write(`old-${i}.yaml`, web + deployment.replace('apps/v1', version)),
    );
    const runs = await Promise.all(old.map((each) => runKpc(['diff', each, git], { cwd })));
    for (const run of runs) expect(run.stdout).toMatch(isSame);
  });

  test('are compared by equivalence and migrate without flags, and tested with --assume', async () => {
    const other = write('other.yaml', (web + deployment).replaceAll('web', 'shop'));
    const apart = await runKpc(['equivalence', git, other], { cwd });
    expect(apart.status).toBe(1);
    expect(apart.stderr).not.toContain('no cluster IP');
    const alike = await runKpc(['equivalence', git, git], { cwd });
    expect(alike.status).toBe(0);
    const migrated = await runKpc(['migrate', git], { cwd });
    expect(migrated.stderr).toContain('2 ready Pods from 10.244.0.0/16');
    expect(await runKpc(['migrate', git, '--assume'], { cwd })).toMatchObject({ stdout: migrated.stdout });
    expect(migrated.stdout).not.toMatch(/^0 /m);
    const tests = await runKpc(['test', '--init', git, '--assume'], { cwd });
    expect(tests).toMatchObject({ status: 0 });
    write('tests.yaml', tests.stdout);
    const tested = await runKpc(['test', 'tests.yaml', '--assume'], { cwd });
    expect(tested).toMatchObject({ status: 0 });
  });

  test('keep a workload, and leave out its patch that has neither a selector nor labels, in whatever order', async () => {
    const patch = write(
      'a-patch.yaml',
      'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec: { replicas: 5 }\n',
    );
    for (const files of [
      [patch, git],
      [git, patch],
    ]) {
      const run = await runKpc(['describe', ...files], { cwd });
      expect(run.stdout).toMatch(/default\/web .* 2\/2\*/);
      expect(run.stderr).toMatch(
        /^a-patch\.yaml:3:.* Deployment default\/web, .*git\.yaml:\d+.* \[duplicate-object\]/m,
      );
    }
  });

  test('have Pods at the same addresses when the kind of a workload changes', async () => {
    const stateful = write('stateful.yaml', web + deployment.replace('Deployment', 'StatefulSet'));
    expect(await runKpc(['diff', git, stateful], { cwd })).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(isSame),
    });
  });

  test('have the same cluster around each node, by whatever name', async () => {
    const local = web.replace('type: LoadBalancer', 'type: LoadBalancer, externalTrafficPolicy: Local');
    const many = write(
      'many.yaml',
      local + deployment + deployment.replace('Deployment', 'DaemonSet').replace('web', 'each'),
    );
    const addressesOn = async (node: string): Promise<readonly string[]> => {
      const flags = ['--node', node, '--proxy-mode', 'iptables', '--output', 'json'];
      const { stdout } = await runKpc(['describe', 'web', '-f', many, ...flags], { cwd });
      return [...new Set(JSON.stringify(resultOf(stdout)).match(/10\.244\.\d+\.\d+(?!\/|\d)/g))].toSorted();
    };
    const first = await addressesOn('node-1');
    expect(first).toHaveLength(4);
    expect(await addressesOn('node-2')).toEqual(first);
    expect(await addressesOn('worker')).toEqual(first);
    expect(await addressesOn('a')).toEqual(first);
  });
});

test('a bundle with assumptions replaces no bundle without', async () => {
  const compile = (file: string, out: string) =>
    runKpc(['compile', '-f', file, '--proxy-mode', 'iptables', '--assume', '-o', out], { cwd });
  const whole = write('whole.yaml', service('whole', 'clusterIP: 10.43.0.8, ports: [{ port: 80 }]'));
  expect(await compile(whole, 'real')).toMatchObject({ status: 0 });
  const refused = await compile(git, 'real');
  expect(refused.status).toBe(2);
  expect(refused.stderr).toMatch(/error: .*--assume .*\breal\b.*\[bad-call\]/);
  expect(readFileSync(join(cwd, 'real/services.json'), 'utf8')).toContain('"name":"whole"');
  expect(await compile(git, 'assumed')).toMatchObject({ status: 0 });
  expect(await compile(mixed, 'assumed')).toMatchObject({ status: 0 });
  expect(await compile(whole, 'assumed')).toMatchObject({ status: 0 });
});
