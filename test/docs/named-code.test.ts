// Pages for contributors name files and functions: each is where they say, or somewhere.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectFolder } from '../support/run-kpc.ts';

const code = ['src', 'test', 'scripts', 'mcp/src'].flatMap((folder) =>
  readdirSync(join(projectFolder, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.m?ts$|\.mjs$/.test(name))
    .map((name) => readFileSync(join(projectFolder, folder, name), 'utf8')),
);
const words = new Set(code.flatMap((text) => text.match(/[A-Za-z_$][\w$]*/g) ?? []));

test.each(['docs/architecture.md', 'docs/extending.md', 'CONTRIBUTING.md'])('%s names code that there is', (page) => {
  const quoted = [...readFileSync(join(projectFolder, page), 'utf8').matchAll(/`([^`\n]+)`/g)].map(
    ([, text = '']) => text,
  );
  const paths = quoted.filter(
    (text) => /^(?:src|test|scripts|mcp|site)\/[\w./-]+$/.test(text) && !text.includes('NAME'),
  );
  expect(paths.filter((path) => !existsSync(join(projectFolder, path)))).toEqual([]);
  const names = quoted.filter((text) => /^[a-z]+(?:[A-Z][a-z]*)+$/.test(text));
  expect(names.filter((name) => !words.has(name))).toEqual([]);
  expect(paths.length + names.length).toBeGreaterThan(0);
});
