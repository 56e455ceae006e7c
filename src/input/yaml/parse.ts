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
  oddYaml,
  refuse,
  Refusal,
  tooDeep,
  tooLong,
  type SyntaxFault,
} from '../documents/faults-and-limits.ts';
import { Anchors, compose, isEmpty, offsetOf, type Composed, type Anchored } from './compose.ts';
import type { Entry, Places } from './places.ts';
import { resolveInteger, resolvePlainScalar } from './scalars.ts';

/** A value that a YAML document holds, or why it has none. */
export type ParsedValue =
  | {
      readonly kind: 'value';
      readonly value: unknown;
      /** Of single parts of it: keys that come twice, and what JSON lacks, which is NaN there. */
      readonly faults?: readonly SyntaxFault[];
      /** Whether keys come twice: nobody knows which is meant. */
      readonly isUncertain?: boolean;
    }
  | { readonly kind: 'faults'; readonly faults: readonly SyntaxFault[] };

/**
 * Reads the one YAML document in the text as kubectl does: go-yaml v2 under sigs.k8s.io/yaml. What kubectl takes and kpc
 * refuses is in test/yaml/kubectl.test.ts; no text has another value here than there.
 */
export function parseYamlValue(text: string): ParsedValue {
  return decodeText(text, new Anchors(), {});
}

