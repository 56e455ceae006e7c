import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc, type Run } from '../support/run-kpc.ts';
import { writeFolder, type Files } from '../support/write-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-skip-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let count = 0;

/** A folder with these files. */
const write = (files: Files): string => writeFolder(join(scratch, String(++count)), files);

const run = (cwd: string, ...args: readonly string[]): Promise<Run> => runKpc(args, { cwd });

const service = (name: string, spec = 'clusterIP: 10.96.0.10') =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { ${spec}, ports: [{ port: 80 }] }\n`;

const printIpvs = ['--proxy-mode', 'ipvs', '--print', 'ipvsadm', '--skip-invalid'];

const broken: Files = {
  'in/a.yaml': service('web'),
  'in/broken.yaml': `${service('half', 'clusterIP: 10.96.0.11')}---\nkind: [\n`,
  'in/bytes.yaml': 'a\0b',
  'in/chart/Chart.yaml': 'apiVersion: v2\nname: shop\nversion: 1.2.3\n',
  'in/chart/templates/one.yaml': service('{{ .Values.a }}'),
  'in/chart/templates/two.yaml': service('{{ .Values.b }}'),
  'in/twice.yaml': `${service('web')}---\n${service('other', 'clusterIP: 10.96.0.12')}`,
  'in/variable.yaml': service('$NAME'),
  'in/wrong.yaml': `${service('good', 'clusterIP: 10.96.0.13')}---\n${service('bad', 'clusterIP: 10.96.0.300')}`,
};

const others = [
  service('half', 'clusterIP: 10.96.0.11'),
  service('other', 'clusterIP: 10.96.0.12'),
  service('good', 'clusterIP: 10.96.0.13'),
];

const warnings = [
  'warning: skipped 3 files with errors, the invalid objects of 3 files and 1 object that the input defines twice (--skip-invalid) [left-out]',
  'in/broken.yaml:6:7: warning: left out: not valid YAML: the [ on line 6 is not closed [left-out]',
  'in/bytes.yaml: warning: left out: the file is binary [left-out]',
  'in/chart/templates/one.yaml:3:19: warning: left out 2 files: the first of 2 Helm templates in the chart in/chart [left-out]',
  'in/twice.yaml:3:19: warning: left out: duplicate Service default/web, first defined at in/a.yaml:3 [left-out]',
  'in/variable.yaml:3:19: warning: left out: "$NAME" is part of an unrendered template [left-out]',
  'in/wrong.yaml:9:20: warning: left out: clusterIP cannot be "10.96.0.300" [left-out]',
];

const leftOutOf = ({ stderr }: Run): readonly string[] =>
  stderr.split('\n').filter((line) => line.includes('left-out'));

test('a tree with broken files is compiled, described and compared without them, with a line for each', async () => {
  const cwd = write({
    ...broken,
    'good/all.yaml': [service('web'), ...others].join('---\n'),
  });
  const compiled = await run(cwd, 'compile', 'in', ...printIpvs);
  expect(compiled).toMatchObject({
    status: 0,
    stdout: [10, 11, 12, 13].map((n) => `-A -t 10.96.0.${n}:80 -s rr\n`).join(''),
  });
  expect(leftOutOf(compiled)).toEqual(warnings);
  // No line of the files is quoted below.
  expect(compiled.stderr).not.toMatch(/\^\n/);
  const described = await run(cwd, 'describe', 'other', 'in', '--skip-invalid');
  expect(described).toMatchObject({ status: 0, stdout: expect.stringContaining('10.96.0.12') });
  const shown = warnings.map((text) => text.replace('kpc compile -f -', 'kpc describe -'));
  expect(leftOutOf(described)).toEqual(shown);
  const compared = await run(cwd, 'diff', 'in', 'good', '--skip-invalid');
  expect(compared).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(
      /^No difference in what could be compared; not compared: objects with errors/,
    ) as string,
  });
  // Of one side alone.
  expect(leftOutOf(compared)).toEqual([`in: ${shown[0]}`, ...shown.slice(1)]);
});

test('how many are left out is said in every case', async () => {
  const cwd = write(broken);
  const quiet = await run(cwd, 'compile', 'in', ...printIpvs, '-q');
  expect(quiet).toMatchObject({ status: 0, stderr: `${warnings[0]}\n` });
  expect(await run(cwd, 'compile', 'in', ...printIpvs, '--strict')).toMatchObject({ status: 2, stdout: '' });
});

test('without the flag nothing is left out, and the flag is named', async () => {
  const cwd = write(broken);
  const refused = await run(cwd, 'compile', 'in', '-o', 'out');
  expect(refused).toMatchObject({ status: 2, stdout: '' });
  expect(refused.stderr).toMatch(/note: 6 of 9 .*\[left-out\]/);
});

const itemsOf = (...documents: readonly string[]): string =>
  `apiVersion: v1\nkind: List\nitems:\n${documents.map((text) => `- ${text.trim().replaceAll('\n', '\n  ')}\n`).join('')}`;

test.each([
  ['a document', 'in/b.yaml:4:78', (...documents: readonly string[]) => documents.join('---\n')],
  ['an item of a list', 'in/b.yaml:7:80', itemsOf],
])('%s that cannot be compiled beside the others is left out alone', async (_, place, combine) => {
  const wide = 'clusterIP: 10.96.0.11, ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv4, IPv6]';
  const beside = service('beside', 'clusterIP: 10.96.0.12');
  const cwd = write({ 'in/a.yaml': service('web'), 'in/b.yaml': combine(service('wide', wide), beside) });
  const flags = ['--service-cluster-ip-range', '10.96.0.0/16'];
  const compiled = await run(cwd, 'compile', 'in', ...printIpvs, ...flags);
  expect(compiled, compiled.stderr).toMatchObject({
    status: 0,
    stdout: '-A -t 10.96.0.10:80 -s rr\n-A -t 10.96.0.12:80 -s rr\n',
  });
  expect(compiled.stderr).toMatch(/warning: .*\b1 file .*--skip-invalid.*\[left-out\]/);
  expect(compiled.stderr).toContain(`${place}: warning: left out: default/wide: no IPv6 address of`);
});

test('an input of which nothing is left is refused', async () => {
  const cwd = write({ 'in/a.yaml': service('$NAME') });
  const compiled = await run(cwd, 'compile', 'in', '--skip-invalid', '-o', 'out');
  expect(compiled).toMatchObject({ status: 2, stderr: expect.stringMatching(/error: .*\[no-input\]/) });
});

test("a folder's own bundles, goldens and kpc.yaml are none of its manifests", async () => {
  const cwd = write({ 'kpc.yaml': 'file: [.]\nproxy-mode: ipvs\n', 'web.yaml': service('web') });
  for (const folder of ['out', 'more/out'])
    expect(await run(cwd, 'compile', '-o', folder)).toMatchObject({ status: 0 });
  expect(await run(cwd, 'compile', '--golden', 'golden')).toMatchObject({ status: 0 });
  const again = await run(cwd, 'compile', '--check', 'golden');
  expect(again).toMatchObject({ status: 0, stdout: '' });
  expect(again.stderr).not.toMatch(/skipped|ignored/);
  expect(await run(cwd, 'describe')).toMatchObject({ status: 0, stdout: expect.stringContaining('default/web') });
});

test('kinds that are skipped are counted, and the five most frequent named', async () => {
  const kinds = ['Role', 'Role', 'Secret', 'Alpha', 'Beta', 'Gamma', 'Delta', 'Delta', 'Delta', 'Omega'];
  const objects = kinds.map((kind) => `apiVersion: example.com/v1\nkind: ${kind}\n---\n`).join('');
  const cwd = write({ 'in.yaml': `${objects}${service('web')}` });
  expect((await run(cwd, 'compile', '-f', 'in.yaml', ...printIpvs)).stderr).toContain(
    'ignored (kube-proxy does not read them): 3 Deltas, 2 Roles, 1 Alpha, 1 Beta, 1 Gamma, and 2 objects of 2 other kinds [skipped-kinds]',
  );
});

test.each([
  ['an item of a List', [service('web'), 'bad'], true],
  ['a document with a placeholder', [service('web'), service('$NAME', 'clusterIP: 10.96.0.11')], true],
  ['a document that is not YAML', [service('web'), 'apiVersion: v1\nkind: Service\nmetadata: [\n'], true],
  ['a document beside a statement of a template', [service('web'), '{{- range .Values.x }}\nkind: Service\n'], false],
  ['a document in a conflict of Git', [service('web'), '<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> x\n'], false],
])('%s takes its file along only where objects cannot be told apart', async (_, documents, isKept) => {
  const text = documents.includes('bad') ? itemsOf(...documents) : documents.join('---\n');
  const cwd = write({ 'in/all.yaml': text, 'in/other.yaml': service('other', 'clusterIP: 10.96.0.12') });
  const compiled = await run(cwd, 'compile', 'in', ...printIpvs);
  const expected = [...(isKept ? [10] : []), 12].map((n) => `-A -t 10.96.0.${n}:80 -s rr\n`);
  expect(compiled, compiled.stderr).toMatchObject({ status: 0, stdout: expected.join('') });
  expect(compiled.stderr).toContain(
    isKept ? 'skipped the invalid objects of 1 file (' : 'skipped 1 file with errors (',
  );
});
