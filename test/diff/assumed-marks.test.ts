// Values that kpc assumed are marked as such in a difference.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-marks-'));
afterAll(() => rmSync(cwd, { recursive: true }));

const headless = (name: string, replicas: number): string =>
  `{apiVersion: v1, kind: Service, metadata: {name: ${name}}, spec: {clusterIP: None, selector: {app: ${name}}, ports: [{port: 80}]}}\n---\n` +
  `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: ${name}}, spec: {replicas: ${replicas}, serviceName: ${name}, selector: {matchLabels: {app: ${name}}}, template: {metadata: {labels: {app: ${name}}}, spec: {}}}}\n---\n`;

test('endpoints of a headless Service', async () => {
  writeFileSync(join(cwd, 'old.yaml'), headless('db', 1));
  writeFileSync(join(cwd, 'new.yaml'), headless('db', 2) + headless('cache', 3));
  const { stdout } = await runKpc(['diff', '-q', 'old.yaml', 'new.yaml'], { cwd });
  expect(stdout).toMatch(/addresses in DNS: \+ [\d.]+\*/);
  expect(stdout).toMatch(/host names in DNS: \+ db-1 [\d.]+\*/);
  expect(stdout).toMatch(/endpoints 0 → 3\*/);
});

test('a port of a headless Service that has no name is its number', async () => {
  writeFileSync(join(cwd, 'old.yaml'), headless('db', 1).replace('{port: 80}', '{name: sql, port: 80}'));
  writeFileSync(join(cwd, 'new.yaml'), headless('db', 1));
  const { stdout } = await runKpc(['diff', '-q', 'old.yaml', 'new.yaml'], { cwd });
  expect(stdout).toContain('ports: + 80/TCP, − sql 80/TCP');
});

test('a node port of the manifests is not marked where another port of the Service has an assumed one of its number', async () => {
  const game = (number: number): string =>
    `{apiVersion: v1, kind: Service, metadata: {name: game}, spec: {type: NodePort, clusterIP: 10.96.7.7, ports: [` +
    `{name: q, port: 27015, protocol: UDP, nodePort: ${number}}, {name: rcon, port: 27015}]}}\n`;
  writeFileSync(join(cwd, 'old.yaml'), game(30015));
  writeFileSync(join(cwd, 'new.yaml'), game(30016));
  const { stdout } = await runKpc(['diff', '-q', 'old.yaml', 'new.yaml'], { cwd });
  expect(stdout).toContain('q: nodePort 30015 → 30016, rcon: nodePort 30015* → 30016*');
  const table = await runKpc(['describe', '-q', 'old.yaml'], { cwd });
  expect(table.stdout).toContain('30015, 30015*');
  const service = await runKpc(['describe', '-q', 'old.yaml', 'game'], { cwd });
  expect(service.stdout.match(/node port .*/g)).toEqual(['node port 30015', 'node port 30015 (assumed)']);
});
