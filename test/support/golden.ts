import { readFolder } from '../../src/bundle/folder.ts';
import { isGoldenFile, readGolden } from '../../src/bundle/golden.ts';
import type { StoredBundle } from '../../src/bundle/read-bundle.ts';
import { compileState } from '../../src/snapshot/open/compile-node.ts';

export async function readGoldenFolder(folder: string): Promise<StoredBundle> {
  const reading = readGolden(await readFolder(folder, isGoldenFile), compileState, '0.1.0');
  if (reading.kind === 'broken') throw new Error(reading.problems.join('\n'));
  return reading.bundle;
}
