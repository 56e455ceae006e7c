import { meetsRequirement, type Node, type PodSpec, type Taint, type Toleration } from './objects.ts';

/** Taints that the DaemonSet controller makes its Pods tolerate (AddOrUpdateDaemonPodTolerations). */
const ofDaemons = ['not-ready', 'unreachable', 'disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable'];

export function daemonTolerations({ tolerations, hostNetwork }: PodSpec): readonly Toleration[] {
  const keys = hostNetwork ? [...ofDaemons, 'network-unavailable'] : ofDaemons;
  const added = keys.map((key) => ({ key: `node.kubernetes.io/${key}`, value: '', effect: '', isOfAny: true }));
  return [...tolerations, ...added];
}

/** Whether a Node has what nodeSelector and required node affinity ask for. A field counts as a label of its name. */
export function suitsPods({ metadata: { name, labels } }: Node, { nodeTerms }: Pick<PodSpec, 'nodeTerms'>): boolean {
  const fields = { ...labels, 'metadata.name': name };
  const terms = nodeTerms ?? [[]];
  return terms.some((term) => term.every((requirement) => meetsRequirement(requirement, fields) === true));
}

/** Whether Pods with these tolerations can run on a Node, given its taints. */
export function admitsPods({ taints }: Pick<Node, 'taints'>, tolerations: readonly Toleration[]): boolean {
  return taints.every((taint) => tolerations.some((toleration) => tolerates(toleration, taint)));
}

function tolerates({ key, value, effect, isOfAny }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false;
  if (key === '') return isOfAny;
  return key === taint.key && (isOfAny || value === taint.value);
}
