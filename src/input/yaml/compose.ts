import {
  Composer,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  Parser,
  type Alias,
  type CST,
  type Document,
  type Node,
  type Pair,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { maxDepth, refuse, Refusal, refuseTab, tooDeep, type SyntaxFault } from '../documents/syntax-fault.ts';
import { LexemeChecker, mostInFlows } from './check-lexemes.ts';

/** What a document holds; `root` is null for one without content. */
export interface Composed {
  readonly root: Node | null;
  /** All that are written, in the order of the text. */
  readonly mappings: readonly YAMLMap<Node, Node | null>[];
  /** What each alias means: what has the last anchor of its name before it. That may hold the alias. */
  readonly targets: ReadonlyMap<Alias, Target>;
}

/** What can have an anchor. */
export type Target = Scalar | YAMLMap<Node, Node | null> | YAMLSeq<Node>;

/** Scalars stay texts, keys may be repeated, and nothing is merged: there go-yaml has rules of its own. */
const options = {
  schema: 'failsafe',
  resolveKnownTags: false,
  uniqueKeys: false,
  prettyErrors: false,
  keepSourceTokens: true,
  logLevel: 'silent',
} as const;

/**
 * Reads the one document of a text with the package, and refuses what go-yaml v2 takes otherwise, or not at all. Throws a
 * Refusal. `isKnown`: it was read before, by the quicker reader of plain documents, and may be as long as it is.
 */
export function compose(text: string, isKnown = false): Composed {
  const [document, another] = readDocuments(text, isKnown);
  if (another) refuse(another.range[0], 'text behind the end of a document');
  return document ? new NodeWalk(text).walkDocument(document) : { root: null, mappings: [], targets: new Map() };
}

function readDocuments(text: string, isKnown: boolean): Document.Parsed[] {
  const { stackTraceLimit } = Error;
  try {
    // The package makes all its errors, which may be as many as characters, and traces take most of the memory.
    Error.stackTraceLimit = 0;
    const composer = new Composer(options);
    const documents: Document.Parsed[] = [];
    for (const token of parse(text, isKnown)) documents.push(...composer.next(token));
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
function* parse(text: string, isKnown: boolean): Generator<CST.Token> {
  const parser = new Parser();
  const checker = new LexemeChecker(text, isKnown ? Infinity : mostInFlows);
  let failed = false;
  for (const lexeme of new Lexer().lex(text)) {
    if (failed) break;
    checker.check(lexeme);
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

/** Looks at each value of a document once, in the order of the text. */
class NodeWalk {
  readonly #text: string;
  readonly #mappings: YAMLMap<Node, Node | null>[] = [];
  readonly #targets = new Map<Alias, Target>();
  readonly #anchors = new Map<string, Target>();
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  walkDocument({ contents: root, directives, range }: Document.Parsed): Composed {
    if (isEmpty(root) && directives.docEnd === true && directives.docStart !== true) refuse(range[1], 'an end alone');
    if (isScalar(root) && root.srcToken?.type === 'block-scalar') refuse(offsetOf(root), 'a block of text alone');
    this.#walk(root);
    return { root, mappings: this.#mappings, targets: this.#targets };
  }

  #walk(node: Node | null): void {
    if (isAlias(node)) return this.#resolve(node);
    if (node?.anchor !== undefined) this.#anchors.set(node.anchor, node as Target);
    if (isScalar(node)) {
      if (node.srcToken?.type === 'block-scalar') this.#checkBlock(node, node.srcToken);
    } else if (isCollection(node)) {
      if (++this.#depth > maxDepth) throw new Refusal(tooDeep);
      if (isMap<Node, Node | null>(node)) {
        this.#mappings.push(node);
        for (const pair of node.items) this.#walkPair(pair);
      } else if (isSeq<Node>(node)) {
        for (const item of node.items) this.#walk(item);
      }
      this.#depth--;
    }
  }

  #resolve(alias: Alias): void {
    const target = this.#anchors.get(alias.source);
    if (!target) refuse(offsetOf(alias), 'an alias without its anchor before it');
    this.#targets.set(alias, target);
  }

  /** go-yaml wants a key on one line with its colon, which is not far. */
  #walkPair({ key, value, srcToken }: Pair<Node, Node | null>): void {
    const { start = [], sep = [] } = srcToken ?? {};
    const colon = sep.find(({ type }) => type === 'map-value-ind');
    const property = [...start, ...(colon ? [] : sep)].find(({ type }) => type === 'anchor' || type === 'tag');
    if (property && !colon) refuse(property.offset, 'an anchor or tag behind a word');
    const from = property?.offset ?? offsetOf(key);
    if (colon && (colon.offset - from > 1024 || this.#text.slice(from, colon.offset).includes('\n')))
      refuse(from, 'a key of several lines');
    this.#walk(key);
    this.#walk(value);
  }

  /** Where its indentation is given, blanks at the end count; where not, the first line shows it, and takes no tab. */
  #checkBlock(scalar: Scalar, { props: [header], source }: CST.BlockScalar): void {
    const end = scalar.range?.[1] ?? 0;
    if (header && 'source' in header && /\d/.test(header.source)) {
      const isOdd = /(?:^|\n) +[\r\n]*$/.test(source) || /^ +\r?\n/.test(this.#text.slice(end, end + 1000));
      if (isOdd) refuse(offsetOf(scalar), 'spaces in the blank lines at the end of a block that gives its indentation');
      return;
    }
    const tab = /^(?: *\r?\n)* *\t/.exec(source);
    if (tab) refuseTab(end - source.length + tab[0].length - 1);
  }
}
