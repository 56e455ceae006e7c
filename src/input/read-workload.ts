import type { Workload, WorkloadKind } from '../cluster/objects.ts';
import { readTexts, type CommonNames } from './check-names.ts';
import { readOwnedMetadata, readOwner, readPodSpec } from './read-pod.ts';
import type { Report } from './report.ts';
import type { RawWorkload } from './schemas/workload.ts';

/** "apiVersion kind" → the workloads that kpc reads. */
export const workloadTypes: Readonly<Record<string, WorkloadKind>> = {
  'apps/v1 Deployment': 'Deployment',
  'apps/v1 StatefulSet': 'StatefulSet',
  'apps/v1 DaemonSet': 'DaemonSet',
  'apps/v1 ReplicaSet': 'ReplicaSet',
  'v1 ReplicationController': 'ReplicationController',
  'batch/v1 Job': 'Job',
};

const templateLabels = ['spec', 'template', 'metadata', 'labels'];

type RawSpec = NonNullable<RawWorkload['spec']>;

/** Checks what of a workload its Pods are made of, as the API server would, and fills in its defaults. */
export function readWorkload(kind: WorkloadKind, raw: RawWorkload, report: Report, names: CommonNames): Workload {
  const metadata = readOwnedMetadata(raw.metadata, report, names);
  const spec = raw.spec ?? {};
  const podSpec = readPodSpec(spec.template?.spec ?? {}, ['spec', 'template', 'spec'], report, names);
  const labels = readTexts(spec.template?.metadata?.labels, 'label', templateLabels, report);
  const isStateful = kind === 'StatefulSet';
  return {
    kind,
    metadata,
    owner: readOwner(raw.metadata),
    replicas: readReplicas(kind, spec, raw.status),
    firstOrdinal: (isStateful && spec.ordinals?.start) || 0,
    template: {
      labels: { ...labels, ...(kind === 'Job' ? jobLabels(metadata.name) : {}) },
      spec: isStateful ? { ...podSpec, subdomain: podSpec.subdomain || (spec.serviceName ?? '') } : podSpec,
    },
  };
}

/** One where nothing says how many. A Job that is over or suspended has none. */
function readReplicas(kind: WorkloadKind, spec: RawSpec, status: RawWorkload['status']): number | undefined {
  switch (kind) {
    case 'DaemonSet':
      return undefined;
    case 'Job': {
      const isOver = status?.conditions?.some(
        (condition) => (condition.type === 'Complete' || condition.type === 'Failed') && condition.status === 'True',
      );
      return isOver || spec.suspend ? 0 : Math.min(spec.parallelism ?? 1, spec.completions ?? Infinity);
    }
    case 'Deployment':
    case 'StatefulSet':
    case 'ReplicaSet':
    case 'ReplicationController':
      return spec.replicas ?? 1;
  }
}

/** The labels that the Job controller adds to its Pods. */
function jobLabels(name: string): Readonly<Record<string, string>> {
  return { 'job-name': name, 'batch.kubernetes.io/job-name': name };
}
