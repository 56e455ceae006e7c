/**
 * The library for programs that have access to a machine. It has the functions of `index.ts`, but takes files, folders, git revisions,
 * packs and clusters instead of texts. It also writes, checks, packs and verifies bundles and goldens, for one node or for many.
 */
import type { Shaped } from '../base/json/schema.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { isError } from '../base/findings/finding.ts';
import type { FolderForm } from '../bundle/state-files.ts';
import type { CheckReport } from '../say/check-report.ts';
import type { checked, checkedFleet, compiledFleet } from '../say/outputs/compile-and-compare.ts';
import { openPaths } from '../snapshot/files/open.ts';
import type { FileOptions } from '../snapshot/files/read-texts.ts';
import type { CompiledSnapshot } from '../snapshot/snapshot.ts';
import {
  written,
  type CompileOptions as CompileTexts,
  type CompileResult,
  type FleetOptions as FleetTexts,
  compileResult,
} from './compile.ts';
import { shownOptions, checkOptionNames } from './inputs.ts';
import { readCluster } from './node/open.ts';
import {
  checkSnapshot,
  compileOne,
  lookAtChecked,
  findEmptyInput,
  openToCompile,
  writeSnapshot,
} from './node/compile.ts';
import { checkFleetFolder as checkNodes, openFleet, writeFleetFolder as writeNodes, noProgress } from './node/fleet.ts';
import { looked, openedTexts, type ManifestsOfNodes, type OpenedTexts } from './open.ts';
import { Refusal, refuse } from './refusal.ts';
import { diagnosticsOf } from './words.ts';
import type { SaidFinding as Finding } from '../say/words/said.ts';

export { packBundle, verifyBundle } from './node/bundle.ts';
export { Refusal } from './refusal.ts';
export type { CompileResult, FolderForm, OpenedTexts };

/** Files, folders, packs, or paths in git such as "main:deploy". */
export type Paths = string | readonly string[];

type OfPaths<Options> = Omit<Options, 'manifests' | 'config' | 'hostAddresses'> & {
  /** A file with kube-proxy's configuration. */
  readonly config?: string | undefined;
  /** A file with the output of `ip -j addr` on the node. For many nodes, a folder that holds a file NODE.json for each. */
  readonly hostAddresses?: string | undefined;
  /** Patterns for files to leave out of folders, as in .gitignore. */
  readonly exclude?: readonly string[] | undefined;
};

/** The flags of `kpc describe` for input and compiling. */
export interface OpenOptions extends OfPaths<ManifestsOfNodes> {
  /** Whether to also read a cluster with kubectl. true means the kubeconfig's current context; a text is the name of a context. */
  readonly cluster?: boolean | string | undefined;
}

/**
 * Recognises and opens paths together: manifests; a bundle, a golden or a pack; or a dump or support bundle with manifests beside it.
 * Rejects with a Refusal if the cluster cannot be read.
 *
 * ```ts
 * import { describeServices } from 'kube-proxy-compiler';
 * import { open } from 'kube-proxy-compiler/node';
 *
 * const [side] = (await open('fixtures/quickstart/svc.yaml')).snapshots;
 * if (side?.kind === 'manifests') console.log(describeServices(side).map(({ service }) => service).join()); // default/nginx
 * ```
 */
export async function open(paths: Paths, { cluster, ...options }: OpenOptions = {}): Promise<OpenedTexts> {
  checkOptionNames(options, [...looked, 'exclude']);
  const file = [paths].flat();
  const shown = shownOptions(options);
  const assume = shown.assume ?? (cluster ? false : ('by-default' as const));
  const asked = { ...shown, assume, traffic: true, addsFlows: true, file, name: file.join(', ') } as const;
  const { kind, ...opened } = await openPaths(cluster ? await withCluster(asked, cluster) : asked);
  return openedTexts(kind, opened);
}

async function withCluster<Asked extends FileOptions & { readonly file: readonly string[] }>(
  asked: Asked,
  cluster: true | string,
) {
  const context = cluster === true ? undefined : cluster;
  const { text, unread } = await readCluster(context, 'traffic', asked, async () => {});
  return { ...asked, file: [...asked.file, '-'], readStdin: async () => text, unread };
}

