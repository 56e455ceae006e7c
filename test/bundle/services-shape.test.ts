import { mkdtempSync, rmSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { callApply } from '../apply/call-apply.ts';
import { createFakeNode } from '../apply/fake-node.ts';
import { fixtureBundle, forge } from './forge.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-shape-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const good = fixtureBundle('dual-stack/expected-ipvs');
const services = JSON.parse(good.get('services.json') ?? '');
const [port] = services.servicePorts;
const [service] = services.services;

let count = 0;

function write(files: ReadonlyMap<string, string>): string {
  const folder = join(scratch, `${++count}`);
  mkdirSync(folder);
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
  return folder;
}

function withServices(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return write(forge(good, (files) => void files.set('services.json', text)));
}

/** What each program says that reads a bundle. */
async function readByAll(
  folder: string,
): Promise<readonly { readonly status: number | null; readonly text: string }[]> {
  const runs = [
    await runKpc(['diff', folder, folder]),
    await runKpc(['describe', '-f', folder]),
    await runKpc(['diff', folder, folder, '--output', 'json']),
  ];
  const applied = await callApply(createFakeNode().host, 'verify', folder);
  return [
    ...runs.map(({ status, stdout, stderr }) => ({ status, text: stdout + stderr })),
    { status: applied.status, text: applied.out + applied.err },
  ];
}

describe('services.json', () => {
  test.each<readonly [name: string, value: unknown, reason: string]>([
    ['no JSON', 'root:$6$secret:19000', 'services.json: it is not JSON'],
    ['null', null, 'services.json:1:1: it must be an object'],
    ['a list', [null], 'it must be an object'],
    ['nothing', {}, 'services is missing'],
    ['an object for a list', { ...services, services: {} }, 'services must be a list'],
    ['a Service that is null', { ...services, services: [null] }, 'services[0] must be an object'],
    [
      'ports that are a text',
      { ...services, services: [{ ...service, ports: 'x' }] },
      'services[0].ports must be a list',
    ],
    [
      'a port that is null',
      { ...services, services: [{ ...service, ports: [null] }] },
      'services[0].ports[0] must be an object',
    ],
    ['a Service without fields', { ...services, services: [{}] }, 'services[0].namespace is missing'],
    [
      'an unknown type',
      { ...services, services: [{ ...service, type: 'X' }] },
      'services[0].type must be "ClusterIP" or',
    ],
    ['Service ports that are a text', { ...services, servicePorts: 'x' }, 'servicePorts must be a list'],
    ['a Service port that is null', { ...services, servicePorts: [null] }, 'servicePorts[0] must be an object'],
    ['a Service port without fields', { ...services, servicePorts: [{}] }, 'servicePorts[0].namespace is missing'],
    [
      'a name that is a number',
      { ...services, servicePorts: [{ ...port, service: 5 }] },
      'servicePorts[0].service must be a name of Kubernetes',
    ],
    [
      'a name that cannot be a text',
      { ...services, servicePorts: [{ ...port, service: { toString: null } }] },
      'servicePorts[0].service must be a name of Kubernetes',
    ],
    [
      'a port out of range',
      { ...services, servicePorts: [{ ...port, number: 70_000 }] },
      'servicePorts[0].number must be a whole number from 1 to 65535',
    ],
    [
      'an address that is none',
      { ...services, servicePorts: [{ ...port, clusterIP: 'x' }] },
      'servicePorts[0].clusterIP must be an IP address',
    ],
    [
      'endpoints that are an object',
      { ...services, servicePorts: [{ ...port, endpoints: {} }] },
      'servicePorts[0].endpoints must be a list',
    ],
    [
      'an endpoint without a port',
      { ...services, servicePorts: [{ ...port, endpoints: [{ address: '10.0.0.1' }] }] },
      'servicePorts[0].endpoints[0].port is missing',
    ],
    [
      'a source range that is none',
      { ...services, servicePorts: [{ ...port, sourceRanges: ['x'] }] },
      'servicePorts[0].sourceRanges[0] must be a CIDR',
    ],
    ['health checks that are null', { ...services, healthChecks: null }, 'healthChecks must be a list'],
    ['a health check that is null', { ...services, healthChecks: [null] }, 'healthChecks[0] must be an object'],
  ])('with %s is a broken bundle, and no fault of kpc', async (_, value, reason) => {
    for (const { status, text } of await readByAll(withServices(value))) {
      expect(text).toContain(reason);
      expect(text).not.toMatch(/fault|undefined|secret|TypeError|Cannot read/);
      expect(status).toBe(2);
    }
  });

  test('that is not there, and not listed either, is a broken bundle', async () => {
    const folder = write(forge(good, (files) => void files.delete('services.json')));
    for (const { status, text } of await readByAll(folder)) {
      expect(text).toContain('services.json is missing');
      expect(status).toBe(2);
    }
  });
});

describe('manifest.json', () => {
  test.each<readonly [name: string, change: object, reason: string]>([
    [
      'a version that cannot be a text',
      { formatVersion: { toString: null } },
      'formatVersion must be a whole number from 1 on',
    ],
    [
      'a version that is a workflow command',
      { formatVersion: '\n::error::x' },
      'formatVersion must be a whole number from 1 on',
    ],
    [
      'a version with an escape',
      { formatVersion: '\u001b[2J##[error]' },
      'formatVersion must be a whole number from 1 on',
    ],
    [
      'a count whose name is a workflow command',
      { counts: { '\n::error::x': 'y' } },
      'counts."\\n::error::x" must be a whole number',
    ],
    ['a tool whose name is one', { tools: { '##[error]x': 5 } }, 'tools."##·error]x" must be a string'],
    ['a checksum whose name is one', { files: { '\u001b[2J': 5 } }, 'files."\\u001b[2J" must be a SHA-256'],
    ['nothing for its files', { files: null }, 'files must be an object'],
    ['a field that is a line', { '\n::error::x': 1 }, 'it has an unknown field "\\n::error::x"'],
  ])('with %s is a broken bundle, of which nothing acts', async (_, change, reason) => {
    const files = new Map(good).set(
      'manifest.json',
      JSON.stringify({ ...JSON.parse(good.get('manifest.json') ?? ''), ...change }),
    );
    for (const { status, text } of await readByAll(write(files))) {
      expect(text).toContain(reason);
      expect(text).not.toMatch(/[^\P{Cc}\n]|^\s*::|##\[|fault/mu);
      expect(status).toBe(2);
    }
  });
});
