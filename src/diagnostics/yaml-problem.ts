import { describeOddSpace, nameCharacter } from '../base/odd-space.ts';

/** The problems whose words are always the same. */
const fixedWords = {
  'alias-holds-itself': 'the value that this alias stands for holds the alias',
  'byte-order-mark': 'a byte order mark can stand at the start of a file only',
  'deeper-than-key':
    'this line is indented deeper than the key above it, which has its value already: indent both alike',
  'document-end': 'the document ends where a value is expected',
  'document-ended': 'the document has ended before this: begin another one with a line "---"',
  'indent-of-zero': 'a block of text cannot be indented by 0',
  'list-on-this-line': 'a list cannot begin here: put its first "- " on the next line',
  'mapping-here': 'a mapping cannot begin here',
  'mapping-on-this-line':
    'a mapping cannot begin here: put a text with ": " in it in quotes, or the mapping on the next line',
  'no-document-start': '"---" is expected after the directives',
  'no-key': 'a key of the mapping is expected here',
  'no-key-with-colon': 'a key with its ":" is expected here',
  'no-space-after-colon': 'a space is missing after the ":" of this key',
  'no-list-item': 'an item of the list, with its "- ", is expected here',
  'no-value': 'a value is expected here',
  'odd-indent': 'this line is indented like none of the keys above it: indent it like the one that it stands beside',
  'open-quote': 'the quote that begins here has no end',
  'tag-prefix-without-end': 'the prefix of %TAG ends with a space or the end of the line',
  'tag-prefix-without-handle': '%TAG needs a handle, such as !e!',
  'tag-prefix-without-space': '%TAG needs a space after its handle',
  'tag-with-bad-escape': 'the escaped character in the tag is not valid',
  'tag-with-half-escape': '"%" in a tag needs two hexadecimal digits',
  'tag-without-bracket': 'the tag has no ">" at its end',
  'tag-without-end': 'a tag ends with a space or the end of the line',
  'tag-without-name': 'the tag has no name',
  'text-after-block-sign': 'nothing but a comment can follow "|" or ">" on its line',
  'text-after-directive': 'nothing but a comment can follow a directive on its line',
  'text-after-marker': 'only a space or a comment can follow "---" at the start of a line',
  'two-versions': 'there is another %YAML before this one',
  'unknown-directive': 'the only directives are %YAML and %TAG',
  'value-as-binary': 'Kubernetes does not read !!binary: keep the base64 text and leave the tag out',
  'version-missing': '%YAML needs a version, such as 1.1',
} as const;

/** Why a text is not YAML that kubectl reads. */
export type YamlProblem =
  | { readonly problem: keyof typeof fixedWords }
  // These are valid YAML, but JSON has no such thing.
  | { readonly problem: 'key-of-other-type' | 'merge-of-other-type' }
  | { readonly problem: 'bad-anchor-name'; readonly kind: 'alias' | 'anchor' }
  | { readonly problem: 'character' | 'odd-space'; readonly codePoint: number }
  | { readonly problem: 'duplicate-tag-prefix' | 'unknown-tag-prefix'; readonly handle: string }
  | { readonly problem: 'escape'; readonly name: string }
  | { readonly problem: 'escape-length'; readonly name: string; readonly digits: number }
  | { readonly problem: 'escaped-character'; readonly escape: string }
  | { readonly problem: 'first-character'; readonly character: string }
  | { readonly problem: 'no-comma'; readonly sign: ']' | '}' }
  | { readonly problem: 'not-a-number-in-json'; readonly value: string }
  | { readonly problem: 'not-of-tag'; readonly value: string; readonly tag: string }
  | { readonly problem: 'other-version'; readonly version: string }
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
    case 'bad-anchor-name':
      return `the name of an ${details.kind} is made of letters, digits, "-" and "_"`;
    case 'character':
      return `the character ${nameCharacter(details.codePoint)} cannot be in YAML`;
    case 'odd-space':
      return describeOddSpace(details.codePoint);
    case 'duplicate-tag-prefix':
      return `duplicate %TAG ${details.handle}`;
    case 'unknown-tag-prefix':
      return `no %TAG says what ${details.handle} stands for`;
    case 'escape':
      return `there is no escape "\\${details.name}" in double quotes`;
    case 'escape-length':
      return `"\\${details.name}" needs ${details.digits} hexadecimal digits`;
    case 'escaped-character':
      return `"\\${details.escape}" is not a character`;
    case 'first-character':
      return `nothing can begin with "${details.character}": put it in quotes`;
    case 'no-comma':
      return `"," or "${details.sign}" is expected here`;
    case 'not-a-number-in-json':
      return `${details.value} is not a number in JSON, so Kubernetes cannot read it`;
    case 'not-of-tag':
      return `${JSON.stringify(details.value)} is not a ${details.tag}`;
    case 'other-version':
      return `kubectl reads YAML 1.1 only, not ${details.version}: leave the line out`;
    case 'unknown-anchor':
      return `unresolved alias (the anchor must be set before the alias): ${details.name}`;
    default:
      return fixedWords[details.problem];
  }
}
