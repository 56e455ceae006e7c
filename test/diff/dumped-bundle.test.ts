import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { replaceFolder } from '../../src/bundle/folder.ts';
import { makeBundle } from '../../src/bundle/make-bundle.ts';
import { compileIpvs } from '../../src/ipvs/compile-ipvs.ts';
import { clusterOf, defaults, servicePort, worker } from '../iptables/compile.ts';
import { runKpc } from '../support/run-kpc.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-dumped-'));
afterAll(() => rmSync(folder, { recursive: true }));
const compiled = join(folder, 'compiled');
const dumped = join(folder, 'dumped');

/** A bundle as kpc compile writes it, and one as kpc-apply dump would write it on the node where that was applied. */
async function writeBoth(): Promise<void> {
  const cluster = clusterOf(servicePort({ nodePort: 30080 }));
  const settings = { ...defaults, mode: 'ipvs' as const };
  const families = ['ipv4'] as const;
  const state = compileIpvs(cluster, worker, settings, families);
  const content = { state, cluster, node: worker, settings, families, assigned: [], kpcVersion: '1.0.0' };
  await replaceFolder(compiled, makeBundle(content).files);
  const onNode = { ...state, modules: ['ip_vs', 'xt_TEE'], sysctls: new Map([['net.ipv4.ip_forward', '0']]) };
  const nothing = { services: [], servicePorts: [], healthChecks: [] };
  await replaceFolder(dumped, makeBundle({ ...content, state: onNode, cluster: nothing, dumped: true }).files);
}

test('what kpc-apply dump wrote is compared as a dump, and its Services are read from its state', async () => {
  await writeBoth();
  const diff = await runKpc(['diff', dumped, compiled]);
  expect(diff).toMatchObject({ status: 0, stdout: 'No difference.\n' });
  expect(diff.stderr).toContain('not compared, since one side cannot tell: sysctls, kernel modules');
  const described = await runKpc(['describe', '--from-dump', dumped]);
  expect(described.status).toBe(0);
  expect(described.stdout).toContain('10.96.0.10:80/TCP');
});
