// Pages for contributors name files and functions: each is where they say, or somewhere.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { folders } from '../../scripts/fence/folders.mjs';
import { projectFolder } from '../support/run-kpc.ts';

const code = new Map(
  ['src', 'test', 'scripts', 'mcp/src', 'site/playground', 'packaging'].flatMap((folder) =>
    readdirSync(join(projectFolder, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:m?ts|mjs|sh)$/.test(name) && !name.includes('node_modules'))
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

describe('docs/architecture.md names each file of src once, under its folder', () => {
  const page = readFileSync(join(projectFolder, 'docs/architecture.md'), 'utf8');
  const section = /^## What each file holds\n(.*?)^## /msu.exec(page)?.[1] ?? '';
  const headings = section.split(/^### /m).slice(1);
  const named = headings.flatMap((text) => {
    const folder = /^`(src\/[\w/-]+)`\n/.exec(text)?.[1] ?? text;
    return [...text.matchAll(/^- `([\w.-]+)`: (.+)$/gm)].map(([, name = '', says = '']) => ({
      path: `${folder}/${name}`,
      says,
    }));
  });
  const paths = named.map(({ path }) => path);
  const files = [...code.keys()].filter((path) => path.startsWith('src/'));

  test('each file', () => {
    expect(files.filter((path) => !paths.includes(path))).toEqual([]);
  });

  test('nothing else, and nothing twice', () => {
    expect(paths.filter((path) => !files.includes(path))).toEqual([]);
    expect(paths.filter((path, i) => paths.indexOf(path) !== i)).toEqual([]);
  });

  test('on one short line, with names that the file has', () => {
    expect(named.filter(({ says }) => says.length > 120)).toEqual([]);
    const wrong = named.flatMap(({ path, says }) => {
      const names = new Set(wordsOf(code.get(path) ?? ''));
      return [...says.matchAll(/`([A-Za-z]\w*)`/g)].flatMap(([, name = '']) =>
        names.has(name) ? [] : [`${path}: ${name}`],
      );
    });
    expect(wrong).toEqual([]);
  });

  test('folders in import order', () => {
    const order = Object.keys(folders);
    const placeOf = (folder: string): number => {
      const place = order.indexOf(folder);
      return place >= 0 || folder === '.' ? place : placeOf(dirname(folder));
    };
    const places = [...new Set(paths.map(dirname))].map((folder) => placeOf(folder.replace('src/', '')));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
  });
});
