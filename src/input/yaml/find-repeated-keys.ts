import type { SyntaxFault } from '../syntax-fault.ts';
import { isMergeKey } from './nodes.ts';
import type { MappingNode } from './nodes.ts';
import { keyOf } from './resolve-scalar.ts';

/** Keys that come twice in one mapping, of which kubectl takes the last without a word. There may be many merges. */
export function findRepeatedKeys(mappings: readonly MappingNode[]): SyntaxFault[] {
  const faults: SyntaxFault[] = [];
  for (const { pairs } of mappings) {
    if (pairs.length < 2) continue;
    const seen = new Set<string>();
    for (const { key } of pairs) {
      const node = key.kind === 'alias' ? key.target : key;
      if (node.kind !== 'scalar' || isMergeKey(node)) continue;
      const { text: name } = keyOf(node, key.offset);
      if (seen.has(name)) {
        faults.push({ offset: key.offset, code: 'duplicate-key', arguments: {} });
      }
      seen.add(name);
    }
  }
  return faults.sort((a, b) => a.offset - b.offset);
}
