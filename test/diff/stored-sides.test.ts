// Manifests beside a bundle or golden: what the Node object says counts, and --check and diff name the same as not compared.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-stored-sides-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const service = (fields: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.96.0.11, ${fields} }\n`;

const slice = `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.10] }]
`;

const node = (addresses: readonly string[], podCIDR: string) => `---
apiVersion: v1
kind: Node
metadata: { name: n1 }
spec: { podCIDRs: [${podCIDR}] }
status: { addresses: [${addresses.map((each) => `{ type: InternalIP, address: ${each} }`).join(', ')}] }
`;

test('--output unified shows what endpoints are made from, if both sides record it', async () => {
  const select = (app: string) => service(`selector: { app: ${app} }, ports: [{ port: 80 }]`) + slice;
  writeFolder(cwd, { 'new.yaml': select('b') });
  for (const [flag, lines] of [
    ['--golden', ['-default/web', '+default/web']],
    ['-o', []],
  ] as const) {
    const folder = await store(flag, select('a'));
    const { stdout } = await runKpc(['diff', '-q', folder, 'new.yaml', '--output', 'unified'], { cwd });
    expect(stdout.match(/^[-+]default\/web/gm) ?? []).toEqual(lines);
  }
});

const deployment = (port: number) => `---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: web, readinessProbe: { httpGet: { path: /, port: ${port} } } }] }
`;

const nodePort = service('type: NodePort, selector: { app: web }, ports: [{ port: 80, nodePort: 30080 }]') + slice;
const ipvs = ['--proxy-mode', 'ipvs'];

async function store(flag: string, text: string, ...flags: readonly string[]) {
  writeFolder(cwd, { 'old.yaml': text });
  const folder = flag === '-o' ? 'bundle' : 'golden';
  // A folder for another node is not replaced.
  rmSync(join(cwd, folder), { recursive: true, force: true });
  await runKpc(['compile', '-q', '-f', 'old.yaml', ...ipvs, flag, folder, ...flags], { cwd });
  return folder;
}

describe.each(['-o', '--golden'])('written with %s', (flag) => {
  test('an address that the Node loses or gains', async () => {
    const folder = await store(flag, nodePort + node(['192.168.5.1', '192.168.5.2'], '10.244.1.0/24'));
    writeFolder(cwd, { 'new.yaml': nodePort + node(['192.168.5.1'], '10.244.1.0/24') });
    for (const sides of [
      [folder, 'new.yaml'],
      ['new.yaml', folder],
    ])
      for (const command of ['diff', 'equivalence'])
        expect([command, sides, (await runKpc([command, '-q', ...sides], { cwd })).status]).toEqual([
          command,
          sides,
          1,
        ]);
  });

  test('addresses that the node itself listed are those of both sides', async () => {
    const listing = [
      { ifname: 'lo', addr_info: [{ local: '127.0.0.1', prefixlen: 8 }] },
      {
        ifname: 'eth0',
        addr_info: [
          { local: '192.168.5.1', prefixlen: 24 },
          { local: '192.168.7.1', prefixlen: 24 },
        ],
      },
    ];
    writeFolder(cwd, { 'ip.json': JSON.stringify(listing) });
    const text = nodePort + node(['192.168.5.1'], '10.244.1.0/24');
    const folder = await store(flag, text, '--host-addresses', 'ip.json');
    expect((await runKpc(['diff', '-q', folder, 'old.yaml'], { cwd })).status).toBe(0);
  });

  test('another Pod network is named', async () => {
    const folder = await store(flag, nodePort + node(['192.168.5.1'], '10.244.1.0/24'));
    writeFolder(cwd, { 'new.yaml': nodePort + node(['192.168.5.1'], '10.244.9.0/24') });
    const { stdout } = await runKpc(['diff', '-q', folder, 'new.yaml', '--output', 'json'], { cwd });
    const change = { of: 'podCIDRs', from: '10.244.1.0/24', to: '10.244.9.0/24' };
    expect(resultOf(stdout)).toMatchObject({ changed: [change] });
  });

  test.each([
    ['a selector', service('selector: { app: web }, ports: [{ port: 80 }]') + slice, flag === '-o'],
    [
      'a readiness probe',
      service('selector: { app: web }, ports: [{ port: 80 }]').replace('clusterIP: 10.96.0.11, ', '') + deployment(80),
      true,
    ],
  ])('--check and diff name the same as not compared: %s', async (_, text, isNamed) => {
    const folder = await store(flag, text, '--assume');
    const check = ['compile', '-q', '--check', folder, '-f', 'old.yaml', ...ipvs, '--assume', '--output', 'json'];
    const [checked, differing] = [
      await runKpc(check, { cwd }),
      await runKpc(['diff', '-q', folder, 'old.yaml', '--output', 'json'], { cwd }),
    ];
    const { notCompared } = resultOf(checked.stdout);
    expect(notCompared).toEqual(resultOf(differing.stdout).notCompared);
    expect(notCompared).toHaveLength(isNamed ? 1 : 0);
  });
});
