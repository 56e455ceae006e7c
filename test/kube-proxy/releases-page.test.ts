import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { writePage } from '../../scripts/releases/page.ts';
import { behaviours, releases } from '../../src/kube-proxy/releases.ts';
import { projectFolder } from '../support/run-kpc.ts';

test('docs/releases.md is what npm run docs:releases writes', async () => {
  const file = join(projectFolder, 'docs', 'releases.md');
  const page = await format(writePage(), { ...(await resolveConfig(file)), filepath: file });
  expect(readFileSync(file, 'utf8')).toBe(page);
  for (const name of [...behaviours, ...releases]) expect(page).toContain(name);
});
