// EndpointSlices that both sides give, although the Service changes in what the controller makes them from.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { staleSlicesOf } from '../../src/cluster/stale-slices.ts';
import { collectInputs } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const service = ({ app = 'web', port = 'http', target = 8080 }) =>
  `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: 10.96.0.80, ${app && `selector: {app: ${app}}, `}ports: [{name: ${port}, port: 80, targetPort: ${target}}]}}\n---\n`;
const slice =
  '{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.244.1.10], nodeName: n1}]}\n---\n';
const node =
  '{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {podCIDRs: [10.244.1.0/24]}, status: {addresses: [{type: InternalIP, address: 192.168.50.11}]}}\n---\n';
const pod = (ip: string) =>
  `{apiVersion: v1, kind: Pod, metadata: {name: web-0, labels: {app: web}}, spec: {nodeName: n1, containers: [{name: web}]}, status: {podIP: ${ip}, podIPs: [{ip: ${ip}}], conditions: [{type: Ready, status: "True"}]}}\n`;

const changes = [{ app: 'wob' }, { target: 9090 }, { port: 'web' }];

describe('slices are stale', () => {
  const read = (text: string) =>
    collectInputs({ files: [new TextFile('a.yaml', text)], diagnostics: [], unreadable: [] });
  const stale = (before: string, after: string) => [...(staleSlicesOf(read(before), read(after)) ?? [])];

  test.each(changes)('if the Service differs in %j', (change) => {
    const [before, after] = [service({}) + slice, service(change) + slice];
    expect(stale(before, after)).toEqual([['default/web', 'unknown']]);
    expect(stale(after, before)).toEqual([['default/web', 'unknown']]);
    const pods = pod('10.244.1.10');
    expect(stale(before + pods, after + pods)).toEqual([['default/web', 'made-again']]);
    expect(stale(before + pod('10.244.1.11'), after + pods)).toEqual([['default/web', 'unknown']]);
  });

  test('not if they differ too, or if nothing makes them', () => {
    const others = slice.replace('10.244.1.10', '10.244.1.11');
    expect(stale(service({}) + slice, service({ target: 9090 }) + others)).toEqual([]);
    expect(stale(service({ app: '' }) + slice, service({ app: '', target: 9090 }) + slice)).toEqual([]);
    expect(stale(service({}) + slice, service({}) + slice)).toEqual([]);
  });
});

describe('kpc diff', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'kpc-stale-'));
  afterAll(() => rmSync(cwd, { recursive: true }));

  const run = async (change: Parameters<typeof service>[0], objects: string) => {
    writeFileSync(join(cwd, 'old.yaml'), service({}));
    writeFileSync(join(cwd, 'new.yaml'), service(change));
    writeFileSync(join(cwd, 'cluster.yaml'), node + slice + objects);
    const { stdout } = await runKpc(['diff', '-f', 'cluster.yaml', 'old.yaml', 'new.yaml', '--output', 'json'], {
      cwd,
    });
    return resultOf(stdout) as {
      notCompared: readonly string[];
      packets: readonly { readonly severity: string }[];
      unknown: number;
    };
  };

  test.each(changes)('makes the slices again from Pods: %j', async (change) => {
    const { notCompared, packets, unknown } = await run(change, pod('10.244.1.10'));
    const severities = new Set(packets.map(({ severity }) => severity));
    const expected = change.app ? ['breaks'] : change.target ? ['changes'] : [];
    expect({ notCompared, unknown, severities: [...severities] }).toEqual({
      notCompared: [],
      unknown: 0,
      severities: expected,
    });
  });

  test.each(changes)('claims nothing about packets without the Pods: %j', async (change) => {
    const { notCompared, packets, unknown } = await run(change, '');
    expect({ packets, isOpen: unknown > 0 }).toEqual({ packets: [], isOpen: true });
    expect(notCompared).toEqual([expect.stringMatching(/^endpoints of default\/web.*EndpointSlices/)]);
  });
});
