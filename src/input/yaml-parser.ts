import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  type ScalarTag,
  visit,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import type { FieldPath } from '../cluster/objects.ts';
import { nestsTooDeeply } from './nesting.ts';
import { resolvePlainScalar } from './yaml-scalars.ts';

/** How far aliases may multiply before a document is taken for one that is made to exhaust memory. */
const maxAliasCount = 1000;

/** What is wrong with a document's syntax; `offset` counts from the start of the text that was parsed. */
export interface SyntaxFault {
  readonly offset: number;
  readonly code: string;
  readonly text: string;
}

/** Of a text that nests so deeply that a parser which calls itself for each level could not read it. */
export const tooDeep: SyntaxFault = { offset: 0, code: 'too-deep', text: 'lists and mappings nest too deeply' };

export type ParsedValue =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'faults'; readonly faults: readonly SyntaxFault[] };

/** Plain scalars as Kubernetes reads them, which the yaml package's own tags do in part only. */
const plain: ScalarTag = {
  tag: 'tag:kpc.dev,2026:plain',
  default: true,
  test: /^/,
  resolve: resolvePlainScalar,
};

const explicit: readonly ScalarTag[] = ['int', 'float', 'bool', 'null'].map((name) => ({
  tag: `tag:yaml.org,2002:${name}`,
  resolve: resolvePlainScalar,
}));

/** Reads the one YAML document in the text with the full parser. */
export function parseYamlValue(text: string): ParsedValue {
  if (nestsTooDeeply(text)) {
    return { kind: 'faults', faults: [tooDeep] };
  }
  const document = parse(text);
  const faults = [...document.errors.map(describeFault), ...findRepeatedKeys(document)];
  if (faults.length > 0) return { kind: 'faults', faults: faults.sort((a, b) => a.offset - b.offset) };
  const odd = settleKeys(document);
  return odd ? { kind: 'faults', faults: [odd] } : readValue(document);
}

function readValue(document: Document.Parsed): ParsedValue {
  try {
    return { kind: 'value', value: document.toJS({ maxAliasCount }) };
  } catch (error) {
    // Thrown for aliases only: one without an anchor, or too many.
    if (!(error instanceof ReferenceError)) throw error;
    return { kind: 'faults', faults: [describeAliasFault(document, error)] };
  }
}

function parse(text: string): Document.Parsed {
  // A carriage return alone ends a line too, which the package does not know. The text stays as long.
  return parseDocument(text.replaceAll(/\r(?!\n)/g, '\n'), {
    schema: 'failsafe',
    customTags: (tags) => [...tags, plain, ...explicit],
    merge: true,
    prettyErrors: false,
    logLevel: 'error',
    strict: true,
    // The package compares each key with all before it; findRepeatedKeys does not.
    uniqueKeys: false,
  });
}

function describeFault(error: YAMLError): SyntaxFault {
  const offset = error.pos[0];
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return { offset, code: 'yaml-tab', text: 'a tab is used for indentation: YAML takes spaces only' };
    default:
      return { offset, code: 'bad-yaml', text: `not valid YAML: ${lowerFirst(error.message)}` };
  }
}

function findRepeatedKeys(document: Document.Parsed): SyntaxFault[] {
  const faults: SyntaxFault[] = [];
  visit(document, {
    Map: (_, { items }) => {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) {
          const text = 'this key is in the same mapping twice: keep one of them';
          faults.push({ offset: firstOffset(key), code: 'duplicate-key', text });
        }
        seen.add(key.value);
      }
    },
  });
  return faults;
}

/**
 * Finds keys that no object of Kubernetes can have, and that the yaml package would not turn into a value. Where there
 * are none, merges are made to mean what they mean to Kubernetes.
 */
function settleKeys(document: Document.Parsed): SyntaxFault | undefined {
  let fault: SyntaxFault | undefined;
  const merges: Merge[] = [];
  /** What each anchor stands for so far: an alias means the last one before it. */
  const anchors = new Map<string, Node>();
  const resolve = (value: unknown): unknown => (isAlias(value) ? anchors.get(value.source) : value);
  visit(document, {
    Value: (_, node) => {
      if (node.anchor !== undefined) anchors.set(node.anchor, node);
    },
    Pair: (_, pair, path) => {
      const { key, value } = pair;
      const map = path.at(-1);
      if (!isScalar(key)) {
        fault = { offset: isNode(key) ? firstOffset(key) : 0, code: 'bad-yaml', text: 'a key must be a text' };
      } else if (isMergeKey(key) && !isMergeSource(value, resolve)) {
        fault = { offset: firstOffset(key), code: 'bad-yaml', text: 'only mappings can be merged with "<<"' };
      } else if (isMergeKey(key) && isMap(map) && merges.length <= maxAliasCount) {
        merges.push({ map, pair, keys: keysOf(value, resolve) });
      }
      return fault && visit.BREAK;
    },
  });
  for (const merge of merges) dropOverridden(merge);
  return fault;
}

