import {
  type Alias,
  Composer,
  type CST,
  type Document,
  isAlias,
  isScalar,
  Lexer,
  type Node,
  type Pair,
  Parser,
  type Scalar,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import {
  mostYamlWords,
  maxDepth,
  Refusal,
  refuseYaml,
  refuseTab,
  tooDeep,
  tooLong,
  type SyntaxFault,
} from '../documents/faults-and-limits.ts';

export interface Composed {
  readonly root: Node | null;
  readonly anchored: ReadonlyMap<Alias, AnchoredNode>;
}

/** The last value for each anchor name. It stays in memory while an alias may follow. */
export class Anchors {
  readonly #nodes = new Map<string, AnchoredNode>();
  #words = 0;

  get(name: string): AnchoredNode | undefined {
    return this.#nodes.get(name);
  }

  /** Throws a Refusal if the values are too large in total. */
  set(name: string, node: AnchoredNode): void {
    this.#words += sizeInWords(node) - sizeInWords(this.#nodes.get(name));
    if (this.#words > mostYamlWords) throw new Refusal(tooLong('words', mostYamlWords, offsetOf(node)));
    this.#nodes.set(name, node);
  }
}

/** Returns an upper bound for the words and signs in a value. */
function sizeInWords(node: AnchoredNode | undefined): number {
  if (!node) return 0;
  const [start, end] = node.range ?? [0, 0];
  return isScalar(node) ? wordsOfScalar : wordsOfScalar + end - start;
}

const wordsOfScalar = 4;

export type AnchoredNode = Scalar | YAMLMap<Node, Node | null> | YAMLSeq<Node>;

/** With these options, the package does not interpret scalars, repeated keys and merges. go-yaml has its own rules for them. */
const options = {
  schema: 'failsafe',
  resolveKnownTags: false,
  uniqueKeys: false,
  prettyErrors: false,
  keepSourceTokens: true,
  logLevel: 'silent',
} as const;

/** Characters that go-yaml rejects anywhere. */
const forbidden = /[^\t\n\r\u0020-\u007e\u0085\u00a0-\ufffd\u{10000}-\u{10ffff}]|\ufeff/u;

/** Characters that end a line for go-yaml but not for the package, or the other way round. */
const oddLineEnd = /[\u2028\u2029]|\r(?=\r\n)/;

/**
 * Matches a line that only looks like a document marker, which kubectl's line reader always rejects. Also matches a marker line that
 * contains a YAML line break, so that only some readers see the rest of the line.
 */
const oddMarker = /(?<![^\n])---(?:(?![ \t\r\n]|$)|[^\n]*(?:\r(?!\n)|[\u0085\u2028\u2029]))/;

/** Parses one document with the yaml package. Throws a Refusal for text that go-yaml v2 rejects or reads differently. */
export function compose(written: string, anchors = new Anchors()): Composed {
  for (const pattern of [forbidden, oddMarker, oddLineEnd]) {
    const found = pattern.exec(written);
    if (!found) continue;
    const { index: offset } = found;
    if (pattern === oddMarker) refuseYaml(offset, 'text-behind-marker');
    throw new Refusal({ offset, code: 'bad-yaml', arguments: { character: found[0].codePointAt(0) ?? 0 } });
  }
  // kubectl reads line by line, and ends each line with a line feed.
  const lines = written.replaceAll(/\r(?!\n)|\u0085/g, '\n');
  const text = /[\r\n]$/.test(written) ? lines : `${lines}\n`;
  try {
    return composeDocument(text, new Lexer(), anchors);
  } catch (error) {
    // The lenient lexer does not help with a single line, because it differs only in indentation.
    const isOther = !(error instanceof Refusal) || error.fault.code === 'too-long';
    if (isOther || text.indexOf('\n') === text.length - 1) throw error;
    try {
      return composeDocument(text, createLenientLexer(), anchors);
    } catch {
      // Throw the strict lexer's error. It is nearer to the mistake, because the strict lexer ends an unclosed quote at the next line.
      throw error;
    }
  }
}

function composeDocument(text: string, lexer: Lexer, anchors: Anchors): Composed {
  const [document, ...others] = composeDocuments(text, lexer);
  const another = others.find(({ contents }) => !isEmpty(contents));
  if (another) refuseYaml(another.range[0], 'text-behind-marker');
  return document ? checkYamlNodes(document, text, anchors) : { root: null, anchored: new Map() };
}

/** The members of the package's lexer that createLenientLexer overrides. */
interface LexerInside {
  readonly buffer: string;
  readonly pos: number;
  readonly flowLevel: number;
  indentNext: number;
  /** Returns where the content of a scalar's next line begins; -1 if the line is not part of the scalar. */
  continueScalar(offset: number): number;
}

/**
 * Accepts quotes and brackets whose lines are indented no deeper than their key, as go-yaml does; the package has no option for this.
 * test/yaml/kubectl.test.ts fails if a newer package has other internals.
 */
export function createLenientLexer(): Lexer {
  const lexer = new Lexer();
  const inside = lexer as unknown as LexerInside;
  let { indentNext } = inside;
  let inQuotes = false;
  Object.defineProperty(inside, 'indentNext', {
    get: () => (inQuotes || inside.flowLevel > 0 ? 0 : indentNext),
    set: (indent: number) => {
      indentNext = indent;
    },
  });
  const { continueScalar } = inside;
  inside.continueScalar = (offset) => {
    inQuotes = /["']/.test(inside.buffer.charAt(inside.pos));
    const next = continueScalar.call(inside, offset);
    inQuotes = false;
    return next;
  };
  return lexer;
}

function composeDocuments(text: string, lexer: Lexer): Document.Parsed[] {
  const { stackTraceLimit } = Error;
  try {
    // The package may create an error for each character, and stack traces would take most of the memory.
    Error.stackTraceLimit = 0;
    const composer = new Composer(options);
    const documents: Document.Parsed[] = [];
    for (const token of parse(text, lexer)) documents.push(...composer.next(token));
    documents.push(...composer.end());
    const errors = [...documents, composer.streamInfo()].flatMap((part) => part.errors);
    const [first] = errors.toSorted((a, b) => a.pos[0] - b.pos[0]);
    if (first?.code === 'TAB_AS_INDENT') refuseTab(first.pos[0]);
    if (first) throw new Refusal(describeYamlError(text, first.pos[0], first.message));
    return documents;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Returns the package's message, with its line and the line above, because an invisible character in either may be the cause. */
function describeYamlError(text: string, offset: number, message: string): SyntaxFault {
  const above = text.lastIndexOf('\n', offset - 1);
  const lines = text.slice(text.lastIndexOf('\n', above - 1) + 1).split('\n', above < 0 ? 1 : 2);
  const reason = message.replace(/^[A-Z]/, (letter) => letter.toLowerCase());
  return { offset, code: 'bad-yaml', arguments: { reason, lines: lines.join('\n') } };
}

/** Yields the package's tokens up to its first error, because a megabyte of errors may follow. Limits depth for the recursive composer. */
function* parse(text: string, lexer: Lexer): Generator<CST.Token> {
  const parser = new Parser();
  const check = createLexemeCheck(text);
  let failed = false;
  for (const lexeme of lexer.lex(text)) {
    if (failed) break;
    check(lexeme);
    for (const token of parser.next(lexeme)) {
      yield token;
      failed ||= token.type === 'error';
    }
    // Add 2, because the stack also holds the document and perhaps a scalar.
    if (parser.stack.length > maxDepth + 2) throw new Refusal(tooDeep);
  }
  yield* parser.end();
}

export function offsetOf(node: Node): number {
  return node.range?.[0] ?? 0;
}

export function isEmpty(node: Node | null): boolean {
  return node === null || (isScalar(node) && node.type === 'PLAIN' && node.source === '');
}

/** Visits each value once, in text order. Throws a Refusal for values that go-yaml rejects. */
function checkYamlNodes(document: Document.Parsed, text: string, anchors: Anchors): Composed {
  const { contents: root, directives, range } = document;
  if (isEmpty(root) && directives.docEnd === true && directives.docStart !== true) refuseYaml(range[1], 'lone-end');
  if (isScalar(root) && root.srcToken?.type === 'block-scalar') refuseYaml(offsetOf(root), 'lone-block');
  const anchored = new Map<Alias, AnchoredNode>();
  visit(document, {
    Pair: (_, pair) => checkPair(pair as Pair<Node, Node | null>, text),
    Node: (_, node) => {
      if (isAlias(node)) {
        anchored.set(node, anchors.get(node.source) ?? refuseYaml(offsetOf(node), 'unknown-alias'));
        return;
      }
      if (node.anchor !== undefined) anchors.set(node.anchor, node as AnchoredNode);
      if (isScalar(node) && node.srcToken?.type === 'block-scalar') checkBlock(node, node.srcToken, text);
    },
  });
  return { root, anchored };
}

/** go-yaml requires a key and its colon on one line, close together. */
function checkPair({ key, srcToken }: Pair<Node, Node | null>, text: string): void {
  const { start = [], sep = [] } = srcToken ?? {};
  const colon = sep.find(({ type }) => type === 'map-value-ind');
  const property = start.find(isProperty) ?? (colon ? undefined : sep.find(isProperty));
  if (property && !colon) refuseYaml(property.offset, 'anchor-behind-word');
  const from = property?.offset ?? offsetOf(key);
  if (colon && (colon.offset - from > 1024 || text.slice(from, colon.offset).includes('\n')))
    refuseYaml(from, 'long-key');
}

function isProperty({ type }: CST.SourceToken): boolean {
  return type === 'anchor' || type === 'tag';
}

/**
 * Checks block text. With an indentation indicator, trailing blanks count. Without it, the first line sets the indentation and must not
 * begin with a tab.
 */
function checkBlock(scalar: Scalar, { props: [header], source }: CST.BlockScalar, text: string): void {
  const end = scalar.range?.[1] ?? 0;
  if (header && 'source' in header && /\d/.test(header.source)) {
    const isOdd = /(?:^|\n) +[\r\n]*$/.test(source) || /^ +\r?\n/.test(text.slice(end, end + 1000));
    if (isOdd) refuseYaml(offsetOf(scalar), 'blank-spaces');
    return;
  }
  const tab = /^(?: *\r?\n)* *\t/.exec(source);
  if (tab) refuseTab(end - source.length + tab[0].length - 1);
}

/** Control characters with which the lexer announces a plain scalar or block text. They are not in the text. */
export const scalarSign = '\u001F';
export const signs: ReadonlySet<string> = new Set(['\u0002', '\u0018', scalarSign]);

/** Texts that kubectl and the package read differently, by first character. Each pattern gets one character after the text. */
const odd: Readonly<Record<string, RegExp>> = {
  '%': /^/,
  '?': /^/,
  '&': /^(?!.[\w-]+(?:[\s,[\]{}]|$))/,
  '*': /^(?!.[\w-]+(?:[\s,[\]{}]|$))/,
  '!': /^(?!!(?:!?[\w.-]*|<tag:yaml\.org,2002:\w+>)(?:\s|$))|^!(?:!|<.*:)(?:binary|timestamp)\b/,
  '"': /(?<!\\)(?:\\\\)*\\(?:\/|[uU](?:0000)?[dD][89a-fA-F][\da-fA-F]{2}|U(?!000[\da-fA-F]|0010).{8}|\r?\n[ \t]*\r?\n)/,
};

/** The part of a line before a block key or item, in which go-yaml allows no tab. */
const beforeKey = /^(?!---)[-?: ]*$/;

/**
 * The package makes a string for each character in double quotes, and V8 makes one for each doubled single quote. Each string takes a
 * quarter of a word's memory.
 */
const charactersOfWord = 4;

/** Returns the additional memory cost of a text, in words. The package keeps each line separately. */
function wordsInText(source: string, isQuoted: boolean): number {
  let lines = 0;
  for (let at = source.indexOf('\n'); at >= 0; at = source.indexOf('\n', at + 1)) lines++;
  return Math.max(lines, isQuoted ? Math.ceil(source.length / charactersOfWord) : 0);
}

/**
 * Returns a function that checks a text's lexemes in order. The function throws a Refusal for a lexeme that go-yaml rejects or reads
 * differently.
 */
function createLexemeCheck(text: string): (source: string) => void {
  let offset = 0;
  let lineStart = 0;
  /** The number of open brackets. The package needs twice the memory for words inside brackets. */
  let flows = 0;
  let words = 0;
  let atScalar = false;
  /** Whether the last lexeme with content was a plain scalar in brackets. */
  let afterPlain = false;
  /** Whether the document is one bracketed value, in which go-yaml allows tabs anywhere. */
  let isAllFlow: boolean | undefined;
  return (source) => {
    const isText = atScalar || /^["']/.test(source);
    words += isText ? wordsInText(source, !atScalar) : 0;
    words += flows > 0 ? 2 : 1;
    if (words > mostYamlWords) throw new Refusal(tooLong('words', mostYamlWords, offset));
    if (signs.has(source)) {
      atScalar = source === scalarSign;
      return;
    }
    const after = text.charAt(offset + source.length);
    const sign = atScalar ? '' : source.charAt(0);
    if (sign === '[' || sign === '{') flows++;
    if (sign === ']' || sign === '}') flows--;
    if (atScalar && flows > 0 && /^:|\?/.test(source)) refuseYaml(offset, 'in-brackets');
    const tab = sign === ' ' || sign === '\t' ? source.indexOf('\t') : -1;
    const before = tab < 0 ? 'no tab' : text.slice(lineStart, offset + tab);
    if (flows === 0 ? beforeKey.test(before) : afterPlain && !isAllFlow && /^ *$/.test(before)) refuseTab(offset + tab);
    if (sign === ':' && afterPlain && /[,[\]{}]/.test(after)) refuseYaml(offset, 'in-brackets');
    const found = odd[sign]?.exec(source + after);
    if (found) throw new Refusal({ offset: offset + found.index, code: 'bad-yaml', arguments: { sign } });
    if (atScalar || !/^[ \t\r\n]*$/.test(source)) {
      if (!/^(?:#|---)/.test(source)) isAllFlow ??= !atScalar && /^[[{]/.test(source);
      afterPlain = atScalar && flows > 0;
    }
    atScalar = false;
    const lineFeed = source.lastIndexOf('\n');
    if (lineFeed >= 0) lineStart = offset + lineFeed + 1;
    offset += source.length;
  };
}
