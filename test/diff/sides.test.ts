import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { costInMegabytes } from '../support/cpu-time.ts';
import { makeCluster } from '../support/make-cluster.ts';
import { makeRandom } from '../support/random.ts';
import { rounds } from '../support/rounds.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

const cases = join(projectFolder, 'test/diff/cases');
const dumps = join(projectFolder, 'fixtures/dumps');
const scratch = mkdtempSync(join(tmpdir(), 'kpc-sides-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const file = join(scratch, name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
  return file;
}

describe('the sides of kpc diff', () => {
  test('manifests are compiled as a bundle beside them was', async () => {
    const cwd = join(cases, 'scale-deployment');
    const bundle = join(scratch, 'iptables-bundle');
    const flags = ['--proxy-mode', 'iptables', '--masquerade-all'];
    await runKpc(['compile', '-f', 'before', ...flags, '--golden', bundle], { cwd });
    const same = await runKpc(['diff', '--rules', bundle, 'before'], { cwd });
    expect(same).toMatchObject({ status: 0, stdout: 'No difference.\n' });
    // The API server's flags say nothing of how kube-proxy is set up.
    const ranges = ['--service-node-port-range', '30000-32767', '--service-cluster-ip-range', '10.96.0.0/16'];
    const assigned = await runKpc(['diff', '--rules', bundle, 'before', ...ranges], { cwd });
    expect(assigned).toMatchObject({ status: 0, stdout: 'No difference.\n' });
    // A flag overrides what it names, and nothing else.
    for (const more of [['--proxy-mode', 'iptables'], ['--cluster-cidr', '10.244.0.0/16'], ['--masquerade-all']]) {
      const kept = await runKpc(['diff', '--rules', bundle, 'before', ...more], { cwd });
      expect(kept.stderr).toMatch(/before: manifests, compiled for node node-1, mode iptables/);
    }
    const named = await runKpc(['diff', '--rules', bundle, 'before', '--proxy-mode', 'iptables'], { cwd });
    expect(named).toMatchObject({ status: 0, stdout: 'No difference.\n' });
    const other = await runKpc(['diff', '--rules', bundle, 'before', '--masquerade-all', 'false'], { cwd });
    expect(other.status).toBe(1);
    expect(other.stdout).toContain('chain KUBE-SVC-4PSDO5LE5GAPCHKW (nat): 4 → 3 rules');
  });

  test('flags for manifests are refused where neither side is any', async () => {
    const bundle = join(projectFolder, 'fixtures/quickstart/expected-ipvs');
    const run = await runKpc(['diff', '--rules', bundle, bundle, '--node', 'worker-2', '--proxy-mode', 'ipvs']);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/^error: --proxy-mode, --node: only for manifests, but neither /);
    expect(await runKpc(['diff', bundle, bundle, '--limit', '3'])).toMatchObject({ status: 0 });
  });

  test('one side may be stdin', async () => {
    const cwd = join(cases, 'scale-deployment');
    const run = await runKpc(['diff', '--rules', 'before', '-', '-f', 'before/node.yaml'], { cwd, stdin: 'kind: [' });
    expect(run.status).toBe(2);
    const both = await runKpc(['diff', '--rules', '-', '-'], { cwd });
    expect(both).toMatchObject({ status: 2, stdout: '' });
  });

  test('a path that is not there, and a bundle that is broken, are errors', async () => {
    const cwd = join(cases, 'scale-deployment');
    const gone = await runKpc(['diff', '--rules', 'before', 'nowhere'], { cwd });
    expect(gone.status).toBe(2);
    expect(gone.stderr).toContain('nowhere: error: there is no such file or folder');
    write('broken/manifest.json', '{');
    const broken = await runKpc(['diff', '--rules', join(scratch, 'broken'), 'before'], { cwd });
    expect(broken.status).toBe(2);
    expect(broken.stderr).toMatch(/error: .*broken: manifest\.json: it is not JSON/);
  });

  test.each([
    ['ipvs', 'nftables', ['ipvs', 'nftables']],
    ['1.34', '1.36', ['1.34', '1.36']],
    ['services.yaml', 'nftables', ['nftables']],
  ])('of %s and %s, modes and releases are no files: kpc equivalence compares what they do', async (...sides) => {
    const [from, to, settings] = sides;
    const { status, stdout } = await runKpc(['diff', from, to, '--output', 'json']);
    const { findings } = JSON.parse(stdout) as { findings: readonly unknown[] };
    expect([status, findings]).toEqual([
      2,
      [expect.objectContaining({ arguments: { problem: 'settings-as-files', from, to, settings } })],
    ]);
  });

  test('what a dump holds that cannot be read is told with its line, and is not compared', async () => {
    write('odd/ipvsadm-save', '-A -f 7 -s rr\n-A -t 10.0.0.1:nosuch -s rr\n');
    write('odd/iptables.save', '*nat\n:PREROUTING ACCEPT [0:0]\nnonsense\nCOMMIT\n');
    const run = await runKpc(['diff', '--rules', join(scratch, 'odd'), join(scratch, 'odd')]);
    expect(run.status).toBe(0);
    expect(run.stdout).toContain(
      ', IPv4 rules of table nat, IPv6 rules, sets, virtual servers, addresses, sysctls, what kpc could not read in ',
    );
    expect(run.stdout).toContain('what kpc could not read in iptables.save');
    for (const place of ['ipvsadm-save:1', 'ipvsadm-save:2', 'iptables.save:3']) expect(run.stderr).toContain(place);
  });

  test('a Service port that both sides have is changed, though all of it in the kernel goes one way', async () => {
    const fleet = join(scratch, 'fleet');
    const files = ['shop.yaml', 'nodes.yaml'].flatMap((name) => ['-f', join('fixtures/cluster', name)]);
    await runKpc(['compile', ...files, '--all-nodes', '-o', fleet]);
    const run = await runKpc(['diff', '--rules', join(fleet, 'worker-1'), join(fleet, 'worker-3')]);
    const cart = ['shop/cart changed', '  - KUBE-LOOP-BACK 10.244.1.21,tcp:8080,10.244.1.21', ''];
    expect(run.stdout.split('\n').slice(0, 5)).toEqual(['node: worker-1 → worker-3', '', ...cart]);
    const golden = join(fleet, 'worker-1');
    const check = await runKpc(['compile', ...files, '--node', 'worker-3', '--check', golden, '--output', 'github']);
    expect(check.stdout).toMatch(
      /\n::error file=fixtures\/cluster\/shop\.yaml,line=10,col=7,title=service-differs::shop\/cart changed: /,
    );
  });

  test("a fleet's folder is called one, and one of its nodes' folders is named", async () => {
    const fleet = join(scratch, 'whole-fleet');
    const files = ['shop.yaml', 'nodes.yaml'].flatMap((name) => ['-f', join('fixtures/cluster', name)]);
    await runKpc(['compile', ...files, '--all-nodes', '-o', fleet]);
    const strange = await runKpc(['describe', fleet, '--node', 'edge']);
    expect(strange.stderr).toMatch(/the fleet holds no such node: it holds .*\[unknown-node\]/);
    const advice = `error: ${fleet} holds the bundles of several nodes [nodes-folder]\n  help: name the folder of one node, such as ${fleet}/worker-1`;
    for (const args of [
      ['diff', fleet, 'fixtures/cluster/shop.yaml'],
      ['describe', '-f', fleet],
      ['describe', '--from-dump', fleet],
    ]) {
      const run = await runKpc(args);
      expect(run).toMatchObject({ status: 2, stdout: '' });
      expect(run.stderr).toContain(advice);
      expect(run.stderr).not.toContain('no Kubernetes object');
    }
    const manifests = write('app/web/manifest.json', toList([]));
    expect((await runKpc(['diff', '--rules', join(manifests, '../..'), manifests])).stderr).not.toContain('fleet');
  });

  test('that nothing differs is not said of what one side cannot tell', async () => {
    const dump = join(dumps, 'kube-proxy-ipvs-dual-stack-nodeport');
    const flags = ['--host-addresses', join(dump, 'ip-addr.json'), '--ip-family', 'dual'];
    const bundle = join(scratch, 'dual');
    const files = ['cluster.yaml', 'node.yaml'].flatMap((file) => ['-f', join(dump, file)]);
    await runKpc(['compile', ...files, '--config', join(dump, 'config.yaml'), ...flags, '-o', bundle]);
    const part = await runKpc(['diff', '--rules', join(dump, 'ipvsadm-save'), bundle]);
    const missed = 'IPv4 rules, IPv6 rules, sets, addresses, sysctls';
    expect(part.stdout).toBe(`No difference in what could be compared; not compared: ${missed}.\n`);
    expect((await runKpc(['diff', join(dump, 'ipset-save'), bundle])).status).toBe(2);
    expect(part.stderr).toContain(`not compared, because one side lacks them: ${missed}`);
    const json = await runKpc(['diff', join(dump, 'ipvsadm-save'), bundle, '--output', 'json']);
    expect(resultOf(json.stdout)).toMatchObject({
      differs: false,
      notCompared: missed.split(', '),
    });
    const iptables = join(scratch, 'dual-iptables');
    await runKpc(['compile', ...files, ...flags, '--proxy-mode', 'iptables', '-o', iptables]);
    const nothing = await runKpc([
      'diff',
      '--rules',
      write('sets/ipset-save', 'create x hash:ip family inet\n'),
      iptables,
    ]);
    expect(nothing).toMatchObject({ status: 2, stdout: '' });
    expect(nothing.stderr).toContain(
      'does not show how packets reach the endpoints of Services, so kpc cannot tell whether they differ [bad-call]\n',
    );
  });

  test('a file of a dump with one long line is read in no time', async () => {
    const long = write('long/iptables-save', `a${' '.repeat(200_000)}b\n`);
    const cost = await costInMegabytes(async () => {
      const run = await runKpc(['diff', '--rules', long, long]);
      expect(run.stderr).toContain('not the output of iptables-save');
    });
    expect(cost).toBeLessThan(10);
  });

  test("other programs' rules take part on request only", async () => {
    const sides = [join(dumps, 'foreign-legacy'), join(dumps, 'kube-proxy-iptables-session-affinity')];
    const own = await runKpc(['diff', '--rules', ...sides]);
    expect(own.stdout).not.toContain('of other programs');
    const all = await runKpc(['diff', '--rules', ...sides, '--foreign']);
    expect(all.stdout).toContain('Objects of other programs\n');
  });

  test('the output stays short however much differs', async () => {
    const [before = '', after = ''] = [1, 2].map((seed) =>
      write(`many/${seed}.json`, toList(makeCluster(rounds(300, 5), makeRandom(seed)))),
    );
    const options = ['--node', 'node-1', '--service-cluster-ip-range', '10.96.0.0/16,fd00:96::/112'];
    for (const output of ['text', 'markdown']) {
      const run = await runKpc(['diff', before, after, ...options, '--rules', '--output', output, '--limit', '5']);
      expect(run.status, run.stderr).toBe(1);
      expect(run.stdout.split('\n').length).toBeLessThan(120);
      expect(run.stdout).toMatch(/… and [\d,]+ more: [\d,]+ Service ports/);
    }
    const all = await runKpc(['diff', '--rules', before, after, ...options, '--limit', '0']);
    expect(all.stdout).not.toContain('… and');
    expect(all.stdout.split('\n').length).toBeGreaterThan(rounds(2000, 5));
  });

  const ofNodes = ['a', 'b'].map(
    (name, i) =>
      `---\napiVersion: v1\nkind: Node\nmetadata: { name: ${name} }\nstatus: { addresses: [{ type: InternalIP, address: 192.168.10.${i + 1} }] }\n`,
  );
  const nodePort =
    'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { type: NodePort, clusterIP: 10.96.0.10, ports: [{ port: 80, nodePort: 30080 }] }\n';

  test('the addresses in a dump do not hide that it is of another node', async () => {
    const manifests = write('other-node/svc.yaml', nodePort + ofNodes.join(''));
    const dump = write(
      'other-node/dump.txt',
      '$ ipvsadm -Sn\n-A -t 10.96.0.10:80 -s rr\n-A -t 192.168.10.2:30080 -s rr\n$ ip addr\n' +
        '2: eth0: <BROADCAST,UP> mtu 1500\n    inet 192.168.10.2/24 scope global eth0\n',
    );
    const run = (node: string) => runKpc(['diff', dump, manifests, '--node', node, '--proxy-mode', 'ipvs']);
    expect((await run('a')).stdout).toContain('+ virtual server TCP 192.168.10.1:30080');
    expect((await run('b')).stdout).not.toContain('virtual server TCP');
  });

  test('of a dump the mode is taken, which is said, and no setting that would hide a difference', async () => {
    const manifests = write('cidr/svc.yaml', nodePort + ofNodes.join(''));
    const flags = ['--node', 'a', '--proxy-mode', 'nftables', '--cluster-cidr', '10.244.0.0/16', '--print', 'nftables'];
    const { stdout } = await runKpc(['compile', manifests, ...flags, '-q']);
    const dump = write('cidr/dump.txt', stdout);
    const run = await runKpc(['diff', dump, manifests, '--node', 'a']);
    expect(run).toMatchObject({ status: 1, stdout: expect.stringContaining('chain services') });
    expect(run.stderr).toContain("mode nftables (the dump's; other settings by flags and defaults)");
    const same = await runKpc(['diff', dump, manifests, '--node', 'a', '--cluster-cidr', '10.244.0.0/16']);
    expect(same.stdout).not.toContain('chain services');
  });
});

function toList(items: readonly unknown[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}
