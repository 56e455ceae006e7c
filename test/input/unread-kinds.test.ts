import { wordsOf } from '../../src/say/words/words.ts';
import { describe, expect, test } from 'vitest';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { collectFiles } from '../../src/input/read-inputs.ts';

const service = (name: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { clusterIP: 10.96.0.10, ports: [{ port: 80 }] }\n`;

const anObject = (apiVersion: string, kind: string, name: string) =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: ${name}\n`;

function read(text: string, options: Parameters<typeof collectFiles>[1] = {}) {
  const collected = collectFiles([new TextFile('in.yaml', text)], options);
  const errors = collected.diagnostics
    .filter(({ severity }) => severity === 'error')
    .map((error) => wordsOf(error).text);
  return { errors, skipped: [...collected.skipped], services: collected.services.length };
}

/** Names that are filled in later; most of them are no YAML. */
const names = [
  '{{ .Values.x }}',
  '{{ .Values.x }}-job',
  '{{- include "x" . }}',
  '${NAME}',
  '<name>',
  '%NAME%',
  '@NAME@',
  '`name`',
  '*name',
  '"unclosed',
  '[open',
  'a: b',
];

describe('what is wrong in a document of a kind that kpc skips is no error', () => {
  test.each(names)('name: %s', (name) => {
    for (const [apiVersion, kind] of [
      ['batch/v1', 'Job'],
      ['v1', 'Secret'],
      ['v1', 'ConfigMap'],
      ['example.com/v1', 'Thing'],
    ] as const) {
      const text = `${anObject(apiVersion, kind, name)}---\n${service('web')}`;
      expect(read(text)).toEqual({ errors: [], skipped: [[kind, 1]], services: 1 });
    }
  });

  test('alone in its file, with Windows line ends, a comment and quotes, too', () => {
    const text = `# a comment\n${anObject('batch/v1', '"Job" # a comment', '{{ x }}')}`.replaceAll('\n', '\r\n');
    expect(read(text)).toEqual({ errors: [], skipped: [['Job', 1]], services: 0 });
  });
});

describe('broken JSON', () => {
  const readJson = (text: string) => {
    const { diagnostics, skipped, services } = collectFiles([new TextFile('in.json', text)], {});
    return [diagnostics.some(({ severity }) => severity === 'error'), [...skipped], services.length];
  };
  const job = '{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": [1,}, "spec": {"kind": "Service"}';

  test('of a kind that kpc skips is no error', () => {
    expect(readJson(`${job}}`)).toEqual([false, [['Job', 1]], 0]);
    expect(readJson(job)).toEqual([false, [['Job', 1]], 0]);
    const valid =
      '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": "10.96.0.9", "ports": [{"port": 80}]}}';
    expect(readJson(`${valid}\n${job}}\n`)).toEqual([false, [['Job', 1]], 1]);
  });

  test.each([
    ['a kind that kpc reads', job.replace('Job', 'Service').replace('batch/v1', 'v1')],
    ['two kinds', job.replace('"kind": "Job",', '"kind": "Job", "kind": "Service",')],
    ['a list', job.replace('Job', 'List').replace('batch/v1', 'v1')],
    ['another object behind it', `${job}} {"apiVersion": "v1", "kind": "Service"`],
    ['a template', job.replace('[1,', '{{ .Values.x }}')],
    ['no kind', '{"apiVersion": "batch/v1", "spec": {"kind": "Job",}'],
  ])('is one of %s', (_, text) => {
    expect(readJson(text)[0]).toBe(true);
  });
});

describe('it is an error', () => {
  test.each(names.filter((name) => name !== '<name>' && name !== '[open'))(
    'in a kind that kpc reads: name: %s',
    (name) => {
      expect(read(anObject('v1', 'Service', name)).errors).not.toEqual([]);
      expect(read(anObject('batch/v1', 'Job', name), { workloads: true }).errors).not.toEqual([]);
    },
  );

  const job = anObject('batch/v1', 'Job', '{{ x }}');
  test.each([
    ['two kinds', `${job}${service('web')}`],
    ['a statement that may make objects', `{{- range .Values.x }}\n${job}{{- end }}\n`],
    ['an indented statement', `${job}  {{- include "service" . }}\n`],
    ['what fills in text', `${job}#@ for x in y:\n`],
    ['a conflict of Git', `${job}<<<<<<< HEAD\nspec: {}\n=======\nspec: 1\n>>>>>>> x\n`],
    ['no apiVersion', job.replace(/^apiVersion.*\n/, '')],
    ['a kind to fill in', job.replace('Job', '__KIND__')],
    ['a misspelt kind', job.replace('batch/v1', 'v1').replace('Job', 'Servce')],
    ['a list, which may hold Services', job.replace('batch/v1', 'v1').replace('Job', 'List')],
    ['a configuration of kube-proxy', anObject('v1', 'ConfigMap', 'kube-proxy\n  labels: {{ x }}')],
    ['a kube-proxy, of which kpc reads the arguments', anObject('apps/v1', 'DaemonSet', '"kube-proxy')],
    ['a cluster of kind', job.replace('batch/v1', 'kind.x-k8s.io/v1alpha4').replace('Job', 'Cluster')],
  ])('where the document has %s', (_, text) => {
    expect(read(text)).toMatchObject({ errors: [expect.anything()], skipped: [] });
  });
});
