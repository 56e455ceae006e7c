import { indexCluster } from '../../src/cluster/address-index.ts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { replaceFolder } from '../../src/bundle/folder.ts';
import { makeBundle } from '../../src/bundle/make-bundle.ts';
import { compileIpvs } from '../../src/modes/ipvs/compile-ipvs.ts';
import { emptyState } from '../../src/kernel/state.ts';
import { clusterOf, defaults, endpoint, remote, servicePort, worker } from '../modes/iptables/compile.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-dumped-'));
afterAll(() => rmSync(folder, { recursive: true }));
const compiled = join(folder, 'compiled');
const dumped = join(folder, 'dumped');
const fresh = join(folder, 'fresh');

/** A bundle as kpc compile writes it, and as kpc-apply dump would write it where that was applied, and on a fresh node. */
async function writeAll(): Promise<void> {
  const cluster = clusterOf(servicePort({ nodePort: 30080 }));
  const settings = { ...defaults, mode: 'ipvs' as const };
  const families = ['ipv4'] as const;
  const state = compileIpvs(cluster, worker, settings, families);
  const content = { state, cluster, node: worker, settings, families, assigned: [], kpcVersion: '1.0.0' };
  await replaceFolder(compiled, makeBundle(content).files);
  const onNode = { ...state, modules: ['ip_vs', 'xt_TEE'], sysctls: new Map([['net.ipv4.ip_forward', '0']]) };
  const nothing = indexCluster({ services: [], servicePorts: [], healthChecks: [], serviceCidrs: [] });
  await replaceFolder(dumped, makeBundle({ ...content, state: onNode, cluster: nothing, dumped: true }).files);
  const machine = { ...worker, name: 'WORKER_1' };
  const empty = { ...content, node: machine, state: emptyState, cluster: nothing, families: [], dumped: true } as const;
  await replaceFolder(fresh, makeBundle({ ...empty, settings: { ...settings, mode: 'iptables' } }).files);
}

beforeAll(writeAll);

test('what kpc-apply dump wrote is compared as a dump, and its Services are read from its state', async () => {
  const diff = await runKpc(['diff', dumped, compiled]);
  expect(diff.status).toBe(1);
  expect(diff.stdout).toBe(
    [
      'Objects of no Service',
      '  ~ sysctl net.ipv4.ip_forward: 0 → 1',
      '',
      '1 difference in objects of no Service; not compared: sysctls net.ipv4.vs.conntrack, net.ipv4.vs.expire_nodest_conn, net.ipv4.vs.expire_quiescent_template.',
      '',
    ].join('\n'),
  );
  const described = await runKpc(['describe', '--from-dump', dumped]);
  expect(described.status).toBe(0);
  expect(described.stdout).toContain('10.96.0.10:80/TCP');
});

test('without the sets of IPVS mode policies are unknown, and what is not listed is no difference', async () => {
  const endpoints = [endpoint('10.244.1.5'), remote('10.244.2.6')];
  const cluster = clusterOf(servicePort({ nodePort: 30080, externalPolicyLocal: true, endpoints }));
  const settings = { ...defaults, mode: 'ipvs' as const };
  const families = ['ipv4'] as const;
  const state = compileIpvs(cluster, worker, settings, families);
  const local = join(folder, 'local');
  const content = { state, cluster, node: worker, settings, families, assigned: [], kpcVersion: '1.0.0' };
  const { files } = makeBundle(content);
  await replaceFolder(local, files);
  const servers = String(files.get('ipvsadm.restore'));
  const diffOf = async (lines: string) => {
    const dump = join(folder, 'ipvs.txt');
    writeFileSync(dump, lines);
    const { stdout } = await runKpc(['diff', dump, local, '--output', 'json']);
    const described = await runKpc(['describe', '--from-dump', dump, '--output', 'json']);
    const [port] = resultOf(described.stdout).servicePorts;
    expect(port).toBeDefined();
    expect(port).not.toHaveProperty('externalTrafficPolicy');
    return resultOf(stdout).servicePorts;
  };
  expect(servers).toContain('192.168.0.1:30080');
  expect(await diffOf(servers)).toEqual([]);
  const listed = (place: string) => servers.split(/(?<=\n)/).filter((line) => line.includes(place));
  expect(await diffOf(listed(':30080').join(''))).toEqual([]);
  expect(await diffOf(listed('10.96.0.10:80').join(''))).toEqual([]);
  // A real server that a listed virtual server lacks is a difference.
  expect(await diffOf(listed('10.96.0.10:80').slice(0, -1).join(''))).toHaveLength(1);
});

test('a node with nothing of kube-proxy on it lacks all that a bundle has, of both families', async () => {
  const diff = await runKpc(['diff', fresh, compiled]);
  expect(diff.status).toBe(1);
  expect(diff.stdout).toMatch(
    /^shop\/web added\n {4}port 80\/TCP, .*cluster IP 10\.96\.0\.10.*\n {2}\+ virtual server TCP 10\.96\.0\.10:80/,
  );
  expect(diff.stdout).toContain('+ link kube-ipvs0\n');
  expect(diff.stdout).toMatch(/\+ chain KUBE-SERVICES \(nat\) with \d rules\n/);
  expect(diff.stderr).toContain('a dump of WORKER_1, mode iptables, no rules of kube-proxy [reading]\n');
  expect(diff.stderr).toContain('not compared, because one side lacks them: sysctls\n');
  const itself = await runKpc(['diff', fresh, fresh]);
  expect(itself).toMatchObject({ status: 0, stdout: 'No difference.\n' });
});

test('a name in a bundle that is none is refused, and cannot end a line', async () => {
  const hostile = join(folder, 'hostile');
  const named = { service: 'web\nNo difference.\r', endpoints: [] };
  const cluster = clusterOf(servicePort(named));
  const node = { ...worker, name: 'worker-1\nnote: all is well' };
  const settings = { ...defaults, mode: 'ipvs' as const };
  const families = ['ipv4'] as const;
  const state = compileIpvs(cluster, node, settings, families);
  const content = { state, cluster, node, settings, families, assigned: [], kpcVersion: '1.0.0' };
  await replaceFolder(hostile, makeBundle(content).files);
  const outputs = [
    await runKpc(['diff', compiled, hostile]),
    await runKpc(['diff', compiled, hostile, '--output', 'markdown']),
    await runKpc(['describe', '-f', hostile, '10.96.0.10']),
    await runKpc(['describe', '-f', hostile]),
  ];
  const text = outputs.map(({ stdout, stderr }) => stdout + stderr).join('');
  expect(outputs.map(({ status }) => status)).toEqual([2, 2, 2, 2]);
  expect(text).toContain("node.name must be a node's name");
  expect(text).not.toMatch(/^(No difference|note: all is well)|\r/m);
});
