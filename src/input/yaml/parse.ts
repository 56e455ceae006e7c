import {
  Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  visit,
  type Alias,
  type Node,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import { printable, printableJson } from '../../base/printable.ts';
import {
  mostYamlValues,
  maxDepth,
  refuseYaml,
  Refusal,
  tooDeep,
  tooLong,
  type SyntaxFault,
} from '../documents/faults-and-limits.ts';
import { Anchors, compose, isEmpty, offsetOf, type Composed, type AnchoredNode } from './compose.ts';
import type { OddYaml } from '../../base/findings/files.ts';
import type { YamlPlaces } from './places.ts';
import type { JsonEntry } from '../../base/json/locate.ts';
import { resolveInteger, resolvePlainScalar } from './scalars.ts';

export type ParsedValue =
  | {
      readonly kind: 'value';
      readonly value: unknown;
      /** Faults inside the value: repeated keys, and values that JSON cannot express (replaced with NaN). */
      readonly faults?: readonly SyntaxFault[];
      /** Whether keys are repeated, so that it is unclear which value is meant. */
      readonly isUncertain?: boolean;
    }
  | { readonly kind: 'faults'; readonly faults: readonly SyntaxFault[] };

/**
 * Reads one YAML document as kubectl does, with go-yaml v2 under sigs.k8s.io/yaml. Every value that it returns equals kubectl's, but it
 * refuses some documents that kubectl accepts (test/yaml/kubectl.test.ts).
 */
export function parseYamlValue(text: string): ParsedValue {
  return decodeText(text, new Anchors(), {});
}

/** Reads a list in pieces. A piece may refer to anchors in earlier pieces. */
export class PieceReader {
  readonly #anchors = new Anchors();
  readonly counts: ParseCounts = { values: 0, copies: 0 };

  read(text: string): ParsedValue {
    return decodeText(text, this.#anchors, { counts: this.counts, levels: 1 });
  }
}

function decodeText(text: string, anchors: Anchors, options: DecoderOptions): ParsedValue {
  try {
    const { root, anchored } = compose(text, anchors);
    const decoder = new Decoder(anchored, options);
    const value = decoder.decode(root);
    const faults = [...decoder.faults.values(), ...describeRepeated(decoder.repeated, root)].sort(
      (a, b) => a.offset - b.offset,
    );
    if (faults.length === 0) return { kind: 'value', value };
    return { kind: 'value', value, faults, isUncertain: decoder.repeated.size > 0 };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { fault } = error;
    return { kind: 'faults', faults: [{ ...fault, offset: Math.min(fault.offset, text.length) }] };
  }
}

/** Limits on alias expansion, as in go-yaml: a count and a share of all values. */
const mostCopies = 390_000;
const mostRatio = 0.99;

/** The number of values read, and the number of them that were read through aliases. */
export interface ParseCounts {
  values: number;
  copies: number;
}

/** Throws a Refusal if a text holds too many values. */
export function countValue(counts: ParseCounts): number {
  if (++counts.values > mostYamlValues) throw new Refusal(tooLong('values', mostYamlValues));
  return counts.values;
}

type Key = string | number | boolean;

interface RepeatedNode {
  readonly times: number;
  readonly second: Node;
}

interface DecoderOptions {
  readonly places?: YamlPlaces;
  /** For a document that is decoded in pieces: the counts of the earlier pieces, and the number of levels around the piece. */
  readonly counts?: ParseCounts;
  readonly levels?: number;
}

/** Decodes a document to the same value as sigs.k8s.io/yaml with go-yaml v2. Throws a Refusal if that is impossible. */
class Decoder {
  readonly #anchored: Composed['anchored'];
  readonly #places: DecoderOptions['places'];
  readonly #counts: ParseCounts;
  /** Repeated keys by mapping. kubectl silently takes the last one. */
  readonly repeated = new Map<YAMLMap, Map<string, RepeatedNode>>();
  readonly faults = new Map<Node, SyntaxFault>();
  /** The aliases around the current node, outermost first. */
  readonly #open = new Set<Alias>();
  #depth: number;

  constructor(
    anchored: Composed['anchored'],
    { places, counts = { values: 0, copies: 0 }, levels = 0 }: DecoderOptions,
  ) {
    this.#anchored = anchored;
    this.#places = places;
    this.#counts = counts;
    this.#depth = levels;
  }

  decode(node: Node | null): unknown {
    this.#count();
    if (isScalar(node)) return this.#decodeScalar(node);
    if (isAlias(node)) return this.#throughAlias(node, (target) => this.decode(target));
    if (isSeq<Node>(node)) {
      const items = this.#within(() => node.items.map((item) => this.decode(item)));
      this.#places?.set(items, new Map(node.items.map((item, i) => [String(i), makeEntry(offsetOf(item), item)])));
      return items;
    }
    if (!isMap(node)) return null;
    const entries = new Map<Key, unknown>();
    const places = new Map<string, JsonEntry>();
    this.#addPairs(node, entries, places);
    const value: object = Object.fromEntries(entries);
    // Go keeps both keys, and chooses at random which one ends up in the JSON.
    if (Object.keys(value).length < entries.size) refuseYaml(offsetOf(node), 'same-keys');
    this.#places?.set(value, places);
    return value;
  }

  #addPairs(mapping: YAMLMap, entries: Map<Key, unknown>, places: Map<string, JsonEntry>): void {
    const own = new Set<string>();
    this.#within(() => {
      for (const { key: node, value } of pairsOf(mapping)) {
        if (isMergeKey(node)) {
          this.#merge(node, value, entries, places);
          continue;
        }
        const key = this.#decodeKey(node);
        if (key === undefined) {
          this.decode(value);
          continue;
        }
        const name = String(key);
        if (own.has(name)) this.#countRepeated(mapping, name, node);
        own.add(name);
        entries.set(key, this.decode(value));
        if (this.#places) places.set(name, makeEntry(offsetOf(node), value));
      }
    });
  }

  #countRepeated(mapping: YAMLMap, name: string, again: Node): void {
    const ofMapping = this.repeated.get(mapping) ?? new Map<string, RepeatedNode>();
    this.repeated.set(mapping, ofMapping);
    const { times, second } = ofMapping.get(name) ?? { times: 1, second: again };
    ofMapping.set(name, { times: times + 1, second });
  }

  #decodeKey(key: Node): Key | undefined {
    this.#count();
    if (isAlias(key)) this.#throughAlias(key, () => this.#count());
    const read = readMappingKey(key, this.#anchored);
    if (read === undefined) this.#refuse(key, 'no-text');
    return read;
  }

  #decodeScalar(scalar: Scalar): unknown {
    const value = resolve(scalar);
    if (value === undefined) return this.#refuse(scalar, 'not-of-tag');
    const isLacking = typeof value === 'number' && !Number.isFinite(value);
    return isLacking ? this.#refuse(scalar, 'number') : value;
  }

  /** Reports a part of the document and replaces the part with NaN. Later checks report nothing about NaN. */
  #refuse(node: Node, odd: OddYaml): number {
    this.faults.set(node, { offset: offsetOf(node), code: 'bad-yaml', arguments: { odd } });
    return Number.NaN;
  }

  /** Merges mappings into a mapping. A merge overrides the entries before it. In a list of mappings, the first one wins. */
  #merge(key: Node, source: Node | null, entries: Map<Key, unknown>, places: Map<string, JsonEntry>): void {
    const sources = isSeq<Node>(source) ? source.items.toReversed() : [source];
    for (const item of sources) {
      this.#count();
      const add = (target: Node | null): void => {
        if (!isMap(target)) refuseYaml(offsetOf(key), 'merge');
        this.#addPairs(target, entries, places);
      };
      if (isAlias(item)) this.#throughAlias(item, add);
      else add(item);
    }
  }

  #throughAlias<Result>(alias: Alias, read: (target: AnchoredNode) => Result): Result {
    if (this.#open.has(alias)) refuseYaml(offsetOf(alias), 'alias-in-itself');
    this.#open.add(alias);
    const result = read(this.#anchored.get(alias) as AnchoredNode);
    this.#open.delete(alias);
    return result;
  }

  #within<Result>(read: () => Result): Result {
    if (++this.#depth > maxDepth) throw new Refusal(tooDeep);
    const result = read();
    this.#depth--;
    return result;
  }

  /** Counts a value, and separately the values read through aliases, because a few lines can expand beyond memory. */
  #count(): void {
    const values = countValue(this.#counts);
    const [alias] = this.#open;
    if (!alias) return;
    const copies = ++this.#counts.copies;
    if (copies <= mostCopies && (values <= 1000 || copies / values <= mostRatio)) return;
    throw new Refusal({ offset: offsetOf(alias), code: 'alias-bomb', arguments: { copies, values } });
  }
}

