import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { setIds, setName } from '../../src/kube-proxy/ipvs-objects.ts';
import { projectFolder } from '../support/run-kpc.ts';

/** A folder that decides by the name of a chain or a set asks src/kube-proxy, which alone has these names. */
const folders = [
  'ask/changes',
  'ask/describe',
  'cluster',
  'dumps',
  'input',
  'kernel',
  'modes',
  'packet',
  'say',
  'snapshot',
];

test.each(folders)('src/%s spells no name of kube-proxy', (folder) => {
  const files = readdirSync(join(projectFolder, 'src', folder), { recursive: true, encoding: 'utf8' });
  const found = files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const lines = readFileSync(join(projectFolder, 'src', folder, file), 'utf8').split('\n');
      return lines
        .filter((line) => !/^\s*(?:\*|\/[/*])/.test(line) && /KUBE-/.test(line))
        .map((line) => `${file}: ${line}`);
    });
  expect(found).toEqual([]);
});

test.each(folders)('src/%s spells no name of a set without its prefix', (folder) => {
  const bare = new Set(setIds.map((set) => setName(set, 'ipv4').replace('KUBE-', '')));
  const files = readdirSync(join(projectFolder, 'src', folder), { recursive: true, encoding: 'utf8' });
  const found = files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const words = readFileSync(join(projectFolder, 'src', folder, file), 'utf8').match(/'[A-Z][A-Z-]+'/g) ?? [];
      return words.filter((word) => bare.has(word.slice(1, -1))).map((word) => `${file}: ${word}`);
    });
  expect(found).toEqual([]);
});
