import { countState, countServices, type BundleFiles } from '../bundle/make-bundle.ts';
import type { Side, SideServices } from '../diff/compared-side.ts';
import type { BundleFileName, Manifest } from '../bundle/manifest.ts';
import { filesToRead, stateFileNames, stateFiles } from '../bundle/state-files.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { count } from '../base/format-count.ts';

/** What the other files of a bundle hold. No tool reads these. */
const otherFiles = {
  'services.json': 'the Services and endpoints that all this comes from',
  'manifest.json': 'what was compiled, and the checksums of the files',
} as const;

/** All files of a bundle in one text, each under a heading: what a Service becomes first, what every node has last. */
export function formatAll(files: BundleFiles): string {
  return [...filesToRead.map((name) => [name, stateFiles[name].title] as const), ...Object.entries(otherFiles)]
    .flatMap(([name, what]) => {
      const text = files.get(name);
      return text === undefined ? [] : [`==> ${name}: ${what} <==\n${text}`];
    })
    .join('\n');
}

/** The names that --print takes, and the file of each. */
export const printNames: ReadonlyMap<string, BundleFileName | 'manifest.json'> = new Map([
  ...stateFileNames.map((name) => [stateFiles[name].print, name] as const),
  ['manifest', 'manifest.json'] as const,
  ['services', 'services.json'] as const,
]);

/** The name, for --print, of the file that says most about a bundle. */
export function mainFile({ mode, files }: Manifest): string {
  const main = stateFileNames.find((name) => name in files && stateFiles[name].kind === modeFacts[mode].mainKind);
  return main ? stateFiles[main].print : 'manifest';
}

/** The same line of what was compiled without writing it. */
export function summarizeSide({
  state,
  services,
  families,
}: Pick<Side, 'state' | 'families'> & { readonly services: SideServices }): string {
  const { cluster, node, settings, assumed } = services;
  const counts = { ...countServices(cluster), ...countState(state) };
  const name = assumed.node ? `${node.name} (assumed)` : node.name;
  return summarize({ counts, mode: settings.mode, node: { name }, families });
}

/** The fields of a manifest that say how much was compiled. */
type Counted = Pick<Manifest, 'counts' | 'mode' | 'families'> & { readonly node: Pick<Manifest['node'], 'name'> };

/** One line that says how much was compiled. */
export function summarize({ counts, mode, node, families }: Counted): string {
  const many = (name: string, one: string, more?: string) => count(counts[name] ?? 0, one, more);
  const parts = modeFacts[mode].summary.map((part) => many(...part));
  const where = `${node.name === '' ? 'any node' : `node ${node.name}`}, mode ${mode}, ${families.join(' and ')}`;
  return `${many('services', 'Service')} (${many('servicePorts', 'port')}) on ${where}: ${parts.join(', ')}`;
}
