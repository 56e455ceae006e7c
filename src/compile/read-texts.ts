import { diagnose } from '../diagnostics/diagnostic.ts';
import { loadFile, loadFiles, type Stdin } from '../input/files/load-files.ts';
import { readHostText } from './read-hosts.ts';
import { loadTexts, type InputOptions, type InputTexts, type LoadedInputs } from './load-texts.ts';

/** The options of all commands that compile manifests: what to read, and how to compile it. */
export interface FileOptions extends InputOptions {
  readonly file?: readonly string[];
  readonly exclude?: readonly string[];
  readonly config?: string;
  readonly hostAddresses?: string;
}

/** Reads all files that the options name, and says all that is wrong with them. */
export async function loadInputs(options: FileOptions, readStdin: () => Promise<Stdin>): Promise<LoadedInputs> {
  return loadTexts(await readInputs(options, readStdin), options);
}

/** Reads all files that the options name, and no more. */
export async function readInputs(options: FileOptions, readStdin: () => Promise<Stdin>): Promise<InputTexts> {
  const isStdinNamed = [...(options.file ?? []), options.config].includes('-');
  return readTexts(options, isStdinNamed ? await readStdin() : undefined);
}

function readTexts(
  { file: sources = [], exclude, config, hostAddresses }: FileOptions,
  stdin: Stdin | undefined,
): InputTexts {
  return {
    manifests:
      sources.length === 0
        ? { files: [], diagnostics: [diagnose('no-input', { problem: 'nothing-named' })] }
        : loadFiles(sources, stdin, exclude),
    config: config === undefined ? undefined : loadFile(config, stdin),
    hostAddresses: hostAddresses === undefined ? undefined : readHostText(hostAddresses),
  };
}