function pairsOf(mapping: YAMLMap): readonly { readonly key: Node; readonly value: Node | null }[] {
  return mapping.items as never;
}

function describeRepeated(repeated: Decoder['repeated'], root: Node | null): SyntaxFault[] {
  const faults = [...repeated].flatMap(([mapping, keys]): SyntaxFault[] => {
    // A document that names apiVersion and kind twice is two objects without "---" between them.
    const isTwoObjects = mapping === root && keys.has('apiVersion') && keys.has('kind');
    const offsets = [...keys.values()].map(({ second }) => offsetOf(second));
    if (isTwoObjects) return [{ offset: Math.min(...offsets), code: 'duplicate-key', arguments: { isTwoObjects } }];
    return [...keys.values()].map(({ times, second }) => ({
      offset: offsetOf(second),
      code: 'duplicate-key',
      arguments: { times },
    }));
  });
  return faults;
}

/** Reports whether a key is "<<", which merges. A quoted "<<" merges only with the tag !!merge. */
function isMergeKey(key: Node): boolean {
  if (!isScalar(key) || key.value !== '<<') return false;
  return key.tag === undefined ? key.type === 'PLAIN' : key.tag === `${tagPrefix}merge`;
}

/** Returns undefined if JSON lacks the key. Throws a Refusal for a list or mapping, which may be a template. */
function readMappingKey(key: Node, anchored: Composed['anchored']): Key | undefined {
  const scalar = isAlias(key) ? anchored.get(key) : key;
  if (!isScalar(scalar)) refuseYaml(offsetOf(key), 'no-text');
  const value = resolve(scalar);
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  const isFloat = scalar.tag === `${tagPrefix}float`;
  const integer = typeof value === 'number' && !isFloat ? resolveInteger(String(scalar.value)) : undefined;
  return typeof integer === 'number' ? integer : undefined;
}

