import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-release-warnings-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const open = `apiVersion: v1
kind: Service
metadata: {name: open, namespace: shop}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.10
  loadBalancerSourceRanges: [0.0.0.0/0]
  ports: [{port: 80}]
status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}
`;

function nodeOf(name: string, version: string): string {
  return `---
apiVersion: v1
kind: Node
metadata: {name: ${name}}
status: {nodeInfo: {kubeletVersion: ${version}}, addresses: [{type: InternalIP, address: 192.168.0.1}]}
`;
}

const versions = { old: 'v1.30.1', older: 'v1.33.0', new: 'v1.36.0' };
writeFileSync(
  join(cwd, 'all.yaml'),
  open +
    Object.entries(versions)
      .map(([name, version]) => nodeOf(name, version))
      .join(''),
);
const kpc = (...args: readonly string[]) => runKpc(args, { cwd });

/** How often a warning of the code occurs in the output. */
function countOf(code: string, stderr: string): number {
  return stderr.split('\n').filter((line) => /(?:^|: )warning: /.test(line) && line.endsWith(`[${code}]`)).length;
}

const primary = ['--nodeport-addresses', 'primary'];
const auto = ['--kubernetes-version', 'auto'];

describe('what a release does not take is said of the release that a node runs', () => {
  test.each([
    ['old', 1],
    ['older', 1],
    ['new', 0],
  ])('a source range that no ipset takes, with auto: %s', async (node, times) => {
    const run = await kpc('compile', '-f', 'all.yaml', '--node', node, ...auto, '--proxy-mode', 'ipvs', '-o', node);
    expect(run.status, run.stderr).toBe(0);
    expect(countOf('unloadable-range', run.stderr), run.stderr).toBe(times);
    expect(run.stderr.includes('all.yaml:7:')).toBe(times > 0);
  });

  test('in a mode without sets there is none', async () => {
    const run = await kpc('compile', '-f', 'all.yaml', '--node', 'old', ...auto, '--proxy-mode', 'iptables', '-o', 'i');
    expect(run.status, run.stderr).toBe(0);
    expect(countOf('unloadable-range', run.stderr)).toBe(0);
  });

  test('once for a fleet', async () => {
    const flags = [...auto, ...primary, '--proxy-mode', 'ipvs', '--all-nodes', '-o', 'fleet'];
    const run = await kpc('compile', '-f', 'all.yaml', ...flags);
    expect(run.status, run.stderr).toBe(0);
    expect(countOf('unloadable-range', run.stderr), run.stderr).toBe(1);
    expect(countOf('bad-value', run.stderr)).toBe(1);
    expect(run.stderr).toContain('nodeport-addresses cannot be "primary": kube-proxy v1.30.14 does not start with it');
  });

  test.each([
    ['1.36', '1.30', 1],
    ['1.30', '1.36', 1],
    ['1.36', '1.31', 0],
  ])('the word primary, on the way from %s to %s', async (from, to, times) => {
    const flags = ['--kubernetes-version', from, '--to-kubernetes-version', to, ...primary, '--node', 'new'];
    const run = await kpc('diff', '-f', 'all.yaml', ...flags);
    expect([0, 1], run.stderr).toContain(run.status);
    expect(countOf('bad-value', run.stderr), run.stderr).toBe(times);
  });

  test('an upgrade says of the source range once, which of the two releases it is', async () => {
    const flags = ['--node', 'old', '--proxy-mode', 'ipvs', '--to-kubernetes-version'];
    for (const to of ['1.33', '1.36']) {
      const run = await kpc('diff', '-f', 'all.yaml', ...flags, to);
      expect([0, 1], run.stderr).toContain(run.status);
      expect(countOf('unloadable-range', run.stderr), run.stderr).toBe(1);
    }
  });
});
