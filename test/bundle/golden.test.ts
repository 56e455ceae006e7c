import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readFolder } from '../../src/bundle/folder.ts';
import { makeGolden } from '../../src/bundle/golden.ts';
import { makeBundle } from '../../src/bundle/make-bundle.ts';
import { compileState } from '../../src/snapshot/open/compile-node.ts';
import { loadBundle } from '../../src/apply/open/load-bundle.ts';
import { readGoldenFolder as readBack } from '../support/golden.ts';
import { makeCluster } from '../support/make-cluster.ts';
import { makeRandom } from '../support/random.ts';
import { readTree } from '../support/read-tree.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-golden-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let folders = 0;
const freshPath = () => join(scratch, `out-${++folders}`);

/** The golden and the bundle of the same input, each in a folder. */
async function compileBoth(args: readonly string[]): Promise<{ golden: string; bundle: string }> {
  const [golden, bundle] = [freshPath(), freshPath()];
  expect(await runKpc([...args, '--golden', golden], { cwd: scratch })).toMatchObject({ status: 0 });
  expect(await runKpc([...args, '-o', bundle], { cwd: scratch })).toMatchObject({ status: 0 });
  return { golden, bundle };
}

describe.each(['ipvs', 'iptables', 'nftables'] as const)('a golden in mode %s', (mode) => {
  test('comes back from many random Services', async () => {
    const input = join(scratch, `${mode}.json`);
    writeFileSync(input, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: makeCluster(60, makeRandom(11)) }));
    const ranges = ['--service-cluster-ip-range', '10.96.0.0/16,fd00:96::/112'];
    const args = ['compile', '-f', input, ...ranges, '--node', 'node-1', '--proxy-mode', mode];
    const { golden, bundle } = await compileBoth(args);
    const files = await readFolder(bundle);
    for (const [name, text] of makeBundle((await readBack(golden)).snapshot).files) expect(text).toBe(files.get(name));
    expect(await runKpc([...args, '--check', golden])).toMatchObject({ status: 0, stdout: '' });
  });
});

const service = (name: string, ip: string, more = '') => `
apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { clusterIP: ${ip}, ports: [{ port: 80, targetPort: 8080 }]${more} }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}-1, namespace: shop, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.10] }]
---
`;

function write(text: string): string {
  const file = `${freshPath()}.yaml`;
  writeFileSync(file, text);
  return file;
}

const compile = (file: string, ...args: readonly string[]) =>
  runKpc(['compile', '-f', file, '--proxy-mode', 'ipvs', ...args]);

test('another Service changes no file but its own, even where it shares an address', async () => {
  const cart = service('cart', '10.96.0.10', ', externalIPs: [203.0.113.7]');
  const web = service('web', '10.96.0.11', ', externalIPs: [203.0.113.7]').replaceAll('port: 80,', 'port: 81,');
  const [alone, both] = [freshPath(), freshPath()];
  await compile(write(cart), '--golden', alone);
  await compile(write(cart + web), '--golden', both);
  const file = 'shop.cart.txt';
  expect(readFileSync(join(both, file), 'utf8')).toBe(readFileSync(join(alone, file), 'utf8'));
  expect(readFileSync(join(both, 'shop.web.txt'), 'utf8')).toContain('203.0.113.7/32');
  expect(Object.keys(readTree(both))).toEqual(['golden.json', file, 'node.txt', 'shop.web.txt'].toSorted());
});

test('another version of kpc changes no byte', async () => {
  const folder = freshPath();
  await compile(write(service('web', '10.96.0.10')), '--golden', folder);
  const { snapshot } = await readBack(folder);
  const later = makeGolden(snapshot.with({ kpcVersion: '99.0.0' }), compileState);
  expect(later).toEqual(makeGolden(snapshot, compileState));
  expect([...later.values()].join('\n')).not.toMatch(/0\.1\.0|v1\.36\.3|"counts"|[0-9a-f]{64}/);
});

test('a setting at its default is left out, and one that is not comes back', async () => {
  const folder = freshPath();
  const file = write(service('web', '10.96.0.10'));
  await compile(file, '--ipvs-strict-arp', '--conntrack-min', '7', '--ipvs-tcp-timeout', '20m', '--golden', folder);
  const head = JSON.parse(readFileSync(join(folder, 'golden.json'), 'utf8'));
  expect(head.settings).toEqual({ ipvs: { strictARP: true, tcpTimeout: 1200 }, conntrack: { min: 7 } });
  expect((await readBack(folder)).manifest).toMatchObject({
    settings: { mode: 'ipvs', ipvs: { strictARP: true, scheduler: 'rr' }, conntrack: { min: 7, maxPerCore: 32768 } },
    ipvsTimeouts: { tcp: 1200 },
  });
});

