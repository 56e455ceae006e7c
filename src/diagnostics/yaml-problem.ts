import { describeOddSpace, nameCharacter } from '../base/odd-space.ts';

/** The problems whose words are always the same. */
const fixedWords = {
  'alias-holds-itself': 'the value that this alias stands for holds the alias',
  'bad-anchor-name': 'the name of an anchor or alias is made of letters, digits, "-" and "_", and a space follows it',
  'blanks-after-block': 'this block gives its indentation, and blank lines at its end hold spaces: remove those spaces',
  'block-at-root': 'a document cannot be a block of text: indent it below a key',
  'byte-order-mark': 'a byte order mark can stand at the start of a file only',
  'deeper-than-key':
    'this line is indented deeper than the key above it, which has its value already: indent both alike',
  directive: 'kubectl reads no line that begins with "%": leave it out',
  'document-ended': 'the document has ended before this: begin another one with a line "---"',
  'list-on-this-line': 'a list cannot begin here: put its first "- " on the next line',
  'mapping-on-this-line':
    'a mapping cannot begin here: put a text with ": " in it in quotes, or the mapping on the next line',
  'no-key': 'a key of the mapping is expected here',
  'no-key-with-colon': 'a key with its ":" is expected here',
  'no-space-after-colon': 'a space is missing after the ":" of this key',
  'no-space-before-comment': 'a space is missing before the "#" of this comment',
  'no-list-item': 'an item of the list, with its "- ", is expected here',
  'no-value': 'a value is expected here',
  'odd-colon': 'a key after "?" needs a ":" below the "?"',
  'odd-indent': 'this line is indented like none of the keys above it: indent it like the one that it stands beside',
  'odd-tag': 'kubectl does not read this tag: leave it out',
  'open-quote': 'the quote that begins here has no end',
  'quote-indent': 'indent the lines of this text in quotes deeper than its key',
  'text-after-block-sign': 'nothing but a comment can follow "|" or ">" on its line',
  'text-after-marker': 'only a space or a comment can follow "---" at the start of a line',
  'text-after-value': 'the value has ended before this: put the whole of it in quotes, or begin another line',
  unexpected: 'this is not expected here: put a text in quotes',
  'value-as-binary': 'Kubernetes does not read !!binary: keep the base64 text and leave the tag out',
  'value-as-timestamp': 'Kubernetes reads a date as text: leave !!timestamp out',
} as const;

/** Why a text is not YAML that kubectl reads. */
export type YamlProblem =
  | { readonly problem: keyof typeof fixedWords }
  // These are valid YAML, but JSON has no such thing.
  | { readonly problem: 'key-of-other-type' | 'merge-of-other-type' }
  | { readonly problem: 'character' | 'line-end' | 'odd-space'; readonly codePoint: number }
  | { readonly problem: 'escape'; readonly escape: string }
  | { readonly problem: 'first-character' | 'odd-word'; readonly character: string }
  | { readonly problem: 'flow-indent' | 'no-comma'; readonly sign: ']' | '}' }
  | { readonly problem: 'not-a-number-in-json'; readonly value: string }
  | { readonly problem: 'not-of-tag'; readonly value: string; readonly tag: string }
  | { readonly problem: 'unknown-anchor'; readonly name: string };

/** What is wrong with the text. */
export function describeYamlProblem(details: YamlProblem): string {
  switch (details.problem) {
    case 'key-of-other-type':
      return 'a key must be a string';
    case 'merge-of-other-type':
      return 'only mappings can be merged with "<<"';
    default:
      return `not valid YAML: ${describeInvalid(details)}`;
  }
}

function describeInvalid(
  details: Exclude<YamlProblem, { readonly problem: 'key-of-other-type' | 'merge-of-other-type' }>,
): string {
  switch (details.problem) {
    case 'character':
      return `the character ${nameCharacter(details.codePoint)} cannot be in YAML`;
    case 'odd-space':
      return describeOddSpace(details.codePoint);
    case 'line-end':
      return `the character ${nameCharacter(details.codePoint)} ends a line for some readers of YAML only: leave it out`;
    case 'escape':
      return `kubectl does not read the escape "${details.escape}" in double quotes`;
    case 'first-character':
      return `nothing can begin with "${details.character}": put it in quotes`;
    case 'odd-word':
      return `"${details.character}" cannot be in a text in brackets or braces without quotes: put the text in quotes`;
    case 'flow-indent':
      return `the lines up to "${details.sign}" must be indented deeper than what they belong to`;
    case 'no-comma':
      return `"," or "${details.sign}" is expected here`;
    case 'not-a-number-in-json':
      return `${details.value} is not a number in JSON, so Kubernetes cannot read it`;
    case 'not-of-tag':
      return `${JSON.stringify(details.value)} is not a ${details.tag}`;
    case 'unknown-anchor':
      return `unresolved alias (the anchor must be set before the alias): ${details.name}`;
    default:
      return fixedWords[details.problem];
  }
}
