import { inOneLine } from '../../src/say/words/words.ts';
import { describe, expect, test } from 'vitest';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';

const service = 'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: None }\n';

/** What kpc reports about kustomizations, in a folder named on the command line. */
function toldOf(files: Readonly<Record<string, string>>, folder = 'shop'): readonly string[] {
  const texts = Object.entries(files).map(
    ([name, text]) => new TextFile(`${folder}/${name}`, text, { folder, chart: undefined }),
  );
  return collectFiles(texts)
    .diagnostics.filter(({ code }) => code === 'kustomized')
    .map((each) => `${each.place?.file}:${each.place?.locate().line} ${inOneLine(each)}`);
}

function told(place: string, fields: string, folder: string, more = ''): string {
  return `${place} this kustomization changes Services (${fields})${more}; kpc ignores the changes: give the output of "kubectl kustomize ${folder}" in its place`;
}

describe('a kustomization that makes other Services than its files hold', () => {
  test.for([
    ['namePrefix', 'namePrefix: my-'],
    ['nameSuffix', 'nameSuffix: -v2'],
    ['namespace', 'namespace: shop'],
    ['commonLabels', 'commonLabels: { app: web }'],
    ['labels', 'labels: [{ pairs: { app: web }, includeSelectors: true }]'],
    ['replicas', 'replicas: [{ name: web, count: 3 }]'],
    ['components', 'components: [more]'],
    ['patches', 'patches: [{ path: patch.yaml }]'],
    ['patchesStrategicMerge', 'patchesStrategicMerge: [patch.yaml]'],
  ] as const)('%s', ([field, text]) => {
    const files = { 'kustomization.yaml': `resources: [web.yaml]\n${text}\n`, 'web.yaml': service };
    expect(toldOf(files)).toEqual([told('shop/kustomization.yaml:2', field, 'shop')]);
  });

  test.for([
    'resources: [web.yaml]',
    'resources: [web.yaml]\nimages: [{ name: web, newTag: v2 }]',
    'resources: [web.yaml]\nnamePrefix: ""\npatches: []\ncommonLabels: {}\nnamespace: null',
    'resources: [web.yaml]\nlabels: [{ pairs: { app: web } }]',
    'resources: [other.yaml]\nnamePrefix: my-',
    'namePrefix: my-',
    'resources: 3\nnamePrefix: my-',
    'apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: { name: x }\nresources: [web.yaml]\nnamePrefix: my-',
  ])('nothing is told of %j', (text) => {
    expect(toldOf({ 'kustomization.yaml': `${text}\n`, 'web.yaml': service })).toEqual([]);
  });

  test('not the component that changes them: who builds names what takes it', () => {
    const files = {
      'kustomization.yaml': 'resources: [web.yaml]\ncomponents: [more]\n',
      'more/kustomization.yaml': 'kind: Component\nresources: [../web.yaml]\nnamePrefix: my-\n',
      'web.yaml': service,
    };
    expect(toldOf(files)).toEqual([told('shop/kustomization.yaml:2', 'components', 'shop')]);
  });

  test('an overlay of another folder, and several of them', () => {
    const base = { 'base/web.yaml': service, 'base/kustomization.yaml': 'resources: [web.yaml]\n' };
    const overlay =
      'kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\nresources: [../../base/]\nnamespace: x\n';
    const files = { ...base, 'overlays/a/kustomization.yaml': overlay };
    expect(toldOf(files)).toEqual([told('shop/overlays/a/kustomization.yaml:4', 'namespace', 'shop/overlays/a')]);
    const more = { ...files, 'overlays/b/kustomization.yaml': overlay };
    expect(toldOf(more)).toEqual([
      told('shop/overlays/a/kustomization.yaml:4', 'namespace', 'shop/overlays/a', ', as does 1 more'),
    ]);
  });

  test.for(['.', '/srv/shop', '..', './shop/'])('below %s', (folder) => {
    const files = { 'kustomization.yaml': 'resources: [./web.yaml]\nnamePrefix: my-\n', 'web.yaml': service };
    expect(toldOf(files, folder)).toHaveLength(1);
  });
});

