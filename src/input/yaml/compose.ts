import {
  Composer,
  CST,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  Parser,
  type Alias,
  type Document,
  type Node,
  type Pair,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { maxDepth, refuse, Refusal, refuseTab, tooDeep } from '../syntax-fault.ts';
import { LexemeChecker, mostInFlows } from './check-lexemes.ts';
import { lex } from './lex.ts';
import { refuseError } from './package-errors.ts';

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
  if (another) refuse(another.range[0], { problem: 'document-ended' });
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
    // What is wrong behind the first document is behind its end.
    refuseError(text, documents[1] ? documents.slice(0, 1) : [...documents, composer.streamInfo()]);
    return documents;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/**
 * The package's concrete syntax of a text, up to its first error: what follows can be a megabyte of others. What parses it
 * calls itself for each level, but this one.
 */
function* parse(text: string, isKnown: boolean): Generator<CST.Token> {
  const parser = new Parser();
  const checker = new LexemeChecker(text, isKnown ? Infinity : mostInFlows);
  let failed = false;
  for (const lexeme of lex(text)) {
    if (failed) break;
    checker.check(lexeme);
    for (const token of parser.next(lexeme.source)) {
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
    if (isScalar(root)) {
      const isNothing = isEmpty(root) && root.tag === undefined && root.anchor === undefined;
      if (isNothing && directives.docEnd === true && directives.docStart !== true)
        refuse(range[1], { problem: 'no-value' });
      if (root.srcToken?.type === 'block-scalar') refuse(offsetOf(root), { problem: 'block-at-root' });
    }
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
        for (const pair of node.items) this.#walkPair(pair, node.flow === true);
      } else if (isSeq<Node>(node)) {
        for (const item of node.items) this.#walk(item);
      }
      this.#depth--;
    }
  }

  #resolve(alias: Alias): void {
    const target = this.#anchors.get(alias.source);
    if (!target) refuse(offsetOf(alias), { problem: 'unknown-anchor', name: alias.source });
    this.#targets.set(alias, target);
  }

  #walkPair({ key, value, srcToken }: Pair<Node, Node | null>, inFlow: boolean): void {
    if (srcToken) {
      const sign = srcToken.start.find(({ type }) => type === 'explicit-key-ind');
      if (!sign) this.#checkKey(srcToken);
      else if (!inFlow) this.#checkExplicitKey(srcToken, sign);
    }
    this.#walk(key);
    this.#walk(value);
  }

  /** go-yaml wants a key without "?" on one line with its colon, which is not far. */
  #checkKey({ start, key, sep = [] }: CST.CollectionItem): void {
    if (key?.type === 'flow-collection') return;
    const property = start.findIndex(isProperty);
    const colon = sep.findIndex(({ type }) => type === 'map-value-ind');
    if (colon < 0) {
      const late = sep.find(isProperty);
      if (late) refuse(late.offset, { problem: 'no-comma', sign: '}' });
      return;
    }
    const before = [...(property < 0 ? [] : start.slice(property)), ...(key ? [key] : []), ...sep.slice(0, colon)];
    const written = before.map((token) => CST.stringify(token)).join('');
    if (written.includes('\n') || written.length > 1024)
      refuse(before[0]?.offset ?? 0, { problem: 'no-key-with-colon' });
  }

  #checkExplicitKey({ sep = [] }: CST.CollectionItem, sign: CST.SourceToken): void {
    const colon = sep.find(({ type }) => type === 'map-value-ind');
    if (colon && this.#columnOf(colon) === this.#columnOf(sign)) return;
    refuse(colon?.offset ?? sign.offset, { problem: 'odd-colon' });
  }

  #columnOf({ offset }: CST.SourceToken): number {
    return offset - this.#text.lastIndexOf('\n', offset - 1);
  }

  /** Where its indentation is given, blanks at the end count; where not, the first line shows it, and takes no tab. */
  #checkBlock(scalar: Scalar, { props: [header], source }: CST.BlockScalar): void {
    const end = scalar.range?.[1] ?? 0;
    if (header && 'source' in header && /\d/.test(header.source)) {
      const isOdd = /(?:^|\n) +[\r\n]*$/.test(source) || /^ +\r?\n/.test(this.#text.slice(end, end + 1000));
      if (isOdd) refuse(offsetOf(scalar), { problem: 'blanks-after-block' });
      return;
    }
    const tab = /^(?: *\r?\n)* *\t/.exec(source);
    if (tab) refuseTab(end - source.length + tab[0].length - 1);
  }
}

function isProperty({ type }: CST.SourceToken): boolean {
  return type === 'anchor' || type === 'tag';
}
