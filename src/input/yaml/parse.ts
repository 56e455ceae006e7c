import { isAlias, isMap, isScalar, isSeq, type Alias, type Node, type Scalar, stringify, type YAMLMap } from 'yaml';
import type { FieldPath } from '../../cluster/objects.ts';
import { maxDepth, refuse, Refusal, tooDeep, type SyntaxFault } from '../documents/syntax-fault.ts';
import { compose, isEmpty, offsetOf, type Composed, type Target } from './compose.ts';
import { resolveInteger, resolvePlainScalar } from './scalars.ts';

/** A value that a YAML document holds, or why it has none. */
export type ParsedValue =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'faults'; readonly faults: readonly SyntaxFault[] };

/**
 * Reads the one YAML document in the text as kubectl does: go-yaml v2 under sigs.k8s.io/yaml. What kubectl takes and kpc
 * refuses is in test/yaml/kubectl.test.ts; no text has another value here than there.
 */
export function parseYamlValue(text: string): ParsedValue {
  try {
    const { root, targets } = compose(text);
    const decoder = new Decoder(targets);
    const value = decoder.decode(root);
    const faults = describeRepeated(decoder.repeated, root);
    return faults.length > 0 ? { kind: 'faults', faults } : { kind: 'value', value };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { fault } = error;
    return { kind: 'faults', faults: [{ ...fault, offset: Math.min(fault.offset, text.length) }] };
  }
}

/** How many values may come through aliases, and which part of all: no more than to go-yaml. */
const mostCopies = 390_000;
const mostRatio = 0.99;

/** A key as Go has it, which keeps 1 and "1" apart. */
type Key = string | number | boolean;

/** A field of a mapping or an item of a list: the offsets of its key (for an item, of the item) and of its value. */
type Entry = { readonly [Of in PositionOf]: number };

/** Decodes a document to the value that sigs.k8s.io/yaml makes of what go-yaml v2 reads. Throws a Refusal. */
class Decoder {
  readonly #targets: Composed['targets'];
  /** Where the fields of each mapping and the items of each list are written; undefined if not asked for. */
  readonly #places: Map<unknown, Map<string, Entry>> | undefined;
  /** Keys that repeat another of their mapping: kubectl silently takes the last. */
  readonly repeated = new Map<Node, { readonly mapping: YAMLMap; readonly name: string }>();
  /** The aliases around the node that is decoded, the outermost first. */
  readonly #open = new Set<Alias>();
  #values = 0;
  #copies = 0;
  #depth = 0;

  constructor(targets: Composed['targets'], places?: Map<unknown, Map<string, Entry>>) {
    this.#targets = targets;
    this.#places = places;
  }

  decode(node: Node | null): unknown {
    this.#count();
    if (isScalar(node)) return decodeScalar(node);
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
        const name = String(key);
        if (own.has(name)) this.repeated.set(node, { mapping, name });
        own.add(name);
        entries.set(key, this.decode(value));
        if (this.#places) places.set(name, entryAt(offsetOf(node), value));
      }
    });
  }

  #decodeKey(key: Node): Key {
    this.#count();
    if (isAlias(key)) this.#throughAlias(key, () => this.#count());
    return keyOf(key, this.#targets);
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

  #throughAlias<Result>(alias: Alias, read: (target: Target) => Result): Result {
    if (this.#open.has(alias)) refuse(offsetOf(alias), 'an alias in what it stands for');
    this.#open.add(alias);
    const result = read(this.#targets.get(alias) as Target);
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
    const values = ++this.#values;
    const [alias] = this.#open;
    if (!alias) return;
    const copies = ++this.#copies;
    if (copies <= mostCopies && (values <= 1000 || copies / values <= mostRatio)) return;
    throw new Refusal({ offset: offsetOf(alias), code: 'alias-bomb', arguments: { copies, values } });
  }
}

function pairsOf(mapping: YAMLMap): readonly { readonly key: Node; readonly value: Node | null }[] {
  return mapping.items as never;
}

function describeRepeated(repeated: Decoder['repeated'], root: Node | null): SyntaxFault[] {
  const ofRoot = [...repeated].filter(([, { mapping }]) => mapping === root);
  // A document that names its apiVersion and kind twice is two objects, with no "---" line between them.
  const isTwoObjects = ['apiVersion', 'kind'].every((field) => ofRoot.some(([, { name }]) => name === field));
  const faults = [...repeated].flatMap(([key, { mapping }]): SyntaxFault[] => {
    const isOfTwo = isTwoObjects && mapping === root;
    if (isOfTwo && key !== ofRoot[0]?.[0]) return [];
    return [{ offset: offsetOf(key), code: 'duplicate-key', arguments: isOfTwo ? { isTwoObjects } : {} }];
  });
  return faults.sort((a, b) => a.offset - b.offset);
}

/** Whether a key is "<<", and merges what its value holds. In quotes it is a key like any other. */
function isMergeKey(key: Node): boolean {
  return isScalar(key) && key.value === '<<' && key.type === 'PLAIN' && key.tag === undefined;
}

/** The key that a node is. Throws a Refusal. */
function keyOf(key: Node, targets: Composed['targets']): Key {
  const scalar = isAlias(key) ? targets.get(key) : key;
  const value = isScalar(scalar) ? resolve(scalar) : null;
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  const integer = isScalar(scalar) && value !== null ? resolveInteger(String(scalar.value)) : undefined;
  return typeof integer === 'number' ? integer : refuse(offsetOf(key), 'a key that is no text');
}

function decodeScalar(scalar: Scalar): unknown {
  const value = resolve(scalar);
  if (typeof value === 'number' && !Number.isFinite(value))
    refuse(offsetOf(scalar), 'a number that JSON does not have');
  return value;
}

/** What go-yaml makes of a scalar. The one tag that it may have makes it a text. */
function resolve(scalar: Scalar): string | number | boolean | null {
  const text = String(scalar.value);
  return scalar.tag === undefined && scalar.type === 'PLAIN' ? resolvePlainScalar(text) : text;
}

/** Whether a position is wanted for the value of a field or for its key. */
export type PositionOf = 'value' | 'key';

function entryAt(key: number, value: Node | null): Entry {
  return { key, value: value === null || isEmpty(value) ? key : offsetOf(value) };
}

/**
 * Where fields are in a YAML document: parses the text once, then answers with the offset of a field, or of the
 * nearest field above it that is written down.
 */
export function locateInYaml(text: string): (path: FieldPath, of: PositionOf) => number {
  const { root, targets } = compose(text, true);
  const places = new Map<unknown, Map<string, Entry>>();
  const document = new Decoder(targets, places).decode(root);
  return (path, of) => {
    let value = document;
    let offset = root ? offsetOf(root) : 0;
    for (const [i, step] of path.entries()) {
      const entry = places.get(value)?.get(String(step));
      if (!entry) return offset;
      offset = entry[i === path.length - 1 ? of : 'value'];
      value = (value as Readonly<Record<string | number, unknown>>)[step];
    }
    return offset;
  };
}

/** A value in YAML. What is undefined is left out. */
export function writeYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
}
