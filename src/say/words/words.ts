import type { ArgumentsOf, FindingCode } from '../../base/findings/codes.ts';
import type { Finding } from '../../base/findings/finding.ts';
import type { Cited } from '../../base/findings/rows.ts';
import { answerWords } from './answers.ts';
import { callWords } from './calls.ts';
import { commandLineWords } from './command-line.ts';
import { equivalenceWords } from './equivalence.ts';
import { fieldWords } from './fields.ts';
import { fileWords } from './files.ts';
import { lintWords } from './lint.ts';
import { objectWords } from './objects.ts';
import { sayIn, type Said, type Speak, type Wording } from './rows.ts';
import { serviceWords } from './services.ts';
import { settingWords } from './settings.ts';

const words: { readonly [Code in FindingCode]: Wording<ArgumentsOf<Code>> } = {
  ...answerWords,
  ...callWords,
  ...commandLineWords,
  ...equivalenceWords,
  ...fieldWords,
  ...fileWords,
  ...lintWords,
  ...objectWords,
  ...serviceWords,
  ...settingWords,
};

export function wordsOf(finding: Cited & Pick<Finding, 'isLast'>, speak?: Speak): Said {
  const { text, help } = sayIn(words, finding, speak);
  return { text: finding.isLast ? `${text}; further YAML errors in this file are not shown` : text, help };
}

export function inOneLine(finding: Cited): string {
  const { text, help } = wordsOf(finding);
  return help === undefined ? text : `${text}: ${help}`;
}
