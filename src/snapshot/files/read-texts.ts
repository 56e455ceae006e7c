import { diagnose, type Finding } from '../../base/findings/finding.ts';
import { loadFile, loadFiles, type Stdin } from '../../input/files/load-files.ts';
import {
  loadTexts,
  type LoadOptions,
  type InputTexts,
  type LoadedInputs,
  badHostAddresses,
  parseHostAddresses,
  type HostText,
  type Hosts,
} from '../open/load-texts.ts';
import { statSync } from 'node:fs';
import type { TextFile } from '../../input/documents/text-file.ts';
import { openTrees, repositoryPaths, revisionOf } from '../../git/revision-paths.ts';
import { join } from 'node:path';
import { disk, type FileTree } from '../../input/files/file-tree.ts';
import { shortUnreadOf } from '../../base/read-file.ts';
import type { RenderedSide } from '../../base/findings/files.ts';
import { isName } from '../../base/names.ts';
import type { Address } from '../../kernel/address.ts';

export interface FileOptions extends LoadOptions {
  readonly file?: readonly string[];
  readonly texts?: readonly TextFile[] | undefined;
  readonly exclude?: readonly string[] | undefined;
  readonly render?: boolean;
  readonly renderValues?: readonly string[];
  readonly config?: string | undefined;
  readonly hostAddresses?: string | undefined;
  /** Reads all of standard input for the path "-". The result is the same for all calls. */
  readonly readStdin?: (() => Promise<Stdin>) | undefined;
}

export async function loadInputs(options: FileOptions): Promise<LoadedInputs> {
  const { file = [], into = {} } = options;
  const checkouts = 'compare' in into ? [] : file.flatMap(checkoutOf);
  return loadTexts(
    await readInputs(options),
    checkouts.length === 0 ? options : { ...options, into: { ...into, checkouts } },
  );
}

/** Returns what to check out before kustomizations of an input can be built. Empty if the input is in no revision. */
export function checkoutOf(name: string): readonly [] | readonly [RenderedSide] {
  const revision = revisionOf(name);
  if (revision === undefined) return [];
  return [{ name, checkout: { revision, path: repositoryPaths()(name) ?? '' }, isFolder: true }];
}

export async function loadConfiguration(options: FileOptions): Promise<LoadedInputs> {
  const { config } = await readInputs({ ...options, file: [], texts: [], hostAddresses: undefined });
  const manifests = { files: [], diagnostics: [] };
  return loadTexts({ manifests, config, hostAddresses: undefined }, { ...options, emptyResult: 'allowed' });
}

/** Loads the same manifests with other options. These may differ only in kube-proxy's settings. */
export async function loadUnder(options: FileOptions, loaded: LoadedInputs): Promise<LoadedInputs> {
  const { config } = await readInputs({ ...options, file: [], texts: [], hostAddresses: undefined });
  return loaded.under(options, config);
}

async function readInputs(options: FileOptions): Promise<InputTexts> {
  const { file: named = [], texts = [], exclude, config, hostAddresses } = options;
  const rendered = await renderNamed(named, options);
  const sources = rendered?.others ?? named;
  const stdin = [...sources, config].includes('-') ? await options.readStdin?.() : undefined;
  const { trees, faults } = await openTrees([...sources, config, hostAddresses].filter((path) => path !== undefined));
  const known = sources.filter((source) => !faults.has(source));
  const loaded =
    named.length + texts.length === 0
      ? { files: [], diagnostics: [diagnose('no-input', { problem: 'nothing-named' })] }
      : loadFiles(known, stdin, exclude, trees);
  const wrong = sources.flatMap((source) => faults.get(source) ?? []);
  return {
    manifests: {
      ...loaded,
      files: [...texts, ...(rendered?.files ?? []), ...loaded.files],
      diagnostics: [...(rendered?.diagnostics ?? []), ...wrong, ...loaded.diagnostics],
    },
    config: config === undefined ? undefined : (faults.get(config) ?? loadFile(config, stdin, trees.get(config))),
    hostAddresses:
      hostAddresses === undefined
        ? undefined
        : (faults.get(hostAddresses) ??
          (isHostFolder(hostAddresses)
            ? (nodes) => readHostFolder(hostAddresses, nodes)
            : readHostText(hostAddresses, trees.get(hostAddresses)))),
  };
}

async function renderNamed(sources: readonly string[], { render, renderValues = [], into }: FileOptions) {
  if (!render || sources.length === 0) return undefined;
  const { renderInputs } = await import('../../programs/run-program.ts');
  const revision = sources.find((source) => revisionOf(source) !== undefined);
  return renderInputs(sources, renderValues, { into: into ?? {}, revision });
}

export function readHostText(file: string, tree: FileTree = disk): HostText | Finding {
  try {
    return { name: file, text: tree.readNamed(file).toString('utf8') };
  } catch (error) {
    return badHostAddresses(file, { problem: 'content', reason: shortUnreadOf(error, file) });
  }
}

/** Reports whether --host-addresses names a folder. The folder holds the output of `ip -j addr` on each node, as NODE.json. */
export function isHostFolder(path: string | undefined): path is string {
  return path !== undefined && (statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false);
}

/** Reads NODE.json for each node. A node without this file gets the addresses in its Node object. */
export function readHostFolder(path: string | undefined, nodes: readonly string[]): Hosts {
  const addresses = new Map<string, readonly Address[]>();
  if (path === undefined) return { addresses, diagnostics: [] };
  if (!isHostFolder(path)) {
    return { addresses, diagnostics: [diagnose('bad-host-addresses', { problem: 'no-folder', path })] };
  }
  const fileOf = (node: string) => join(path, `${node}.json`);
  const hasFile = (node: string) =>
    isName(node, 'subdomain') && statSync(fileOf(node), { throwIfNoEntry: false }) !== undefined;
  const diagnostics = nodes.filter(hasFile).flatMap((node) => {
    const read = parseHostAddresses(readHostText(fileOf(node)));
    addresses.set(node, read.addresses);
    return read.diagnostics;
  });
  const without = nodes.filter((node) => !addresses.has(node));
  const gap = without.length > 0 ? [diagnose('no-host-addresses', { path, nodes: nodes.length, without })] : [];
  return { addresses, diagnostics: [...diagnostics, ...gap] };
}
