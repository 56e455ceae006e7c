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
import { nameCharacter } from '../../base/odd-texts.ts';
import {
  mostYamlWords,
  maxDepth,
  Refusal,
  refuse,
  refuseTab,
  tooDeep,
  tooLong,
  type SyntaxFault,
} from '../documents/faults-and-limits.ts';

/** What a document holds; `root` is null for one without content. */
export interface Composed {
  readonly root: Node | null;
  /** What each alias means: what has the last anchor of its name before it. That may hold the alias. */
  readonly anchored: ReadonlyMap<Alias, Anchored>;
}

/** What has the last anchor of each name: it stays in memory as long as an alias may follow. */
export class Anchors {
  readonly #nodes = new Map<string, Anchored>();
  #words = 0;

  get(name: string): Anchored | undefined {
    return this.#nodes.get(name);
  }

  /** Throws a Refusal where they come to hold too much. */
  set(name: string, node: Anchored): void {
    this.#words += wordsOf(node) - wordsOf(this.#nodes.get(name));
    if (this.#words > mostYamlWords) throw new Refusal(tooLong('words', mostYamlWords, offsetOf(node)));
    this.#nodes.set(name, node);
  }
}

/** How many words and signs a value may be at most. */
function wordsOf(node: Anchored | undefined): number {
  if (!node) return 0;
  const [start, end] = node.range ?? [0, 0];
  return isScalar(node) ? wordsOfScalar : wordsOfScalar + end - start;
}

const wordsOfScalar = 4;

/** What can have an anchor. */
export type Anchored = Scalar | YAMLMap<Node, Node | null> | YAMLSeq<Node>;

/** Scalars stay texts, keys may be repeated, and nothing is merged: there go-yaml has rules of its own. */
const options = {
  schema: 'failsafe',
  resolveKnownTags: false,
  uniqueKeys: false,
  prettyErrors: false,
  keepSourceTokens: true,
  logLevel: 'silent',
} as const;

/** Characters that go-yaml takes nowhere. */
const forbidden = /[^\t\n\r\u0020-\u007e\u0085\u00a0-\ufffd\u{10000}-\u{10ffff}]|\ufeff/u;

/** What ends a line for go-yaml but not for the package, or the other way round. */
const oddLineEnd = /[\u2028\u2029]|\r(?=\r\n)/;

/**
 * A line that is no start of a document but looks like one, which kubectl's reader of lines refuses anywhere; or
 * one that holds the end of a line to YAML, so that its second part is there to some readers and not to others.
 */
const oddMarker = /(?<![^\n])---(?:(?![ \t\r\n]|$)|[^\n]*(?:\r(?!\n)|[\u0085\u2028\u2029]))/;

/** Reads the one document of a text with the package, and refuses what go-yaml v2 takes otherwise, or not at all. Throws a Refusal. */
export function compose(written: string, anchors = new Anchors()): Composed {
  for (const pattern of [forbidden, oddMarker, oddLineEnd]) {
    const found = pattern.exec(written);
    if (!found) continue;
    const character = nameCharacter(found[0].codePointAt(0) ?? 0);
    refuse(found.index, pattern === oddMarker ? 'text behind "---"' : `the character ${character}`);
  }
  // kubectl reads line by line, and ends each with a line feed.
  const lines = written.replaceAll(/\r(?!\n)|\u0085/g, '\n');
  const text = /[\r\n]$/.test(written) ? lines : `${lines}\n`;
  try {
    return readDocument(text, new Lexer(), anchors);
  } catch (error) {
    // A single line has no indentation to be lenient about.
    const isOther = !(error instanceof Refusal) || error.fault.code === 'too-long';
    if (isOther || text.indexOf('\n') === text.length - 1) throw error;
    try {
      return readDocument(text, createLenientLexer(), anchors);
    } catch {
      // The stricter lexer is nearer to the mistake: it ends a text whose quote is missing at the next line.
      throw error;
    }
  }
}

function readDocument(text: string, lexer: Lexer, anchors: Anchors): Composed {
  const [document, ...others] = readDocuments(text, lexer);
  const another = others.find(({ contents }) => !isEmpty(contents));
  if (another) refuse(another.range[0], 'text behind the end of a document');
  return document ? checkValues(document, text, anchors) : { root: null, anchored: new Map() };
}

/** What the package's lexer does where it asks for indentation. */
interface LexerInside {
  readonly buffer: string;
  readonly pos: number;
  readonly flowLevel: number;
  /** The least indentation of the next line. */
  indentNext: number;
  /** Where the content of a scalar's next line begins; -1 if that line is no part of the scalar. */
  continueScalar(offset: number): number;
}

/**
 * A lexer for quotes and brackets whose lines are indented no deeper than their key: go-yaml asks for no indentation there,
 * and the package does, without an option to leave it. test/yaml/kubectl.test.ts fails if a newer package has other insides.
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

function readDocuments(text: string, lexer: Lexer): Document.Parsed[] {
  const { stackTraceLimit } = Error;
  try {
    // The package makes all its errors, which may be as many as characters, and traces take most of the memory.
    Error.stackTraceLimit = 0;
    const composer = new Composer(options);
    const documents: Document.Parsed[] = [];
    for (const token of parse(text, lexer)) documents.push(...composer.next(token));
    documents.push(...composer.end());
    const errors = [...documents, composer.streamInfo()].flatMap((part) => part.errors);
    const [first] = errors.toSorted((a, b) => a.pos[0] - b.pos[0]);
    if (first?.code === 'TAB_AS_INDENT') refuseTab(first.pos[0]);
    if (first) throw new Refusal(describeError(text, first.pos[0], first.message));
    return documents;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** What the package says, with the line that it says it of and the one above: the cause may be invisible there. */
function describeError(text: string, offset: number, message: string): SyntaxFault {
  const above = text.lastIndexOf('\n', offset - 1);
  const lines = text.slice(text.lastIndexOf('\n', above - 1) + 1).split('\n', above < 0 ? 1 : 2);
  const reason = message.replace(/^[A-Z]/, (letter) => letter.toLowerCase());
  return { offset, code: 'bad-yaml', arguments: { reason, lines: lines.join('\n') } };
}

/**
 * The package's concrete syntax of a text, up to its first error: what follows can be a megabyte of others. What parses it
 * calls itself for each level, but this one.
 */
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
    // Of the stack, one is the document, and one a scalar.
    if (parser.stack.length > maxDepth + 2) throw new Refusal(tooDeep);
  }
  yield* parser.end();
}

