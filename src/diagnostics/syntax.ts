import { conflictText } from '../base/merge-conflict.ts';
import type { DiagnosticTable } from './table.ts';
import type { YamlProblem } from './yaml-problem.ts';
import { describeYamlProblem } from './yaml-problem.ts';

type JsonProblem = { readonly problem: 'invalid'; readonly reason: string } | { readonly problem: 'text-after-json' };

/** Values nest in a text; lists of Kubernetes objects nest in each other, however little text that takes. */
type DepthProblem = { readonly what: 'values' } | { readonly what: 'lists'; readonly limit: number };

/** What keeps a text from being read as YAML or JSON. */
export const syntaxDiagnostics = {
  'alias-bomb': {
    severity: 'error',
    meaning: 'YAML aliases expand a short text to more than fits in memory',
    words: ({ copies, values }: { readonly copies: number; readonly values: number }) =>
      `aliases multiply to ${copies} of ${values} values: write the values out`,
  },
  'bad-json': {
    severity: 'error',
    meaning: 'a text begins like JSON, but is not valid JSON',
    words: (details: JsonProblem) =>
      details.problem === 'invalid'
        ? `not valid JSON: ${details.reason}`
        : 'after JSON another document begins with a line "---"',
  },
  'bad-yaml': {
    severity: 'error',
    meaning: 'a text is not valid YAML, or not YAML that kubectl reads',
    words: (details: YamlProblem) => describeYamlProblem(details),
  },
  'duplicate-key': {
    severity: 'error',
    meaning: 'a mapping has the same key twice',
    words: ({ name, problem }: { readonly name?: string; readonly problem?: 'two-objects' }) =>
      problem === 'two-objects'
        ? 'a second object begins here without a line "---" before it: add that line'
        : name === undefined
          ? 'this key is in the same mapping twice: keep one of them'
          : `this key is in the same mapping as another one that is written "${name}" in JSON: keep one of them`,
  },
  'merge-conflict': {
    severity: 'error',
    meaning: 'Git left the marks of a merge conflict in the file',
    words: () => conflictText,
  },
  'too-deep': {
    severity: 'error',
    meaning: 'lists or mappings nest deeper than in any Kubernetes object',
    words: (details: DepthProblem) =>
      details.what === 'values'
        ? 'lists and mappings nest too deeply'
        : `lists stand in lists more than ${details.limit} deep: put the objects into one`,
  },
  'yaml-tab': {
    severity: 'error',
    meaning: 'a tab indents YAML, which takes spaces only',
    words: () => 'a tab is used for indentation: YAML takes spaces only',
  },
} satisfies DiagnosticTable;
