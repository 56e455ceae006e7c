import { diagnose, isError, type Finding } from '../../base/findings/finding.ts';
import { Cluster, type Answer, type ClusterUse, type UnreadResource } from '../../programs/ask-cluster.ts';
import { callWords, longestRun, type ProgramCall } from '../../programs/run-program.ts';
import type { FileOptions } from '../../snapshot/files/read-texts.ts';
import { sayFinding } from '../../say/words/said.ts';
import { Refusal, refuse } from '../refusal.ts';

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
  if (answer.kind === 'failed') {
    const { call, failure } = answer;
    const { problem: how, said } = failure;
    refuse({ problem: 'program-failed', call: callWords(call), tool: call[0], how, said, limit: longestRun / 1000 });
  }
  const unread = answer.unread.filter(({ list }) => {
    return !standIns[list]?.some((option) => options[option] !== undefined);
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
const standIns: { readonly [List in UnreadResource['list']]?: readonly (keyof FileOptions)[] } = {
  'kube-proxy': ['config', 'proxyMode'],
  serviceCidrs: ['serviceClusterIpRange'],
};

/** The warning about what could not be read; refuses what nothing goes without. */
function judgeUnread(unread: readonly UnreadResource[], isExact: boolean): Finding | undefined {
  const fatal = isExact ? unread : unread.filter(({ list }) => needed.has(list));
  const said = fatal.length > 0 ? fatal : unread;
  if (said.length === 0) return undefined;
  const kinds = said.map(({ name }) => name);
  const found = { kinds, lists: said.map(({ list }) => list), isNeeded: fatal.length > 0 };
  const finding = diagnose('unread-cluster', found);
  if (isError(finding)) throw new Refusal(sayFinding(finding));
  return finding;
}
