// A comment that explains a hazard names the file of the test that fails without the code: "Test: apply/lock.test.ts."
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectFolder } from '../support/run-kpc.ts';

test('each test file that a comment of src names exists', () => {
  const texts = readdirSync(join(projectFolder, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => readFileSync(join(projectFolder, 'src', path), 'utf8'));
  const named = texts.flatMap((text) => [...text.matchAll(/ Test: (\S+\.ts)\./g)].map(([, file = '']) => file));
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((file) => !existsSync(join(projectFolder, 'test', file)))).toEqual([]);
});
