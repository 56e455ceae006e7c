import type { TextFile } from '../input/documents/text-file.ts';
import { version } from '../base/version.ts';
import { nodeOfBundle, settingsOf, type Manifest } from '../bundle/manifest.ts';
import type { BundleFiles } from '../bundle/make-bundle.ts';
import { readBundle, type StoredBundle } from '../bundle/read-bundle.ts';
import { readGolden } from '../bundle/golden.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Cluster } from '../cluster/model.ts';
import { compileState } from '../compile/compile-node.ts';
import type { LoadedInputs } from '../compile/load-texts.ts';
import type { Dump } from '../dumps/dump.ts';
import { CompiledSnapshot, DumpedSnapshot, type Snapshot } from '../snapshot/snapshot.ts';
import { coverAll } from '../dumps/coverage.ts';
import type { KernelState } from '../kernel/state.ts';
import { serviceLink } from '../kube-proxy/service-link.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { newestRelease } from '../kube-proxy/releases.ts';

/** A side that was read, with its diagnostics; undefined if it cannot be used. */
export interface SideReading {
  readonly side: Snapshot | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** The manifests that were read, by the names that diagnostics give them. */
  readonly files: LoadedInputs['files'];
  /** What was read as what, for people. */
  readonly notes: readonly string[];
  /** What manifests were compiled for, in words. */
  readonly made?: string;
  readonly inputs?: LoadedInputs['inputs'];
}

/** What a path is: a bundle or a dump that was read, or manifests that still need compiling. */
export type StoredSide = StoredBundleSide | DumpedSide | MissingSide;

/** A bundle or a golden. */
interface StoredBundleSide extends SideReading {
  readonly kind: 'bundle';
  readonly side: CompiledSnapshot;
  readonly manifest: Manifest;
}

/** Output of the tools of a node. */
export interface DumpedSide extends SideReading {
  readonly kind: 'dump';
  readonly side: DumpedSnapshot;
  /** The manifests that a support bundle holds. */
  readonly manifests?: readonly TextFile[] | undefined;
}

/** Manifests, or input that cannot be compared, with the diagnostics that say why. */
interface MissingSide extends SideReading {
  readonly kind: 'manifests' | 'unreadable';
  readonly side: undefined;
}

const nothingSaid = { diagnostics: [], files: new Map(), notes: [] } as const;

/** Manifests that have not been read yet. */
export const manifests: MissingSide = { ...nothingSaid, kind: 'manifests', side: undefined };

export function unreadable(diagnostics: readonly Diagnostic[]): MissingSide {
  return { ...nothingSaid, kind: 'unreadable', side: undefined, diagnostics };
}

/** The side that a bundle's files are; `path` is what the user calls it. */
export function sideOfBundle(path: string, files: BundleFiles): StoredSide {
  const result = readBundle(files);
  if (result.kind === 'broken') return brokenSide(path, result.problems);
  const { manifest, state } = result.bundle;
  if (manifest.dumped) return readDumpedBundle(path, manifest, state);
  return sideOfStored(path, 'a bundle', result.bundle);
}

/** The side that a golden's files are; `path` is what the user calls it. */
export function sideOfGolden(path: string, files: BundleFiles): StoredSide {
  const result = readGolden(files, compileState, version);
  if (result.kind === 'bundle') return sideOfStored(path, 'a golden', result.bundle);
  return brokenSide(path, result.problems);
}

function brokenSide(path: string, problems: readonly string[]): MissingSide {
  return unreadable(problems.map((problem) => diagnose('bad-bundle', { path, problem })));
}

