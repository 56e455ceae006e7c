import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { findingsOf } from '../support/printed-json.ts';
import { runKpc, type Run } from '../support/run-kpc.ts';
import { writeFolder, type Files } from '../support/write-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-rendered-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let count = 0;

/** A folder with these files. */
function write(files: Files): string {
  const folder = join(scratch, String(++count));
  return writeFolder(folder, files);
}

const compile = (cwd: string, ...args: readonly string[]): Promise<Run> =>
  runKpc(['compile', '--proxy-mode', 'ipvs', '--print', 'ipvsadm', ...args], { cwd });

/** Place and arguments of the findings of this code. */
async function told(code: string, cwd: string, ...args: readonly string[]) {
  const { stdout } = await runKpc(['compile', '--proxy-mode', 'ipvs', '--output', 'json', ...args], { cwd });
  return findingsOf(stdout, code).map(({ place, severity, arguments: details }) => ({
    at: place && `${place.file}:${place.line}:${place.column}`,
    severity,
    ...details,
  }));
}

const service = (name: string, ip = '10.96.0.10') =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { clusterIP: ${ip}, ports: [{ port: 80 }] }\n`;

const template = `{{- if .Values.web.create }}
apiVersion: v1
kind: Service
metadata:
  name: {{ .Values.web.name }}
spec:
  ports:
  {{- range .Values.web.ports }}
  - port: {{ . }}
  {{- end }}
