import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectFolder, runKpc, runKpcApply } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

const packageFile = readFileSync(join(projectFolder, 'package.json'), 'utf8');
const { version: kpcVersion } = JSON.parse(packageFile) as { readonly version: string };
const manifest = readFileSync(join(projectFolder, 'fixtures', 'quickstart', 'expected-ipvs', 'manifest.json'), 'utf8');
const { kubeProxyVersion } = JSON.parse(manifest) as { readonly kubeProxyVersion: string };

const programs = [
  ['kpc', runKpc],
  ['kpc-apply', runKpcApply],
] as const;

test.each(programs)('%s version names itself, kube-proxy and Node', async (name, run) => {
  expect(await run(['version'])).toEqual({
    status: 0,
    stdout: `${name} ${kpcVersion}\nkube-proxy ${kubeProxyVersion} (Kubernetes 1.30 to 1.38)\nNode ${process.version}\n`,
    stderr: '',
  });
});

test.each(programs)('%s version says the same to programs', async (_, run) => {
  const { status, stdout, stderr } = await run(['version', '--output', 'json']);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ kpc: kpcVersion });
  expect(resultOf(stdout)).toEqual({
    kubeProxyVersion,
    releases: ['1.25', '1.30', '1.31', '1.32', '1.33', '1.34', '1.35', '1.36', '1.37', '1.38'],
    nodeVersion: process.version,
  });
});

test.each(programs)('%s version refuses what it does not know', async (_, run) => {
  for (const flags of [['--output', 'yaml'], ['--short'], ['v1']]) {
    expect(await run(['version', ...flags])).toMatchObject({ status: 2, stdout: '' });
  }
});
