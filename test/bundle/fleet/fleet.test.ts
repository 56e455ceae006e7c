import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readBundle } from '../../../src/bundle/read-bundle.ts';
import { compileState } from '../../../src/snapshot/open/compile-node.ts';
import { makeCluster } from '../../support/make-cluster.ts';
import { makeRandom } from '../../support/random.ts';
import { readTree } from '../../support/read-tree.ts';
import { rounds, some, triesAll } from '../../support/rounds.ts';
import { kpcProgram, projectFolder, runKpc } from '../../support/run-kpc.ts';
import { resultOf } from '../../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-fleet-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const input = join(scratch, 'input');
const whole = join(scratch, 'whole');

const nodesIn = (folder: string) => readdirSync(folder).filter((name) => !name.startsWith('.'));

let folders = 0;
const freshPath = () => join(scratch, `out-${++folders}`);

const ranges = ['--service-cluster-ip-range', '10.96.0.0/16,fd00:96::/112'];
const compile = (...args: readonly string[]) => runKpc(['compile', '-f', input, ...ranges, ...args]);

beforeAll(async () => {
  mkdirSync(input);
  const nodes = Array.from({ length: 9 }, (_, i) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `node-${i + 4}`, labels: { 'topology.kubernetes.io/zone': i % 2 ? 'east' : 'west' } },
    status: { addresses: [{ type: 'InternalIP', address: `192.168.50.${i + 14}` }] },
  }));
  const objects = [...makeCluster(rounds(40, 3), makeRandom(7)), ...nodes];
  writeFileSync(join(input, 'cluster.json'), objects.map((object) => JSON.stringify(object)).join('\n'));
  const { status, stderr } = await compile('--all-nodes', '-o', whole);
  if (status !== 0) throw new Error(stderr);
});

describe('a run for all nodes', () => {
  test('writes for each what a run for it alone writes', async () => {
    const names = nodesIn(whole);
    expect(names).toHaveLength(12);
    for (const node of ['node-1', 'node-3', 'node-10']) {
      const alone = freshPath();
      expect(await compile('--node', node, '-o', alone)).toMatchObject({ status: 0 });
      expect(readTree(join(whole, node))).toEqual(readTree(alone));
    }
  });

  test('stores a file that many nodes have once', () => {
    const inodes = new Set(nodesIn(whole).map((node) => statSync(join(whole, node, 'services.json')).ino));
    expect(inodes.size).toBe(1);
    const manifests = new Set(nodesIn(whole).map((node) => statSync(join(whole, node, 'manifest.json')).ino));
    expect(manifests.size).toBe(12);
  });

  test('writes bundles that can be read back', () => {
    for (const node of nodesIn(whole)) {
      const names = readdirSync(join(whole, node));
      const files = new Map(names.map((name) => [name, readFileSync(join(whole, node, name), 'utf8')]));
      expect(readBundle(files, compileState)).toMatchObject({
        kind: 'bundle',
        bundle: { manifest: { node: { name: node } } },
      });
    }
  });

  test.each(some(['ipvs', 'iptables']))('gives in shards exactly what one run gives, in mode %s', async (mode) => {
    const together = freshPath();
    const alone = freshPath();
    for (const shard of ['0/3', '1/3', '2/3']) {
      const run = await compile('--all-nodes', '--proxy-mode', mode, '--shard', shard, '-o', together);
      expect(run).toMatchObject({ status: 0 });
      expect(run.stderr).toContain(`of 12 nodes (shard ${shard})`);
    }
    expect(await compile('--all-nodes', '--proxy-mode', mode, '-o', alone)).toMatchObject({ status: 0 });
    expect(readTree(together)).toEqual(readTree(alone));
  });

  test.each(some(['nftables', 'ipvs', 'iptables']))(
    'gives with --jobs exactly what one job gives, in mode %s',
    async (mode) => {
      const flags = ['--all-nodes', '--proxy-mode', mode];
      const [together, alone] = [freshPath(), freshPath()];
      expect(await compile(...flags, '--jobs', '3', '-o', together)).toMatchObject({
        status: 0,
        stderr: expect.stringContaining('12 nodes: 12 written, 0 unchanged'),
      });
      // Records of what is compiled name the build: both runs are of the built program.
      const one = await runKpc(['compile', '-f', input, ...ranges, ...flags, '-o', alone], { env: {} });
      expect(one).toMatchObject({ status: 0 });
      expect(readTree(together)).toEqual(readTree(alone));
      const inodes = new Set(nodesIn(together).map((node) => statSync(join(together, node, 'services.json')).ino));
      expect(inodes.size).toBe(1);
      const again = await compile(...flags, '--jobs', '4', '-o', together);
      expect(again.stderr).toContain('12 nodes: 0 written, 12 unchanged');
    },
  );

  test.runIf(triesAll)('gives with --jobs the goldens, too, and reads its configuration, and stdin', async () => {
    const config = join(scratch, 'config.yaml');
    const kind = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';
    writeFileSync(config, `${kind}mode: nftables\nclusterCIDR: 10.9.0.0/16\n`);
    const stdin = readFileSync(join(input, 'cluster.json'), 'utf8');
    const flags = ['compile', '-f', '-', ...ranges, '--config', config, '--all-nodes'];
    const [together, alone] = [freshPath(), freshPath()];
    expect(await runKpc([...flags, '--jobs', '2', '--golden', together], { stdin })).toMatchObject({ status: 0 });
    expect(await runKpc([...flags, '--golden', alone], { stdin })).toMatchObject({ status: 0 });
    expect(readTree(together)).toEqual(readTree(alone));
  });

  test.runIf(triesAll)('needs no more jobs than there are nodes', async () => {
    const out = freshPath();
    const shop = ['shop.yaml', 'nodes.yaml'].flatMap((name) => ['-f', `fixtures/cluster/${name}`]);
    const flags = ['--proxy-mode', 'ipvs', '--all-nodes', '--jobs', '40', '-o', out];
    expect(await runKpc(['compile', '-q', ...shop, ...flags])).toMatchObject({ status: 0 });
    expect(nodesIn(out)).toEqual(['worker-1', 'worker-2', 'worker-3']);
  });

  test('takes single nodes as well', async () => {
    const out = freshPath();
    expect(await compile('--node', 'node-2', '--node', 'node-1', '-o', out)).toMatchObject({ status: 0 });
    expect(nodesIn(out)).toEqual(['node-1', 'node-2']);
    expect(readTree(join(out, 'node-2'))).toEqual(readTree(join(whole, 'node-2')));
  });

  test("listens on each node's own addresses where a folder holds them", async () => {
    const hosts = freshPath();
    const out = freshPath();
    mkdirSync(hosts);
    const link = { ifname: 'eth0', addr_info: [{ family: 'inet', local: '203.0.113.77', prefixlen: 24 }] };
    writeFileSync(join(hosts, 'node-1.json'), JSON.stringify([link]));
    const run = await compile('--node', 'node-1', '--node', 'node-2', '--host-addresses', hosts, '-o', out);
    expect(run).toMatchObject({ status: 0 });
    expect(run.stderr).toMatch(/note: .*\b1 of 2 .*node-2\.json.* \[no-host-addresses\]/);
    expect(readFileSync(join(out, 'node-1', 'ipvsadm.restore'), 'utf8')).toContain('203.0.113.77:');
    expect(readTree(join(out, 'node-2'))).toEqual(readTree(join(whole, 'node-2')));
    const single = freshPath();
    await compile('--node', 'node-1', '--host-addresses', hosts, '-o', single);
    expect(readTree(single)).toEqual(readTree(join(out, 'node-1')));
  });
});

