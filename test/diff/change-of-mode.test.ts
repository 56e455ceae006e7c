import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';
import { resultOf } from '../support/printed-json.ts';

const services = `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { type: NodePort, clusterIP: 10.96.0.80, ports: [{ name: http, port: 80, targetPort: 8080, nodePort: 30080 }] }
---
apiVersion: v1
kind: Service
metadata: { name: edge, namespace: shop }
spec: { type: LoadBalancer, clusterIP: 10.96.0.81, externalTrafficPolicy: Local, healthCheckNodePort: 31999, ports: [{ port: 443, nodePort: 30443 }] }
status: { loadBalancer: { ingress: [{ ip: 198.51.100.10 }] } }
---
apiVersion: v1
kind: Service
metadata: { name: idle, namespace: shop }
spec: { clusterIP: 10.96.0.82, ports: [{ port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-x, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: [10.244.1.10], nodeName: node-1 }]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: edge-x, namespace: shop, labels: { kubernetes.io/service-name: edge } }
addressType: IPv4
ports: [{ port: 8443 }]
endpoints: [{ addresses: [10.244.1.11], nodeName: node-1 }]
---
{ apiVersion: v1, kind: Node, metadata: { name: node-1 }, status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] } }
`;

/** What else a dump of an IPVS node shows, of which the compiler prints no file. */
const ipAddr = JSON.stringify([
  {
    ifindex: 1,
    ifname: 'kube-ipvs0',
    flags: ['NOARP'],
    addr_info: ['10.96.0.80', '10.96.0.81', '10.96.0.82', '198.51.100.10'].map((local) => ({
      family: 'inet',
      local,
      prefixlen: 32,
      scope: 'global',
    })),
  },
]);

const dumped: { readonly [M in ProxyMode]: Readonly<Record<string, string>> } = {
  iptables: { 'iptables-save': 'iptables' },
  ipvs: { 'iptables-save': 'iptables', 'ipset-save': 'ipset', 'ipvsadm-save': 'ipvsadm' },
  nftables: { 'nft-ruleset': 'nftables' },
  userspace: { 'iptables-save': 'iptables' },
};

/** The ruleset of a node on which no kube-proxy has been in nftables mode. */
const otherTable = 'table ip firewall {\n\tchain input {\n\t}\n}\n';

const modes = ['iptables', 'ipvs', 'nftables'] as const;
const pairs = modes.flatMap((from) => modes.filter((to) => to !== from).map((to) => [from, to] as const));
const cwd = mkdtempSync(join(tmpdir(), 'kpc-change-of-mode-'));
const labels = ['shop/edge', 'shop/idle', 'shop/web:http'];

describe('a change of mode takes no Service off the node, and brings no new one', () => {
  beforeAll(async () => {
    writeFolder(cwd, { 'services.yaml': services });
    for (const mode of modes) {
      const flags = ['-f', 'services.yaml', '--proxy-mode', mode];
      await runKpc(['compile', ...flags, '-o', `${mode}-bundle`], { cwd });
      for (const [file, part] of Object.entries(dumped[mode])) {
        const { stdout } = await runKpc(['compile', ...flags, '--print', part], { cwd });
        writeFolder(join(cwd, mode), { [file]: stdout });
        writeFolder(join(cwd, `${mode}-with-nft`), { 'nft-ruleset': otherTable, [file]: stdout });
      }
    }
    for (const folder of ['ipvs', 'ipvs-with-nft']) writeFolder(join(cwd, folder), { 'ip-addr.json': ipAddr });
  });

  const changesOf = async (args: readonly string[]) => {
    const run = await runKpc(['diff', ...args, '--output', 'json'], { cwd });
    expect(run.status, run.stderr).toBe(1);
    const { servicePorts } = resultOf(run.stdout) as {
      readonly servicePorts: readonly { readonly servicePort: string; readonly change: string }[];
    };
    return servicePorts.map(({ servicePort, change }) => `${servicePort} ${change}`);
  };
  const allChanged = labels.map((label) => `${label} changed`);

  test.each(pairs)('a dump of %s mode, and a bundle of %s mode', async (from, to) => {
    expect(await changesOf([from, `${to}-bundle`])).toEqual(allChanged);
    expect(await changesOf([`${to}-bundle`, from])).toEqual(allChanged);
  });

  test.each(pairs)('dumps of %s and %s mode that show nft tables too', async (from, to) => {
    expect(await changesOf([`${from}-with-nft`, `${to}-with-nft`])).toEqual(allChanged);
  });

  test.each(pairs)('a dump of %s mode that shows nft tables too, and a bundle of %s mode', async (from, to) => {
    expect(await changesOf([`${from}-with-nft`, `${to}-bundle`])).toEqual(allChanged);
  });

  test.each(pairs)('a dump of %s mode, and manifests in %s mode', async (from, to) => {
    expect(await changesOf([from, 'services.yaml', '--proxy-mode', to])).toEqual(allChanged);
  });

  test.each([
    ['iptables', 'nftables', 'all addresses of the node → 192.168.50.11'],
    ['iptables', 'ipvs', 'all addresses of the node → 192.168.50.11'],
    ['nftables', 'iptables', '192.168.50.11 → all addresses of the node'],
  ] as const)('from %s mode to %s mode, the addresses that node ports listen on', async (from, to, words) => {
    const sides = [
      [from, `${to}-bundle`],
      [`${from}-bundle`, `${to}-bundle`],
      [`${from}-bundle`, to],
      [from, 'services.yaml', '--proxy-mode', to],
    ];
    for (const args of sides) {
      const { stdout } = await runKpc(['diff', '--rules', ...args], { cwd });
      expect(stdout).toContain(`shop/web:http changed\n    node port 30080 listens on ${words}\n`);
    }
  });

  test('no addresses are told of a Service port without a node port, or with another one', async () => {
    writeFolder(cwd, { 'moved.yaml': services.replace('nodePort: 30080', 'nodePort: 30081') });
    const { stdout } = await runKpc(['diff', '--rules', 'iptables-bundle', 'moved.yaml', '--proxy-mode', 'nftables'], {
      cwd,
    });
    expect(stdout).toContain('shop/idle changed');
    expect(stdout).toContain('nodePort 30080 → 30081');
    expect(stdout.match(/node port \d+ listens on/g)).toEqual(['node port 30443 listens on']);
  });

  test('node ports that listen on the same addresses are not told of', async () => {
    const { stdout } = await runKpc(['diff', '--rules', 'ipvs', 'nftables-bundle'], { cwd });
    expect(stdout).not.toContain('listens on');
  });

  test('a Service that the other side does not have is still removed, and a new one added', async () => {
    const others = services.replace('name: idle', 'name: late').replace('10.96.0.82', '10.96.0.83');
    writeFolder(cwd, { 'others.yaml': others });
    const changes = await changesOf(['ipvs-with-nft', 'others.yaml', '--proxy-mode', 'nftables']);
    expect(changes).toEqual([
      '10.96.0.82:80/TCP removed',
      'shop/edge changed',
      'shop/late added',
      'shop/web:http changed',
    ]);
  });
});

