import { nodeOfBundle, settingsOf } from '../../src/bundle/manifest.ts';
import { readFolder } from '../../src/bundle/folder.ts';
import { isGoldenFile, readGolden } from '../../src/bundle/golden.ts';
import type { BundleContent } from '../../src/bundle/make-bundle.ts';
import type { StoredBundle } from '../../src/bundle/read-bundle.ts';
import { compileState } from '../../src/snapshot/open/compile-node.ts';

/** What a bundle is made of, to make it again. */
export function contentOf({ manifest, state, cluster }: StoredBundle): BundleContent {
  const { families, assigned, assumedEndpoints, kpcVersion } = manifest;
  const [node, settings] = [nodeOfBundle(manifest), settingsOf(manifest)];
  return { state, cluster, node, settings, families, assigned, assumedEndpoints, kpcVersion };
}

/** Reads a golden as `kpc compile --check` does. */
export async function readGoldenFolder(folder: string): Promise<StoredBundle> {
  const reading = readGolden(await readFolder(folder, isGoldenFile), compileState, '0.1.0');
  if (reading.kind === 'broken') throw new Error(reading.problems.join('\n'));
  return reading.bundle;
}
