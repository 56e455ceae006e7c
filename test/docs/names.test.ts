// package.json says where the project is, who its author is, and which version it has. What repeats that agrees.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectFolder } from '../support/run-kpc.ts';
import { expectWritten } from '../support/written-page.ts';

const read = (path: string) => readFileSync(join(projectFolder, path), 'utf8');
const project = JSON.parse(read('package.json')) as {
  readonly version: string;
  readonly author: string;
  readonly repository: string;
};
const name = project.repository.replace('github:', '');

test('the repository and the author have the form that npm, Debian and GitHub take', () => {
  expect(project.repository).toMatch(/^github:[\w.-]+\/[\w.-]+$/);
  expect(project.author).toMatch(/^[^<>]+ <[^<>@ ]+@[^<>@ ]+>$/);
});

/** What stands for the repository or the version in a file: what is before it, the name itself, and what is behind it. */
const places: Readonly<Record<string, readonly (readonly [pattern: RegExp, value: string])[]>> = {
  'README.md': [[/(?<=^kpc )\d+\.\d+\.\d+/gm, project.version]],
  'docs/install.md': [
    [/(?<=--repo |github\.com\/)[\w.-]+\/[\w.-]+/g, name],
    [/\b\d+\.\d+\.\d+/g, project.version],
  ],
  'src/base/version.ts': [[/(?<=repository: string = ')[\w.-]+\/[\w.-]+/g, name]],
  'action.yml': [[/(?<=^# {3}- uses: )(?!actions\/)[\w.-]+\/[\w.-]+(?=@)/gm, name]],
  'examples/kubernetes/apply-daemonset.yaml': [[/(?<=image: kpc-apply:)\S+/g, project.version]],
  'examples/kubernetes/fleet-job.yaml': [[/(?<=image: kpc:)\S+/g, project.version]],
};

test.each(Object.entries(places))('%s repeats them', (path, patterns) => {
  for (const [pattern] of patterns) expect(read(path)).toMatch(pattern);
  expectWritten(
    path,
    patterns.reduce((text, [pattern, value]) => text.replaceAll(pattern, value), read(path)),
  );
});

test.each([
  'packaging/build.mjs',
  'packaging/manifests.mjs',
  'packaging/assets.mjs',
  '.github/workflows/release.yml',
  'Dockerfile',
])('%s has no name of its own for them', (path) => {
  for (const word of [name, project.author, project.version]) expect(read(path)).not.toContain(word);
});
