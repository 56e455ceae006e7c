import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { makeCluster, type KubernetesObject } from './support/make-cluster.ts';
import { makeRandom, shuffle } from './support/random.ts';
import { rounds, triesAll } from './support/rounds.ts';
import { runKpc } from './support/run-kpc.ts';
import { writeFolder } from './support/write-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-determinism-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const random = makeRandom(20260101);
const cluster = makeCluster(rounds(80, 2), random);
const shuffled = shuffle(cluster, random);
const documents = (objects: readonly unknown[]) => objects.map((object) => stringify(object)).join('---\n');
const list = (items: readonly KubernetesObject[]) => ({ apiVersion: 'v1', kind: 'List', items });

/** The same cluster, written down in other ways: file name → text. */
const writings: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'documents in another order': { 'all.yaml': documents(shuffled) },
  'documents in the reverse order': { 'all.yaml': documents(cluster.toReversed()) },
  'a file for each object': Object.fromEntries(shuffled.map((object, i) => [`${i}.yaml`, stringify(object)])),
  'folders of mixed files': Object.fromEntries(
    [0, 1, 2, 3, 4].map((n) => {
      const part = shuffled.filter((_, i) => i % 5 === n);
      return n % 2 === 0 ? [`${9 - n}/x.yml`, documents(part)] : [`${9 - n}/y/x.json`, JSON.stringify(list(part))];
    }),
  ),
  'a List in YAML': { 'all.yaml': stringify(list(shuffled)) },
  'a List in JSON': { 'all.json': JSON.stringify(list(shuffled), undefined, 4) },
  'YAML in flow style, with comments': {
    'all.yaml': shuffled.map((object) => `# ${object.kind}\n---\n${JSON.stringify(object)}\n`).join(''),
  },
  'keys in another order': { 'all.yaml': documents(cluster.map((object) => reverseKeys(object))) },
};

const modes = ['ipvs', 'iptables', 'nftables'];

describe.each(modes)('the same bytes in %s mode', (mode) => {
  let reference: string;
  beforeAll(async () => {
    reference = await compile('reference', mode, { 'all.yaml': documents(cluster) });
  });

  test('there is much to put in order', () => {
    expect(reference.length).toBeGreaterThan(rounds(50_000, 2));
  });

  // In `npm test` one mode each, in turn.
  const own = Object.entries(writings).filter((_, i) => triesAll || i % modes.length === modes.indexOf(mode));
  test.each(own)('%s', async (name, files) => {
    expect(await compile(name, mode, files)).toBe(reference);
  });

  test('another cluster gives other bytes', async () => {
    const other = makeCluster(rounds(80, 2), makeRandom(7));
    expect(await compile('other', mode, { 'all.yaml': documents(other) })).not.toBe(reference);
  });
});

/** The whole bundle as one text. */
async function compile(name: string, mode: string, files: Readonly<Record<string, string>>): Promise<string> {
  const folder = join(scratch, mode, name);
  writeFolder(folder, files);
  const args = ['compile', '-f', folder, '--node', 'node-1', '--proxy-mode', mode, '--cluster-cidr', '10.244.0.0/16'];
  const assign = [
    '--service-cluster-ip-range',
    '10.96.0.0/16,fd00:96::/112',
    '--service-node-port-range',
    '30000-32767',
  ];
  const { status, stdout, stderr } = await runKpc([...args, ...assign]);
  expect(status, stderr).toBe(0);
  return stdout;
}

/** The same value with the keys of every mapping in the reverse order. */
function reverseKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reverseKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, item]) => [key, reverseKeys(item)]),
  );
}
