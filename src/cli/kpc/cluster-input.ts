import { refuse } from '../../library/refusal.ts';
import { pathWord, printable } from '../../base/printable.ts';
import { callWords, readCluster, type Answer, type Cluster, type ClusterUse } from '../../library/node/cluster.ts';
import { flagRow, type Flag } from '../../library/options.ts';
import type { FileOptions } from '../../library/node/open.ts';
import { isKubectlPlugin } from '../shared/run-commands.ts';
import type { Call } from './call.ts';
import type { MessageOptions } from './messages.ts';

export interface ClusterOptions {
  readonly cluster?: boolean;
  readonly context?: string;
}

export const clusterFlags: readonly Flag[] = [
  flagRow(
    'on',
    '--cluster',
    'read the cluster with kubectl get, and go on as with a file; kubectl kpc does so without inputs',
    {
      group: 'input',
      isOfCall: true,
    },
  ),
  flagRow('text', '--context <name>', 'the context of the kubeconfig for --cluster (default: the current one)', {
    group: 'input',
    isOfCall: true,
  }),
];

/**
 * The call with its inputs: the paths that it names, or what kubectl prints, where the command line wants that. `words` name the same
 * input on a command line.
 */
export async function nameInputs<Options extends FileOptions & MessageOptions & ClusterOptions>(
  call: Call<Options>,
  paths: readonly string[],
  ask: ClusterUse | ((cluster: Cluster) => Promise<Answer>),
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
  // A cluster lacks nothing: what is not there is not to be made up.
  const assume = call.isGiven('assume') ? {} : { assume: false };
  const readStdin = async () => read.text;
  const options = { file: [...file, '-'], readStdin, unread: read.unread, ...assume };
  const words = ['--cluster', ...(context === undefined ? [] : ['--context', context])];
  return { call: call.with(options), words: [...file.map(pathWord), ...words] };
}
