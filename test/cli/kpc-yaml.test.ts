import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc, runKpcApply } from '../support/run-kpc.ts';
import { writeFolder, type Files } from '../support/write-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-yaml-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let count = 0;

function write(files: Files): string {
  const folder = join(scratch, String(++count));
  return writeFolder(folder, files);
}

const service = 'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { ports: [{ port: 80 }] }\n';
const range = 'service-cluster-ip-range: 10.96.0.0/16\n';
const printed = /^-A -t 10\.96\.\d+\.\d+:80 -s (\w+)$/;

const compile = (cwd: string, ...args: readonly string[]) =>
  runKpc(['compile', '--print', 'ipvsadm', ...args], { cwd });

describe('kpc.yaml', () => {
  const files: Files = {
    'kpc.yaml': `${range}proxy-mode: ipvs\nipvs-scheduler: wrr\n`,
    'services/web.yaml': service,
  };

  test('gives flags, and one line says which', async () => {
    const run = await compile(write(files), '-f', 'services');
    expect(run, run.stderr).toMatchObject({ status: 0, stdout: expect.stringMatching(/ -s wrr\n$/) });
    expect(run.stderr).toContain('note: from kpc.yaml: --service-cluster-ip-range, --proxy-mode, --ipvs-scheduler\n');
    expect((await compile(write(files), '-f', 'services', '-q')).stderr).toBe('');
  });

  test('places a feature gate that no kube-proxy has', async () => {
    const cwd = write({ ...files, 'kpc.yaml': 'proxy-mode: ipvs\nfeature-gates: [Foo=true]\n' });
    expect((await compile(cwd, '-f', 'services')).stderr).toMatch(/^kpc\.yaml:2:16: error: .* \[bad-feature-gate\]$/m);
  });

  test('places a path at which nothing can be read', async () => {
    const cwd = write({ ...files, 'kpc.yaml': 'file:\n  - services\n  - srevices\n  - https://x/web.yaml\n' });
    const run = await compile(cwd);
    expect(run).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^kpc\.yaml:3:5: error: .* \[bad-kpc-yaml\]$/m),
    });
    expect((await compile(cwd, '-f', 'services', '--allow-empty')).stderr).not.toContain('bad-kpc-yaml');
  });

  test('is found in the folders above, and counts paths from its own', async () => {
    const cwd = write({ ...files, 'kpc.yaml': `${files['kpc.yaml'] ?? ''}file: [services]\n`, 'a/b/x': '' });
    const run = await compile(join(cwd, 'a/b'));
    expect(run, run.stderr).toMatchObject({ status: 0, stdout: expect.stringMatching(/wrr/) });
    expect(run.stderr).toContain('from ../../kpc.yaml: ');
  });

  test('is not looked for outside the repository, nor in a folder that any user may write to', async () => {
    const cwd = write({ ...files, 'sub/.git/HEAD': '', 'sub/web.yaml': service });
    expect((await compile(join(cwd, 'sub'), '-f', 'web.yaml', '--allow-empty')).stderr).not.toContain('kpc.yaml');
    const open = write(files);
    chmodSync(open, 0o777);
    expect((await compile(open, '-f', 'services', '--allow-empty')).stderr).not.toContain('kpc.yaml');
  });

  test('gives way to the command line, and wins over the configuration of kube-proxy', async () => {
    const config =
      'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\nipvs: { scheduler: lc }\n';
    const cwd = write({
      ...files,
      'config.yaml': config,
      'plain/config.yaml': config,
      'plain/.git/x': '',
      'plain/web.yaml': service,
    });
    const schedulerOf = async (...args: readonly string[]) =>
      printed.exec((await compile(cwd, ...args)).stdout.trim())?.[1];
    expect(await schedulerOf('-f', 'services', '--config', 'config.yaml')).toBe('wrr');
    expect(await schedulerOf('-f', 'services', '--ipvs-scheduler', 'sh')).toBe('sh');
    expect(
      await schedulerOf(
        '-f',
        'services',
        '--config',
        'config.yaml',
        '--kpc-yaml',
        'none',
        '--service-cluster-ip-range',
        '10.96.0.0/16',
      ),
    ).toBe('lc');
  });

  test('may be named', async () => {
    const cwd = write({ ...files, 'ci/other.yaml': `${range}ipvs-scheduler: nq\nfile: ../services\n` });
    expect(await compile(cwd, '--kpc-yaml', 'ci/other.yaml')).toMatchObject({ stdout: expect.stringMatching(/nq/) });
    const run = await compile(cwd, '--kpc-yaml', 'nowhere.yaml');
    expect(run).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/nowhere\.yaml: error: .*\[unreadable-file\]/),
    });
  });

  test('has sections for one command, which count more than what is said for all', async () => {
    const cwd = write({
      ...files,
      'kpc.yaml': `${range}ipvs-scheduler: rr\nfile: services\ncompile:\n  ipvs-scheduler: lc\n  golden: golden\ndiff:\n  limit: 1\n`,
    });
    expect((await runKpc(['compile'], { cwd })).stderr).toContain(`Written to golden.`);
    expect(await runKpc(['compile', '--check', 'golden'], { cwd })).toMatchObject({ status: 0, stdout: '' });
    expect((await runKpc(['compile', '--print', 'ipvsadm'], { cwd })).stdout).toContain('-s lc');
    expect((await runKpc(['describe', 'web', '--rules'], { cwd })).stdout).toContain('-s rr');
  });

  test('adds no manifests to the sides of a diff but by its own section', async () => {
    const cwd = write({ ...files, 'kpc.yaml': `${range}file: services\n`, 'old.yaml': service.replace('80', '81') });
    const run = await runKpc(['diff', 'old.yaml', 'services'], { cwd });
    expect(run, run.stderr).toMatchObject({ status: 1 });
  });

  test('gives its flags to the commands that are printed, to paste them elsewhere', async () => {
    const slice =
      '---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: { name: web-1, labels: { kubernetes.io/service-name: web } }\n' +
      'addressType: IPv4\nports: [{ port: 80 }]\nendpoints: [{ addresses: [10.1.0.9] }]\n';
    const cwd = write({
      'kpc.yaml': `${range}diff: { proxy-mode: nftables }\n`,
      'a.yaml': service + slice,
      'b.yaml': service.replace('80', '81') + slice,
    });
    const { stdout } = await runKpc(['diff', 'a.yaml', 'b.yaml', '--output', 'json', '-q'], { cwd });
    expect(stdout).toContain('kpc trace b.yaml --service-cluster-ip-range 10.96.0.0/16 --proxy-mode nftables ');
  });

  test('leaves bundles and dumps as they are', async () => {
    const cwd = write({ ...files, 'kpc.yaml': `${range}file: services\n` });
    await runKpc(['compile', '-o', 'bundle'], { cwd });
    expect(await runKpc(['describe', 'web', '-f', 'bundle'], { cwd })).toMatchObject({ status: 0 });
    expect(await runKpc(['diff', 'bundle', 'bundle'], { cwd })).toMatchObject({ status: 0 });
  });

  test.each<[text: string, message: string]>([
    ['nod: a\n', 'kpc.yaml:1:1: error: kpc has no flag --nod [bad-kpc-yaml]'],
    ['mode: ipvs\n', 'help: did you mean proxy-mode?'],
    ['describe: { version: 1.36 }\n', 'help: did you mean kubernetes-version?'],
    ['desribe: { node: a }\n', 'help: did you mean describe?'],
    ['a: 1\nproxyMode: ipvs\n', 'kpc.yaml:2:1: error: kpc has no flag --proxyMode'],
    ['diff: { golden: x }\n', 'kpc.yaml:1:9: error: kpc diff has no flag --golden'],
    ['diff: x\n', 'kpc.yaml:1:7: error: diff cannot be "x"'],
    ['node: worker-1\nmasquerade-all: maybe\n', 'kpc.yaml:2:17: error: masquerade-all cannot be "maybe"'],
    ['node: { a: 1 }\n', 'kpc.yaml:1:7: error: node cannot be a mapping'],
    ['proxy-mode: [a, b]\n', 'kpc.yaml:1:13: error: proxy-mode cannot be a list'],
    ['ip-family: ipv5\n', 'kpc.yaml:1:12: error: ip-family cannot be "ipv5"'],
    ['ip-family: true\n', 'help: write auto, ipv4, ipv6 or dual\n'],
    ['proxy-mode: true\n', 'help: write one value: ipvs, iptables, nftables or userspace ('],
    ['node: a\nrender: true\n', 'kpc.yaml:2:1: error: render cannot be set in kpc.yaml'],
    ['diff: { render-values: a }\n', 'kpc.yaml:1:9: error: render-values cannot be set in kpc.yaml'],
    ['service-cluster-ip-range: nowhere\n', 'kpc.yaml:1:27: error: --service-cluster-ip-range cannot be "nowhere"'],
    ['proxy-mode: fast\n', 'kpc.yaml:1:13: error: '],
    ['conntrack-min: -1\n', 'kpc.yaml:1:16: error: '],
    ['exclude: [x, { a: 1 }]\n', 'kpc.yaml:1:14: error: exclude[1] cannot be a mapping'],
    ['node: worker-1\nprune: true\n', 'kpc.yaml:2:8: error: --prune needs --all-nodes'],
    [
      'proxy-mode: userspace\nkubernetes-version: 1.25\nbind-address: "::1"\n',
      'kpc.yaml:3:15: error: --bind-address is "::1"',
    ],
    ['compile: { node: a, all-nodes: true }\n', 'kpc.yaml:1:21: error: all-nodes cannot be used with node'],
    ['- a\n', 'kpc.yaml:1:1: error: kpc.yaml cannot be a list'],
    ['a: [\n', 'kpc.yaml:1:4: error: not valid YAML'],
    ['node: a\nnode: b\n', 'kpc.yaml:2:1: error: '],
    ['node: a\n---\nnode: b\n', 'kpc.yaml holds several documents'],
    ['kpc-yaml: x\n', 'kpc-yaml cannot be set in kpc.yaml'],
  ])('is told what is wrong with it, and where: %j', async (text, message) => {
    const cwd = write({ ...files, 'kpc.yaml': text });
    const run = await runKpc(['compile', '--print', 'manifest', '-f', 'services', '--allow-empty'], { cwd });
    expect(run).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining(message) });
    expect(run.stderr).not.toContain('[internal-error]');
  });

  test.each(['', '# nothing\n', 'compile:\n', 'node:\n'])('may say nothing: %j', async (text) => {
    const cwd = write({ ...files, 'kpc.yaml': text });
    const run = await compile(cwd, '-f', 'services', '--service-cluster-ip-range', '10.96.0.0/16');
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stderr).not.toContain('kpc.yaml');
  });

  test('is nothing to kpc-apply, nor to kpc version', async () => {
    const cwd = write({ 'kpc.yaml': 'a: [\n' });
    expect((await runKpcApply(['plan', 'nowhere'], { cwd })).stderr).not.toContain('kpc.yaml');
    expect(await runKpc(['version'], { cwd })).toMatchObject({ status: 0 });
  });
});