describe('a run into a folder that is there', () => {
  test('leaves alone what is up to date, and mends what is not', async () => {
    const out = freshPath();
    cpSync(whole, out, { recursive: true });
    // The same length, so that only reading it shows the change.
    const harmed = join(out, 'node-5', 'ip.batch');
    writeFileSync(harmed, readFileSync(harmed, 'utf8').replace('kube-ipvs0', 'kube-ipvs1'));
    rmSync(join(out, 'node-6', 'sysctl.conf'));
    rmSync(join(out, 'node-7'), { recursive: true });
    const before = statSync(join(out, 'node-8')).ino;
    const run = await compile('--all-nodes', '-o', out);
    expect(run).toMatchObject({ status: 0, stderr: expect.stringContaining('12 nodes: 3 written, 9 unchanged') });
    expect(readTree(out)).toEqual(readTree(whole));
    expect(statSync(join(out, 'node-8')).ino).toBe(before);
  });

  test('never writes over a folder that is no bundle', async () => {
    const out = freshPath();
    mkdirSync(join(out, 'node-9'), { recursive: true });
    writeFileSync(join(out, 'node-9', 'thesis.txt'), 'years of work');
    const run = await compile('--all-nodes', '-o', out);
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('thesis.txt') });
    expect(readdirSync(join(out, 'node-9'))).toEqual(['thesis.txt']);
  });

  test('speaks of the folders of nodes that are gone, and removes them with --prune', async () => {
    const out = freshPath();
    cpSync(whole, out, { recursive: true });
    cpSync(join(whole, 'node-1'), join(out, 'gone'), { recursive: true });
    mkdirSync(join(out, 'notes'));
    const kept = await compile('--all-nodes', '-o', out);
    expect(kept.stderr).toContain('No Node object for the folders gone: --prune removes them');
    expect(existsSync(join(out, 'gone'))).toBe(true);
    const pruned = await compile('--all-nodes', '--prune', '-o', out);
    expect(pruned.stderr).toContain('Removed the folders gone');
    expect(nodesIn(out)).toEqual([...nodesIn(whole), 'notes'].toSorted());
  });
});

