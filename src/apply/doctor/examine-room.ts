import type { StoredBundle } from '../../bundle/read-bundle.ts';
import { isStateFile } from '../../bundle/state-files.ts';
import { lengthOfOthers } from '../node/foreign-lines.ts';
import { readingParts, type NodeReading } from '../node/node-reading.ts';
import { mostRead } from '../node/output.ts';
import { nodeCheck, type NodeCheck } from './node-check.ts';

/**
 * Whether the node can still be read once it holds the bundle, beside what is other programs': what cannot be read can neither be
 * checked nor put back. nft prints a table in more characters than the bundle has.
 * Test: %s: a bundle that the node could not be read with is refused before any change.
 */
export function examineRoom(
  { files = new Map<string, string>() }: StoredBundle,
  reading: NodeReading,
): readonly NodeCheck[] {
  const wanted = [...files].map(([name, { length }]) => {
    if (name === 'nftables.nft') return 2 * length;
    return isStateFile(name) ? length : 0;
  });
  const present = readingParts.map((part) => reading[part]);
  const sum = (lengths: readonly number[]) => lengths.reduce((total, each) => total + each, 0);
  if (sum([...wanted, ...present.map(({ length }) => length)]) <= mostRead) return [];
  const others = present.map(lengthOfOthers);
  if (sum([...wanted, ...others]) <= mostRead) return [];
  const text = `the node would list more than the ${mostRead / 2 ** 20} MB that kpc-apply reads of it: ${megabytes(sum(wanted))} MB of this bundle, and ${megabytes(sum(others))} MB of other programs`;
  return [nodeCheck('error', 'tools', text, 'see what makes so many objects, and remove what no program needs')];
}

function megabytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}
