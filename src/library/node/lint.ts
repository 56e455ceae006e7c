import { loadInputs, type FileOptions } from '../../snapshot/files/read-texts.ts';
import { lintLoaded, optionsOfLint } from '../lint.ts';

export async function lintFiles(
  options: FileOptions & { readonly node?: string | undefined },
  words: Parameters<typeof lintLoaded>[2],
) {
  const loaded = await loadInputs(optionsOfLint(options));
  return { ...lintLoaded(loaded, options, words), files: loaded.files };
}