const tagPrefix = 'tag:yaml.org,2002:';

/** Tags that require a type, with a test for it. A scalar with any other tag is read as a string. */
const typeTags: ReadonlyMap<string, (value: unknown, text: string) => boolean> = new Map([
  [`${tagPrefix}bool`, (value) => typeof value === 'boolean'],
  [`${tagPrefix}null`, (value) => value === null],
  [`${tagPrefix}int`, (value, text) => typeof value === 'number' && resolveInteger(text) !== undefined],
  [`${tagPrefix}float`, (value, text) => typeof value === 'number' && (resolveInteger(text) ?? 0) < 2n ** 63n],
]);

/**
 * Returns a scalar's value, like go-yaml's resolve. A type tag also applies to a quoted text. Undefined if the text does not fit the tag's
 * type.
 */
function resolve(scalar: Scalar): string | number | boolean | null | undefined {
  const text = String(scalar.value);
  if (scalar.tag === undefined) return scalar.type === 'PLAIN' ? resolvePlainScalar(text) : text;
  const isOfType = typeTags.get(scalar.tag);
  if (!isOfType) return text;
  const value = resolvePlainScalar(text);
  return isOfType(value, text) ? value : undefined;
}

function makeEntry(key: number, value: Node | null): JsonEntry {
  return { key, value: value === null || isEmpty(value) ? key : offsetOf(value) };
}

/** Returns the document's value, its start and its fields' places. Undefined if it cannot be read by itself or is too long. */
export function parseWithPlaces(
  text: string,
): { readonly value: unknown; readonly start: number; readonly places: YamlPlaces } | undefined {
  const places: YamlPlaces = new Map();
  try {
    const { root, anchored } = compose(text);
    const value = new Decoder(anchored, { places }).decode(root);
    return { value, start: root ? offsetOf(root) : 0, places };
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/**
 * Writes YAML without undefined values. Writes each text on one line, and never begins a line with a text from an input. Escapes characters
 * that a terminal or CI service would act on.
 */
export function writeYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_, scalar) => {
      if (typeof scalar.value === 'string' && printable(scalar.value) !== scalar.value) scalar.type = 'QUOTE_DOUBLE';
    },
  });
  return printableJson(document.toString({ lineWidth: 0, blockQuote: false, doubleQuotedAsJSON: true }));
}
