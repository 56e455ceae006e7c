import { describeOddSpace, nameCharacter } from '../base/odd-space.ts';
import type { DetailsBy, Wordings } from './table.ts';

export interface CodePoint {
  readonly codePoint: number;
}

export interface Character {
  readonly character: string;
}

export interface Bracket {
  readonly sign: ']' | '}';
}

/** The words for a text that is not YAML that kubectl reads, by `problem`. */
export const yamlWords = {
  'alias-holds-itself': 'not valid YAML: the value of this alias holds the alias',
  'bad-anchor-name': [
    'not valid YAML: this is no name of an anchor or alias',
    'write letters, digits, "-" and "_", with a space after them',
  ],
  'blanks-after-block': [
    'not valid YAML: blank lines at the end of this block hold spaces',
    'remove those spaces, because the block gives its indentation',
  ],
  'block-at-root': ['not valid YAML: a document cannot be a block of text', 'indent it below a key'],
  'byte-order-mark': ['not valid YAML: a byte order mark is not at the start of the file', 'leave it out'],
  'deeper-than-key': [
    'not valid YAML: this line is indented deeper than the key above it, which has a value already',
    'indent both alike',
  ],
  directive: ['not valid YAML: kubectl reads no line that begins with "%"', 'leave it out'],
  'document-ended': ['not valid YAML: the document has ended before this', 'begin another one with a line "---"'],
  'list-on-this-line': ['not valid YAML: a list cannot begin here', 'put its first "- " on the next line'],
  'mapping-on-this-line': [
    'not valid YAML: a mapping cannot begin here',
    'put a text with ": " in it in quotes, or the mapping on the next line',
  ],
  'long-flow': ['kpc reads no more than 400,000 words and signs in brackets', 'write JSON, or lines without brackets'],
  'no-key': 'not valid YAML: a key of the mapping is expected here',
  'no-key-with-colon': 'not valid YAML: a key with its ":" is expected here',
  'no-space-after-colon': ['not valid YAML: this key has no space after its ":"', 'put one there'],
  'no-space-before-comment': ['not valid YAML: a comment has no space before its "#"', 'put one there'],
  'no-list-item': 'not valid YAML: an item of the list, with its "- ", is expected here',
  'no-value': 'not valid YAML: a value is expected here',
  'odd-colon': ['not valid YAML: a key after "?" has no ":" of its own', 'put the ":" below the "?"'],
  'odd-indent': [
    'not valid YAML: this line is indented like none of the keys above it',
    'indent it like the keys that it belongs with',
  ],
  'odd-tag': ['not valid YAML: kubectl does not read this tag', 'leave it out'],
  'open-quote': ['not valid YAML: the quote that begins here has no end', 'close it'],
  'quote-indent': [
    'not valid YAML: the lines of this text in quotes are not indented deeper than its key',
    'indent them deeper',
  ],
  'text-after-block-sign': [
    'not valid YAML: text follows "|" or ">" on its line',
    'begin it on the next line: only a comment can follow here',
  ],
  'text-after-marker': [
    'not valid YAML: text follows "---" without a space',
    'put a space between them, or begin the text on the next line',
  ],
  'text-after-value': [
    'not valid YAML: the value has ended before this',
    'put the whole of it in quotes, or begin another line',
  ],
  unexpected: ['not valid YAML: this is not expected here', 'put a text in quotes'],
  'value-as-binary': [
    'not valid YAML: Kubernetes does not read !!binary',
    'keep the base64 text and leave the tag out',
  ],
  'value-as-timestamp': ['not valid YAML: Kubernetes reads a date as text', 'leave !!timestamp out'],
  // These are valid YAML, but JSON has no such thing.
  'key-of-other-type': ['a key is not a string', 'put it in quotes'],
  'merge-of-other-type': ['"<<" merges something other than a mapping', 'name a mapping'],
  character: ({ codePoint }: CodePoint) => [
    `not valid YAML: the character ${nameCharacter(codePoint)} cannot be in YAML`,
    'leave it out',
  ],
  'line-end': ({ codePoint }: CodePoint) => [
    `not valid YAML: the character ${nameCharacter(codePoint)} ends a line for some readers of YAML only`,
    'leave it out',
  ],
  'odd-space': ({ codePoint }: CodePoint) => [
    `not valid YAML: the character ${nameCharacter(codePoint)} is not a space to YAML`,
    describeOddSpace(codePoint),
  ],
  escape: ({ escape }: { readonly escape: string }) =>
    `not valid YAML: kubectl does not read the escape "${escape}" in double quotes`,
  'first-character': ({ character }: Character) => [
    `not valid YAML: nothing can begin with "${character}"`,
    'put it in quotes',
  ],
  'odd-word': ({ character }: Character) => [
    `not valid YAML: "${character}" cannot be in a text in brackets or braces without quotes`,
    'put the text in quotes',
  ],
  'flow-indent': ({ sign }: Bracket) => [
    `not valid YAML: the lines up to "${sign}" are not indented deeper than what they belong to`,
    'indent them deeper',
  ],
  'no-comma': ({ sign }: Bracket) => `not valid YAML: "," or "${sign}" is expected here`,
  'not-a-number-in-json': ({ value }: { readonly value: string }) => [
    `not valid YAML: ${value} is not a number in JSON, so Kubernetes cannot read it`,
    'write a number, or put a text in quotes',
  ],
  'not-of-tag': ({ value, tag }: { readonly value: string; readonly tag: string }) => [
    `not valid YAML: ${JSON.stringify(value)} is not a ${tag}`,
    'leave the tag out',
  ],
  'unknown-anchor': ({ name }: { readonly name: string }) => [
    `not valid YAML: no anchor has the name of this alias: ${name}`,
    `set it before the alias, as &${name}`,
  ],
} as const satisfies Wordings;

/** Why a text is not YAML that kubectl reads. */
export type YamlProblem = DetailsBy<'problem', typeof yamlWords>;
