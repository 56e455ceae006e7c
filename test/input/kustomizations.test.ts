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
    .map(({ text, help, place }) => `${place?.file}:${place?.locate().line} ${text}: ${help}`);
}

function told(place: string, fields: string, folder: string, more = ''): string {
  return `${place} this kustomization changes Services by ${fields}${more}, and kpc reads them without: run "kubectl kustomize ${folder} | kpc compile -f -"`;
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

  test('an overlay of another folder, and several of them', () => {
    const base = { 'base/web.yaml': service, 'base/kustomization.yaml': 'resources: [web.yaml]\n' };
    const overlay =
      'kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\nresources: [../../base/]\nnamespace: x\n';
    const files = { ...base, 'overlays/a/kustomization.yaml': overlay };
    expect(toldOf(files)).toEqual([told('shop/overlays/a/kustomization.yaml:4', 'namespace', 'shop/overlays/a')]);
    const more = { ...files, 'overlays/b/kustomization.yaml': overlay };
    const both = told('shop/overlays/a/kustomization.yaml:4', 'namespace', 'shop/overlays/a', ', as do 1 more');
    expect(toldOf(more)).toEqual([both.replace('as do', 'as does')]);
  });

  test.for(['.', '/srv/shop', '..', './shop/'])('below %s', (folder) => {
    const files = { 'kustomization.yaml': 'resources: [./web.yaml]\nnamePrefix: my-\n', 'web.yaml': service };
    expect(toldOf(files, folder)).toHaveLength(1);
  });
});