/** Where a value begins in its text. */
export function offsetOf(node: Node): number {
  return node.range?.[0] ?? 0;
}

/** Whether nothing is written: null. */
export function isEmpty(node: Node | null): boolean {
  return node === null || (isScalar(node) && node.type === 'PLAIN' && node.source === '');
}

/** Looks at each value of a document once, in the order of the text, for what go-yaml does not take. */
function checkValues(document: Document.Parsed, text: string, anchors: Anchors): Composed {
  const { contents: root, directives, range } = document;
  if (isEmpty(root) && directives.docEnd === true && directives.docStart !== true) refuse(range[1], 'an end alone');
  if (isScalar(root) && root.srcToken?.type === 'block-scalar') refuse(offsetOf(root), 'a block of text alone');
  const anchored = new Map<Alias, Anchored>();
  visit(document, {
    Pair: (_, pair) => checkPair(pair as Pair<Node, Node | null>, text),
    Node: (_, node) => {
      if (isAlias(node)) {
        anchored.set(node, anchors.get(node.source) ?? refuse(offsetOf(node), 'an alias without its anchor before it'));
        return;
      }
      if (node.anchor !== undefined) anchors.set(node.anchor, node as Anchored);
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
  if (property && !colon) refuse(property.offset, 'an anchor or tag behind a word');
  const from = property?.offset ?? offsetOf(key);
  if (colon && (colon.offset - from > 1024 || text.slice(from, colon.offset).includes('\n')))
    refuse(from, 'a key of several lines');
}

function isProperty({ type }: CST.SourceToken): boolean {
  return type === 'anchor' || type === 'tag';
}

/** Where its indentation is given, blanks at the end count; where not, the first line shows it, and takes no tab. */
function checkBlock(scalar: Scalar, { props: [header], source }: CST.BlockScalar, text: string): void {
  const end = scalar.range?.[1] ?? 0;
  if (header && 'source' in header && /\d/.test(header.source)) {
    const isOdd = /(?:^|\n) +[\r\n]*$/.test(source) || /^ +\r?\n/.test(text.slice(end, end + 1000));
    if (isOdd) refuse(offsetOf(scalar), 'spaces in the blank lines at the end of a block that gives its indentation');
    return;
  }
  const tab = /^(?: *\r?\n)* *\t/.exec(source);
  if (tab) refuseTab(end - source.length + tab[0].length - 1);
}

/** A sign of the lexer for the parser is a control character, and not in the text: a plain scalar or a block of text follows. */
export const scalarSign = '\u001F';
export const signs: ReadonlySet<string> = new Set(['\u0002', '\u0018', scalarSign]);

/** What kubectl reads otherwise than the package, by the sign that it begins with. A pattern sees one character more. */
const odd: Readonly<Record<string, readonly [what: string, pattern: RegExp]>> = {
  '%': ['a line that begins with "%"', /^/],
  '?': ['a key after "?"', /^/],
  '&': ['this name of an anchor', /^(?!.[\w-]+(?:[\s,[\]{}]|$))/],
  '*': ['this name of an alias', /^(?!.[\w-]+(?:[\s,[\]{}]|$))/],
  '!': ['this tag', /^(?!!(?:!?[\w.-]*|<tag:yaml\.org,2002:\w+>)(?:\s|$))|^!(?:!|<.*:)(?:binary|timestamp)\b/],
  '"': [
    'this escape',
    /(?<!\\)(?:\\\\)*\\(?:\/|[uU](?:0000)?[dD][89a-fA-F][\da-fA-F]{2}|U(?!000[\da-fA-F]|0010).{8}|\r?\n[ \t]*\r?\n)/,
  ],
};

/** What is before the place on a line where a key or an item of a block may begin: go-yaml takes no tab there. */
const beforeKey = /^(?!---)[-?: ]*$/;

/** The package makes a string of each character that it adds to a text in double quotes, and V8 one of each quote that is doubled in single ones. Each takes a quarter of a word. */
const charactersOfWord = 4;

/** What a text takes besides its word, in words: the package holds each of its lines alone. */
function wordsInText(source: string, isQuoted: boolean): number {
  let lines = 0;
  for (let at = source.indexOf('\n'); at >= 0; at = source.indexOf('\n', at + 1)) lines++;
  return Math.max(lines, isQuoted ? Math.ceil(source.length / charactersOfWord) : 0);
}

/**
 * Returns a check that refuses what go-yaml rejects or reads differently from the package, if single lexemes show it.
 * The check takes a text's lexemes one after another, and throws a Refusal.
 */
function createLexemeCheck(text: string): (source: string) => void {
  let offset = 0;
  let lineStart = 0;
  /** Open brackets; the package makes twice as much of what is in them. */
  let flows = 0;
  let words = 0;
  let atScalar = false;
  /** Whether the last lexeme with content in it was a plain scalar in brackets. */
  let afterPlain = false;
  /** Whether brackets are the whole document: in these, go-yaml takes tabs anywhere. */
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
    if (atScalar && flows > 0 && /^:|\?/.test(source)) refuse(offset, 'this word in brackets');
    const tab = sign === ' ' || sign === '\t' ? source.indexOf('\t') : -1;
    const before = tab < 0 ? 'no tab' : text.slice(lineStart, offset + tab);
    if (flows === 0 ? beforeKey.test(before) : afterPlain && !isAllFlow && /^ *$/.test(before)) refuseTab(offset + tab);
    if (sign === ':' && afterPlain && /[,[\]{}]/.test(after)) refuse(offset, 'this ":" in brackets');
    const [what, pattern] = odd[sign] ?? [];
    const found = pattern?.exec(source + after);
    if (what !== undefined && found) refuse(offset + found.index, what);
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