---
{{- end }}
apiVersion: v1
kind: ConfigMap
metadata: { name: x }
`;

const chart: Files = {
  'chart/Chart.yaml': 'apiVersion: v2\nname: shop\nversion: 1.2.3\n',
  'chart/values.yaml': 'web:\n  create: true\n  ports: [80]\n',
  'chart/templates/web.yaml': template,
  'chart/templates/cart.yaml': template.replaceAll('web', 'cart'),
  'chart/templates/_helpers.tpl': '{{ define "name" }}x{{ end }}',
};

describe('a chart', () => {
  test('as a folder is one error of a few lines that says how to render it', async () => {
    const cwd = write(chart);
    const run = await compile(cwd, '-f', 'chart');
    expect(run.status).toBe(2);
    expect(run.stderr.match(/error:/g)).toHaveLength(1);
    expect(await told('unrendered-template', cwd, '-f', 'chart')).toMatchObject([
      {
        at: 'chart/templates/cart.yaml:1:1',
        severity: 'error',
        count: 2,
        chart: 'chart',
        render: 'helm template shop',
      },
    ]);
    expect(run.stderr.split('\n').length).toBeLessThan(10);
  });

  test('among manifests is named, with the flag that leaves it out', async () => {
    const cwd = write({ ...chart, 'web.yaml': service('web') });
    const run = await compile(cwd, '-f', '.');
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('--exclude chart\n') });
    const without = await compile(cwd, '-f', '.', '--exclude', 'chart');
    expect(without, without.stderr).toMatchObject({ status: 0, stdout: '-A -t 10.96.0.10:80 -s rr\n' });
  });

  test.each(['chart/templates/web.yaml', 'chart/templates'])(
    'is one error where only %s is named, too',
    async (path) => {
      const run = await compile(write(chart), '-f', path);
      expect(run).toMatchObject({
        status: 2,
        stderr: expect.stringMatching(/"\{\{- if .* \[unrendered-template\]\n(?:.*\n)* {2}help: ./),
      });
      expect(run.stderr.match(/error:/g)).toHaveLength(1);
    },
  );

  test('that is plain YAML but for a name in quotes is told by it', async () => {
    const run = await compile(write({ 'a.yaml': service('"{{ .Values.name }}"') }), '-f', 'a.yaml');
    expect(run.stderr).toMatch(/^a\.yaml:3:20: error: "\{\{ \.Values\.name \}\}" .*\[unrendered-template\]$/m);
    expect(run.stderr.match(/error:/g)).toHaveLength(1);
  });

  test('with a template that needs no rendering is read as far as that', async () => {
    const cwd = write({
      'chart/Chart.yaml': chart['chart/Chart.yaml'] ?? '',
      'chart/templates/web.yaml': service('web'),
    });
    expect(await compile(cwd, '-f', 'chart')).toMatchObject({ status: 0, stdout: '-A -t 10.96.0.10:80 -s rr\n' });
  });
});

describe('a template of another language', () => {
  test.each([
    ['{{ .Name }}', '{{ .Name }}'],
    ['{{ .Name }}-web', '{{ .Name }}'],
    ['"{{ $name }}"', '{{ $name }}'],
    ['{{ name }}', '{{ name }}'],
    ['"{{name}}"', '{{name}}'],
    ['{% if x %}a{% endif %}', '{%'],
    ['${NAME}', '${NAME}'],
    ['${NAME:-web}', '${NAME:-web}'],
    ['$NAME', '$NAME'],
    ['web-$(NAME)', '$(NAME)'],
    ['<%= @name %>', '<%'],
    ['#@ data.values.name', '#@'],
    ['${var.name}', '${var.name}'],
    ['%%NAME%%', '%%NAME%%'],
    ['@NAME@', '@NAME@'],
    ['__THE_NAME__', '__THE_NAME__'],
  ])('is one error, with what is to be filled in: %s', async (name, mark) => {
    const text = `apiVersion: v1\nkind: Service\nmetadata:\n  name: ${name}\nspec:\n  clusterIP: ${name}\n  ports:\n  - port: ${name}\n`;
    const cwd = write({ 'a.yaml': text });
    const run = await compile(cwd, '-f', 'a.yaml');
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr.match(/(?:error|warning):/g)).toHaveLength(1);
    expect(await told('unrendered-template', cwd, '-f', 'a.yaml')).toMatchObject([{ severity: 'error', mark }]);
  });

  test('hides no error that does not result from it', async () => {
    const text = `${service('$NAME')}---\n${service('web', 'nowhere')}`;
    const run = await compile(write({ 'a.yaml': text }), '-f', 'a.yaml');
    expect(run.stderr.match(/error:/g)).toHaveLength(2);
    expect(run.stderr).toMatch(/clusterIP .*"nowhere" \[bad-value\]/);
  });

  test('is one error for all files of a folder', async () => {
    const files = Object.fromEntries(['a', 'b', 'c'].map((name) => [`in/${name}.yaml`, service('$NAME')]));
    const cwd = write(files);
    expect((await compile(cwd, '-f', 'in')).stderr.match(/error:/g)).toHaveLength(1);
    expect(await told('unrendered-template', cwd, '-f', 'in')).toMatchObject([
      { at: 'in/a.yaml:3:19', severity: 'error', mark: '$NAME', count: 3, folder: 'in' },
    ]);
  });
});

test.each([
  [
    'helm template',
    `---\n# Source: shop/templates/web.yaml\n${service('web')}---\n# Source: shop/templates/none.yaml\n---\n`,
  ],
  ['kubectl kustomize', `${service('web')}---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n`],
  [
    'kubectl get -o yaml',
    `apiVersion: v1\nitems:\n- ${service('web').trim().replaceAll('\n', '\n  ')}\nkind: List\nmetadata:\n  resourceVersion: ""\n`,
  ],
])('what %s prints is read from standard input', async (_, stdin) => {
  const run = await runKpc(['compile', '-f', '-', '--proxy-mode', 'ipvs', '--print', 'ipvsadm'], { stdin });
  expect(run, run.stderr).toMatchObject({ status: 0, stdout: '-A -t 10.96.0.10:80 -s rr\n' });
});

describe('a kind or apiVersion that is not filled in', () => {
  test.each([
    ['kind', '${KIND}'],
    ['kind', '$KIND'],
    ['kind', '{{ .Kind }}'],
    ['kind', '"{{ .Kind }}"'],
    ['kind', '"{{ kind }}"'],
    ['kind', '$(KIND)'],
    ['kind', '#@ data.values.kind'],
    ['kind', '__KIND__'],
    ['apiVersion', '${API}'],
    ['apiVersion', 'v$V'],
    ['apiVersion', '"{{ .Api }}/v1"'],
    ['apiVersion', '$(API)/v1'],
  ])('is one error that names the template: %s: %s', async (field, value) => {
    const text = service('web').replace(new RegExp(`^${field}: .*`, 'm'), () => `${field}: ${value}`);
    const run = await compile(write({ 'a.yaml': `${text}---\n${service('api', '10.96.0.11')}` }), '-f', 'a.yaml');
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/error: .*\[unrendered-template\]/);
    expect(run.stderr.match(/(?:error|warning):/g)).toHaveLength(1);
  });
});

