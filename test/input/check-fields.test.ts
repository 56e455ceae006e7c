import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-fields-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const file = join(scratch, 'a.json');

type Edit = (object: any) => void; // oxlint-disable-line

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web' },
  spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }] },
};
const slice = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  ports: [{ port: 8080 }],
  endpoints: [{ addresses: ['10.244.1.1'] }, { addresses: ['10.244.1.2'] }],
};

async function compile(objects: readonly unknown[], ...args: readonly string[]) {
  writeFileSync(file, objects.map((object) => JSON.stringify(object, undefined, 1)).join('\n'));
  return runKpc(['compile', '-f', file, '--proxy-mode', 'ipvs', '--print', 'ipvsadm', ...args]);
}

/** What is said of fields, without places. */
async function warningsOf(base: object, edit: Edit): Promise<readonly string[]> {
  const object = structuredClone(base);
  edit(object);
  const { stderr } = await compile([object]);
  return [...stderr.matchAll(/warning: (.*) \[unknown-field\]/g)].map(([, text = '']) => text);
}

describe('a field in the wrong place', () => {
  test.each<[edit: Edit, text: string]>([
    [(o) => (o.ports = o.spec.ports), 'a Service has no field "ports": Kubernetes ignores it'],
    [(o) => (o.type = 'NodePort'), 'a Service has no field "type": Kubernetes ignores it'],
    [(o) => (o.namespace = 'shop'), 'a Service has no field "namespace": Kubernetes ignores it'],
    [(o) => (o.metadata.selector = {}), 'metadata has no field "selector": Kubernetes ignores it'],
    [(o) => (o.spec.nodePort = 30080), 'spec has no field "nodePort": Kubernetes ignores it'],
    [(o) => (o.spec.labels = {}), 'spec has no field "labels": Kubernetes ignores it'],
    [(o) => (o.spec.ports[0].clusterIP = ''), 'spec.ports[0] has no field "clusterIP": Kubernetes ignores it'],
    [(o) => (o.spec.timeoutSeconds = 1), 'spec has no field "timeoutSeconds": Kubernetes ignores it'],
    [(o) => (o.spec.clusterIp = ''), 'spec has no field "clusterIp": Kubernetes ignores it'],
    [(o) => (o.spec.slector = {}), 'spec has no field "slector": Kubernetes ignores it'],
    [(o) => (o.metdata = {}), 'a Service has no field "metdata": Kubernetes ignores it'],
    [(o) => (o.spec.ports[0].xyz = 1), 'spec.ports[0] has no field "xyz": Kubernetes ignores it'],
  ])('of a Service is a warning that says where it belongs: %s', async (edit, text) => {
    expect(await warningsOf(service, edit)).toEqual([text]);
  });

  test.each<[edit: Edit, text: string]>([
    [(o) => (o.endpoints[1].ready = true), 'endpoints[1] has no field "ready": Kubernetes ignores it'],
    [(o) => (o.spec = {}), 'an EndpointSlice has no field "spec": Kubernetes ignores it'],
    [(o) => (o.endpoints[0].address = ''), 'endpoints[0] has no field "address": Kubernetes ignores it'],
  ])('of an EndpointSlice, too: %s', async (edit, text) => {
    expect(await warningsOf(slice, edit)).toEqual([text]);
  });

  test('of each item of a list is told once', async () => {
    const edit: Edit = (o) => o.endpoints.forEach((endpoint: Record<string, unknown>) => (endpoint['xyz'] = 1));
    expect(await warningsOf(slice, edit)).toHaveLength(1);
  });
});

test('fields that the API server fills in or that older releases had are no fault', async () => {
  const full = {
    ...service,
    metadata: { ...service.metadata, uid: 'x', resourceVersion: '1', creationTimestamp: null, managedFields: [] },
    spec: { ...service.spec, loadBalancerIP: '', loadBalancerClass: 'x', ipFamily: 'IPv4', topologyKeys: ['*'] },
    status: { loadBalancer: {}, conditions: [] },
  };
  expect((await compile([full, slice])).stderr).not.toContain('unknown-field');
});

describe('messages', () => {
  const wrong = { ...service, ports: [] };

  test('--strict takes warnings for errors, and writes nothing', async () => {
    expect(await compile([wrong, slice])).toMatchObject({ status: 0 });
    const strict = await compile([wrong, slice], '--strict');
    expect(strict).toMatchObject({ status: 2, stdout: '' });
    expect(strict.stderr).toContain('error: a Service has no field "ports"');
    expect(await compile([service, slice], '--strict')).toMatchObject({ status: 0 });
  });

  test('--quiet leaves out warnings, notes and summaries', async () => {
    const run = await compile([wrong, slice], '--quiet');
    expect(run).toMatchObject({ status: 0, stderr: '' });
    expect(run.stdout).toContain('-A -t 10.96.0.1:80');
    const out = await runKpc(['compile', '-f', file, '-q', '-o', join(scratch, 'out')]);
    expect(out).toEqual({ status: 0, stdout: '', stderr: '' });
    const failed = await compile([{ ...service, spec: { clusterIP: 'x', ports: [{ port: 80 }] } }], '--quiet');
    expect(failed.stderr).toContain('cannot be');
    expect(failed.stderr).not.toContain('note:');
  });

  test('diff and describe know both', async () => {
    await compile([wrong, slice]);
    expect(await runKpc(['diff', file, file, '-q'])).toMatchObject({ status: 0, stderr: '' });
    expect(await runKpc(['diff', file, file, '--strict'])).toMatchObject({ status: 2, stdout: '' });
    expect(await runKpc(['describe', 'web', '-f', file, '-q'])).toMatchObject({ status: 0, stderr: '' });
    expect(await runKpc(['describe', 'web', '-f', file, '--strict'])).toMatchObject({ status: 2, stdout: '' });
  });

  test('that both sides of a diff give are told once', async () => {
    await compile([wrong, slice]);
    const other = join(scratch, 'b.json');
    writeFileSync(other, JSON.stringify({ ...service, spec: { ports: [{ port: 80 }] } }));
    const { stderr } = await runKpc(['diff', other, other, '--proxy-mode', 'ipvs', '--no-assume']);
    expect(stderr.match(/not-assigned/g)).toHaveLength(1);
  });

  test.each<[environment: Record<string, string>, coloured: boolean]>([
    [{ FORCE_COLOR: '' }, true],
    [{ FORCE_COLOR: '1', NO_COLOR: '1' }, true],
    [{ FORCE_COLOR: '0' }, false],
    [{}, false],
  ])('have colour where %o says so', async (env, coloured) => {
    await compile([wrong, slice]);
    const run = await runKpc(['compile', '-f', file, '--print', 'ipvsadm'], { env });
    expect(run.stderr.includes('\u001b[')).toBe(coloured);
  });
});
