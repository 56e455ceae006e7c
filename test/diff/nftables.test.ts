import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const services = (idle: string, endpoints: readonly string[]): string => `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: NodePort, clusterIP: 10.96.0.10, ports: [{name: http, port: 80, targetPort: 8080, nodePort: 30080}], selector: {app: web}}
---
apiVersion: v1
kind: Service
metadata: {name: idle, namespace: shop}
spec: {clusterIP: ${idle}, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
${endpoints.map((address) => `- {addresses: [${address}], nodeName: worker-1, conditions: {ready: true}}\n`).join('')}`;

const folder = mkdtempSync(join(tmpdir(), 'kpc-nftables-'));
const at = (name: string): string => join(folder, name);
const mode = ['--proxy-mode', 'nftables', '--node', 'worker-1'];

beforeAll(async () => {
  writeFileSync(at('before.yaml'), services('10.96.0.11', ['10.244.1.1']));
  writeFileSync(at('after.yaml'), services('10.96.0.12', ['10.244.1.1', '10.244.1.2']));
  const range = ['--service-cluster-ip-range', '10.96.0.0/16'];
  await runKpc(['compile', '-f', at('before.yaml'), ...mode, ...range, '-o', at('before')]);
  await runKpc(['compile', '-f', at('after.yaml'), ...mode, '-o', at('after')]);
});

const ofServices = `shop/idle changed
    clusterIP 10.96.0.11 → 10.96.0.12
  - cluster-ips (nftables) 10.96.0.11
  + cluster-ips (nftables) 10.96.0.12
  - no-endpoint-services (nftables) 10.96.0.11 . tcp . 80 : goto reject-chain comment "shop/idle"
  + no-endpoint-services (nftables) 10.96.0.12 . tcp . 80 : goto reject-chain comment "shop/idle"

shop/web:http changed
    endpoints 1 → 2
    endpoint 10.244.1.2:8080 added (on worker-1)
  + hairpin-connections (nftables) 10.244.1.2 . 10.244.1.2 . tcp . 8080
  ~ chain service-KHN6ECMT-shop/web/tcp/http (nftables): + 1 endpoint 10.244.1.2:8080
`;

describe('kpc diff in nftables mode', () => {
  test('tells Service by Service what changes', async () => {
    const { status, stdout } = await runKpc(['diff', '--rules', at('before'), at('after')]);
    expect({ status, stdout }).toEqual({
      status: 1,
      stdout: `${ofServices}
Objects of no Service
  ~ chain cluster-ips-check (nftables): 2 → 1 rule

2 Service ports changed; 1 difference in objects of no Service; not compared: selectors of shop/idle, shop/web (not on both sides), ipFamilyPolicy, Pods, network policies, Ingresses and routes of Gateways, which neither side records.
`,
    });
  });

  test('compiles manifests with the networks that the flag of the bundle named', async () => {
    const lacking = 'not compared: selector of shop/web, which one side does not record';
    const { stdout } = await runKpc(['diff', '--rules', at('before'), at('after.yaml')]);
    expect(stdout).toBe(`${ofServices}\n2 Service ports changed; ${lacking}.\n`);
    const same = await runKpc(['diff', '--rules', at('before'), at('before.yaml')]);
    expect(same).toMatchObject({ status: 0, stdout: `No difference in what could be compared; ${lacking}.\n` });
  });

  test('shows the lines of nftables.nft', async () => {
    const { stdout } = await runKpc(['diff', at('before'), at('after'), '--output', 'unified']);
    expect(stdout).toMatch(/^--- a\/nftables\.nft\n\+\+\+ b\/nftables\.nft\n/);
    expect(stdout).toMatch(/\n-\t\t\t10\.96\.0\.11,?\n\+\t\t\t10\.96\.0\.12,?\n/);
  });

  test('tells a table that comes or goes as such', async () => {
    await runKpc(['compile', '-f', at('before.yaml'), ...mode, '--ip-family', 'dual', '-o', at('dual')]);
    const { stdout } = await runKpc(['diff', '--rules', at('after'), at('dual')]);
    expect(stdout).toContain('\n  + table kube-proxy (IPv6 nftables) with 15 chains and 7 sets\n');
  });

  test('a manifest says where the networks of cluster IPs come from', async () => {
    const print = async (...args: readonly string[]) => {
      const { stdout } = await runKpc(['compile', ...mode, '--print', 'manifest', ...args]);
      return (JSON.parse(stdout) as { readonly serviceCidrs: unknown }).serviceCidrs;
    };
    writeFileSync(
      at('cidr.yaml'),
      'apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\nspec: {cidrs: [10.96.0.0/12]}\n',
    );
    const range = ['--service-cluster-ip-range', '10.96.0.0/16'];
    const file = ['-f', at('before.yaml')];
    expect(await print(...file)).toEqual([]);
    expect(await print(...file, ...range)).toEqual([{ cidr: '10.96.0.0/16', from: '--service-cluster-ip-range' }]);
    expect(await print(...file, '-f', at('cidr.yaml'), ...range)).toEqual([
      { cidr: '10.96.0.0/12', from: 'ServiceCIDR' },
    ]);
  });
});

describe('the comment of an element, which kube-proxy never corrects, is no difference', () => {
  test.each([[], ['--output', 'unified']])('%j', async (...output) => {
    const bundle = await runKpc(['compile', '-f', at('before.yaml'), ...mode, '--print', 'nftables']);
    for (const [i, comment] of ['comment "shop/former:http" ', ''].entries()) {
      const node = at(`commented-${i}.nft`);
      writeFileSync(node, bundle.stdout.replace('comment "shop/idle" ', comment));
      const { status, stdout } = await runKpc(['diff', '-q', node, '-f', at('before.yaml'), ...mode, ...output]);
      expect([status, stdout.includes('shop/')]).toEqual([0, false]);
    }
  });
});