describe('braces that are no template', () => {
  const alert =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: x }\ndata:\n  a: 'of {{ $labels.job }}'\n  b: |\n    {{ if .Values.x }}\n";

  test('do no harm', async () => {
    const run = await compile(write({ 'a.yaml': `${alert}---\n${service('web')}` }), '-f', 'a.yaml');
    expect(run).toMatchObject({ status: 0, stdout: '-A -t 10.96.0.10:80 -s rr\n' });
  });

  test('hide nothing of what is wrong elsewhere in the file', async () => {
    const run = await compile(write({ 'a.yaml': `${alert}---\n${service('web', 'nowhere')}` }), '-f', 'a.yaml');
    expect(run).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/clusterIP .*"nowhere" \[bad-value\]/),
    });
  });
});

describe('files of a folder without an object', () => {
  const others: Files = {
    'Chart.yaml': 'apiVersion: v2\nname: x\nversion: 1.0.0\n',
    'values.yaml': 'kind: small\nreplicas: 1\n',
    'kustomization.yaml': 'resources: [web.yaml]\n',
    'mkdocs.yml': 'site_name: x\nplugins: !!python/name:x.y\n',
    '.github/workflows/ci.yml': 'on: push\njobs: { a: { steps: [{ run: "${{ matrix.x }}" }] } }\n',
    'patch.json': '[{ "op": "remove", "path": "/spec" }]\n',
    'tsconfig.json': '{ // a comment\n "strict": true }\n',
    'notes.yaml': 'only a text\n',
    'empty.yaml': '# nothing\n',
  };

  test('are skipped, counted, and named', async () => {
    const cwd = write({ ...others, 'web.yaml': service('web') });
    const run = await compile(cwd, '-f', '.');
    expect(run, run.stderr).toMatchObject({ status: 0, stdout: '-A -t 10.96.0.10:80 -s rr\n' });
    expect(await told('skipped-files', cwd, '-f', '.')).toEqual([
      { at: undefined, severity: 'note', files: Object.keys(others).toSorted() },
    ]);
  });

  test('alone are nothing to compile', async () => {
    const run = await compile(write(others), '-f', '.');
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('kubectl kustomize . | kpc compile -f -') });
  });

  test.each([
    ['without kind', service('web').replace('kind: Service\n', ''), 'kind [not-an-object]'],
    ['without apiVersion', service('web').replace('apiVersion: v1\n', ''), 'apiVersion [not-an-object]'],
    ['with a fault', service('web').replace('}', ''), '[not-closed]'],
    ['beside another object', `${service('web')}---\na: 1\n`, 'kind [not-an-object]'],
  ])('are not those with an object %s', async (_, text, ending) => {
    const run = await compile(write({ 'web.yaml': text }), '-f', '.');
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining(ending) });
  });

  test.each([
    ['Chart.yaml', 'helm template'],
    ['values.yaml', 'helm template'],
    ['kustomization.yaml', 'kubectl kustomize'],
  ])('that are named themselves are errors: %s', async (file, tool) => {
    const run = await compile(write(others), '-f', file);
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining(tool) });
  });

  test('a Kustomization alone is to be built first', async () => {
    const text = 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n';
    const run = await compile(write({ 'kustomization.yaml': text }), '-f', '.');
    expect(run).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('kubectl kustomize . | kpc compile -f -'),
    });
  });
});

test('of a file that is no YAML a few lines are told, and no more', async () => {
  const text = Array.from({ length: 200 }, (_, i) => `---\nkind: [${i}\n`).join('');
  const run = await compile(write({ 'a.yaml': text }), '-f', 'a.yaml');
  expect(run.status).toBe(2);
  expect(run.stderr.match(/error:/g)).toHaveLength(3);
  expect(run.stderr.match(/\[not-closed\]/g)).toHaveLength(3);
  expect(run.stderr.split('\n').length).toBeLessThan(14);
});

