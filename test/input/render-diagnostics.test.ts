import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { diagnosticsToJson } from '../../src/report/json.ts';
import { renderDiagnostics } from '../../src/report/render-diagnostics.ts';
import type { Diagnostic } from '../../src/cluster/diagnostic.ts';
import { TextFile } from '../../src/input/text-file.ts';

const file = new TextFile('a.yaml', `kind: Service\n\tport: 70000\n${'x'.repeat(200)}: y\n\n`);
const lineOf = (_: string, line: number): string => file.lineAt(line);

const at = (line: number, column: number): NonNullable<Diagnostic['place']> => ({
  file: 'a.yaml',
  locate: () => ({ file: 'a.yaml', line, column }),
});

const diagnostics: readonly Diagnostic[] = [
  { severity: 'note', code: 'no-node', text: 'compiled without a node' },
  { severity: 'error', code: 'bad-port', text: 'port 70000: too large', place: at(2, 8) },
  { severity: 'warning', code: 'long-line', text: 'far to the right', place: at(3, 203) },
  { severity: 'warning', code: 'empty-file', text: 'nothing\u001b[31m here', place: at(4, 1) },
];

test('for people', () => {
  const right = `${'x'.repeat(57)}: y`;
  expect(renderDiagnostics(diagnostics, lineOf, false)).toBe(
    [
      'kpc: note: compiled without a node [no-node]',
      'a.yaml:2:8: error: port 70000: too large [bad-port]',
      '   port: 70000',
      '         ^',
      'a.yaml:3:203: warning: far to the right [long-line]',
      `  ${right}`,
      `  ${' '.repeat(59)}^`,
      'a.yaml:4:1: warning: nothing·[31m here [empty-file]',
      '',
    ].join('\n'),
  );
});

test('in colour, with the same words', () => {
  const coloured = renderDiagnostics(diagnostics, lineOf, true);
  expect(coloured).toContain('\u001b[31m');
  expect(stripVTControlCharacters(coloured)).toBe(renderDiagnostics(diagnostics, lineOf, false));
});

test('for programs', () => {
  expect(diagnosticsToJson(diagnostics.slice(0, 2))).toEqual([
    { severity: 'note', code: 'no-node', text: 'compiled without a node' },
    { severity: 'error', code: 'bad-port', text: 'port 70000: too large', file: 'a.yaml', line: 2, column: 8 },
  ]);
});
