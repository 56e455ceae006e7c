import { isAlias, isMap, isScalar, isSeq, type Node, type YAMLMap } from 'yaml';
import type { FieldPath } from '../../cluster/objects.ts';
import { isEmpty, offsetOf, type Composed } from './compose.ts';
import { isMergeKey, keyOf } from './decode.ts';

/** Whether a position is wanted for the value of a field or for its key. */
export type PositionOf = 'value' | 'key';

/** A value, and the offset of its key or of the item that it is. */
interface Child {
  readonly value: Node | null;
  readonly offset: number;
}

/** The offset of a field of a document, or of the nearest field above it that is written down. */
export function locate({ root, targets }: Composed, path: FieldPath, of: PositionOf): number {
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
    for (const pair of mapping.items.toReversed()) {
      const key = pair.key as Node;
      const value = pair.value as Node | null;
      if (!isMergeKey(key)) {
        if (isScalar(targetOf(key)) && String(keyOf(key, targets)) === name) return { value, offset: offsetOf(key) };
        continue;
      }
      for (const item of isSeq<Node>(value) ? value.items : [value]) {
        const source = targetOf(item);
        const found = isMap(source) ? findPair(source, name, seen) : undefined;
        if (found) return found;
      }
    }
    return undefined;
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
