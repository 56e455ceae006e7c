import type { Command } from 'commander';
import { pathWord, printable } from '../../base/printable.ts';
import { joinWords } from '../../base/join-words.ts';
import type { FileOptions } from '../../snapshot/files/read-texts.ts';
import { Cluster, type Answer, type ClusterUse, type UnreadResource } from '../../programs/ask-cluster.ts';
import { callWords, failureWords, type ProgramFailure } from '../../programs/run-program.ts';
import { flagRow, type Flag } from '../../settings/flag.ts';
import { isKubectlPlugin } from '../shared/run-commands.ts';
import { say, type Terminal } from '../shared/terminal.ts';
import { refuse, type MessageOptions } from './messages.ts';

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

/** What a command reads, and how: with --cluster, what kubectl prints takes the place of stdin. */
interface Inputs {
  /** What takes the place of the command's own options. */
  readonly options: Pick<FileOptions, 'assume' | 'unread'> & { readonly file: readonly string[] };
  readonly terminal: Terminal;
  /** The words that name the same input on a command line. */
  readonly words: readonly string[];
}

/** Asks the cluster, where the command line wants that. Undefined if that fails; it has been reported. */
export async function withCluster(
  command: Command,
  { file, terminal }: { readonly file: readonly string[]; readonly terminal: Terminal },
  ask: ClusterUse | ((cluster: Cluster) => Promise<Answer>),
): Promise<Inputs | undefined> {
  const options = command.opts<ClusterOptions & FileOptions & MessageOptions>();
  const { cluster = file.length === 0 && isKubectlPlugin('kpc'), context } = options;
  if (!cluster) {
    if (context !== undefined) command.error('error: --context: only with --cluster');
    return { options: { file }, terminal, words: file.map(pathWord) };
  }
  if (file.includes('-')) command.error('error: --cluster takes the place of standard input\nleave out the -');
  const asked = new Cluster(context, (call) => say(terminal, `note: runs ${printable(callWords(call))}\n`));
  const answer = await (typeof ask === 'string' ? asked.readObjects(ask) : ask(asked));
  if (answer.kind === 'failed') {
    await refuse(terminal, failureWords(answer.call, answer.failure), helpWith(answer.failure));
    return undefined;
  }
  const unread = answer.unread.filter(({ list }) => {
    return !standIns[list]?.options.some((option) => options[option] !== undefined);
  });
  const isExact = options.strict === true || ask === 'rules';
  if (!(await reportUnread(unread, isExact, terminal))) return undefined;
  const isAssuming = command.getOptionValueSource('assume') === 'cli';
  const words = ['--cluster', ...(context === undefined ? [] : ['--context', context])];
  return {
    options: {
      file: [...file, '-'],
      unread: new Set(unread.flatMap(({ list }) => (list === 'kube-proxy' ? [] : list))),
      // A cluster lacks nothing: what is not there is not to be made up.
      ...(isAssuming ? {} : { assume: false }),
    },
    terminal: { ...terminal, readStdin: async () => answer.text },
    words: [...file.map(pathWord), ...words],
  };
}

/** Without these nothing can be said of a Service on a node. */
const needed: ReadonlySet<UnreadResource['list']> = new Set(['services', 'slices', 'nodes']);

/** The options that say the same as what cannot be read. */
const standIns: {
  readonly [List in UnreadResource['list']]?: {
    readonly options: readonly (keyof FileOptions)[];
    readonly help: string;
  };
} = {
  'kube-proxy': {
    options: ['config', 'proxyMode'],
    help: "name kube-proxy's mode with --proxy-mode, or give its configuration with --config",
  },
  serviceCidrs: {
    options: ['serviceClusterIpRange'],
    help: 'name the networks of cluster IPs with --service-cluster-ip-range',
  },
};

function helpWith({ problem }: ProgramFailure): string {
  return problem === 'no-program'
    ? 'where it is, run: kubectl get services,endpointslices,nodes,servicecidrs -A -o yaml | kpc describe -'
    : 'run it by hand; kpc reads its output from a file, too';
}

/** Reports what could not be read. Returns false if the command ends there; `isExact` if nothing may be lacking. */
async function reportUnread(unread: readonly UnreadResource[], isExact: boolean, terminal: Terminal): Promise<boolean> {
  const fatal = isExact ? unread : unread.filter(({ list }) => needed.has(list));
  const isFatal = fatal.length > 0;
  const said = isFatal ? fatal : unread;
  const text = `kpc could not read ${joinWords(said.map(({ name }) => name))} of this cluster`;
  const help = said.flatMap(({ list }) => standIns[list]?.help ?? []);
  if (isFatal) {
    const right = 'ask for the right to list these in all namespaces, or give what kubectl get prints with -f';
    await refuse(terminal, text, [...(said.length === help.length ? [] : [right]), ...help].join('; '));
  } else if (said.length > 0) {
    const lines = help.length === 0 ? '' : `\n  help: ${help.join('; ')}`;
    await say(terminal, `warning: ${text}: what depends on that is not known${lines}\n`);
  }
  return !isFatal;
}
