import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { sayFindings, type SaidFinding } from '../../src/say/words/said.ts';
import { formatFindings } from '../../src/say/formats/text.ts';
import { diagnose, type Finding } from '../../src/base/findings/finding.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';

const file = new TextFile('a.yaml', `kind: Service\n\tport: 70000\n${'x'.repeat(200)}: y\n\n`);
const lineOf = (_: string, line: number): string => file.lineAt(line);

const at = (line: number, column: number): NonNullable<Finding['place']> => ({
  file: 'a.yaml',
  locate: () => ({ file: 'a.yaml', line, column }),
});

/** A diagnostic in words of its own: what matters here is how it is shown. */
const saying = (text: string, finding: Finding): SaidFinding[] =>
  sayFindings([finding]).map((said) => ({ ...said, text }));

const tooLarge = {
  field: 'port',
  found: { type: 'number', value: 70_000 },
  types: ['integer'],
  expected: 'a port is a number from 1 to 65535',
} as const;
const diagnostics: readonly SaidFinding[] = [
  ...saying('compiled without a node', diagnose('unnamed-port', {})),
  ...saying('port 70000: too large', diagnose('bad-value', tooLarge, at(2, 8))),
  ...saying('far to the right', diagnose('no-ports', {}, at(3, 203))),
  ...saying('nothing\u001b[31m here', diagnose('empty-file', {}, at(4, 1))),
];

test('for people', () => {
  const right = `${'x'.repeat(57)}: y`;
  expect(formatFindings(diagnostics, lineOf, false)).toBe(
    [
      'warning: compiled without a node [unnamed-port]',
      '  help: name each port if there are several',
      'a.yaml:2:8: error: port 70000: too large [bad-value]',
      '   port: 70000',
      '         ^',
      '  help: a port is a number from 1 to 65535',
      'a.yaml:3:203: warning: far to the right [no-ports]',
      `  ${right}`,
      `  ${' '.repeat(59)}^`,
      'a.yaml:4:1: warning: nothing·[31m here [empty-file]',
      '',
    ].join('\n'),
  );
});

test('in colour, with the same words', () => {
  const coloured = formatFindings(diagnostics, lineOf, true);
  expect(coloured).toContain('\u001b[31m');
  expect(stripVTControlCharacters(coloured)).toBe(formatFindings(diagnostics, lineOf, false));
});

test('for programs', () => {
  expect(diagnostics.slice(0, 2)).toEqual([
    {
      severity: 'warning',
      code: 'unnamed-port',
      text: 'compiled without a node',
      help: 'name each port if there are several',
      arguments: {},
    },
    {
      severity: 'error',
      code: 'bad-value',
      text: 'port 70000: too large',
      help: 'a port is a number from 1 to 65535',
      arguments: tooLarge,
      place: { file: 'a.yaml', line: 2, column: 8 },
    },
  ]);
});
