import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectFolder } from '../support/run-kpc.ts';

/** Where JSON.parse is called, and why no bound is needed there. */
const unbounded: Readonly<Record<string, string>> = {
  'base/bounds.ts': 'counts first',
  'kernel/link/link.ts': 'was counted',
  'input/documents/read-documents.ts': 'a piece of what was counted',
  'base/json/locate.ts': 'one text in quotes',
  'input/yaml/scalars.ts': 'one text in quotes',
  'apply/state/record.ts': 'kpc-apply wrote it, and root alone can change it',
};

test('only what kpc-apply itself wrote, and a piece of what was counted, is parsed without a bound', () => {
  const source = join(projectFolder, 'src');
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const parsing = files.filter((name) => readFileSync(join(source, name), 'utf8').includes('JSON.parse('));
  expect(parsing.toSorted()).toEqual(Object.keys(unbounded).toSorted());
});
