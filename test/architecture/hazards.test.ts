// A comment that explains a hazard names the test that fails without the code: "Test: NAME."
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectFolder } from '../support/run-kpc.ts';

function textsBelow(folder: string): readonly string[] {
  return readdirSync(join(projectFolder, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => readFileSync(join(projectFolder, folder, path), 'utf8'));
}

test('each test that a comment of src names exists', () => {
  const comments = textsBelow('src').flatMap((text) => text.match(/^\s*(?:\/\/|\*|\/\*\*) Test: .*$/gm) ?? []);
  const names = comments.map((comment) => /Test: (.+)\.$/.exec(comment)?.[1] ?? comment);
  const tests = textsBelow('test').join('\n');
  expect(names.length).toBeGreaterThan(30);
  expect(
    names.filter((name) => ![`'${name}'`, `"${name}"`, `\`${name}\``].some((title) => tests.includes(title))),
  ).toEqual([]);
});
