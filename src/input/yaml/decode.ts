import { maxDepth, refuse, Refusal, tooDeep } from '../syntax-fault.ts';
import { AliasBudget } from './alias-budget.ts';
import { isMergeKey } from './nodes.ts';
import type { AliasNode, MappingNode, YamlNode } from './nodes.ts';
import { decodeScalar, keyOf, refuseKey } from './resolve-scalar.ts';
import type { YamlKey } from './resolve-scalar.ts';

/** The value of a document, as sigs.k8s.io/yaml makes it of what go-yaml v2 reads. Throws a Refusal. */
export function decode(root: YamlNode): unknown {
  return new Decoder().decode(root);
}

/** The entries of a mapping by their keys as JSON has them. Go keeps 1 and "1" apart until then. */
type Entries = Map<string, { readonly type: string; readonly value: unknown }>;

class Decoder {
  readonly #budget = new AliasBudget();
  /** The aliases around the node that is decoded. */
  readonly #open = new Set<AliasNode>();
  #depth = 0;

  decode(node: YamlNode): unknown {
    this.#budget.count();
    switch (node.kind) {
      case 'scalar':
        return decodeScalar(node);
      case 'sequence':
        this.#enter();
        try {
          return node.items.map((item) => this.decode(item));
        } finally {
          this.#depth--;
        }
      case 'mapping':
        return this.#decodeMapping(node);
      case 'alias':
        return this.#throughAlias(node, () => this.decode(node.target));
    }
  }

  #decodeMapping(mapping: MappingNode): unknown {
    const entries: Entries = new Map();
    this.#addPairs(mapping, entries);
    return Object.fromEntries(Array.from(entries, ([key, { value }]) => [key, value]));
  }

  #addPairs({ pairs }: MappingNode, entries: Entries): void {
    this.#enter();
    for (const { key, value } of pairs) {
      if (isMergeKey(key)) {
        this.#merge(key, value, entries);
      } else {
        const name = this.#decodeKey(key);
        this.#set(entries, key, name, this.decode(value));
      }
    }
    this.#depth--;
  }

  #decodeKey(key: YamlNode): YamlKey {
    const target = key.kind === 'alias' ? key.target : key;
    if (target.kind !== 'scalar') return refuseKey(key.offset);
    this.#budget.count();
    if (key.kind === 'alias') this.#throughAlias(key, () => this.#budget.count());
    return keyOf(target, key.offset);
  }

  #set(entries: Entries, key: YamlNode, { text, type }: YamlKey, value: unknown): void {
    const there = entries.get(text);
    if (there && there.type !== type) {
      // Go has both, and which of them ends up in the JSON is a matter of chance.
      throw new Refusal({ offset: key.offset, code: 'duplicate-key', arguments: { name: text } });
    }
    entries.set(text, { type, value });
  }

  /** A merge overrides what is written before it in its mapping. Of a list, the first mapping counts most. */
  #merge(key: YamlNode, source: YamlNode, entries: Entries): void {
    if (source.kind === 'sequence') {
      for (const item of source.items.toReversed()) this.#mergeOne(key, item, entries);
    } else {
      this.#mergeOne(key, source, entries);
    }
  }

  #mergeOne(key: YamlNode, source: YamlNode, entries: Entries): void {
    const target = source.kind === 'alias' ? source.target : source;
    if (target.kind !== 'mapping') {
      refuse(key.offset, { problem: 'merge-of-other-type' });
    }
    this.#budget.count();
    if (source.kind !== 'alias') return this.#addPairs(target, entries);
    this.#throughAlias(source, () => {
      this.#budget.count();
      this.#addPairs(target, entries);
    });
  }

  #throughAlias<Result>(alias: AliasNode, read: () => Result): Result {
    if (this.#open.has(alias)) refuse(alias.offset, { problem: 'alias-holds-itself' });
    this.#open.add(alias);
    this.#budget.enterAlias(alias.offset);
    const result = read();
    this.#budget.leaveAlias();
    this.#open.delete(alias);
    return result;
  }

  #enter(): void {
    if (++this.#depth > maxDepth) throw new Refusal(tooDeep);
  }
}
