import type { FieldPath } from '../../cluster/objects.ts';
import { isMergeKey } from './nodes.ts';
import type { MappingNode, YamlNode } from './nodes.ts';
import { keyOf } from './resolve-scalar.ts';

/** Whether a position is wanted for the value of a field or for its key. */
export type PositionOf = 'value' | 'key';

/** The offset of a field of a document, or of the nearest field above it that is written down. */
export function locate(root: YamlNode | undefined, path: FieldPath, of: PositionOf): number {
  let node = root;
  let offset = root?.offset ?? 0;
  for (const [i, step] of path.entries()) {
    const found = node && findChild(node, step);
    if (!found) return offset;
    const wantsKey = of === 'key' && i === path.length - 1;
    offset = wantsKey || isEmpty(found.value) ? found.offset : found.value.offset;
    node = found.value;
  }
  return offset;
}

function isEmpty(node: YamlNode): boolean {
  return node.kind === 'scalar' && node.isEmpty;
}

interface Child {
  readonly value: YamlNode;
  /** Of its key, where it has one. */
  readonly offset: number;
}

function findChild(parent: YamlNode, step: string | number): Child | undefined {
  const node = parent.kind === 'alias' ? parent.target : parent;
  switch (node.kind) {
    case 'scalar':
      return undefined;
    case 'sequence': {
      const item = node.items[Number(step)];
      return item && { value: item, offset: item.offset };
    }
    case 'mapping':
      return findPair(node, String(step), new Set());
  }
}

/** The pair of that key: the last that counts, so that none before a merge does that has the key, too. */
function findPair(mapping: MappingNode, name: string, seen: Set<YamlNode>): Child | undefined {
  // A mapping that is merged again and again is looked through once.
  if (seen.has(mapping)) return undefined;
  seen.add(mapping);
  for (const { key, value } of mapping.pairs.toReversed()) {
    if (isMergeKey(key)) {
      const merged = findMerged(value, name, seen);
      if (merged) return merged;
    } else if (isNamed(key, name)) {
      return { value, offset: key.offset };
    }
  }
  return undefined;
}

function isNamed(key: YamlNode, name: string): boolean {
  const node = key.kind === 'alias' ? key.target : key;
  return node.kind === 'scalar' && keyOf(node, key.offset).text === name;
}

function findMerged(source: YamlNode, name: string, seen: Set<YamlNode>): Child | undefined {
  for (const item of source.kind === 'sequence' ? source.items : [source]) {
    const node = item.kind === 'alias' ? item.target : item;
    const found = node.kind === 'mapping' ? findPair(node, name, seen) : undefined;
    if (found) return found;
  }
  return undefined;
}
