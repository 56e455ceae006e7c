import { wordsOf } from '../../src/say/words/words.ts';
import { visit } from 'jsonc-parser';
import { describe, expect, test } from 'vitest';
import { findRepeatedJsonKeys, readDocuments } from '../../src/input/documents/read-documents.ts';
import { collectInputs } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';

/** The offsets at which keys of a JSON text come the second time. */
function repeatedIn(text: string): number[] {
  return findRepeatedJsonKeys(text, { start: 0, end: text.length }).map(({ offset }) => offset);
}

/** Line, column and code of what is wrong with a text, in the order of the text. */
function diagnose(text: string, name = 'in.json'): string[] {
  const { diagnostics } = collectInputs({ files: [new TextFile(name, text)], diagnostics: [] });
  return diagnostics.map(({ place, severity, code }) => {
    const at = place?.locate();
    return `${at?.line}:${at?.column} ${severity} ${code}`;
  });
}

const service = '"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}';
const spec = '"spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 80}]}';

describe('a key that is in one JSON object twice', () => {
  test.each([
    ['at the top', '{"a":1,"a":2}', [7]],
    ['three times', '{"a":1,"a":2,"a":3}', [7]],
    ['in a list', '[{"a":1},{"a":1,"b":2,"a":3}]', [22]],
    ['at several depths', '{"x":{"a":1,"a":1},"y":[[{"b":1,"b":1}]],"x":1}', [12, 32, 41]],
    ['with an escape in one of them', '{"a":1,"\\u0061":2}', [7]],
    ['with a backslash at its end', '{"a\\\\":1,"a\\\\":2}', [9]],
    ['with a quote at its end', '{"a\\"":1,"a\\"":2}', [9]],
    ['with a colon in it', '{"a:":1,":a":1,"a:":2}', [15]],
    ['with blanks before the colon', '{"a" :1,\n"a"\t\r\n :2}', [9]],
    ['that is empty', '{"":1,"":2}', [6]],
    ['that is __proto__', '{"__proto__":1,"__proto__":2}', [15]],
    ['that is a number', '{"1":1,"0":1,"1":2}', [13]],
    ['beside strings that look like keys', '{"a":"\\"b\\":1","b":":x","b":" :"}', [24]],
  ])('is found %s', (_, text, offsets) => {
    expect(repeatedIn(text)).toEqual(offsets);
  });

  test.each([
    ['one key at different depths', '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}'],
    ['a value like the key beside it', '{"a":"a","b":"a"}'],
    ['strings that begin with a colon', '{"a":":8080","b":[":1",":2"],":c":": "}'],
    ['JSON in a string', String.raw`{"a":"{\"a\":1,\"a\":2}","b":"\\\":"}`],
    ['other letters', '{"a":1,"A":2}'],
    ['nothing', '{"a":{},"b":[]}'],
  ])('is not taken for one: %s', (_, text) => {
    expect(repeatedIn(text)).toEqual([]);
  });

  test('is found wherever another parser finds one in a random text', () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return Math.floor((seed / 2 ** 31) * below);
    };
    const strings = ['a', 'b', ':', 'a:', ',', ':,', '[', ' :{', '\\"', '\\\\', '\\\\\\":', ' : ', '\\u0061', ''];
    const string = (): string => `"${strings[random(strings.length)]}"`;
    const write = (levels: number): string => {
      const kind = random(levels > 0 ? 4 : 2);
      if (kind === 0) return string();
      if (kind === 1) return '1';
      const items = Array.from({ length: random(4) }, () => write(levels - 1));
      if (kind === 2) return `[${items.join(random(2) === 0 ? ',' : ',\n')}]`;
      return `{${items.map((item) => `${string()}${[':', ' : ', ':\n'][random(3)]}${item}`).join(random(2) === 0 ? ',' : '\n, ')}}`;
    };
    let found = 0;
    for (let i = 0; i < 3000; i++) {
      const text = write(4);
      const offsets = repeatedIn(text);
      expect(offsets, text).toEqual(visitRepeated(text));
      if (offsets.length > 0) found++;
    }
    expect(found).toBeGreaterThan(100);
  });

  test('is an error at its second place, of all objects of a file in one run', () => {
    const text = `{${service}, ${spec},\n ${spec}}\n{${service.replace('"a"', '"b", "name": "b"')}, ${spec}}`;
    expect(diagnose(text)).toEqual(['2:2 error duplicate-key', '3:67 error duplicate-key']);
  });

  test('does not hide what else is wrong with the object', () => {
    const text = `{${service},\n"spec": {},\n"spec": {"clusterIP": "x", "ports": [{"port": 80}]}}`;
    expect(diagnose(text)).toEqual(['3:1 error duplicate-key', '3:23 error bad-value']);
  });

  test('is an error in a List, and in JSON after a line ---', () => {
    const list = `{"apiVersion": "v1", "kind": "List", "items": [\n{${service}, ${spec}, "kind": "Service"}]}`;
    expect(diagnose(list)).toEqual(['2:129 error duplicate-key']);
    expect(diagnose(`---\n{${service}, ${spec}, "kind": "Service"}\n`, 'in.yaml')).toEqual([
      '2:129 error duplicate-key',
    ]);
  });

  test('is an error in a kpc.yaml that is JSON, too', () => {
    const { documents, diagnostics } = readDocuments(
      new TextFile('kpc.yaml', '{"compile": {"node": "a", "node": "b"}}'),
    );
    expect(documents).toHaveLength(1);
    expect(diagnostics.map(({ code }) => code)).toEqual(['duplicate-key']);
  });

  test('is no error in a file of a folder that is no manifest', () => {
    const origin = { folder: '.', chart: undefined };
    const file = new TextFile('other.json', '{"a": {"kind": 1}, "a": 2}', origin);
    const { diagnostics } = collectInputs({ files: [file], diagnostics: [] });
    expect(diagnostics.map(({ code }) => code)).toEqual(['skipped-files']);
  });

  test('is found where lists nest deeply, and where there are very many', () => {
    const levels = 100_000;
    expect(repeatedIn(`${'['.repeat(levels)}{"a":1,"a":2}${']'.repeat(levels)}`)).toEqual([levels + 7]);
    const many = Array.from({ length: 100_000 }, (_, i) => `"a${i >> 1}":1`);
    expect(repeatedIn(`{${many.join()}}`)).toHaveLength(50_000);
  });

  test('is one error, with how often it comes', () => {
    const textsOf = (written: string, name: string): string[] =>
      readDocuments(new TextFile(name, written)).diagnostics.map((each) => wordsOf(each).text);
    const thrice = 'this key is in the same mapping 3 times';
    expect(textsOf('{"a":1,"a":2,"a":3}', 'in.json')).toEqual([thrice]);
    expect(textsOf('a: 1\na: 2\nb: {a: 1, a: 2}\na: 3\n', 'in.yaml')).toEqual([
      thrice,
      'this key is in the same mapping twice',
    ]);
  });
});

/** The offsets at which keys come the second time, as another parser finds them. */
function visitRepeated(text: string): number[] {
  const offsets: number[] = [];
  const around: Map<string, number>[] = [];
  visit(text, {
    onObjectBegin: () => {
      around.push(new Map());
    },
    onObjectEnd: () => around.pop(),
    onObjectProperty: (key, offset) => {
      const times = (around.at(-1)?.get(key) ?? 0) + 1;
      if (times === 2) offsets.push(offset);
      around.at(-1)?.set(key, times);
    },
  });
  return offsets;
}
