// A bracket or a quote that is not closed is named at its place, in YAML and in JSON, and nothing that follows from it.
import { describe, expect, test } from 'vitest';
import { diagnose } from './diagnose.ts';

const web = 'apiVersion: v1\nkind: Service\n';
const notClosed = (at: string, language: string, sign: string): string =>
  `${at} error not-closed ${JSON.stringify({ language, sign, line: Number(at.split(':')[0]) })}`;

describe('YAML', () => {
  test.each([
    ['a mapping in a list', `${web}spec: { ports: [{ port: 80 ] }\n`, notClosed('3:17', 'YAML', '{')],
    ['a list in a mapping', `${web}spec: { ports: [{ port: 80 } }\n`, notClosed('3:16', 'YAML', '[')],
    ['lines follow that are right', `${web}metadata: { name: web\nspec: {}\n`, notClosed('3:11', 'YAML', '{')],
    ['a quote at the end of a line', `${web}metadata:\n  name: 'web\n  uid: 'a'\n`, notClosed('4:9', 'YAML', "'")],
    ['a quote in brackets', `${web}metadata: { name: "web, uid: "a" }\n`, notClosed('3:19', 'YAML', '"')],
    ['a quote up to the end', `${web}metadata: { name: "web }\n`, notClosed('3:19', 'YAML', '"')],
    ['behind a comment', `# a {\n---\nkind: [\n`, notClosed('3:7', 'YAML', '[')],
  ])('%s', (_, text, expected) => {
    expect(diagnose(text)).toEqual([expected]);
  });

  test.each([
    ['brackets in quotes, in texts and in comments', `${web}spec: "[{" # [\nkey: a [b\ntext: |\n  {\nbad: a: b\n`],
    ['lines that are indented no deeper than their key', `${web}spec: [\n1,\n2\n]\nkey: "a\nb"\nbad: a: b\n`],
    ['a quote in a text', `${web}spec: { a: don't, b: 'it''s' }\nbad: a: b\n`],
    ['quotes in quotes', `${web}spec: "say "hello" to"\n`],
  ])('not %s', (_, text) => {
    expect(diagnose(text)).toEqual([expect.stringContaining(' bad-yaml ')]);
  });
});

describe('JSON', () => {
  test.each([
    ['a bracket', '{\n  "spec": { "ports": [{ "port": 80 ] }\n}\n', notClosed('2:23', 'JSON', '{')],
    ['a quote', '{\n  "metadata": { "name": "web, "uid": "a" }\n}\n', notClosed('2:25', 'JSON', '"')],
    ['a quote at the end of a line', '{\n  "kind": "Pod,\n  "spec": {}\n}\n', notClosed('2:11', 'JSON', '"')],
    ['the second value', '{ "kind": "Pod" }\n{ "kind": [ }\n', notClosed('2:11', 'JSON', '[')],
  ])('%s', (_, text, expected) => {
    expect(diagnose(text, 'in.json').filter((line) => line.includes(' not-closed '))).toEqual([expected]);
  });

  test('one message for each line', () => {
    const text = '{\n  "a" "b" "c": 1,\n  "d" "e"\n}\n';
    expect(diagnose(text, 'in.json').map((line) => line.split(' ')[0])).toEqual(['2:7', '3:7']);
  });
});