/** A pair `<<: source` of a mapping, and the keys that come with it. */
interface Merge {
  readonly map: YAMLMap;
  readonly pair: Pair;
  readonly keys: ReadonlySet<unknown>;
}

/**
 * Takes out the keys before a merge that come with it, too. For the yaml package a mapping's own keys count wherever they
 * stand; for the parser that Kubernetes uses a merge overrides what is written before it.
 */
function dropOverridden({ map, pair, keys }: Merge): void {
  const at = map.items.indexOf(pair);
  map.items = map.items.filter(({ key }, i) => i >= at || !isScalar(key) || !keys.has(key.value));
}

/** The keys of a mapping, or of each in a list, with those that are merged into it. */
function keysOf(
  source: unknown,
  resolve: (value: unknown) => unknown,
  into = new Set<unknown>(),
  seen = new Set<unknown>(),
): Set<unknown> {
  const resolved = resolve(source);
  if (seen.has(resolved)) return into;
  seen.add(resolved);
  if (isSeq(resolved)) for (const item of resolved.items) keysOf(item, resolve, into, seen);
  if (!isMap(resolved)) return into;
  for (const { key, value } of resolved.items) {
    if (!isScalar(key)) continue;
    if (isMergeKey(key)) keysOf(value, resolve, into, seen);
    else into.add(key.value);
  }
  return into;
}

/** In quotes it is a key like any other. */
function isMergeKey(key: Scalar): boolean {
  return key.value === '<<' && key.type === 'PLAIN';
}

function isMergeSource(value: unknown, resolve: (value: unknown) => unknown): boolean {
  const resolved = resolve(value);
  if (isMap(resolved)) return true;
  return isSeq(resolved) && resolved.items.every((item) => isMap(resolve(item)));
}

function describeAliasFault(document: Document.Parsed, error: ReferenceError): SyntaxFault {
  let offset = 0;
  visit(document, {
    Alias: (_, node) => {
      offset = node.range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  if (!error.message.startsWith('Excessive')) {
    return { offset, code: 'bad-yaml', text: `not valid YAML: ${lowerFirst(error.message)}` };
  }
  const text = `aliases multiply to more than ${maxAliasCount} copies: write the values out`;
  return { offset, code: 'alias-bomb', text };
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** Whether a position is wanted for the value of a field or for its key. */
export type PositionOf = 'value' | 'key';

/**
 * Where fields stand in a YAML document: parses the text once, then answers with the offset of a field, or of the
 * nearest field above it that is written down.
 */
export function locateInYaml(text: string): (path: FieldPath, of: PositionOf) => number {
  const document = parse(text);
  return (path, of) => {
    let node: Node | null = document.contents;
    let offset = node ? firstOffset(node) : 0;
    for (const [i, step] of path.entries()) {
      const found = findChild(document, node, step);
      if (!found) return offset;
      const wantsKey = of === 'key' && i === path.length - 1;
      offset = (wantsKey || isEmpty(found.value) ? undefined : found.value?.range?.[0]) ?? found.offset;
      node = found.value;
    }
    return offset;
  };
}

/** The first key of a block mapping stands where the mapping does. */
function firstOffset(node: Node): number {
  return node.range?.[0] ?? 0;
}

function isEmpty(node: Node | null): boolean {
  return isScalar(node) && node.range !== undefined && node.range !== null && node.range[0] === node.range[1];
}

function findChild(
  document: Document.Parsed,
  parent: Node | null,
  step: string | number,
): { readonly value: Node | null; readonly offset: number } | undefined {
  const collection = isAlias(parent) ? parent.resolve(document) : parent;
  if (isSeq(collection)) {
    const item = collection.items[Number(step)] as Node | undefined;
    return item && { value: item, offset: item.range?.[0] ?? 0 };
  }
  if (!isMap(collection)) return undefined;
  let merged: ReturnType<typeof findChild>;
  for (const pair of collection.items as Pair<Node, Node | null>[]) {
    const key = isScalar(pair.key) ? String(pair.key.value) : undefined;
    if (key === String(step)) return { value: pair.value, offset: pair.key.range?.[0] ?? 0 };
    if (isScalar(pair.key) && isMergeKey(pair.key)) merged ??= findMerged(document, pair.value, step);
  }
  return merged;
}

function findMerged(
  document: Document.Parsed,
  source: Node | null,
  step: string | number,
): ReturnType<typeof findChild> {
  const resolved = isAlias(source) ? source.resolve(document) : source;
  if (!isSeq(resolved)) return findChild(document, resolved ?? null, step);
  for (const item of resolved.items) {
    if (isPair(item) || (!isCollection(item) && !isAlias(item))) continue;
    const found = findChild(document, item as Node, step);
    if (found) return found;
  }
  return undefined;
}
