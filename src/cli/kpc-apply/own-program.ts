/** Replaced by scripts/build-binary.mjs: whether Node and the program are one file. */
declare const KPC_IS_BINARY: boolean | undefined;

/** How to start this program anew: Node and its file, or the one file that is both. */
export function ownProgram(): readonly string[] {
  if (typeof KPC_IS_BINARY !== 'undefined' && KPC_IS_BINARY) return [process.execPath];
  const [, file] = process.argv;
  return file === undefined ? [] : [process.execPath, file];
}