test('what two dumps lack alike is said once', async () => {
  const files = { 'iptables-save': '*nat\nnonsense\nCOMMIT\n' };
  for (const [folder, text] of [
    ['one', services],
    ['other', services.replace('10.244.1.10', '10.244.1.12')],
  ] as const) {
    writeFolder(cwd, { [`${folder}.yaml`]: text });
    const compile = ['compile', '-f', `${folder}.yaml`, '--proxy-mode', 'nftables', '--print', 'nftables'];
    const { stdout } = await runKpc(compile, { cwd });
    writeFolder(join(cwd, folder), { ...files, 'nft-ruleset': stdout });
  }
  const run = await runKpc(['diff', '--rules', 'one', 'other'], { cwd });
  expect(run.stdout.match(/what kpc could not read in iptables-save/g)).toHaveLength(1);
  expect(run.stderr.match(/what kpc could not read in iptables-save/g)).toHaveLength(1);
});

test('a change of mode, node or release is said where the verdict stands', async () => {
  const config = (mode: string) =>
    `---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ${mode}\n`;
  const folder = mkdtempSync(join(tmpdir(), 'kpc-modes-said-'));
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write('old.yaml', services.replace(/---\s*$/, '') + config('iptables'));
  write('new.yaml', services.replace(/---\s*$/, '') + config('nftables'));
  const compile = ['--golden', 'golden', '--kubernetes-version', '1.36', '--hostname-override', 'node-1'];
  await runKpc(['compile', '-f', 'old.yaml', ...compile], { cwd: folder });
  for (const [output, start] of [
    ['text', ''],
    ['markdown', '- '],
  ] as const) {
    const words = ['diff', 'old.yaml', 'new.yaml', '--output', output];
    expect((await runKpc(words, { cwd: folder })).stdout.split('\n')).toContain(`${start}mode: iptables → nftables`);
    const other = ['diff', 'golden', 'old.yaml', '--kubernetes-version', '1.37', '--output', output];
    expect((await runKpc(other, { cwd: folder })).stdout).toContain('release: 1.36 → 1.37');
  }
  for (const output of ['github', 'gitlab', 'sarif', 'junit']) {
    const words = ['diff', 'old.yaml', 'new.yaml', '--output', output];
    expect((await runKpc(words, { cwd: folder })).stdout).toContain('mode: iptables → nftables');
  }
  const json = await runKpc(['diff', 'old.yaml', 'new.yaml', '--output', 'json'], { cwd: folder });
  expect(resultOf(json.stdout)).toMatchObject({ changed: [{ of: 'mode', from: 'iptables', to: 'nftables' }] });
  const { stdout } = await runKpc(['equivalence', 'old.yaml', 'new.yaml'], { cwd: folder });
  expect(stdout).toMatch(/^old\.yaml \(iptables mode\) → new\.yaml \(nftables mode\)/);
});
