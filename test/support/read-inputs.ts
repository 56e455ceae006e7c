import { loadFiles, type Stdin } from '../../src/input/files/load-files.ts';
import { collectInputs, type Inputs } from '../../src/input/read-inputs.ts';

export function readInputs(sources: readonly string[], options: { readonly stdin?: Stdin } = {}): Inputs {
  return collectInputs(loadFiles(sources, options.stdin));
}
