import type { Node, PodSpec, Taint, Toleration } from './objects.ts';

/** Taints that the DaemonSet controller makes its Pods tolerate (AddOrUpdateDaemonPodTolerations). */
const ofDaemons = ['not-ready', 'unreachable', 'disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable'];

export function daemonTolerations({ tolerations, hostNetwork }: PodSpec): readonly Toleration[] {
  const keys = hostNetwork ? [...ofDaemons, 'network-unavailable'] : ofDaemons;
  const added = keys.map((key) => ({ key: `node.kubernetes.io/${key}`, value: '', effect: '', isOfAny: true }));
  return [...tolerations, ...added];
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
