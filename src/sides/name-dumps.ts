import { isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Cluster } from '../cluster/model.ts';
import type { LoadedInputs } from '../compile/load-texts.ts';
import { loadInputs, type FileOptions } from '../compile/read-texts.ts';
import { nameServers } from '../diff/name-servers.ts';
import type { Side } from '../diff/compared-side.ts';
import type { Stdin } from '../input/files/load-files.ts';

/** The Services of manifests that lend their names to a dump; undefined where the manifests have errors. */
export interface NamesReading {
  readonly cluster: Cluster | undefined;
  /** Errors only: what else there is to say of the manifests does not matter here. */
  readonly diagnostics: readonly Diagnostic[];
  readonly files: LoadedInputs['files'];
}

/** Reads the Services of manifests for their names. */
export async function readNames(options: FileOptions, readStdin: () => Promise<Stdin>): Promise<NamesReading> {
  const { diagnostics, files, prepared } = await loadInputs(options, readStdin);
  const errors = diagnostics.filter(isError);
  return { cluster: errors.length > 0 ? undefined : prepared.cluster, diagnostics: errors, files };
}

/** A side that goes by the names of Services, if it is a dump. */
export function nameDump(side: Side, cluster: Cluster): Side {
  return side.kind === 'dump' ? { ...side, labels: nameServers(side.state, cluster) } : side;
}