describe('what is left out', () => {
  const files: Files = {
    'base/web.yaml': service('web'),
    'base/cart.yaml': service('cart', '10.96.0.11'),
    'rendered/all.yaml': `${service('web')}---\n${service('cart', '10.96.0.11')}`,
    'rendered/more/mail.yaml': service('mail', '10.96.0.12'),
  };
  const servers = (...ips: readonly number[]) => ips.map((n) => `-A -t 10.96.0.${n}:80 -s rr\n`).join('');

  test('is said where a base and what is rendered of it hold the same objects', async () => {
    const cwd = write(files);
    const run = await compile(cwd, '-f', '.');
    expect(run.status).toBe(2);
    expect(await told('duplicate-object', cwd, '-f', '.')).toMatchObject([
      {
        kind: 'Service',
        name: 'default/web',
        first: { file: 'base/web.yaml', line: 3 },
        among: { more: 1, folder: 'rendered', otherFolder: 'base' },
      },
    ]);
    expect(run.stderr.match(/error:/g)).toHaveLength(1);
  });

  test.each<[patterns: readonly string[], out: string]>([
    [['rendered'], servers(10, 11)],
    [['/rendered/'], servers(10, 11)],
    [['rendered/all.yaml'], servers(10, 11, 12)],
    [['base/*'], servers(10, 11, 12)],
    [['**/*.yaml', '!base/web.yaml'], servers(10)],
    [['all.yaml', 'cart.yaml'], servers(10, 12)],
  ])('by --exclude %s', async (patterns, out) => {
    const flags = patterns.flatMap((pattern) => ['--exclude', pattern]);
    const cwd = write(files);
    const run = await compile(cwd, '-f', '.', ...flags);
    expect(run, run.stderr).toMatchObject({ status: 0, stdout: out });
    expect(await compile(scratch, '-f', cwd, ...flags)).toMatchObject({ status: 0, stdout: out });
  });

  test('by a .kpcignore, in the folder, below it and above it', async () => {
    const cwd = write({
      ...files,
      '.kpcignore': '# made of base\n/all/rendered/all.yaml\n',
      'all/.kpcignore': 'cart.yaml\n',
      'all/base/.kpcignore': '!cart.yaml\nweb.yaml\n',
      ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`all/${name}`, text])),
    });
    const run = await compile(cwd, '-f', 'all');
    expect(run).toMatchObject({ status: 0, stdout: servers(11, 12) });
    expect(await told('ignored-files', cwd, '-f', 'all')).toEqual([
      { at: undefined, severity: 'note', by: '.kpcignore', files: ['all/base/web.yaml', 'all/rendered/all.yaml'] },
    ]);
  });

  test('is never what was named itself', async () => {
    const cwd = write({ ...files, '.kpcignore': '*.yaml\n' });
    expect(await compile(cwd, '-f', 'base/web.yaml')).toMatchObject({ status: 0, stdout: servers(10) });
    expect(await told('empty-file', cwd, '-f', 'base')).toMatchObject([{ isFolder: true }]);
  });

  test('and what is compared is chosen likewise', async () => {
    const cwd = write(files);
    const diff = ['diff', 'base', 'rendered', '--exclude', 'more', '--exclude', 'cart.yaml', '--proxy-mode', 'ipvs'];
    const run = await runKpc(diff, { cwd });
    expect(run.stdout).toContain('+ default/cart ');
    expect(run.stdout).not.toContain('mail');
  });
});

describe('what is no file', () => {
  test.each([
    ['https://example.com/a.yaml', 'url'],
    ['services/*.yaml', 'pattern'],
    ['nowhere.yaml', 'missing'],
  ])('is told by its problem: %s', async (path, problem) => {
    expect(await compile(scratch, '-f', path)).toMatchObject({ status: 2 });
    expect(await told('unreadable-file', scratch, '-f', path)).toMatchObject([{ severity: 'error', problem }]);
  });
});

test('a warning that repeats is said once, with the names of the others', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const text = names.map((name) => service(name).replace('clusterIP: 10.96.0.10, ', '')).join('---\n');
  const run = await compile(write({ 'a.yaml': text }), '-f', 'a.yaml', '--allow-empty');
  expect(run.stderr.match(/warning:/g)).toHaveLength(1);
  expect(run.stderr).toMatch(
    /a\.yaml:4:7: warning: default\/a: .* default\/b, default\/c, default\/d, default\/e, default\/f .*\b2 .*\[not-assigned\]/,
  );
});
