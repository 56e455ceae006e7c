import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { holdsGolden, isFile } from '../../bundle/folder.ts';
import { FleetFolder, hashInputs, type NodeFiles, type WrittenNode } from '../../bundle/fleet/fleet-folder.ts';
import { isInShard } from '../../bundle/fleet/shard.ts';
import { makeGolden } from '../../bundle/golden.ts';
import { makeBundle, type BundleTexts } from '../../bundle/make-bundle.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import type { FolderForm } from '../../bundle/state-files.ts';
import { fleetWords } from '../../say/bundle-text.ts';
import type { CheckReport, FleetReport, NodeChange } from '../../say/check-report.ts';
import type { SnapshotJson } from '../../say/outputs/envelope.ts';
import { snapshotWriter } from '../../say/snapshots.ts';
import type { FolderProblem } from '../../base/findings/calls.ts';
import { readHostFolder, type FileOptions } from '../../snapshot/files/read-texts.ts';
import {
  chooseFleet,
  compileFleetNodes,
  type Fleet,
  type FleetNode,
  type FleetChoice,
} from '../../snapshot/open/compile.ts';
import { compileState } from '../../snapshot/open/compile-node.ts';
import { loadTexts, type LoadOptions, type LoadedInputs } from '../../snapshot/open/load-texts.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import { refuse } from '../refusal.ts';
import type { OpenedToCompile, WordsOfForm } from './compile.ts';

export interface Progress {
  readonly step: () => Promise<void>;
  readonly end: () => Promise<void>;
}

export const noProgress: Progress = { step: async () => {}, end: async () => {} };

interface RunOptions extends Omit<FileOptions, 'node'>, FleetChoice {
  readonly jobs: number;
  /** The places that options come from. Only the main thread needs these. */
  readonly flagPlaces?: unknown;
}

/** A fleet run whose nodes are compiled one at a time. */
export interface FleetRun extends Pick<OpenedToCompile, 'loaded'> {
  readonly fleet: Fleet;
  readonly nodes: Iterable<FleetNode> | undefined;
  readonly options: RunOptions;
}

/** `nodes` is undefined after an error. */
export function openFleet({ loaded, refusals }: OpenedToCompile, options: RunOptions) {
  const chosen = chooseFleet(options, loaded, (nodes) => readHostFolder(options.hostAddresses, nodes));
  const fleet = { ...chosen, diagnostics: [...refusals, ...chosen.diagnostics] };
  const { nodes, diagnostics } = compileFleetNodes(loaded, fleet, options.ipFamily);
  return { diagnostics, run: { loaded, fleet, nodes, options } satisfies FleetRun };
}

export async function writeFleetFolder(path: string, run: FleetRun, form: FolderForm, progress: Progress) {
  const folder = new FleetFolder(path);
  if (await isFile(path)) refuse({ problem: 'folder', wrong: { kind: 'is-a-file', folder: path } });
  // Even a shard without nodes gets a folder, because another program collects the folders of all shards.
  await mkdir(path, { recursive: true });
  const counts = { written: 0, unchanged: 0 };
  const snapshots: SnapshotJson[] = [];
  const problem = await writeNodes(folder, run, form, snapshots, async (result) => {
    counts[result]++;
    await progress.step();
  });
  await progress.end();
  const { written, unchanged } = counts;
  if (problem) return { failure: problem, done: written + unchanged };
  const stale = await findStale(folder, run);
  if (run.options.prune) for (const node of stale) await folder.remove(node);
  return {
    counts: { nodes: run.fleet.nodes.length, ...counts },
    snapshots,
    said: fleetWords(run.fleet, { ...counts, path }, stale, run.options.prune),
  };
}

