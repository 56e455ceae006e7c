import { loadInputs, type ReadStdin } from './read-texts.ts';
import { compileLike, optionsLike } from '../open/compile-like.ts';
import type { SideOptions } from './read-side.ts';
import type { Reading, Recognised } from '../open/opened.ts';

/** Reads and compiles manifests as one side. What no flag says, such as the mode, comes from the other side. */
export async function compileSide(
  path: string,
  other: Recognised,
  options: SideOptions,
  readStdin: ReadStdin,
): Promise<Reading> {
  const asOther = optionsLike(other.side, options);
  const read = await loadInputs({ ...asOther, file: [path, ...(options.file ?? [])] }, readStdin);
  return compileLike(path, read, other.side, options);
}
