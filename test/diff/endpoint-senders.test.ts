// Endpoints that ask their own Service, where only one side has them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-senders-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const write = (name: string, ...addresses: readonly string[]): void => {
  const endpoints = addresses.map((address) => `{addresses: [${address}], nodeName: n1}`).join(', ');
  const objects = [
    '{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {addresses: [{type: InternalIP, address: 192.168.5.11}]}}',
    '{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: 10.96.0.10, ports: [{port: 80}]}}',
    `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{port: 80}], endpoints: [${endpoints}]}`,
  ];
  writeFileSync(join(cwd, name), objects.join('\n---\n'));
};
write('two.yaml', '10.244.0.10', '10.244.0.11');
write('one.yaml', '10.244.0.10');

test.each([
  ['two.yaml', 'one.yaml', 'an endpoint of the Service that is removed'],
  ['one.yaml', 'two.yaml', 'an endpoint of the Service that is added'],
])('%s to %s: %s is no endpoint of both sides', async (from, to, gone) => {
  const { stdout } = await runKpc(['equivalence', from, to, '--proxy-mode', 'iptables', '--output', 'json', '-q'], {
    cwd,
  });
  const { causes } = resultOf(stdout) as { causes: readonly { effects: readonly { senders: readonly string[] }[] }[] };
  const senders = causes.flatMap(({ effects }) => effects.flatMap((each) => each.senders));
  expect(senders.filter((text) => text.startsWith('an endpoint'))).toEqual(['an endpoint of the Service', gone]);
});
