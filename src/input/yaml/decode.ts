import { isAlias, isMap, isScalar, isSeq, type Alias, type Node, type Scalar, type YAMLMap } from 'yaml';
import { offsetOf, type Composed, type Target } from './compose.ts';
import { maxDepth, refuse, Refusal, tooDeep, type SyntaxFault } from '../syntax-fault.ts';
import { resolveNumber, resolvePlainScalar, type YamlNumber } from '../yaml-scalars.ts';

/** go-yaml's bounds: up to so many values all but a hundredth may come through aliases, from the second on a tenth. */
const unboundCount = 400_000;
const strictCount = 4_000_000;
const mostRatio = 0.99;
const leastRatio = 0.1;

/** The entries of a mapping by their keys as JSON has them. Go keeps 1 and "1" apart until then. */
type Entries = Map<string, { readonly type: string; readonly value: unknown }>;

/** The value of a document, as sigs.k8s.io/yaml makes it of what go-yaml v2 reads. Throws a Refusal. */
export function decode({ root, targets }: Composed): unknown {
  return new Decoder(targets).decode(root);
}

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
    const entries: Entries = new Map();
    this.#addPairs(node, entries);
    return Object.fromEntries(Array.from(entries, ([key, { value }]) => [key, value]));
  }

  #addPairs(mapping: YAMLMap, entries: Entries): void {
    this.#within(() => {
      for (const { key, value } of pairsOf(mapping)) {
        if (isMergeKey(key)) this.#merge(key, value, entries);
        else this.#addPair(key, value, entries);
      }
    });
  }

  #addPair(key: Node, value: Node | null, entries: Entries): void {
    const { text, type } = this.#decodeKey(key);
    const decoded = this.decode(value);
    const there = entries.get(text);
    if (there && there.type !== type) {
      // Go has both, and which of them ends up in the JSON is a matter of chance.
      throw new Refusal({ offset: offsetOf(key), code: 'duplicate-key', arguments: { name: text } });
    }
    entries.set(text, { type, value: decoded });
  }

  #decodeKey(key: Node): YamlKey {
    this.#count();
    if (isAlias(key)) this.#throughAlias(key, () => this.#count());
    return keyOf(key, this.#targets);
  }

  /** A merge overrides what is written before it in its mapping. Of a list, the first mapping counts most. */
  #merge(key: Node, source: Node | null, entries: Entries): void {
    const sources = isSeq<Node>(source) ? source.items.toReversed() : [source];
    for (const item of sources) {
      this.#count();
      const add = (target: Node | null): void => {
        if (!isMap(target)) refuse(offsetOf(key), { problem: 'merge-of-other-type' });
        this.#addPairs(target, entries);
      };
      if (isAlias(item)) this.#throughAlias(item, add);
      else add(item);
    }
  }

  #throughAlias<Result>(alias: Alias, read: (target: Target) => Result): Result {
    if (this.#open.has(alias)) refuse(offsetOf(alias), { problem: 'alias-holds-itself' });
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
    if (copies <= 100 || values <= 1000) return;
    const strictness = Math.min(Math.max((values - unboundCount) / (strictCount - unboundCount), 0), 1);
    if (copies / values <= mostRatio - (mostRatio - leastRatio) * strictness) return;
    throw new Refusal({ offset: offsetOf(alias), code: 'alias-bomb', arguments: { copies, values } });
  }
}

function pairsOf(mapping: YAMLMap): readonly { readonly key: Node; readonly value: Node | null }[] {
  return mapping.items as never;
}

/** Keys that come twice in one mapping, of which kubectl takes the last without a word. There may be many merges. */
export function findRepeatedKeys({ root, mappings, targets }: Composed): SyntaxFault[] {
  const faults: SyntaxFault[] = [];
  for (const mapping of mappings) {
    const seen = new Set<string>();
    const repeated = pairsOf(mapping).flatMap(({ key }) => {
      const target = isAlias(key) ? targets.get(key) : key;
      if (!isScalar(target) || isMergeKey(key)) return [];
      const { text: name } = keyOf(key, targets);
      if (seen.has(name)) return [{ name, offset: offsetOf(key) }];
      seen.add(name);
      return [];
    });
    const names = new Set(repeated.map(({ name }) => name));
    // A document that names its kind twice is two objects, with no line "---" between them.
    const [second] = mapping === root && names.has('apiVersion') && names.has('kind') ? repeated : [];
    if (second) faults.push({ offset: second.offset, code: 'duplicate-key', arguments: { problem: 'two-objects' } });
    else for (const { offset } of repeated) faults.push({ offset, code: 'duplicate-key', arguments: {} });
  }
  return faults.sort((a, b) => a.offset - b.offset);
}

