import { expect, test } from 'vitest';
import { readDocuments } from '../../src/input/documents/read-documents.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';

const items = `- &web
  metadata: { name: web }
- metadata:
    name: api
- <<: *web
  kind: Service
`;

test.each([
  ['at the column of its key', items],
  ['deeper', items.replaceAll(/^/gm, '    ').trimEnd()],
])('the fields of a list %s are found, whether an item leans on another or not', (_, list) => {
  const text = `kind: List\nitems:\n${list}\nmetadata: {}\n`;
  const [document] = readDocuments(new TextFile('in.yaml', text)).documents;
  const lineOf = (...path: (string | number)[]): number | undefined => document?.source.place(path).locate().line;
  expect(lineOf('items', 0, 'metadata', 'name')).toBe(4);
  expect(lineOf('items', 1, 'metadata', 'name')).toBe(6);
  expect(lineOf('items', 2, 'metadata', 'name')).toBe(4);
  expect(lineOf('items', 2, 'kind')).toBe(8);
  expect(lineOf('metadata')).toBe(9 + (list === items ? 1 : 0));
});