/** Compares the nodes' folders. If `withExample` is true, the report shows one difference in detail. */
export async function checkFleetFolder(
  path: string,
  run: FleetRun,
  withExample: boolean,
  wordsFor: WordsOfForm,
  progress: Progress,
) {
  const { reportCheck } = await import('../../say/check-report.ts');
  const folder = new FleetFolder(path);
  const changed: NodeChange[] = [];
  const snapshots: SnapshotJson[] = [];
  const write = snapshotWriter();
  let example: CheckReport | undefined;
  let unrecorded: readonly string[] | undefined;
  let isGolden = false;
  for (const { node, texts, snapshot } of run.nodes ?? []) {
    snapshots.push(write(snapshot));
    const own = join(path, node);
    const form = await formOfFolder(own);
    isGolden ||= form === 'golden';
    const fresh = filesOf(snapshot, texts, form);
    const difference = await folder.check(node, fresh);
    const reportOf = (result: Parameters<typeof reportCheck>[1]) =>
      reportCheck(own, result, snapshot.with({ nodes: undefined }), wordsFor(form, []));
    if (difference.kind === 'unreadable') {
      await progress.end();
      refuse({ problem: 'unreadable', path: `${path}/${node}`, reason: difference.reason });
    }
    if (difference.kind === 'missing') changed.push({ node, what: 'new' });
    if (difference.kind === 'differs') {
      changed.push({ node, what: difference.files.join(', ') });
      // All nodes have the same Services, so one example is enough to show the change.
      if (withExample) example ??= await reportOf(difference);
    }
    if (difference.kind === 'same') unrecorded ??= (await reportOf({ kind: 'same', present: fresh.files })).unrecorded;
    await progress.step();
  }
  await progress.end();
  const stale = (await findStale(folder, run)).map((node) => ({ node, what: 'gone' }));
  const adds = stale.length > 0 && !run.options.prune ? ['--prune'] : [];
  const { accept, taken } = wordsFor(isGolden ? 'golden' : 'bundle', adds);
  const isSame = changed.length + stale.length === 0;
  const { nodes, shard } = run.fleet;
  if (isSame && nodes.length === 0 && shard) refuse({ problem: 'empty-shard', shard: `${shard.index}/${shard.count}` });
  return {
    isSame,
    report: {
      folder: path,
      nodes,
      snapshots,
      changed,
      stale,
      example,
      unrecorded: unrecorded ?? [],
      accept,
      taken,
    } satisfies FleetReport,
  };
}

/** Writes the nodes with --jobs threads. The first problem stops all threads. Adds the nodes to `snapshots`. */
async function writeNodes(
  folder: FleetFolder,
  run: FleetRun,
  form: FolderForm,
  snapshots: SnapshotJson[],
  done: (result: WrittenNode) => Promise<void>,
): Promise<FolderProblem | undefined> {
  const { jobs } = run.options;
  const write = snapshotWriter();
  let threads: readonly Thread[] = [];
  let index = 0;
  try {
    for (const each of run.nodes ?? []) {
      snapshots.push(write(each.snapshot));
      const thread = index++ % jobs;
      if (thread > 0) continue;
      const result = await writeFleetNode(folder, each, form);
      if (typeof result === 'object') return result;
      await done(result);
      // The shared file is now in the first node's folder, so all threads can link to it.
      if (index === 1) threads = startThreads(run, folder, form, done);
    }
    return (await Promise.all(threads.map(({ end }) => end))).find((problem) => problem !== undefined);
  } finally {
    // Threads can safely be stopped at any time, because a folder is moved into place only when it is complete.
    await Promise.all(threads.map(({ worker }) => worker.terminate()));
  }
}

/** The input of a thread. It has texts instead of paths, because files may have changed in the meantime. */
interface ThreadJob {
  readonly path: string;
  readonly form: FolderForm;
  readonly links: ReadonlyMap<string, string>;
  readonly texts: Pick<LoadedInputs['texts'], 'config'> & { readonly manifests: readonly TextFile[] };
  readonly options: LoadOptions;
  readonly fleet: Fleet;
}

interface Thread {
  readonly worker: Worker;
  readonly end: Promise<FolderProblem | undefined>;
}

