import { describe, expect, test } from 'vitest';
import { checkManifestValues } from '../../src/bundle/check-bundle.ts';
import { readBundle } from '../../src/bundle/read-bundle.ts';
import { compileState } from '../../src/snapshot/open/compile-node.ts';
import { fixtureBundle, forge } from '../bundle/forge.ts';
import { runKpc } from '../support/run-kpc.ts';

const manifests = `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.96.0.10, ports: [{port: 80}]}
---
apiVersion: v1
kind: Node
metadata: {name: new}
status: {addresses: [{type: InternalIP, address: 192.0.2.1}], nodeInfo: {kubeletVersion: v1.34.2}}
---
apiVersion: v1
kind: Node
metadata: {name: old}
status: {addresses: [{type: InternalIP, address: 192.0.2.2}], nodeInfo: {kubeletVersion: v1.31.4}}
`;

const refusal = (release: string): string =>
  `error: --proxy-mode is nftables: kpc follows nftables mode of Kubernetes 1.33 to 1.38, not of ${release} [bad-mode]\n  help: choose one of these releases with --kubernetes-version, or another mode with --proxy-mode`;

describe('nftables mode of a release that kpc does not follow in it', () => {
  test.each([
    [['compile', '--node', 'old', '--kubernetes-version', 'auto'], '1.31'],
    [['compile', '--all-nodes', '--kubernetes-version', 'auto', '-o', 'never-written'], '1.31'],
    [['diff', '--node', 'new', '--kubernetes-version', '1.36', '--to-kubernetes-version', '1.32'], '1.32'],
  ])('%j', async (args, release) => {
    const { status, stdout, stderr } = await runKpc([...args, '-f', '-', '--proxy-mode', 'nftables'], {
      stdin: manifests,
    });
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(refusal(release));
  });

  test('is no form of a bundle', () => {
    const forged = forge(fixtureBundle('dual-stack/expected-nftables'), (files) => {
      const text = files.get('manifest.json') ?? '';
      files.set('manifest.json', text.replace(/"kubeProxyVersion": "[^"]*"/, '"kubeProxyVersion": "v1.31.14"'));
    });
    const reading = readBundle(forged, compileState);
    if (reading.kind !== 'bundle') throw new Error(reading.kind);
    expect(reading.bundle.snapshot.settings.release).toBe('1.31');
    expect(checkManifestValues(reading.bundle.manifest)).toEqual([
      { file: 'manifest.json', name: 'mode', problem: 'value' },
    ]);
  });
});

test('auto compiles for the nodes whose release kpc follows', async () => {
  const args = ['compile', '-f', '-', '--proxy-mode', 'nftables', '--node', 'new', '--kubernetes-version', 'auto'];
  const { status, stdout } = await runKpc([...args, '--print', 'manifest'], { stdin: manifests });
  expect({ status, version: (JSON.parse(stdout) as { kubeProxyVersion: string }).kubeProxyVersion }).toEqual({
    status: 0,
    version: 'v1.34.2',
  });
});
