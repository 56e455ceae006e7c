import type { Cluster } from '../cluster/model.ts';
import type { Side } from '../diff/side.ts';
import { nameServers } from '../diff/name-servers.ts';
import type { SideOptions } from './diff-side.ts';
import { loadInputs } from './input-options.ts';
import { reportDiagnostics } from './report-diagnostics.ts';
import type { Terminal } from './terminal.ts';

/** Two sides whose dumps go by the names that the manifests of -f tell; undefined where those cannot be read. */
export async function nameDumps(
  [from, to]: readonly [Side, Side],
  options: SideOptions,
  terminal: Terminal,
): Promise<readonly [Side, Side] | undefined> {
  const cluster = await readCluster(options, terminal);
  if (!cluster) return undefined;
  const name = (side: Side): Side =>
    side.kind === 'dump' ? { ...side, labels: nameServers(side.state, cluster) } : side;
  return [name(from), name(to)];
}

/** The Services of -f, which only lend their names: what else there is to say of them does not matter. */
export async function readCluster(options: SideOptions, terminal: Terminal): Promise<Cluster | undefined> {
  const loaded = await loadInputs(options, terminal);
  const errors = loaded.diagnostics.filter(({ severity }) => severity === 'error');
  await reportDiagnostics(errors, loaded.files, terminal);
  return errors.length > 0 ? undefined : loaded.prepared.cluster;
}