const prefix = 'tag:yaml.org,2002:';

/** Whether a key is "<<", and merges what its value holds. In quotes it is a key like any other. */
export function isMergeKey(key: Node): boolean {
  if (!isScalar(key) || key.value !== '<<') return false;
  return key.tag === undefined ? key.type === 'PLAIN' : key.tag === '!' || key.tag === `${prefix}merge`;
}

/** A key as JSON has it, and what Go takes it for. */
interface YamlKey {
  readonly text: string;
  readonly type: string;
}

/** The key that a node is. Throws a Refusal. */
export function keyOf(key: Node, targets: Composed['targets']): YamlKey {
  const scalar = isAlias(key) ? targets.get(key) : key;
  const value = isScalar(scalar) ? resolve(scalar) : null;
  if (value === null || !isScalar(scalar)) refuse(offsetOf(key), { problem: 'key-of-other-type' });
  if (typeof value !== 'number') return { text: String(value), type: typeof value };
  const number = resolveNumber(String(scalar.value)) ?? { kind: 'float', value };
  // Go's yaml keeps those as unsigned integers, for which sigs.k8s.io/yaml knows no text.
  if (isUnsigned(number)) refuse(offsetOf(key), { problem: 'key-of-other-type' });
  if (number.kind === 'integer' && scalar.tag !== `${prefix}float`)
    return { text: String(number.exact ?? value), type: 'integer' };
  return { text: spellFloat(value), type: 'float' };
}

/** What sigs.k8s.io/yaml makes of a key that is a float: the shortest text that is the same in 32 bits. */
function spellFloat(value: number): string {
  if (Number.isNaN(value)) return '.nan';
  const single = Math.fround(value);
  if (!Number.isFinite(single)) return single < 0 ? '-.inf' : '.inf';
  if (single === 0) return Object.is(value, -0) || value < 0 ? '-0' : '0';
  let digits = 1;
  while (Math.fround(Number(single.toPrecision(digits))) !== single) digits++;
  const [mantissa = '', power = '0'] = single.toExponential(digits - 1).split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 6) return Number(`${mantissa}e${exponent}`).toString();
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

function isUnsigned(number: YamlNumber): boolean {
  return number.kind === 'integer' && (number.exact ?? 0n) >= 2n ** 63n;
}

function decodeScalar(scalar: Scalar): unknown {
  const value = resolve(scalar);
  if (typeof value !== 'number' || Number.isFinite(value)) return value;
  return refuse(offsetOf(scalar), { problem: 'not-a-number-in-json', value: String(scalar.value) });
}

/** What go-yaml makes of a scalar and its tag. It knows no other tags than these: what has another one is text. */
function resolve(scalar: Scalar): string | number | boolean | null {
  const text = String(scalar.value);
  const { tag, type } = scalar;
  if (tag === undefined) return type === 'PLAIN' ? resolvePlainScalar(text) : text;
  switch (tag) {
    case `${prefix}bool`:
    case `${prefix}int`:
    case `${prefix}float`:
    case `${prefix}null`:
      if (isOfTag(text, tag)) return resolvePlainScalar(text);
      return refuse(offsetOf(scalar), { problem: 'not-of-tag', value: text, tag: tag.replace(prefix, '!!') });
    case `${prefix}binary`:
      return refuse(offsetOf(scalar), { problem: 'value-as-binary' });
    case `${prefix}timestamp`:
      return refuse(offsetOf(scalar), { problem: 'value-as-timestamp' });
    default:
      return text;
  }
}

function isOfTag(text: string, tag: string): boolean {
  const number = resolveNumber(text);
  switch (tag) {
    case `${prefix}int`:
      return number?.kind === 'integer';
    case `${prefix}float`:
      return number !== undefined && !isUnsigned(number);
    case `${prefix}bool`:
      return typeof resolvePlainScalar(text) === 'boolean';
    default:
      return resolvePlainScalar(text) === null;
  }
}
