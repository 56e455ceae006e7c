// A difference for packets names every address and port of a Service that has it, each with its protocol.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-destinations-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const [http, https] = ['{ name: http, port: 80 }', '{ name: https, port: 443 }'];
const [udp, tcp] = ['{ name: dns, port: 53, protocol: UDP }', '{ name: dns-tcp, port: 53 }'];

function web(ports: readonly string[], replicas: number, externalIPs: readonly string[] = []): string {
  return `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.11, selector: { app: web }, ports: [${ports.join(', ')}], externalIPs: [${externalIPs.join(', ')}] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec: { replicas: ${replicas}, selector: { matchLabels: { app: web } }, template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: c, image: c }] } } }
`;
}

test.each([
  ['both ports', [http, https], [http, https], [], ['10.96.0.11:80', '10.96.0.11:443']],
  ['both addresses', [http], [http], ['203.0.113.5', '203.0.113.6'], ['203.0.113.5:80', '203.0.113.6:80']],
  ['the port of UDP', [udp, tcp], [tcp], [], ['10.96.0.11:53/UDP']],
  ['the port of TCP', [udp, tcp], [udp], [], ['10.96.0.11:53/TCP']],
])('%s', async (_, before, after, externalIPs, said) => {
  const replicas = before.length === after.length ? 0 : 2;
  writeFolder(cwd, { 'old.yaml': web(before, 2, externalIPs), 'new.yaml': web(after, replicas, externalIPs) });
  const { stdout } = await runKpc(['diff', '-q', 'old.yaml', 'new.yaml', '--output', 'json'], { cwd });
  const effects = resultOf(stdout).packets.filter(
    ({ target }: { readonly target: string }) => target === (externalIPs.length > 0 ? 'external-ip' : 'cluster-ip'),
  );
  for (const { destinations } of effects) expect(destinations).toHaveLength(said.length);
  for (const output of ['text', 'markdown']) {
    const text = (await runKpc(['diff', '-q', 'old.yaml', 'new.yaml', '--output', output], { cwd })).stdout;
    expect(text.replaceAll('\\', '')).toContain(`(${said.join(', ')})`);
  }
});