/** The flags of `kpc compile` for one node. */
export type CompileOptions = OfPaths<CompileTexts>;

/** Compiles manifests from files. Otherwise does what `compile` of kube-proxy-compiler does. */
export async function compile(paths: Paths, options: CompileOptions = {}): Promise<CompileResult> {
  checkOptionNames(options, [...written, 'node', 'exclude']);
  const { node, ...asked } = ofFiles(paths, options);
  const named = { ...asked, ...(node === undefined ? {} : { node: [node] }) };
  const opened = await openToCompile(named);
  const mistake = await findEmptyInput(opened, named);
  if (mistake) return { bundle: undefined, diagnostics: diagnosticsOf([mistake]) };
  return compileResult(compileOne(opened, named));
}

function ofFiles<Options extends CompileOptions>(paths: Paths, options: Options) {
  return { ...options, ipFamily: options.ipFamily ?? 'auto', file: [paths].flat() } as const;
}

/** Replaces the whole content of a folder with a node's bundle or golden. After an error, nothing has changed. Rejects with a Refusal. */
export async function write(
  folder: string,
  snapshot: CompiledSnapshot,
  form: FolderForm = 'bundle',
): Promise<Manifest> {
  const { manifest } = await writeSnapshot(snapshot, form === 'golden' ? { golden: folder } : { out: folder });
  return manifest;
}

/** Compares a node with the bundle or golden in a folder. The folder may be in a git revision. Rejects with a Refusal. */
export async function check(folder: string, snapshot: CompiledSnapshot): Promise<Shaped<typeof checked>> {
  refuseErrors(diagnosticsOf([(await lookAtChecked(folder, false)).problem ?? []].flat()));
  const { report } = await checkSnapshot(folder, snapshot, () => noWords);
  const { checkToJson } = await import('../say/check-report.ts');
  return checkToJson(report);
}

const noWords = { accept: undefined, trace: [] } satisfies Partial<CheckReport>;

/** The flags of `kpc compile --all-nodes`. */
export interface FleetOptions extends OfPaths<FleetTexts> {
  /** Whether to remove the folders of nodes that are not among the manifests. */
  readonly prune?: boolean | undefined;
}

/** Writes a folder for each node. Rejects with a Refusal if the manifests are wrong or a folder cannot be written. */
export async function writeFleet(
  folder: string,
  paths: Paths,
  options: FleetOptions = {},
  form: FolderForm = 'bundle',
): Promise<Shaped<typeof compiledFleet> & { readonly diagnostics: readonly Finding[] }> {
  const { run, diagnostics } = await openNodes(paths, options);
  const { failure, counts } = await writeNodes(folder, run, form, noProgress);
  return counts ? { diagnostics, folder, ...counts } : refuse({ problem: 'folder', wrong: failure });
}

/** Compares the nodes' folders with what the manifests compile to. Rejects with a Refusal. */
export async function checkFleet(
  folder: string,
  paths: Paths,
  options: FleetOptions = {},
): Promise<Shaped<typeof checkedFleet>> {
  const { run } = await openNodes(paths, { ...options, check: folder });
  const { report } = await checkNodes(folder, run, true, () => noWords, noProgress);
  const { fleetCheckToJson } = await import('../say/check-report.ts');
  return fleetCheckToJson(report);
}

async function openNodes(paths: Paths, { nodes, ...options }: FleetOptions & { readonly check?: string }) {
  checkOptionNames(options, [...written, 'shard', 'prune', 'exclude', 'check']);
  // By default, there is one shard for all nodes. With a shard, even a single node gets a folder of its own.
  const { shard = '0/1' } = options;
  const named = { ...ofFiles(paths, options), ...(nodes ? { node: nodes, shard } : { allNodes: true }), jobs: 1 };
  const { run, diagnostics } = openFleet(await openToCompile(named), named);
  const said = diagnosticsOf(diagnostics);
  refuseErrors(said);
  return { run, diagnostics: said };
}

function refuseErrors(diagnostics: readonly Finding[]): void {
  const wrong = diagnostics.find(isError);
  if (wrong) throw new Refusal(wrong);
}
