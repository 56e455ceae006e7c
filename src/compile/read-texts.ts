import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { loadFile, loadFiles, type Stdin } from '../input/files/load-files.ts';
import {
  loadTexts,
  type InputOptions,
  type InputTexts,
  type LoadedInputs,
  badHostAddresses,
  parseHostAddresses,
  type HostText,
} from './load-texts.ts';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { readNamedFile } from '../base/read-file.ts';
import { describeError } from '../base/system-errors.ts';
import { isName } from '../base/object-names.ts';
import type { Address } from '../kernel/address.ts';
import type { Hosts } from './compile.ts';

/** The options of all commands that compile manifests: what to read, and how to compile it. */
export interface FileOptions extends InputOptions {
  readonly file?: readonly string[];
  readonly exclude?: readonly string[];
  readonly config?: string;
  readonly hostAddresses?: string | undefined;
}

/** Reads all of standard input; returns the same each time. */
export type ReadStdin = () => Promise<Stdin>;

/** Reads all files that the options name, and says all that is wrong with them. */
export async function loadInputs(options: FileOptions, readStdin: ReadStdin): Promise<LoadedInputs> {
  return loadTexts(await readInputs(options, readStdin), options);
}

/** Reads all files that the options name, and no more. */
export async function readInputs(options: FileOptions, readStdin: ReadStdin): Promise<InputTexts> {
  const { file: sources = [], exclude, config, hostAddresses } = options;
  const stdin = [...sources, config].includes('-') ? await readStdin() : undefined;
  return {
    manifests:
      sources.length === 0
        ? { files: [], diagnostics: [diagnose('no-input', { problem: 'nothing-named' })] }
        : loadFiles(sources, stdin, exclude),
    config: config === undefined ? undefined : loadFile(config, stdin),
    hostAddresses: hostAddresses === undefined ? undefined : readHostText(hostAddresses),
  };
}

/** Reads a file, or says why it cannot be read. */
function readHostText(file: string): HostText | Diagnostic {
  try {
    return { name: file, text: readNamedFile(file).toString('utf8') };
  } catch (error) {
    return badHostAddresses(file, describeError(error));
  }
}

/** Whether --host-addresses names a folder, with what `ip -j addr` prints on each node in NODE.json. */
export function isHostFolder(path: string | undefined): path is string {
  return path !== undefined && (statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false);
}

/** Reads NODE.json for each of the nodes; those without one have the addresses of their Node object. */
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
