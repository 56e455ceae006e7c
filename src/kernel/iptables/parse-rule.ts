import { endOfQuoted } from '../../base/json/locate.ts';
import type { RuleArg } from './iptables.ts';
import { readLongMatch, readOption, readTarget } from './rule-args.ts';

const ruleLine = /^(?:\[\d+:\d+\] )?-[AI] /;

/** Limit in characters. A comment has at most 255, and no other quoted text is longer. */
const longestQuoted = 1024;

/** Joins lines that iptables-save split inside quotes. A quoted comment may even contain a line "COMMIT" or "*nat". */
export function joinQuotedLines(lines: readonly string[]): readonly string[] {
  return [...savedLines(lines.join('\n'))];
}

/** Like joinQuotedLines, line by line. `clean` strips foreign text from a line. */
export function* savedLines(text: string, clean: (line: string) => string = (line) => line): Generator<string, void> {
  for (let at = 0; at <= text.length;) {
    const first = lineEnd(text, at);
    let line = clean(text.slice(at, first));
    let end = first;
    if (line.includes('"') && ruleLine.test(line.trimStart())) {
      let whole = line;
      let open = findOpenQuote(whole);
      while (open >= 0 && end < text.length && whole.length - open < longestQuoted) {
        const start = end + 1;
        end = lineEnd(text, start);
        whole += `\n${clean(text.slice(start, end))}`;
        open = findOpenQuote(whole);
      }
      if (open < 0) line = whole;
      else end = first;
    }
    yield line;
    at = end + 1;
  }
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

export function hasOpenQuote(line: string): boolean {
  return findOpenQuote(line) >= 0;
}

function findOpenQuote(line: string): number {
  const quote = /(?<=[ \t])"/g;
  for (let found = quote.exec(line); found; found = quote.exec(line)) {
    const end = endOfQuoted(line, found.index);
    if (end === undefined) return found.index;
    quote.lastIndex = end;
  }
  return -1;
}

/** Reads a rule's arguments from the words after `-A CHAIN`, which begin at `start`. Unknown arguments are kept as words. */
export function parseRuleWords(words: readonly string[], start: number): RuleArg[] {
  const args: RuleArg[] = [];
  let at = start;
  while (at < words.length) {
    const negated = words[at] === '!';
    const first = negated ? at + 1 : at;
    const option = words[first] ?? '';
    const value = words[first + 1];
    let end = first + 2;
    let arg = value === undefined ? undefined : readOption(option, value, negated);
    if (!arg && value !== undefined && !negated && (option === '-m' || option === '-j' || option === '-g')) {
      const next = nextOption(words, end);
      // Port options of tcp, udp and sctp may appear anywhere, not only after their match.
      if (option === '-m' && (next === end || portMatches.has(value))) arg = { kind: 'module', name: value };
      else {
        end = next;
        const rest = words.slice(first + 1, end);
        arg = option === '-m' ? readMatchModule(value, rest.slice(1)) : readJump(option, rest);
      }
    } else if (!arg) end = nextOption(words, first + 1);
    args.push(arg ?? { kind: 'other', words: words.slice(at, end) });
    at = end;
  }
  return args;
}

const portMatches: ReadonlySet<string> = new Set(['tcp', 'udp', 'sctp']);

function readMatchModule(name: string, words: readonly string[]): RuleArg | undefined {
  const negated = words[0] === '!';
  const [option = '', value, ...more] = negated ? words.slice(1) : words;
  const short = value !== undefined && more.length === 0 ? readOption(`${name} ${option}`, value, negated) : undefined;
  return short ?? readLongMatch([name, ...words]);
}

function readJump(option: string, words: readonly string[]): RuleArg {
  const target = readTarget(words) ?? { kind: 'other', words };
  return option === '-g' ? { kind: 'jump', target, goto: true } : { kind: 'jump', target };
}

/** Options that belong to no match, and those of the matches tcp, udp and sctp, as iptables-save and kube-proxy write them. */
const ownOptions: ReadonlySet<string> = new Set('-s -d -i -o -p -m -j -g -f -c --dport --sport'.split(' '));

/** Options whose value is free text that may look like an option. */
const textOptions: ReadonlySet<string> = new Set(
  '--comment --log-prefix --nflog-prefix --ulog-prefix --string --hex-string'.split(' '),
);

function nextOption(words: readonly string[], from: number): number {
  let value = -1;
  for (let at = from; at < words.length; at++) {
    const word = words[at] ?? '';
    if (textOptions.has(word)) value = ++at;
    else if (ownOptions.has(word)) return at > from && words[at - 1] === '!' && at - 1 !== value ? at - 1 : at;
  }
  return words.length;
}

/** Splits at blanks outside double quotes, like iptables-restore; a backslash inside quotes escapes. Undefined if a quote is not closed. */
export function splitWords(line: string): string[] | undefined {
  if (!line.includes('"') && !line.includes('\t')) {
    const words = line.split(' ');
    return words.includes('') ? words.filter((word) => word !== '') : words;
  }
  const words: string[] = [];
  const sign = /[ \t"]/g;
  let start = 0;
  const endWord = (end: number): void => {
    if (end > start) words.push(unquoteWord(line.slice(start, end)));
    start = end + 1;
  };
  for (let found = sign.exec(line); found; found = sign.exec(line)) {
    if (found[0] !== '"') endWord(found.index);
    else {
      const end = endOfQuoted(line, found.index);
      if (end === undefined) return undefined;
      sign.lastIndex = end;
    }
  }
  endWord(line.length);
  return words;
}

function unquoteWord(word: string): string {
  if (!word.includes('"')) return word;
  if (!word.includes('\\')) return word.replaceAll('"', '');
  const parts: string[] = [];
  for (let at = 0; at < word.length;) {
    const start = word.indexOf('"', at);
    const end = start < 0 ? word.length : (endOfQuoted(word, start) ?? word.length);
    if (start < 0) parts.push(word.slice(at));
    else parts.push(word.slice(at, start), word.slice(start + 1, end - 1).replace(/\\([^])/g, '$1'));
    at = end;
  }
  return parts.join('');
}