/** Reads the list in a document piece by piece: some items a piece, which may lean on those of the pieces before. */
export class PieceReader {
  readonly #anchors = new Anchors();
  readonly counts: Counts = { values: 0, copies: 0 };

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

/** How many values may come through aliases, and which part of all: no more than to go-yaml. */
const mostCopies = 390_000;
const mostRatio = 0.99;

/** How many values were read, and how many of them through aliases. */
export interface Counts {
  values: number;
  copies: number;
}

/** Counts a value. Throws a Refusal where a text holds too many. */
export function countValue(counts: Counts): number {
  if (++counts.values > mostYamlValues) throw new Refusal(tooLong('values', mostYamlValues));
  return counts.values;
}

/** A key as Go has it, which keeps 1 and "1" apart. */
type Key = string | number | boolean;

/** How often a mapping has a key, and where it comes the second time. */
interface RepeatedKey {
  readonly times: number;
  readonly second: Node;
}

interface DecoderOptions {
  /** Filled. */
  readonly places?: Places;
  /** Of a document that is decoded in pieces: what was counted before, and how many levels are around the piece. */
  readonly counts?: Counts;
  readonly levels?: number;
}

/** Decodes a document to the value that sigs.k8s.io/yaml makes of what go-yaml v2 reads. Throws a Refusal. */
class Decoder {
  readonly #anchored: Composed['anchored'];
  readonly #places: DecoderOptions['places'];
  readonly #counts: Counts;
  /** By their mapping, the keys that it has more than once: kubectl silently takes the last. */
  readonly repeated = new Map<YAMLMap, Map<string, RepeatedKey>>();
  /** Where it holds what JSON lacks. */
  readonly faults = new Map<Node, SyntaxFault>();
  /** The aliases around the node that is decoded, the outermost first. */
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
      this.#places?.set(items, new Map(node.items.map((item, i) => [String(i), entryAt(offsetOf(item), item)])));
      return items;
    }
    if (!isMap(node)) return null;
    const entries = new Map<Key, unknown>();
    const places = new Map<string, Entry>();
    this.#addPairs(node, entries, places);
    const value: object = Object.fromEntries(entries);
    // Go has both, and which of them ends up in the JSON is a matter of chance.
    if (Object.keys(value).length < entries.size) refuse(offsetOf(node), 'keys that are the same in JSON');
    this.#places?.set(value, places);
    return value;
  }

  #addPairs(mapping: YAMLMap, entries: Map<Key, unknown>, places: Map<string, Entry>): void {
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
        if (this.#places) places.set(name, entryAt(offsetOf(node), value));
      }
    });
  }

  #countRepeated(mapping: YAMLMap, name: string, again: Node): void {
    const ofMapping = this.repeated.get(mapping) ?? new Map<string, RepeatedKey>();
    this.repeated.set(mapping, ofMapping);
    const { times, second } = ofMapping.get(name) ?? { times: 1, second: again };
    ofMapping.set(name, { times: times + 1, second });
  }

  /** Undefined for one that JSON lacks. */
  #decodeKey(key: Node): Key | undefined {
    this.#count();
    if (isAlias(key)) this.#throughAlias(key, () => this.#count());
    const read = keyOf(key, this.#anchored);
    if (read === undefined) this.#refuse(key, notText);
    return read;
  }

  #decodeScalar(scalar: Scalar): unknown {
    const value = resolve(scalar);
    if (value === undefined) return this.#refuse(scalar, 'a value that is not of the type of its tag');
    const isLacking = typeof value === 'number' && !Number.isFinite(value);
    return isLacking ? this.#refuse(scalar, 'a number that JSON does not have') : value;
  }

  /** Reports a part of the document. What takes its place is the number that no JSON has: whoever meets it says nothing more. */
  #refuse(node: Node, what: string): number {
    this.faults.set(node, oddYaml(offsetOf(node), what));
    return Number.NaN;
  }

  /** A merge overrides what is written before it in its mapping. Of a list, the first mapping counts most. */
  #merge(key: Node, source: Node | null, entries: Map<Key, unknown>, places: Map<string, Entry>): void {
    const sources = isSeq<Node>(source) ? source.items.toReversed() : [source];
    for (const item of sources) {
      this.#count();
      const add = (target: Node | null): void => {
        if (!isMap(target)) refuse(offsetOf(key), '"<<" with anything but mappings');
        this.#addPairs(target, entries, places);
      };
      if (isAlias(item)) this.#throughAlias(item, add);
      else add(item);
    }
  }

  #throughAlias<Result>(alias: Alias, read: (target: Anchored) => Result): Result {
    if (this.#open.has(alias)) refuse(offsetOf(alias), 'an alias in what it stands for');
    this.#open.add(alias);
    const result = read(this.#anchored.get(alias) as Anchored);
    this.#open.delete(alias);
    return result;
  }

  #within<Result>(read: () => Result): Result {
    if (++this.#depth > maxDepth) throw new Refusal(tooDeep);
    const result = read();
    this.#depth--;
    return result;
  }

  /** Counts a value, and whether it comes through an alias: few lines can mean more than fits in a memory. */
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

/** One fault for each key of a mapping, however often it comes. */
function describeRepeated(repeated: Decoder['repeated'], root: Node | null): SyntaxFault[] {
  const faults = [...repeated].flatMap(([mapping, keys]): SyntaxFault[] => {
    // A document that names its apiVersion and kind twice is two objects, with no "---" line between them.
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

/** Whether a key is "<<", and merges what its value holds. In quotes it does so only with the tag !!merge. */
function isMergeKey(key: Node): boolean {
  if (!isScalar(key) || key.value !== '<<') return false;
  return key.tag === undefined ? key.type === 'PLAIN' : key.tag === `${tagPrefix}merge`;
}

const notText = 'a key that is no text';

/** The key that a node is; undefined for one that JSON lacks. Throws a Refusal for a list or mapping: it may be a template. */
function keyOf(key: Node, anchored: Composed['anchored']): Key | undefined {
  const scalar = isAlias(key) ? anchored.get(key) : key;
  if (!isScalar(scalar)) refuse(offsetOf(key), notText);
  const value = resolve(scalar);
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  const isFloat = scalar.tag === `${tagPrefix}float`;
  const integer = typeof value === 'number' && !isFloat ? resolveInteger(String(scalar.value)) : undefined;
  return typeof integer === 'number' ? integer : undefined;
}

const tagPrefix = 'tag:yaml.org,2002:';

/** The tags that ask for a type, with whether a value is of it. Any other tag makes a scalar a text. */
const typeTags: ReadonlyMap<string, (value: unknown, text: string) => boolean> = new Map([
  [`${tagPrefix}bool`, (value) => typeof value === 'boolean'],
  [`${tagPrefix}null`, (value) => value === null],
  [`${tagPrefix}int`, (value, text) => typeof value === 'number' && resolveInteger(text) !== undefined],
  // Of whole numbers, only those that a signed integer of 64 bits holds.
  [`${tagPrefix}float`, (value, text) => typeof value === 'number' && (resolveInteger(text) ?? 0) < 2n ** 63n],
]);

/** What go-yaml makes of a scalar (resolve). A tag for a type decides in quotes, too; undefined where the text is not of that type. */
function resolve(scalar: Scalar): string | number | boolean | null | undefined {
  const text = String(scalar.value);
  if (scalar.tag === undefined) return scalar.type === 'PLAIN' ? resolvePlainScalar(text) : text;
  const isOfType = typeTags.get(scalar.tag);
  if (!isOfType) return text;
  const value = resolvePlainScalar(text);
  return isOfType(value, text) ? value : undefined;
}

function entryAt(key: number, value: Node | null): Entry {
  return { key, value: value === null || isEmpty(value) ? key : offsetOf(value) };
}

/** The document in a text, and where it and its fields are; undefined for a text that cannot be read alone, or is too long. */
export function parseWithPlaces(
  text: string,
): { readonly value: unknown; readonly start: number; readonly places: Places } | undefined {
  const places: Places = new Map();
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
 * A value in YAML. What is undefined is left out. A text is on one line, those of an input begin none, and what a terminal or a
 * CI service would act on is escaped.
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
