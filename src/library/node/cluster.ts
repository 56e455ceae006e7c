import { joinWords } from '../../base/join-words.ts';
import { Cluster, type Answer, type ClusterUse, type UnreadResource } from '../../programs/ask-cluster.ts';
import { callWords, failureWords, type ProgramCall, type ProgramFailure } from '../../programs/run-program.ts';
import type { FileOptions } from '../../snapshot/files/read-texts.ts';
import { refuse } from '../refusal.ts';

/**
 * Asks the cluster of a context of the kubeconfig: gives what kubectl printed, what could not be read and no option says, and a warning
 * about that. Refuses where what it needs cannot be read.
 */
export async function readCluster(
  context: string | undefined,
  ask: ClusterUse | ((cluster: Cluster) => Promise<Answer>),
  options: FileOptions & { readonly strict?: boolean },
  onCall: (call: ProgramCall) => Promise<void>,
) {
  const asked = new Cluster(context, onCall);
  const answer = await (typeof ask === 'string' ? asked.readObjects(ask) : ask(asked));
  if (answer.kind === 'failed') refuse(failureWords(answer.call, answer.failure), helpWith(answer.failure));
  const unread = answer.unread.filter(({ list }) => {
    return !standIns[list]?.options.some((option) => options[option] !== undefined);
  });
  // Nothing may be lacking of what is written.
  const isExact = options.strict === true || ask === 'rules';
  return {
    text: answer.text,
    unread: new Set(unread.flatMap(({ list }) => (list === 'kube-proxy' ? [] : list))),
    warning: judgeUnread(unread, isExact),
  };
}

export { callWords };
export type { Answer, Cluster, ClusterUse };

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

/** The warning about what could not be read; refuses what nothing goes without. */
function judgeUnread(unread: readonly UnreadResource[], isExact: boolean): string | undefined {
  const fatal = isExact ? unread : unread.filter(({ list }) => needed.has(list));
  const said = fatal.length > 0 ? fatal : unread;
  const text = `kpc could not read ${joinWords(said.map(({ name }) => name))} of this cluster`;
  const help = said.flatMap(({ list }) => standIns[list]?.help ?? []);
  if (fatal.length > 0) {
    const right = 'ask for the right to list these in all namespaces, or give what kubectl get prints with -f';
    refuse(text, [...(said.length === help.length ? [] : [right]), ...help].join('; '));
  }
  if (said.length === 0) return undefined;
  return `warning: ${text}: what depends on that is not known\n${help.length === 0 ? '' : `  help: ${help.join('; ')}\n`}`;
}
