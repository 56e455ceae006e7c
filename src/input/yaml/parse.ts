import { isAlias, isMap, isScalar, isSeq, type Alias, type Node, type Scalar, type YAMLMap } from 'yaml';
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
    const composed = compose(text);
    const faults = findRepeatedKeys(composed);
    if (faults.length > 0) return { kind: 'faults', faults };
    return { kind: 'value', value: new Decoder(composed.targets).decode(composed.root) };
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

/** Makes the value of a document as sigs.k8s.io/yaml makes it of what go-yaml v2 reads. Throws a Refusal. */
class Decoder {
  readonly #targets: Composed['targets'];
  /** The aliases around the node that is decoded, the outermost first. */
  readonly #open = new Set<Alias>();
  #values = 0;
  #copies = 0;
  #depth = 0;

  constructor(targets: Composed['targets']) {
    this.#targets = targets;
  }

  decode(node: Node | null): unknown {
    this.#count();
    if (isScalar(node)) return decodeScalar(node);
    if (isAlias(node)) return this.#throughAlias(node, (target) => this.decode(target));
    if (isSeq<Node>(node)) return this.#within(() => node.items.map((item) => this.decode(item)));
    if (!isMap(node)) return null;
    const entries = new Map<Key, unknown>();
    this.#addPairs(node, entries);
    const value: object = Object.fromEntries(entries);
    // Go has both, and which of them ends up in the JSON is a matter of chance.
    if (Object.keys(value).length < entries.size) refuse(offsetOf(node), 'keys that are the same in JSON');
    return value;
  }

  #addPairs(mapping: YAMLMap, entries: Map<Key, unknown>): void {
    this.#within(() => {
      for (const { key, value } of pairsOf(mapping)) {
        if (isMergeKey(key)) this.#merge(key, value, entries);
        else entries.set(this.#decodeKey(key), this.decode(value));
      }
    });
  }

  #decodeKey(key: Node): Key {
    this.#count();
    if (isAlias(key)) this.#throughAlias(key, () => this.#count());
    return keyOf(key, this.#targets);
  }

  /** A merge overrides what is written before it in its mapping. Of a list, the first mapping counts most. */
  #merge(key: Node, source: Node | null, entries: Map<Key, unknown>): void {
    const sources = isSeq<Node>(source) ? source.items.toReversed() : [source];
    for (const item of sources) {
      this.#count();
      const add = (target: Node | null): void => {
        if (!isMap(target)) refuse(offsetOf(key), '"<<" with anything but mappings');
        this.#addPairs(target, entries);
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

/** Keys that come twice in one mapping, of which kubectl takes the last without a word. There may be many merges. */
function findRepeatedKeys({ root, mappings, targets }: Composed): SyntaxFault[] {
  const faults: SyntaxFault[] = [];
  for (const mapping of mappings) {
    const seen = new Set<string>();
    const repeated = pairsOf(mapping).flatMap(({ key }) => {
      const target = isAlias(key) ? targets.get(key) : key;
      if (!isScalar(target) || isMergeKey(key)) return [];
      const name = String(keyOf(key, targets));
      if (seen.has(name)) return [{ name, offset: offsetOf(key) }];
      seen.add(name);
      return [];
    });
    const names = new Set(repeated.map(({ name }) => name));
    // A document that names its kind twice is two objects, with no line "---" between them.
    const isTwoObjects = mapping === root && names.has('apiVersion') && names.has('kind');
    for (const { offset } of isTwoObjects ? repeated.slice(0, 1) : repeated)
      faults.push({ offset, code: 'duplicate-key', arguments: isTwoObjects ? { isTwoObjects } : {} });
  }
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

/** A value, and the offset of its key or of the item that it is. */
interface Child {
  readonly value: Node | null;
  readonly offset: number;
}

/**
 * Where fields are in a YAML document: parses the text once, then answers with the offset of a field, or of the
 * nearest field above it that is written down.
 */
export function locateInYaml(text: string): (path: FieldPath, of: PositionOf) => number {
  const composed = compose(text, true);
  const indexes = new Map<YAMLMap, PairIndex>();
  const indexOf = (mapping: YAMLMap): PairIndex => {
    const index = indexes.get(mapping) ?? indexPairs(mapping, composed.targets);
    indexes.set(mapping, index);
    return index;
  };
  return (path, of) => locate(composed, indexOf, path, of);
}

/** The pairs of a mapping by their keys, of which the last counts, and its merges, the last first. */
interface PairIndex {
  readonly own: ReadonlyMap<string, Child & { readonly at: number }>;
  readonly merges: readonly { readonly at: number; readonly value: Node | null }[];
}

/** There may be as many questions about a mapping as it has keys. */
function indexPairs(mapping: YAMLMap, targets: Composed['targets']): PairIndex {
  const own = new Map<string, Child & { readonly at: number }>();
  const merges: PairIndex['merges'][number][] = [];
  for (const [at, { key, value }] of pairsOf(mapping).entries()) {
    if (isMergeKey(key)) merges.push({ at, value });
    else if (isScalar(isAlias(key) ? targets.get(key) : key))
      own.set(String(keyOf(key, targets)), { at, value, offset: offsetOf(key) });
  }
  return { own, merges: merges.toReversed() };
}

function locate(
  { root, targets }: Composed,
  indexOf: (mapping: YAMLMap) => PairIndex,
  path: FieldPath,
  of: PositionOf,
): number {
  const targetOf = (node: Node | null | undefined): Node | null | undefined =>
    isAlias(node) ? targets.get(node) : node;

  const findChild = (parent: Node | null, step: string | number): Child | undefined => {
    const node = targetOf(parent);
    if (isMap(node)) return findPair(node, String(step), new Set());
    const item = isSeq<Node>(node) ? node.items[Number(step)] : undefined;
    return item && { value: item, offset: offsetOf(item) };
  };

  /** The pair of that key: the last that counts, so that none before a merge does that has the key, too. */
  const findPair = (mapping: YAMLMap, name: string, seen: Set<Node>): Child | undefined => {
    // A mapping that is merged again and again is looked through once.
    if (seen.has(mapping)) return undefined;
    seen.add(mapping);
    const { own, merges } = indexOf(mapping);
    const child = own.get(name);
    for (const { at, value } of merges) {
      if (child && at < child.at) break;
      for (const item of isSeq<Node>(value) ? value.items : [value]) {
        const source = targetOf(item);
        const found = isMap(source) ? findPair(source, name, seen) : undefined;
        if (found) return found;
      }
    }
    return child;
  };

  let node = root;
  let offset = node ? offsetOf(node) : 0;
  for (const [i, step] of path.entries()) {
    const found = findChild(node, step);
    if (!found) return offset;
    node = found.value;
    const wantsKey = of === 'key' && i === path.length - 1;
    offset = node === null || wantsKey || isEmpty(node) ? found.offset : offsetOf(node);
  }
  return offset;
}