describe('a folder', () => {
  test('with a golden takes no bundle', async () => {
    const folder = freshPath();
    const file = write(service('web', '10.96.0.10'));
    await compile(file, '--golden', folder);
    const before = readTree(folder);
    const run = await compile(file, '-o', folder);
    expect(run).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(
        'already holds a golden (for git), not a bundle [bad-call]\n  help: write it with --golden',
      ),
    });
    expect(readTree(folder)).toEqual(before);
  });

  test('with a bundle is left alone', async () => {
    const folder = freshPath();
    const file = write(service('web', '10.96.0.10'));
    await compile(file, '-o', folder);
    const before = readTree(folder);
    const run = await compile(file, '--golden', folder);
    expect(run).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(
        'already holds a bundle (for a node), not a golden [bad-call]\n  help: write it with -o',
      ),
    });
    expect(readTree(folder)).toEqual(before);
  });

  test('with text files and no golden is left alone', async () => {
    const folder = freshPath();
    const file = write(service('web', '10.96.0.10'));
    await compile(file, '--golden', folder);
    rmSync(join(folder, 'golden.json'));
    const run = await compile(file, '--golden', folder);
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('shop.web.txt') });
  });

  test('of a Service that is gone is found by --check, and loses its file', async () => {
    const folder = freshPath();
    const [web, cart] = [service('web', '10.96.0.10'), service('cart', '10.96.0.11')];
    await compile(write(web + cart), '--golden', folder);
    const run = await compile(write(web), '--check', folder);
    expect(run).toMatchObject({ status: 1, stderr: expect.stringContaining('shop/cart removed') });
    expect(run.stdout).toContain('+++ /dev/null');
    await compile(write(web), '--golden', folder);
    expect(Object.keys(readTree(folder))).not.toContain('shop.cart.txt');
  });
});

test('hostnameOverride is not recorded beside the name of the node, and a golden that records it is the same', async () => {
  const folder = freshPath();
  const args = ['compile', '-f', write(service('web', '10.96.0.10')), '--node', 'a', '--proxy-mode', 'ipvs'];
  await runKpc([...args, '--hostname-override', 'b', '--golden', folder]);
  expect(await runKpc([...args, '--check', folder])).toMatchObject({ status: 0 });
  const head = join(folder, 'golden.json');
  const { settings, ...others } = JSON.parse(readFileSync(head, 'utf8')) as { settings: object };
  writeFileSync(head, JSON.stringify({ ...others, settings: { ...settings, hostnameOverride: 'b' } }));
  expect(await runKpc([...args, '--check', folder])).toMatchObject({ status: 0 });
  expect(await runKpc([...args, '--masquerade-all', '--check', folder])).toMatchObject({ status: 1 });
});

test('kpc-apply says what a golden is', async () => {
  const folder = freshPath();
  await compile(write(service('web', '10.96.0.10')), '--golden', folder);
  await expect(loadBundle(folder)).rejects.toMatchObject({
    finding: {
      code: 'bad-bundle',
      arguments: {
        problem: 'broken',
        problems: [{ problem: 'golden' }],
      },
    },
  });
});

describe('a fleet', () => {
  const node = (name: string) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { addresses: [] } });
  const inputOf = (...nodes: readonly string[]) =>
    write(nodes.map((name) => `${JSON.stringify(node(name))}\n---\n`).join('') + service('web', '10.96.0.10'));

  test('has a golden for each node, which --check and --prune know', async () => {
    const folder = freshPath();
    expect(await compile(inputOf('a', 'b'), '--all-nodes', '--golden', folder)).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('2 nodes: 2 written, 0 unchanged'),
    });
    expect(Object.keys(readTree(folder))).toContain('a/shop.web.txt');
    expect(await compile(inputOf('a', 'b'), '--all-nodes', '--check', folder)).toMatchObject({ status: 0, stdout: '' });
    const fewer = await compile(inputOf('a'), '--all-nodes', '--check', folder);
    expect(fewer).toMatchObject({ status: 1, stderr: expect.stringContaining(`--golden ${folder} --prune`) });
    const again = await compile(inputOf('a'), '--all-nodes', '--prune', '--golden', folder);
    expect(again.stderr).toContain('0 written, 1 unchanged');
    expect(Object.keys(readTree(folder))).not.toContain('b/shop.web.txt');
  });

  test('of goldens is named by its form to who takes it for one of them', async () => {
    const folder = freshPath();
    await compile(inputOf('a', 'b'), '--all-nodes', '--golden', folder);
    const run = await compile(inputOf('a', 'b'), '--node', 'a', '--check', folder);
    expect(run).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('this folder holds the bundles of many nodes'),
    });
  });
});