function sideOfStored(path: string, what: string, { manifest, state, cluster }: StoredBundle): StoredBundleSide {
  const { mode, families, assigned, assumedEndpoints, kpcVersion } = manifest;
  const node = nodeOfBundle(manifest);
  const settings = settingsOf(manifest);
  const compile = (own: Cluster) => compileState(own, node, settings, families);
  // A bundle's files hold no origins. If no comments name the Services, compiling them again does.
  const labels = modeFacts[mode].namesServices === 'all' ? undefined : () => compile(cluster);
  const made = { cluster, node, settings, families, assigned, assumedEndpoints, kpcVersion };
  const side = new CompiledSnapshot({ kind: 'bundle', name: path, state: () => state, labels, compile, ...made });
  return { ...nothingSaid, kind: 'bundle', side, manifest, notes: [`${path}: ${what} for ${describeMade(made)}`] };
}

/** Describes the node, mode, families and release that something was compiled for. */
export function describeMade(
  { node, settings, families }: Pick<CompiledSnapshot, 'node' | 'settings' | 'families'>,
  /** Where the mode comes from and why this release was chosen, if they were not requested. */
  { modeFrom = '', reason }: { readonly modeFrom?: string; readonly reason?: string | undefined } = {},
): string {
  const where = node.name === '' ? 'any node' : `node ${node.name}`;
  const why = reason === undefined ? '' : ` (${reason})`;
  const release = settings.release === newestRelease && why === '' ? '' : `, Kubernetes ${settings.release}${why}`;
  return `${where}, mode ${settings.mode}${modeFrom}, ${families.join(' and ')}${release}`;
}

/** A dump of kpc-apply has the form of a bundle, but nothing compiled it, and it does not list modules. */
function readDumpedBundle(path: string, manifest: Manifest, state: KernelState): DumpedSide {
  // If its files have no rules of a family, the node has none.
  const { hostAddresses } = nodeOfBundle(manifest);
  const coverage = { ...coverAll(), modules: false };
  const side = new DumpedSnapshot({ name: path, state: () => state, coverage, doubts: [], hostAddresses });
  const rules = manifest.families.length === 0 ? 'no rules of kube-proxy' : manifest.families.join(' and ');
  const notes = [`${path}: a dump of ${manifest.node.name}, mode ${manifest.mode}, ${rules}`];
  return { ...nothingSaid, kind: 'dump', side, notes };
}

/** The side that a dump is; `diagnostics` is what there is to say of its files. */
export function sideOfDump(name: string, dump: Dump, diagnostics: readonly Diagnostic[]): DumpedSide | MissingSide {
  if (isRefusedOnly(dump)) {
    // One sentence says what to print instead.
    return unreadable(
      diagnostics.map((each) =>
        each.code === 'unread-output' ? diagnose(each.code, { ...each.arguments, isAll: true }, each.place) : each,
      ),
    );
  }
  const names = [...new Set(dump.files.map((file) => file.name))];
  const read = names.map((file) => describeFile(file, dump.files)).join(', ');
  const notes = [`${name}: a dump of a node${read === '' ? ', of which no file could be read' : `: ${read}`}`];
  const links = dump.state.links.filter((link) => link.name !== serviceLink);
  // ip addr show kube-ipvs0 shows that link alone.
  const hostAddresses =
    dump.coverage.links && links.length > 0
      ? links.flatMap(({ addresses }) => addresses.map(({ address }) => address))
      : undefined;
  const { state, coverage, doubts, flows, log } = dump;
  const side = new DumpedSnapshot({ name, state: () => state, coverage, doubts, flows, log, hostAddresses });
  return { ...nothingSaid, kind: 'dump', side, diagnostics, notes };
}

/** Whether the files hold output of tools, all of it in forms that kpc does not read. */
export function isRefusedOnly({ files, faults }: Dump): boolean {
  return files.length === 0 && faults.some(({ code }) => code === 'unread-output');
}

/** "node.txt (iptables-save, ipvsadm -Ln)"; the name alone if it says what is in the file. */
function describeFile(name: string, files: Dump['files']): string {
  const kinds = files.filter((file) => file.name === name).map(({ kind }) => kind);
  const [first] = kinds;
  return kinds.length === 1 && first !== undefined && name.startsWith(first) ? name : `${name} (${kinds.join(', ')})`;
}
