// A node port of both families: each test, line and command names the family that it is about.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-node-port-families-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

function mail(ipv4: string, ipv6: string): string {
  const slice = (family: string, address: string) => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: mail-${family.toLowerCase()}, labels: { kubernetes.io/service-name: mail } }
addressType: ${family}
ports: [{ port: 25 }]
endpoints: [${address === '' ? '' : `{ addresses: ["${address}"], nodeName: w1 }`}]
`;
  const node = (number: number) => `---
apiVersion: v1
kind: Node
metadata: { name: w${number} }
status: { addresses: [{ type: InternalIP, address: 192.168.5.${number} }, { type: InternalIP, address: "fd00:5::${number}" }] }
`;
  return `apiVersion: v1
kind: Service
metadata: { name: mail }
spec:
  type: NodePort
  clusterIP: 10.96.7.7
  clusterIPs: [10.96.7.7, "fd00:10:96::77"]
  ipFamilies: [IPv4, IPv6]
  ipFamilyPolicy: RequireDualStack
  externalTrafficPolicy: Local
  ports: [{ port: 25, nodePort: 30025 }]
${slice('IPv4', ipv4)}${slice('IPv6', ipv6)}${node(1)}${node(2)}`;
}

const endpoints = ['10.244.1.10', 'fd00:10:244:1::10'] as const;
writeFolder(cwd, { 'in.yaml': mail(...endpoints), 'no6.yaml': mail(endpoints[0], ''), 'none.yaml': mail('', '') });

const nftables = ['--proxy-mode', 'nftables'];

test('the tests that kpc test --init writes pass', async () => {
  const { stdout } = await runKpc(['test', '--init', 'in.yaml', ...nftables], { cwd });
  writeFolder(cwd, { 'tests.yaml': stdout });
  expect(stdout).toContain('to: node:30025\n');
  expect(stdout).toContain('to: node/ipv6:30025\n');
  expect((await runKpc(['test', 'tests.yaml'], { cwd })).status).toBe(0);
});

test('the command of a difference of IPv6 sends to IPv6', async () => {
  const { stdout } = await runKpc(['diff', 'in.yaml', 'no6.yaml', ...nftables, '--output', 'json'], { cwd });
  const { packets } = resultOf(stdout) as { readonly packets: readonly { readonly trace: string }[] };
  const commands = packets.filter(({ trace }) => / --from node --to node\S*:/.test(trace));
  expect(commands).not.toEqual([]);
  for (const { trace } of commands) {
    const asked = await runKpc([...trace.split(' ').slice(1), '--output', 'json'], { cwd });
    expect(resultOf(asked.stdout)).toMatchObject({ traces: [{ verdict: 'refused' }] });
  }
});

test('a difference of both families names the addresses of both', async () => {
  const { stdout } = await runKpc(['diff', 'in.yaml', 'none.yaml', '--node', 'w1', '--output', 'json'], { cwd });
  const { destinations } = resultOf(stdout).packets.find(
    ({ target }: { readonly target: string }) => target === 'node-port',
  );
  expect(destinations).toEqual(['192.168.5.1:30025', '[fd00:5::1]:30025'].map((to) => ({ to, protocol: 'tcp' })));
});
