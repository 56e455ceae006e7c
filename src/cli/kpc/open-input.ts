import { refuseIdleOfPacket } from '../../library/command-flags.ts';
import { refuse } from '../../library/refusal.ts';
import { pathWord, printable } from '../../base/printable.ts';
import {
  callWords,
  readCluster,
  type KubectlAnswer,
  type Cluster,
  type ClusterUse,
  findOther,
  openPaths,
  type FileOptions,
  type Opened,
  type OpenedPaths,
  type Reading,
  type SideOptions,
  type Snapshot,
} from '../../library/node/open.ts';
import { flagRow, type Flag } from '../../library/options.ts';
import { isKubectlPlugin } from '../shared/run-commands.ts';
import type { Call } from './call.ts';
import type { MessageOptions } from './messages.ts';
import { diagnose, isError } from '../../base/findings/finding.ts';
import { findingsOfDoubts, sceneOf, withoutDefaultMode, withoutUnnamedNode, type Scene } from '../../library/open.ts';

export interface ClusterOptions {
  readonly cluster?: boolean;
  readonly context?: string;
}

export const clusterFlags: readonly Flag[] = [
  flagRow('on', '--cluster', 'read the cluster with kubectl get instead of files; the default of kubectl kpc', {
    group: 'input',
    isOfCall: true,
  }),
  flagRow('text', '--context <name>', 'the context of the kubeconfig for --cluster (default: the current one)', {
    group: 'input',
    isOfCall: true,
  }),
];

/** Reads the named paths, or kubectl's output if the command line asks for it. `words`: the same input as words of a command line. */
export async function nameInputs<Options extends FileOptions & MessageOptions & ClusterOptions>(
  call: Call<Options>,
  paths: readonly string[],
  ask: ClusterUse | ((cluster: Cluster) => Promise<KubectlAnswer>),
) {
  const file = call.inputs(paths, call.options.file);
  const { cluster = file.length === 0 && isKubectlPlugin('kpc'), context } = call.options;
  if (!cluster) {
    if (context !== undefined) refuse({ problem: 'flag-alone', flag: '--context', without: '--cluster' });
    return { call: call.with({ file }), words: file.map(pathWord) };
  }
  if (file.includes('-')) refuse({ problem: 'stdin-of-cluster' });
  const read = await readCluster(context, ask, call.options, (started) =>
    call.say(`note: runs ${printable(callWords(started))}\n`),
  );
  if (read.warning !== undefined) await call.print([read.warning], new Map());
  // By default, nothing is assumed, because a cluster's objects are complete.
  const assume = call.isGiven('assume') ? {} : { assume: false };
  const readStdin = async () => read.text;
  const options = { file: [...file, '-'], readStdin, unread: read.unread, ...assume };
  const words = ['--cluster', ...(context === undefined ? [] : ['--context', context])];
  return { call: call.with(options), words: [...file.map(pathWord), ...words] };
}

export interface InputFlags extends SideOptions, MessageOptions {
  readonly allNodes?: boolean;
}

export function openInput(call: Call<InputFlags>): Promise<OpenedPaths> {
  return openPaths(call.options);
}

/** `sidesFor`: returns the sides to use instead of one, because senders choose their nodes. */
export async function openScenes(
  call: Call<InputFlags>,
  given: readonly Flag[],
  sidesFor: (scene: Scene) => readonly Snapshot[] = ({ side }) => [side],
): Promise<readonly Scene[]> {
  const opened = await openInput(call.with({ traffic: true, addsFlows: true }));
  refuseIdleOfPacket(given, opened, call.options);
  await expectNodes(call, opened);
  const scenes: Scene[] = [];
  for (const name of opened.nodes) {
    const reading = opened.at(name);
    const scene = reading.side && sceneOf(reading.side);
    const diagnostics = withoutUnnamedNode(reading.diagnostics, scene ? sidesFor(scene) : []);
    await useReading(call, { ...reading, diagnostics });
    if (scene) scenes.push(scene);
  }
  return scenes;
}

export async function expectNodes(call: Call<InputFlags>, { loaded, nodes }: Opened): Promise<void> {
  if (!call.options.allNodes || !loaded || (nodes.length > 0 && !loaded.diagnostics.some(isError))) return;
  await call.report(loaded);
  if (nodes.length === 0) refuse({ problem: 'no-node' });
  call.end();
}

/** Reports a reading's findings. Then returns its snapshot, or ends the call if there is none. */
export async function useReading(call: Call, reading: Reading): Promise<Snapshot> {
  // The note on the mode is dropped, because the output names the mode.
  await call.report(withoutDefaultMode(reading));
  const { side } = reading;
  if (side) await call.print(findingsOfDoubts(side), new Map());
  return side ?? call.end();
}

export async function expectManifests(call: Call, paths: readonly string[]): Promise<void> {
  const other = await findOther(paths);
  if (!other) return;
  const { path, kind, diagnostics } = other;
  // The usual advice is to name the folder of one node. That folder would be refused too, so the advice is left out.
  const isFleet = diagnostics[0]?.code === 'nodes-folder';
  const isOther = kind !== 'unreadable' || isFleet;
  await call.print(
    isOther ? [diagnose('no-manifests', { path, what: isFleet ? 'fleet' : kind })] : diagnostics,
    new Map(),
  );
  call.end();
}
