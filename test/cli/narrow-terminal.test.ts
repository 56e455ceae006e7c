// On a terminal, tables are cut to its width; elsewhere nothing is lost.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { main } from '../../src/cli/kpc/main.ts';
import type { Terminal } from '../../src/cli/shared/terminal.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-narrow-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** As long as Kubernetes takes them. */
const long = (start: string): string => `${start}-${'x'.repeat(62 - start.length)}`;
const [service, namespace, node] = [long('web'), long('shop'), long('worker')];
const manifests = join(scratch, 'long.json');
const objects = [
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: service, namespace },
    spec: {
      type: 'NodePort',
      clusterIPs: ['10.96.0.10', 'fd00::abcd'],
      clusterIP: '10.96.0.10',
      ports: [{ port: 80, nodePort: 30080 }],
    },
  },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web', namespace, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [{ port: 8080 }],
    endpoints: [
      { addresses: ['10.244.1.10'], nodeName: node },
      { addresses: ['10.244.1.11'], nodeName: node, conditions: { ready: false } },
    ],
  },
  {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: node },
    status: { addresses: [{ type: 'InternalIP', address: '192.168.1.1' }] },
  },
];
writeFileSync(manifests, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));

async function printed(args: readonly string[], width: number | undefined): Promise<readonly string[]> {
  let text = '';
  const terminal: Terminal = {
    out: async (each) => void (text += each),
    err: async () => {},
    status: async () => {},
    readStdin: async () => '',
    colour: { out: false, err: false },
    interactive: false,
    width,
  };
  expect(await main([...args, '-f', manifests], terminal)).toBe(0);
  return text.split('\n');
}

describe.each([80, 100, 132])('on a terminal of %i columns', (width) => {
  test('the table of Services fits', async () => {
    const all = await printed(['describe'], width);
    const lines = all.slice(all.findIndex((line) => line.startsWith('SERVICE '))).slice(0, 2);
    expect(lines.length).toBe(2);
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(width);
    expect(lines.join('\n')).toContain('10.96.0.10');
  });

  test('the table of who reaches a Service fits', async () => {
    const lines = await printed(['trace', '--all', `${namespace}/${service}`], width);
    const table = lines.slice(
      0,
      lines.findIndex((line) => /^(?: {2}itself|unknown):/.test(line)),
    );
    expect(table.length).toBeGreaterThan(2);
    for (const line of table) expect(line.length, line).toBeLessThanOrEqual(width);
    const columns = table.map((line) => [...line.matchAll(/ {2}(?=\S)/g)].map(({ index }) => index));
    // The heading is in the same columns as the rows.
    expect(columns[1]).toEqual(columns[0]);
  });

  test('the endpoints of a Service fit, with why each is used or not', async () => {
    const lines = (await printed(['describe', service], width)).filter((line) => /^ *10\.244\./.test(line));
    expect(lines.length).toBe(2);
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(width);
    expect(lines[1]).toContain('not ready');
  });
});

test('elsewhere every name is whole', async () => {
  expect((await printed(['describe'], undefined)).join('\n')).toContain(`${namespace}/${service}`);
  expect((await printed(['describe', service], undefined)).join('\n')).toContain(`10.244.1.10:8080  ${node}`);
});
