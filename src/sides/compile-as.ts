import { compileLoaded, type Compilation, type NodeOptions } from '../compile/compile.ts';
import type { NodeMemo } from '../compile/compile-node.ts';
import type { LoadedInputs } from '../compile/load-texts.ts';
import { describeMade, type SideReading } from './stored-side.ts';

/** Compiles loaded inputs for one node, as a side called `name`. */
export function compileAs(name: string, loaded: LoadedInputs, options: NodeOptions, memo?: NodeMemo): SideReading {
  return readingOf(name, loaded, compileLoaded(loaded, { ...options, name }, [], memo), '', undefined);
}

/** A side that cannot be compiled, for the reasons in the diagnostics. */
export function failedReading({ files, inputs }: LoadedInputs, diagnostics: SideReading['diagnostics']): SideReading {
  return { side: undefined, diagnostics, files, inputs, notes: [] };
}

/** What was compiled, as a side called `name`. */
export function readingOf(
  name: string,
  loaded: LoadedInputs,
  { snapshot, diagnostics }: Compilation,
  /** Where the mode comes from, if not from the flags or the configuration. */
  modeFrom: string,
  /** Why this release was chosen, if only what was read decided it. */
  reason: string | undefined,
): SideReading {
  if (!snapshot) return failedReading(loaded, diagnostics);
  const made = `manifests, compiled for ${describeMade(snapshot, { modeFrom, reason })}`;
  return {
    ...failedReading(loaded, diagnostics),
    side: snapshot,
    made,
    notes: [`${name}: ${made}`],
  };
}