describe('a tree with an overlay', () => {
  const read = (files: Readonly<Record<string, string>>, isShown = false) => {
    const texts = Object.entries(files).map(
      ([name, text]) => new TextFile(name, text, { folder: 'k8s', chart: undefined }),
    );
    const { services, workloads, diagnostics } = collectFiles(texts, { isShown, workloads: true, isTolerant: true });
    return {
      names: [...services, ...workloads].map(({ source }) => source.place([]).file),
      said: diagnostics
        .filter(({ code, severity }) => code !== 'kustomized' && severity !== 'note')
        .map((each) => `${each.severity}: ${inOneLine(each)}`),
    };
  };
  const patch =
    'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { ports: [{ port: 81, nodePort: 30081 }] }\n';
  const missing = (severity: string, lacks: string, more = '') =>
    `${severity}: this kustomization needs ${lacks}, which is not in the input${more}: give the output of "kubectl kustomize k8s/prod" in its place`;

  test.for([
    'patches: [{ path: patch.yaml, target: { kind: Service } }]',
    'patchesStrategicMerge: [./patch.yaml]',
    'patchesJson6902: [{ path: ../prod/patch.yaml }]',
    'transformers: [patch.yaml]',
    'replacements: [{ path: patch.yaml }]',
  ])('whose base is not there is an error, and what it lists as patches is no object: %s', (field) => {
    const files = { 'k8s/prod/kustomization.yaml': `resources: [../base]\n${field}\n`, 'k8s/prod/patch.yaml': patch };
    expect(read(files)).toEqual({ names: [], said: [missing('error', '../base')] });
    expect(read(files, true)).toEqual({ names: [], said: [missing('warning', '../base')] });
  });

  test.for(['bases', 'resources', 'components'])('lacks what its %s name, wherever that is', (field) => {
    const far = 'https://example.com/shop//k8s?ref=v1';
    const files = { 'k8s/prod/kustomization.yaml': `${field}: ["${far}"]\n`, 'k8s/prod/web.yaml': service };
    expect(read(files).said).toEqual([missing('error', far)]);
    const more = { ...files, 'k8s/test/kustomization.yaml': 'resources: [a, b.yaml]\n' };
    expect(read(more).said).toEqual([missing('error', far, '; 1 more lacks files too')]);
  });

  test('whose base is there is read without its patches', () => {
    const files = {
      'k8s/base/kustomization.yaml': 'resources: [web.yaml]\n',
      'k8s/base/web.yaml': service,
      'k8s/prod/kustomization.yaml':
        'resources: [../base/]\npatches: [{ path: patch.yaml }, { patch: "- op: remove\\n  path: /a" }]\n',
      'k8s/prod/patch.yaml': patch,
    };
    expect(read(files)).toEqual({ names: ['k8s/base/web.yaml'], said: [] });
  });

  test('the advice on an object that is there twice names what builds it, or nothing', () => {
    const advice = (files: Readonly<Record<string, string>>) =>
      read(files).said.map((line) => /kustomize [^ "]*/.exec(line)?.[0]);
    const twice = {
      'k8s/a/kustomization.yaml': 'kind: Component\nresources: [other.yaml]\n',
      'k8s/a/other.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n',
      'k8s/base/web.yaml': service,
      'k8s/rendered/web.yaml': service,
    };
    expect(advice(twice)).toEqual([undefined]);
    const base = { 'k8s/base/kustomization.yaml': 'resources: [web.yaml]\n' };
    expect(advice({ ...twice, ...base })).toEqual(['kustomize k8s/base']);
    const prod = { 'k8s/prod/kustomization.yaml': 'resources: [../base]\n' };
    expect(advice({ ...twice, ...base, ...prod })).toEqual(['kustomize k8s/prod']);
    const both = { ...prod, 'k8s/test/kustomization.yaml': 'resources: [../base]\n' };
    expect(advice({ ...twice, ...base, ...both })).toEqual([undefined]);
  });
});

test.for(['helmCharts: [{ name: web }]', 'generators: [made.yaml]'])('makes objects of no listed file: %s', (text) => {
  const [said, ...others] = toldOf({ 'kustomization.yaml': `${text}\n`, 'web.yaml': service });
  expect([said?.startsWith('shop/kustomization.yaml:1'), others]).toEqual([true, []]);
});
