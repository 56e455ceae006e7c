// Pages for contributors name files and functions: each is where they say, or somewhere.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { projectFolder } from '../support/run-kpc.ts';

const code = new Map(
  ['src', 'test', 'scripts', 'mcp/src'].flatMap((folder) =>
    readdirSync(join(projectFolder, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:m?ts|mjs|sh)$/.test(name))
      .map((name) => [`${folder}/${name}`, readFileSync(join(projectFolder, folder, name), 'utf8')]),
  ),
);
const wordsOf = (text: string): readonly string[] => text.match(/[A-Za-z_$][\w$]*/g) ?? [];
const words = new Set([...code.values()].flatMap(wordsOf));
const fileNames = new Set([...code.keys()].map((path) => basename(path)));

test.each(['docs/architecture.md', 'docs/extending.md', 'CONTRIBUTING.md'])('%s names code that there is', (page) => {
  const text = readFileSync(join(projectFolder, page), 'utf8');
  const quoted = [...text.matchAll(/`([^`\n]+)`/g)].map(([, inside = '']) => inside);
  const paths = quoted.filter(
    (each) => /^(?:src|test|scripts|mcp|site)\/[\w./-]+$/.test(each) && !each.includes('NAME'),
  );
  expect(paths.filter((path) => !existsSync(join(projectFolder, path)))).toEqual([]);
  const files = quoted.filter((each) => /^[\w-]+\.(?:ts|mjs|sh)$/.test(each));
  expect(files.filter((name) => !fileNames.has(name))).toEqual([]);
  const names = quoted.filter((each) => /^[a-z]+(?:[A-Z][a-z]*)+$/.test(each));
  expect(names.filter((name) => !words.has(name))).toEqual([]);
  // "`name` (`file`", "`name` in `file`", "`name` of `file`".
  const placed = [...text.matchAll(/`(\w+)` (?:\(|in |of )`([\w./-]+\.ts)`/g)];
  const isThere = ([, name = '', file = '']: readonly string[]): boolean =>
    [...code].some(([path, source]) => `/${path}`.endsWith(`/${file}`) && wordsOf(source).includes(name));
  expect(placed.filter((each) => !isThere(each)).map(([all]) => all)).toEqual([]);
  expect(paths.length + names.length).toBeGreaterThan(0);
});
