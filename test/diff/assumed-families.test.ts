import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-assumed-families-'));
afterAll(() => rmSync(cwd, { recursive: true }));

const service = (name: string, spec: string) =>
  `---\napiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {selector: {app: web}, ports: [{port: 80}]${spec}}\n`;
const deployment = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
`;
const old = service('prefers', ', ipFamilyPolicy: PreferDualStack') + service('plain', ', type: NodePort') + deployment;
const node = (podCIDRs: string) =>
  `---\napiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nspec: {podCIDRs: [${podCIDRs}]}\n`;

interface Envelope {
  readonly snapshots: readonly {
    readonly assumed: {
      readonly services: readonly { readonly service: string; readonly clusterIPs: readonly string[] }[];
    };
  }[];
}

/** The Services in what differs. */
async function diff(from: string, to: string): Promise<readonly string[]> {
  const { stdout, stderr } = await runKpc(['diff', from, to, '--output', 'json'], { cwd });
  expect(stdout, stderr).not.toBe('');
  const { servicePorts } = resultOf(stdout) as { servicePorts: readonly { readonly servicePort: string }[] };
  return servicePorts.map(({ servicePort }) => servicePort);
}

const added = {
  'an IPv6-only one': ', ipFamilies: [IPv6]',
  'a dual-stack one': ', ipFamilyPolicy: RequireDualStack',
  'one with an IPv6 address': ', clusterIP: "fd00:10:96::5"',
};

beforeAll(() => {
  const nodes = { 'one-family': node('10.244.1.0/24'), both: node('10.244.1.0/24, "fd00:244:1::/64"') };
  writeFileSync(join(cwd, 'old.yaml'), old);
  for (const [name, spec] of Object.entries(added))
    writeFileSync(join(cwd, `${name}.yaml`), old + service('new', spec));
  for (const [name, text] of Object.entries(nodes)) writeFileSync(join(cwd, `${name}.yaml`), old + text);
});

describe('the families of a cluster are those of both sides', () => {
  test.each(Object.keys(added))('a Service more (%s) changes no other', async (name) => {
    expect(await diff('old.yaml', `${name}.yaml`)).toEqual(['default/new']);
    expect(await diff(`${name}.yaml`, 'old.yaml')).toEqual(['default/new']);
  });

  test('the trace of the side that shows one family is asked of a cluster that has both', async () => {
    const { stdout } = await runKpc(['diff', 'a dual-stack one.yaml', 'old.yaml'], { cwd });
    expect(stdout).toContain('kpc trace old.yaml --ip-family dual ');
  });
});

test.each([
  ['one-family.yaml', 1],
  ['both.yaml', 2],
])('the Pod networks of Nodes show the families of their cluster: %s', async (file, count) => {
  const { stdout } = await runKpc(['describe', '-f', file, '--output', 'json'], { cwd });
  const { snapshots } = JSON.parse(stdout) as Envelope;
  const prefers = snapshots[0]?.assumed.services.find((each) => each.service === 'default/prefers');
  expect(prefers?.clusterIPs).toHaveLength(count);
});