test.each<[file: string, edit: (text: string) => string, problem: string]>([
  ['golden.json', () => '{', 'golden.json: it is not JSON'],
  ['golden.json', (text) => text.replace('1,', '7,'), 'its format version is 7, but this program reads 1'],
  ['golden.json', (text) => text.replace('"1.37"', '"1.2"'), 'kubernetesVersion must be'],
  ['golden.json', (text) => text.replace('"families": [', '"families": [ "ipv5",'), 'families[0] must be'],
  [
    'golden.json',
    (text) => text.replace('"settings": {', '"settings": { "masqueradeBit": 99'),
    'masqueradeBit must be',
  ],
  ['shop.web.txt', () => '', 'shop.web.txt: it is not JSON'],
  ['shop.web.txt', (text) => text.replaceAll('"web"', '"cart"'), 'it must hold one Service'],
  ['shop.web.txt', (text) => text.replace('10.244.1.10', '127.0.0.1'), 'endpoint 127.0.0.1 is'],
])('a golden that was edited is told from a good one: %s %#', async (file, edit, problem) => {
  const folder = freshPath();
  const input = write(service('web', '10.96.0.10'));
  await compile(input, '--golden', folder);
  const path = join(folder, file);
  const text = readFileSync(path, 'utf8');
  expect(edit(text)).not.toBe(text);
  writeFileSync(path, edit(text));
  const check = await compile(input, '--check', folder);
  expect(check.status).toBe(1);
  expect(check.stderr).toContain(problem);
  const diff = await runKpc(['diff', folder, input]);
  expect(diff).toMatchObject({ status: 2, stderr: expect.stringContaining(problem) });
});

describe('what nothing gave', () => {
  const file = `${freshPath()}.yaml`;
  const [folder, fleet] = [freshPath(), freshPath()];
  const unnamed = ['-f', file, '--assume', '--kpc-yaml', 'none'];
  const head = join(folder, 'golden.json');
  interface Said {
    readonly snapshots: readonly { readonly name: string; readonly assumed?: object }[];
  }
  const assumed = { mode: true, node: true, clusterCIDRs: ['10.244.0.0/16'] };

  beforeAll(async () => {
    writeFileSync(
      file,
      'apiVersion: v1\nkind: Service\nmetadata: { name: web, namespace: shop }\nspec: { ports: [{ port: 80 }] }\n',
    );
    await runKpc(['compile', ...unnamed, '--golden', folder]);
    await runKpc(['compile', ...unnamed, '--all-nodes', '--golden', fleet]);
  });

  test('stands in the golden, and in every answer about it', async () => {
    expect(JSON.parse(readFileSync(head, 'utf8'))).toMatchObject({ assumed });
    for (const words of [
      ['describe', folder],
      ['compile', ...unnamed, '-o', freshPath()],
    ]) {
      const { stdout, stderr } = await runKpc(words);
      expect(stdout + stderr).toMatch(/node node-1 \(assumed\), mode ipvs \(.+\)/);
    }
    const { snapshots } = JSON.parse((await runKpc(['describe', folder, '--output', 'json'])).stdout) as Said;
    expect(snapshots).toMatchObject([{ name: folder, assumed }]);
  });

  test('is assumed too of manifests that take it', async () => {
    const named = ['diff', folder, file, '--kpc-yaml', 'none', '--output', 'json'];
    const { snapshots } = JSON.parse((await runKpc(named)).stdout) as Said;
    expect(snapshots).toMatchObject([{ assumed }, { assumed: { mode: true, clusterCIDRs: ['10.244.0.0/16'] } }]);
    const given = JSON.parse((await runKpc([...named, '--proxy-mode', 'ipvs'])).stdout) as Said;
    expect(given.snapshots.at(-1)?.assumed).not.toHaveProperty('mode');
  });

  test('is no difference to an older golden, which does not say it', async () => {
    for (const [golden, more] of [
      [folder, []],
      [join(fleet, 'node-1'), ['--all-nodes']],
    ] as const) {
      const path = join(golden, 'golden.json');
      const older = { ...(JSON.parse(readFileSync(path, 'utf8')) as object), assumed: undefined };
      writeFileSync(path, `${JSON.stringify(older, undefined, 2)}\n`);
      const checked = more.length > 0 ? fleet : golden;
      expect(await runKpc(['compile', ...unnamed, ...more, '--check', checked])).toMatchObject({ status: 0 });
      expect(await runKpc(['describe', golden])).toMatchObject({ status: 0 });
      writeFileSync(path, readFileSync(path, 'utf8').replace('"mode": "ipvs"', '"mode": "iptables"'));
      expect(await runKpc(['compile', ...unnamed, ...more, '--check', checked])).toMatchObject({ status: 1 });
    }
  });

  test.each([{ node: 'yes' }, { clusterCIDRs: ['10.244.0.0/99'] }, { families: ['ipv5'] }, 'all', null])(
    'is refused as %j',
    async (value) => {
      const written = JSON.parse(readFileSync(head, 'utf8')) as object;
      const strange = freshPath();
      mkdirSync(strange);
      for (const [name, text] of Object.entries(readTree(folder))) writeFileSync(join(strange, name), text);
      writeFileSync(join(strange, 'golden.json'), JSON.stringify({ ...written, assumed: value }));
      const { status, stderr } = await runKpc(['describe', strange]);
      expect(status).toBe(2);
      expect(stderr).toContain('[bad-bundle]');
    },
  );
});