const threadCommand = 'fleet-thread';

/** Starts the other threads. The main thread keeps the first node and every --jobs-th node after it. */
function startThreads(
  { loaded: { texts }, fleet, options }: FleetRun,
  { folder: path, links }: FleetFolder,
  form: FolderForm,
  done: (result: WrittenNode) => Promise<void>,
): readonly Thread[] {
  const { flagPlaces: _, readStdin: __, ...plain } = options;
  const count = Math.max(0, Math.min(options.jobs, fleet.nodes.length) - 1);
  return Array.from({ length: count }, (_each, thread) => {
    const nodes = fleet.nodes.filter((_node, i) => i % options.jobs === thread + 1);
    const hostAddresses = new Map([...fleet.hostAddresses].filter(([node]) => nodes.includes(node)));
    const job: ThreadJob = {
      path,
      form,
      links,
      texts: { manifests: texts.manifests.files, config: texts.config },
      // The main thread has already checked whether the result may be empty.
      options: { ...plain, emptyResult: 'allowed' },
      fleet: { ...fleet, nodes, hostAddresses, diagnostics: [] },
    };
    const worker = new Worker(__filename, { argv: [threadCommand], workerData: job });
    const end = new Promise<FolderProblem | undefined>((resolve, reject) => {
      worker.on('message', (result: WrittenNode | FolderProblem) => {
        if (typeof result === 'object') resolve(result);
        else void done(result);
      });
      worker.on('error', reject);
      worker.on('exit', () => resolve(undefined));
    });
    // If the main thread fails first, nothing awaits this promise, so its rejection must be handled here.
    end.catch(() => {});
    return { worker, end };
  });
}

export async function runThread(): Promise<void> {
  if (isMainThread) return;
  const { path, form, links, texts, options, fleet } = workerData as ThreadJob;
  const { config } = texts;
  const files = texts.manifests.map(copyFile);
  const loaded = loadTexts(
    {
      manifests: { files, diagnostics: [] },
      config: config && 'text' in config && 'origin' in config ? copyFile(config) : undefined,
      hostAddresses: undefined,
    },
    options,
  );
  const { nodes = [] } = compileFleetNodes(loaded, fleet, options.ipFamily);
  const folder = new FleetFolder(path, links);
  for (const node of nodes) {
    const result = await writeFleetNode(folder, node, form);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
    parentPort?.postMessage(result);
    if (typeof result === 'object') break;
  }
}

/** Makes a TextFile again from one that came from another thread, because its methods are lost on the way. */
function copyFile({ name, text, hasByteOrderMark, origin }: TextFile): TextFile {
  return new TextFile(name, hasByteOrderMark ? `\uFEFF${text}` : text, origin);
}

/** Writes a node's folder. A golden gets no hash. It must be compared in full, because someone may have edited it. */
async function writeFleetNode(
  folder: FleetFolder,
  each: FleetNode,
  form: FolderForm,
): Promise<WrittenNode | FolderProblem> {
  const hash = form === 'golden' ? undefined : hashInputs(each.snapshot, each.gates, each.texts);
  return folder.write(each.node, () => filesOf(each.snapshot, each.texts, form), hash);
}

function filesOf(snapshot: CompiledSnapshot, texts: BundleTexts, form: FolderForm): NodeFiles {
  if (form === 'golden') return { files: makeGolden(snapshot, compileState), digests: {} };
  const bundle = makeBundle(snapshot, texts);
  return { files: bundle.files, digests: bundle.manifest.files };
}

async function formOfFolder(folder: string): Promise<FolderForm> {
  return (await holdsGolden(folder).catch(() => false)) ? 'golden' : 'bundle';
}

async function findStale(
  folder: FleetFolder,
  { options, loaded, fleet: { shard } }: FleetRun,
): Promise<readonly string[]> {
  if (!options.allNodes) return [];
  return folder.list((name) => !loaded.nodes.has(name) && (!shard || isInShard(name, shard)));
}