describe('--check', () => {
  test('is silent where nothing changes', async () => {
    const run = await compile('--all-nodes', '--check', whole);
    expect(run).toMatchObject({ status: 0, stdout: '' });
    expect(run.stderr).not.toContain('is not what the input makes');
  });

  test('says which nodes change, and how many', async () => {
    const out = freshPath();
    cpSync(whole, out, { recursive: true });
    rmSync(join(out, 'node-1'), { recursive: true });
    writeFileSync(join(out, 'node-2', 'sysctl.conf'), '');
    cpSync(join(out, 'node-3'), join(out, 'gone'), { recursive: true });
    expect(await compile('--all-nodes', '--check', out)).toMatchObject({
      status: 1,
      stdout: 'node-1: new\nnode-2: sysctl.conf\ngone: gone\n2 of 12 nodes change, 1 node is gone\n',
      stderr: expect.stringContaining(`${out} does not match the input. To accept the change:\n  kpc compile `),
    });
  });
});

describe('a folder that is not all its own', () => {
  test('is left alone where it is the bundle of one node', async () => {
    const out = freshPath();
    cpSync(join(whole, 'node-1'), out, { recursive: true });
    const before = readTree(out);
    const run = await compile('--all-nodes', '-o', out);
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('is the bundle of one node') });
    expect(readTree(out)).toEqual(before);
  });

  test('is left alone by each thread', async () => {
    const out = freshPath();
    for (const node of nodesIn(whole).slice(1)) {
      mkdirSync(join(out, node), { recursive: true });
      writeFileSync(join(out, node, 'thesis.txt'), '');
    }
    const run = await compile('--all-nodes', '--jobs', '2', '-o', out);
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('thesis.txt') });
    for (const node of nodesIn(whole).slice(1)) expect(readdirSync(join(out, node))).toEqual(['thesis.txt']);
  });

  test("says how far it came where a node's folder holds other files", async () => {
    const out = freshPath();
    mkdirSync(join(out, 'node-10'), { recursive: true });
    writeFileSync(join(out, 'node-10', 'thesis.txt'), '');
    const run = await compile('--all-nodes', '-o', out);
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('thesis.txt') });
    expect(run.stderr).toMatch(/\nThe folders of \d+ nodes are done\.\nerror: .*thesis\.txt/);
  });
});

test('--output json says what became of the nodes', async () => {
  const out = freshPath();
  const run = await compile('--all-nodes', '-o', out, '--output', 'json');
  expect(resultOf(run.stdout)).toMatchObject({
    folder: out,
    nodes: 12,
    written: 12,
    unchanged: 0,
  });
});

describe('what makes no sense', () => {
  test.each([
    [['--all-nodes'], 'the output for several nodes needs a folder'],
    [['--all-nodes', '--print', 'ipvsadm'], 'the output for several nodes needs a folder'],
    [['--all-nodes', '--jobs', '0', '-o', 'x'], 'number from 1 to 64'],
    [['--all-nodes', '--jobs', '2', '--check', 'x'], "cannot be used with option '--check"],
    [['--all-nodes', '--shard', '3/3', '-o', 'x'], 'I counts from 0'],
    [['--shard', '0/3', '-o', 'x'], 'and --all-nodes'],
    [['--prune', '-o', 'x'], '--prune needs --all-nodes'],
    [['--node', 'node-1', '--node', '../node-2', '-o', 'x'], '--node cannot be'],
    [['--node', 'node-1', '--node', 'node-2', '--prune', '-o', 'x'], '--prune needs --all-nodes'],
    [['--all-nodes', '--host-addresses', kpcProgram, '-o', 'x'], 'is not a folder'],
  ])('%j is refused', async (args, reason) => {
    const run = await compile(...args);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain(reason);
    expect(existsSync(join(projectFolder, 'x'))).toBe(false);
  });
});

test.each(['-o', '--golden'])('--check of what %s wrote names what the folders do not record', async (flag) => {
  const out = freshPath();
  const policies = join(scratch, 'policies.yaml');
  writeFileSync(
    policies,
    '{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {}}}',
  );
  await compile('-f', policies, '--all-nodes', flag, out);
  const check = ['-f', policies, '--all-nodes', '--check', out];
  const unrecorded = expect.arrayContaining([expect.stringContaining('1 NetworkPolicy')]);
  expect(resultOf((await compile(...check, '--output', 'json')).stdout)).toMatchObject({ notCompared: unrecorded });
  for (const [format, stream] of [
    ['text', 'stderr'],
    ['markdown', 'stdout'],
  ] as const)
    expect((await compile(...check, '--output', format))[stream]).toContain('not compared: ');
});
