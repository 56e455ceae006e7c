// Comments, messages and names say who is meant: the operator, another program, a client.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectFolder } from '../support/run-kpc.ts';

const vague = /\b(?:some|any|every|no)body(?:'s)?\b|\b(?:some|any|every)one\b|\bwhoever\b|\bother people\b/gi;

/** What the kernel lab writes; its words are those of test/kernel-lab. */
const generated = /faults\.md$/;

function findVague(folder: string): readonly string[] {
  return readdirSync(join(projectFolder, folder), { recursive: true, encoding: 'utf8' })
    .filter(
      (name) =>
        /\.(?:ts|mjs|js|md|sh|pl)$/.test(name) && !generated.test(name) && !name.endsWith('plain-words.test.ts'),
    )
    .flatMap((name) =>
      readFileSync(join(projectFolder, folder, name), 'utf8')
        .split('\n')
        .flatMap((line, i) => (line.match(vague) ?? []).map((word) => `${folder}/${name}:${i + 1}: ${word}`)),
    );
}

test('vague words are found', () => {
  expect('Nobody knows, whoever asks; somebody else’s, other people’s, everyone.'.match(vague)).toHaveLength(5);
});

test.each(['src', 'bin', 'scripts', 'test', 'docs'])('%s names who is meant', (folder) => {
  expect(findVague(folder)).toEqual([]);
});
