import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../../support/run-kpc.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-equivalence-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const cluster = join(projectFolder, 'fixtures/cluster');
const files = ['shop.yaml', 'nodes.yaml'].flatMap((name) => ['-f', join(cluster, name)]);
const config = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${text}\n`);
  return path;
};

interface Printed {
  readonly findings: readonly {
    readonly cause: string;
    readonly severity: string;
    readonly reasons: readonly string[];
    readonly services: readonly string[];
    readonly nodes: readonly string[];
  }[];
  readonly preparations: readonly { readonly what: string }[];
}

describe('kpc equivalence', () => {
  test('names the addresses on which a mode serves no node ports, and what to set', async () => {
    const { status, stdout } = await runKpc(['equivalence', 'ipvs', 'nftables', ...files, '--node', 'worker-1']);
    expect(status).toBe(1);
    expect(stdout).toContain('Here only the old side serves them on 203.0.113.11.');
    expect(stdout).toContain('To do: set nodePortAddresses');
    const set = await runKpc([
      'equivalence',
      'ipvs',
      'nftables',
      ...files,
      '--node',
      'worker-1',
      '--nodeport-addresses',
      '0.0.0.0/0',
    ]);
    expect(set.stdout).not.toContain('Node ports');
  });

  test('compares configurations of kube-proxy', async () => {
    const plain = config('plain.yaml', 'mode: nftables\nclusterCIDR: 10.244.0.0/16');
    const all = config('all.yaml', 'mode: nftables\nclusterCIDR: 10.244.0.0/16\nnftables: { masqueradeAll: true }');
    const { status, stdout } = await runKpc([
      'equivalence',
      plain,
      all,
      ...files,
      '--node',
      'worker-1',
      '--output',
      'json',
    ]);
    expect(status).toBe(1);
    const { findings } = JSON.parse(stdout) as Printed;
    expect(findings.map(({ cause, severity }) => `${cause} ${severity}`)).toContain('masquerade changes');
    expect((await runKpc(['equivalence', plain, plain, ...files, '--node', 'worker-1'])).status).toBe(0);
  });

  test('prints Markdown, and JUnit with a case for each cause', async () => {
    const args = ['equivalence', 'ipvs', 'nftables', ...files, '--node', 'worker-1'];
    const markdown = await runKpc([...args, '--output', 'markdown']);
    expect(markdown.stdout).toMatch(/^\*\*ipvs → nftables: /);
    expect(markdown.stdout).toContain('### Node ports do not answer');
    const junit = await runKpc([...args, '--output', 'junit']);
    expect(junit.stdout).toContain('<failure message="Node ports do not answer on the same addresses of the node">');
  });

  test('refuses what it cannot compare, and says what to do', async () => {
    const nothing = await runKpc(['equivalence', 'ipvs', 'nftables']);
    expect(nothing).toMatchObject({ status: 2, stdout: '' });
    expect(nothing.stderr).toContain('add the manifests that both sides are compiled from, with -f');
    const noNodes = await runKpc(['equivalence', 'ipvs', 'nftables', ...files.slice(0, 2), '--all-nodes']);
    expect(noNodes).toMatchObject({ status: 2, stdout: '' });
  });
});

describe('kpc migrate', () => {
  test('asks every node, and names those that a cause concerns', async () => {
    const args = ['migrate', ...files, '--output', 'json'];
    const { status, stdout } = await runKpc(args);
    expect(status).toBe(1);
    const { findings, preparations } = JSON.parse(stdout) as Printed;
    const nodePorts = findings.find(({ cause }) => cause === 'node-port-addresses');
    expect(nodePorts).toMatchObject({ severity: 'breaks', services: ['shop/storefront:https'], nodes: ['worker-1'] });
    expect(preparations.map(({ what }) => what)).toContain(
      'set net.ipv4.ip_forward to 1 on every node, and keep it over a reboot',
    );
    const iptables = JSON.parse((await runKpc([...args, '--from', 'iptables'])).stdout) as Printed;
    expect(iptables.preparations.map(({ what }) => what).join()).not.toMatch(/ip_forward|scheduler|kube-ipvs0/);
    expect(iptables.findings.map(({ cause }) => cause)).toContain('node-port-loopback');
  });

  test('names each setting that has no successor', async () => {
    const ipvs = 'scheduler: sh, strictARP: true, udpTimeout: 30s, excludeCIDRs: [10.97.0.0/24]';
    const path = config(
      'ipvs.yaml',
      `mode: ipvs\niptables: { masqueradeAll: true, masqueradeBit: 11 }\nipvs: { ${ipvs} }`,
    );
    const { stdout } = await runKpc(['migrate', ...files, '--config', path, '--output', 'json']);
    const words = (JSON.parse(stdout) as Printed).preparations.map(({ what }) => what).join('\n');
    for (const word of ['masqueradeAll', 'masqueradeBit', 'scheduler sh', 'timeouts', 'strictARP', '10.97.0.0/24']) {
      expect(words).toContain(word);
    }
  });
});
