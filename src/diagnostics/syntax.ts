import { adviseOnOddSpace } from '../base/odd-texts.ts';
import { manifests, web } from './examples.ts';
import { wordsBy, type DiagnosticTable } from './diagnostic-rows.ts';

/** What keeps a text from being read as YAML or JSON. */
export const syntaxDiagnostics = {
  'alias-bomb': {
    severity: 'error',
    meaning: 'YAML aliases expand a short text to more than fits in memory',
    example: () =>
      manifests(
        `a: &a [${'x, '.repeat(9)}x]\n${Array.from('bcde', (name, i) => `${name}: &${name} [${`*${'abcd'[i]}, `.repeat(9)}x]\n`).join('')}`,
      ),
    words: ({ copies, values }: { readonly copies: number; readonly values: number }) => [
      `aliases multiply to ${copies} of ${values} values`,
      'write the values out',
    ],
  },
  'bad-json': {
    severity: 'error',
    meaning: 'a text begins like JSON, but is not valid JSON',
    example: () => ({
      words: ['compile', '-f', 'in.json'],
      files: { 'in.json': '{ "apiVersion": "v1" "kind": "Service" }' },
    }),
    words: wordsBy('problem', {
      invalid: ({ reason }: { readonly reason: string }) => `not valid JSON: ${reason}`,
      'text-after-json': ['text follows the JSON', 'put a line "---" before another document'],
    }),
  },
  'bad-yaml': {
    severity: 'error',
    meaning: 'a text is not valid YAML, or not YAML that kubectl reads',
    example: () => manifests('kind: Service\nmetadata: { name: web\n'),
    // `lines` are those around it, where the parser says so; what only kubectl reads in another way has none.
    words: ({ reason, lines }: { readonly reason: string; readonly lines?: string }) => [
      `not valid YAML: ${reason}`,
      lines === undefined
        ? 'write it in a plainer way, or leave it out'
        : (adviseOnOddSpace(lines) ??
          'check the indentation and the space after each ":", and put a text with ": ", "#" or brackets in quotes'),
    ],
  },
  'duplicate-key': {
    severity: 'error',
    meaning: 'a mapping has the same key twice',
    example: () => manifests('apiVersion: v1\nkind: Service\nkind: Service\n'),
    words: ({ isTwoObjects }: { readonly isTwoObjects?: true }) =>
      isTwoObjects
        ? ['a second object begins here without a line "---" before it', 'add that line']
        : ['this key is in the same mapping twice', 'keep one of them'],
  },
  'merge-conflict': {
    severity: 'error',
    meaning: 'Git left the marks of a merge conflict in the file',
    example: () => manifests(`<<<<<<< ours\n${web}=======\n${web}>>>>>>> theirs\n`),
    words: ['Git left a merge conflict here', 'resolve it, so that no line begins with <<<<<<<, ======= or >>>>>>>'],
  },
  'too-deep': {
    severity: 'error',
    meaning: 'lists or mappings nest deeper than in any Kubernetes object',
    example: () => manifests('- '.repeat(2000)),
    words: wordsBy('what', {
      values: 'lists and mappings nest too deeply',
      lists: ({ limit }: { readonly limit: number }) => [
        `lists are nested more than ${limit} deep`,
        'put the objects into one list',
      ],
    }),
  },
  'yaml-tab': {
    severity: 'error',
    meaning: 'a tab indents YAML, which takes spaces only',
    example: () => manifests('kind: Service\nmetadata:\n\tname: web\n'),
    words: ['a tab is used for indentation', 'indent with spaces: YAML takes nothing else'],
  },
} satisfies DiagnosticTable;
