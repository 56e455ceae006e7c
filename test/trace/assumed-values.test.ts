import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { main } from '../../src/cli/kpc/main.ts';
import type { Terminal } from '../../src/cli/shared/terminal.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-assumed-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const file = join(scratch, 'web.json');
writeFileSync(
  file,
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'shop' },
    spec: {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      selector: { app: 'web' },
      ports: [
        { name: 'http', port: 80 },
        { name: 'admin', port: 8080 },
      ],
    },
  }),
);

async function trace(...args: readonly string[]): Promise<string> {
  const texts: string[] = [];
  const terminal: Terminal = {
    out: async (text) => void texts.push(text),
    err: async () => undefined,
    status: async () => undefined,
    readStdin: async () => '',
    colour: { out: false, err: false },
    interactive: false,
  };
  await main(['trace', ...args, '-f', file, '--assume', '--proxy-mode', 'iptables', '--kpc-yaml', 'none'], terminal);
  return texts.join('');
}

/** What the line "assumed: …" names. */
function assumedIn(text: string): readonly string[] {
  return /^ *assumed: (.*)$/m.exec(text)?.[1]?.split(', ') ?? [];
}

test('a table names each address and port that kpc chose, also the port of the health check', async () => {
  const text = await trace('--all', 'shop/web');
  const healthCheck = /health check of shop\/web on port (\d+)/.exec(text)?.[1];
  const clusterIP = /cluster IP ([\d.]+):80\/tcp/.exec(text)?.[1];
  expect(assumedIn(text)).toEqual(
    expect.arrayContaining([`cluster IP ${clusterIP}`, `health check port ${healthCheck}`]),
  );
});

test('a trace names what its own packet meets, and nothing of other ports', async () => {
  const text = await trace('--from', 'pod', '--to', 'shop/web:80');
  const [heading = ''] = text.split('\n');
  const [, clusterIP] = /tcp to ([\d.]+):80/.exec(heading) ?? [];
  expect(assumedIn(text)).toContain(`cluster IP ${clusterIP}`);
  const others = text.replace(/^ *assumed: .*$/m, '');
  // The networks of pods decide about every packet.
  const met = assumedIn(text).filter((value) => !value.startsWith('clusterCIDR '));
  expect(met.every((value) => others.includes(value.split(' ').at(-1) ?? ''))).toBe(true);
});

test('a table says the health check of a dual-stack Service once', async () => {
  const service = `apiVersion: v1
kind: Service
metadata: {name: both}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, ipFamilyPolicy: RequireDualStack, selector: {app: both}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: both}
spec: {replicas: 2, selector: {matchLabels: {app: both}}, template: {metadata: {labels: {app: both}}, spec: {containers: [{name: a, image: a}]}}}
`;
  const { stdout } = await runKpc(['trace', '-', '--all', 'both'], { stdin: service });
  expect(stdout.match(/health check of default\/both/g)).toHaveLength(1);
});
