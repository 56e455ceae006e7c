// The manifests for package managers, of a release with made-up checksums: by their own schemas, and by the list of assets.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { archiveName, forms, platforms } from '../../packaging/assets.mjs';
import { manifests, miseTool } from '../../packaging/manifests.mjs';
import { projectFolder } from '../support/run-kpc.ts';

const repository = 'https://github.com/someone/kpc';
const release = {
  version: '1.2.3',
  repository,
  license: 'Apache-2.0',
  assets: platforms.map(({ os, arch }, i) => ({
    os,
    arch,
    name: archiveName('1.2.3', { os, arch }),
    sha256: String(i).repeat(64),
  })),
};
const texts = manifests(release);
const addresses = new Map(
  release.assets.map(({ name, sha256 }) => [`${repository}/releases/download/v1.2.3/${name}`, sha256]),
);

function text(name: string): string {
  return texts.get(name) ?? '';
}

function errorsBy(schema: string, value: unknown): unknown {
  const is2020 = schema !== 'scoop';
  const formats = { uri: (word: string) => URL.canParse(word) || word.startsWith('$'), regex: true } as const;
  const ajv = new (is2020 ? Ajv2020 : Ajv)({ strict: false, formats });
  const file = join(projectFolder, 'test/packaging/schemas', `${schema}.json`);
  const check = ajv.compile(JSON.parse(readFileSync(file, 'utf8')) as object);
  return check(value) ? [] : check.errors;
}

test('each platform has an archive whose name says the system and the processor', () => {
  expect(release.assets.map(({ name }) => name)).toEqual([
    'kpc_1.2.3_linux_amd64.tar.gz',
    'kpc_1.2.3_linux_arm64.tar.gz',
    'kpc_1.2.3_darwin_amd64.tar.gz',
    'kpc_1.2.3_darwin_arm64.tar.gz',
    'kpc_1.2.3_windows_amd64.zip',
    'kpc_1.2.3_windows_arm64.zip',
  ]);
});

interface Krew {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly version: string;
    readonly shortDescription: string;
    readonly platforms: readonly {
      readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
      readonly uri: string;
      readonly sha256: string;
      readonly bin: string;
      readonly files: readonly { readonly from: string; readonly to: string }[];
    }[];
  };
}

test('krew: each rule of its validation', () => {
  const { apiVersion, kind, metadata, spec } = parse(text('krew-kpc.yaml')) as Krew;
  expect({ apiVersion, kind }).toEqual({ apiVersion: 'krew.googlecontainertools.github.com/v1alpha2', kind: 'Plugin' });
  expect(metadata.name).toMatch(/^[\w-]+$/);
  expect(spec.version).toMatch(/^v\d+\.\d+\.\d+$/);
  expect(spec.shortDescription).toMatch(/^.{1,50}$/);
  expect(new Map(spec.platforms.map(({ uri, sha256 }) => [uri, sha256]))).toEqual(addresses);
  for (const { selector, sha256, bin, files } of spec.platforms) {
    expect(Object.keys(selector.matchLabels)).toEqual(['os', 'arch']);
    expect(sha256).toMatch(/^[a-f0-9]{64}$/);
    expect(files.map(({ from, to }) => [from !== '', to !== ''])).toEqual(files.map(() => [true, true]));
    // What is called is one of the files, as it is named once it is installed.
    expect(files.filter(({ to }) => to === '.').map(({ from }) => from.split('/').at(-1))).toContain(bin);
  }
});

test('aqua: its schema, and the names that its templates make', () => {
  const registry = parse(text('aqua-registry.yaml')) as {
    readonly packages: readonly [
      {
        readonly asset: string;
        readonly format: string;
        readonly format_overrides: readonly { readonly goos: string; readonly format: string }[];
        readonly supported_envs: readonly string[];
      },
    ];
  };
  expect(errorsBy('aqua-registry', registry)).toEqual([]);
  const [{ asset, format, format_overrides: overrides, supported_envs: environments }] = registry.packages;
  const made = environments.map((each) => {
    const [os = '', arch = ''] = each.split('/');
    const packed = overrides.find(({ goos }) => goos === os)?.format ?? format;
    const values = { 'trimV .Version': '1.2.3', '.OS': os, '.Arch': arch, '.Format': packed };
    return Object.entries(values).reduce((name, [key, value]) => name.replace(`{{${key}}}`, value), asset);
  });
  expect(made).toEqual(release.assets.map(({ name }) => name));
});

test('mise: its schema', () => {
  expect(errorsBy('mise-registry-tool', miseTool(release))).toEqual([]);
  expect(text('mise-kpc.toml')).toBe(`backends = ["aqua:someone/kpc","github:someone/kpc"]
bins = ["kpc"]
description = "Compiles Kubernetes Services to kube-proxy's rules, offline"
test = { cmd = "kpc --version", expected = "{{version}}" }
version_order = "semver"
`);
});

test('scoop: its schema, and the address of the next version', () => {
  const manifest = JSON.parse(text('scoop-kpc.json')) as {
    readonly architecture: Readonly<Record<string, { readonly url: string; readonly hash: string }>>;
    readonly autoupdate: { readonly architecture: Readonly<Record<string, { readonly url: string }>> };
    readonly bin: string;
  };
  expect(errorsBy('scoop', manifest)).toEqual([]);
  expect(manifest.bin).toBe(forms.windows.program);
  for (const [name, { url, hash }] of Object.entries(manifest.architecture)) {
    expect(addresses.get(url)).toBe(hash);
    expect(manifest.autoupdate.architecture[name]?.url.replaceAll('$version', '1.2.3')).toBe(url);
  }
  expect(Object.keys(manifest.architecture)).toEqual(['64bit', 'arm64']);
});

test('Homebrew: the formula', () => {
  const formula = text('homebrew-kpc.rb');
  const pairs = [...formula.matchAll(/url "(.*)"\n +sha256 "(.*)"/g)].map(([, url = '', sha = '']) => [url, sha]);
  expect(pairs.toSorted()).toEqual([...addresses].filter(([url]) => !url.includes('windows')).toSorted());
  // Its audit wants a description of at most 80 characters that begins with no article and ends without a full stop.
  expect(formula).toMatch(/^ {2}desc "(?!An? |The )[A-Z].{1,78}[^."]"$/m);
  const opened = formula.match(/ do$|^class |^ *def /gm)?.length;
  expect(formula.match(/^ *end$/gm)).toHaveLength(opened ?? 0);
});
