import { mostSuggestions } from '../../base/names.ts';
import { fullName, type Pod } from '../../cluster/objects.ts';
import { lacksNode } from '../../cluster/slices/assume-pods.ts';
import { describeUnmet } from '../../cluster/slices/place-pods.ts';
import { absent, isNamed, nearNames, read, wrong, type Read } from './question.ts';
import type { Scene } from './scene.ts';

interface NamedWorkload {
  readonly kind: string;
  readonly name: string;
}

/** The Pods that a name refers to: one Pod, or all Pods of one workload. */
interface NamedPods {
  readonly name: string;
  readonly pods: readonly Pod[];
  readonly near: readonly string[];
}

/** Finds Pods by a name such as "client", "pod/shop/client" or "deployment/web". If it has no namespace, any namespace counts. */
export function findNamedPods(words: string, namespace: string | undefined, side: Scene['side']): Read<NamedPods> {
  const { pods } = side;
  const workload = workloadOf(words);
  const bare = workload?.name ?? words.replace(/^pods?\//, '');
  const wanted = bare.includes('/') || namespace === undefined ? bare : `${namespace}/${bare}`;
  const one = workload ? undefined : pods.get(wanted);
  const all = one ? [one] : [...pods.values()];
  const named = all.flatMap((pod) => {
    const name = workload ? fullNameOfOwner(pod, workload.kind) : fullName(pod.metadata);
    return name !== undefined && isNamed(name, wanted) ? [{ name, pod }] : [];
  });
  const names = [...new Set(named.map(({ name }) => name))];
  const kind = workload?.kind ?? 'Pod';
  if (names.length > 1) return wrong({ problem: 'several', kind, name: wanted, names });
  const pending = workload && names.length === 0 ? pendingOf({ kind, name: wanted }, side) : undefined;
  if (pending) return absent(pending);
  const [own = wanted] = names;
  const name = workload ? `of ${kind} ${own}` : own;
  const near =
    named.length > 0
      ? []
      : workload
        ? nearNames(wanted, listWorkloads(pods, kind)).map((each) => textOf({ kind, name: each }))
        : nearNames(wanted, [...pods.keys()]);
  return read({ name, pods: named.map(({ pod }) => pod), near: near.slice(0, mostSuggestions) });
}

const workloadWords: ReadonlyMap<string, string> = new Map(
  (
    [
      ['Deployment', ['deployment', 'deployments', 'deploy']],
      ['StatefulSet', ['statefulset', 'statefulsets', 'sts']],
      ['DaemonSet', ['daemonset', 'daemonsets', 'ds']],
      ['ReplicaSet', ['replicaset', 'replicasets', 'rs']],
      ['ReplicationController', ['replicationcontroller', 'replicationcontrollers', 'rc']],
      ['Job', ['job', 'jobs']],
    ] as const
  ).flatMap(([kind, words]) => words.map((word) => [word, kind] as const)),
);

function workloadOf(words: string): NamedWorkload | undefined {
  const at = words.indexOf('/');
  const kind = workloadWords.get(words.slice(0, at).toLowerCase());
  return kind === undefined ? undefined : { kind, name: words.slice(at + 1) };
}

function listWorkloads(pods: Scene['side']['pods'], kind: string): readonly string[] {
  return [...new Set([...pods.values()].flatMap((pod) => fullNameOfOwner(pod, kind) ?? []))];
}

/** Finds a workload whose Pods suit no Node. */
function pendingOf({ kind, name }: NamedWorkload, { objects }: Scene['side']) {
  const nodes = objects.nodes.map(({ object }) => object);
  const lacking = objects.workloads.find(
    ({ object: { kind: own, metadata, replicas = 0, template } }) =>
      own === kind && replicas > 0 && isNamed(fullName(metadata), name) && lacksNode(template.spec, nodes),
  );
  if (!lacking) return undefined;
  const { metadata, template } = lacking.object;
  const wanted = describeUnmet(nodes, template.spec).words;
  return { problem: 'pending-sender', owner: `${kind} ${fullName(metadata)}`, wanted } as const;
}

function textOf({ kind, name }: NamedWorkload): string {
  return `${kind.toLowerCase()}/${name}`;
}

/**
 * Returns the full name of the workload of this kind that owns a Pod. Between a Deployment and its Pods is a ReplicaSet, which is named
 * after the Deployment, plus a hash of the Pod template.
 */
function fullNameOfOwner({ metadata: { namespace, labels }, owner }: Pod, kind: string): string | undefined {
  if (!owner) return undefined;
  if (owner.kind === kind) return fullName({ namespace, name: owner.name });
  const hash = `-${labels['pod-template-hash']}`;
  const isBetween = kind === 'Deployment' && owner.kind === 'ReplicaSet' && owner.name.endsWith(hash);
  return isBetween ? fullName({ namespace, name: owner.name.slice(0, -hash.length) }) : undefined;
}
