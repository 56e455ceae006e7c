import { expect, test } from 'vitest';
import { execFileSync } from 'node:child_process';
import {
  joinPhrases,
  pathWord,
  printable,
  printableJson,
  quotePrintable,
  shellWord,
} from '../../src/base/printable.ts';
import { formatUnifiedDiff } from '../../src/say/formats/unified.ts';

const invisible = [
  '\u200b',
  '\u200d',
  '\u2060',
  '\ufeff',
  '\u00ad',
  '\u3164',
  '\u{e0041}',
  '\u{e007f}',
  '\u{e0100}',
  '\u202e',
];

test.each(invisible)('a character that is not to be seen is a dot (%#)', (character) => {
  expect(printable(`a${character}b`)).toBe('a·b');
  expect(formatUnifiedDiff('f', `a${character}b\n`, '')).toContain('-a·b\n');
  const quoted = quotePrintable(character);
  expect(quoted).toMatch(/^"(?:\\u[0-9a-f]{4})+"$/);
  expect(JSON.parse(quoted)).toBe(character);
  const json = JSON.stringify({ character });
  expect(printableJson(json)).not.toContain(character);
  expect(JSON.parse(printableJson(json))).toEqual({ character });
});

test.each(['##[error]x', '##vso[task.setvariable variable=a]x', '##VSO[a]', "##teamcity[buildStatus text='x']"])(
  '%s is no command',
  (command) => {
    expect(printable(`a ${command}`)).not.toMatch(/##\w*\[/);
    const json = JSON.stringify({ command });
    expect(printableJson(json)).not.toMatch(/##\w*\[/);
    expect(JSON.parse(printableJson(json))).toEqual({ command });
  },
);

test('a diff of files too different to compare is harmless too', () => {
  const old = Array.from({ length: 6000 }, (_, i) => `${i} \u001b[2J\u200b ##vso[x]\n`).join('');
  const diff = formatUnifiedDiff('f', old, '');
  expect(diff).not.toContain('\u001b');
  expect(diff).not.toContain('\u200b');
  expect(diff).not.toContain('##vso[');
});

test
  .runIf(process.platform !== 'win32')
  .each([
    'plain.yaml',
    "it's `id` $(id) \\n",
    "a\n::set-output name=x::y\t'\\\u001b[2J1",
    'a ##[error]b',
    'tür\u202e\u{e0041}7.yaml',
    '-x.yaml',
  ])('a word of a command can be printed, and is what it was to a shell (%#)', (text) => {
  const word = shellWord(text);
  expect(printable(word)).toBe(word);
  expect(execFileSync('bash', ['-c', `printf %s ${word}`], { env: { ...process.env, LC_ALL: 'C' } }).toString()).toBe(
    text,
  );
});

test('a path in a command is no flag', () => {
  expect(['-x.yaml', '-', 'a-b', './-x'].map(pathWord)).toEqual(['./-x.yaml', '-', 'a-b', './-x']);
});

test.each([
  [['a', 'b'], 'a, b'],
  [['the other nodes (w2, w3)', 'b'], 'the other nodes (w2, w3); b'],
])('phrases %j', (phrases, joined) => {
  expect(joinPhrases(phrases)).toBe(joined);
});
