import type { SyntaxFault } from '../syntax-fault.ts';
import type { Composed } from './compose.ts';
import { isMergeKey } from './nodes.ts';
import type { MappingNode } from './nodes.ts';
import { keyOf } from './resolve-scalar.ts';

/** A key that comes a second time in its mapping. */
interface RepeatedKey {
  readonly name: string;
  readonly offset: number;
}

/** Keys that come twice in one mapping, of which kubectl takes the last without a word. There may be many merges. */
export function findRepeatedKeys({ root, mappings }: Composed): SyntaxFault[] {
  const faults: SyntaxFault[] = [];
  for (const mapping of mappings) {
    const repeated = listRepeated(mapping);
    const second = mapping === root ? findSecondObject(repeated) : undefined;
    if (second) {
      faults.push({ offset: second.offset, code: 'duplicate-key', arguments: { problem: 'two-objects' } });
    } else {
      for (const { offset } of repeated) faults.push({ offset, code: 'duplicate-key', arguments: {} });
    }
  }
  return faults.sort((a, b) => a.offset - b.offset);
}

function listRepeated({ pairs }: MappingNode): readonly RepeatedKey[] {
  if (pairs.length < 2) return [];
  const repeated: RepeatedKey[] = [];
  const seen = new Set<string>();
  for (const { key } of pairs) {
    const node = key.kind === 'alias' ? key.target : key;
    if (node.kind !== 'scalar' || isMergeKey(node)) continue;
    const { text: name } = keyOf(node, key.offset);
    if (seen.has(name)) repeated.push({ name, offset: key.offset });
    seen.add(name);
  }
  return repeated;
}

/** Where a document that names its kind twice begins to name it again: two objects, with no line "---" between them. */
function findSecondObject(repeated: readonly RepeatedKey[]): RepeatedKey | undefined {
  const names = new Set(repeated.map(({ name }) => name));
  return names.has('apiVersion') && names.has('kind') ? repeated[0] : undefined;
}
