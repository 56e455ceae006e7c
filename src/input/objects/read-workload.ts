import { workloadKinds, type Workload, type WorkloadKind } from '../../cluster/objects.ts';
import { readTexts, type CommonNames } from './check-names.ts';
import { readOwnedMetadata, readOwner, readPodSpec } from './read-pod.ts';
import type { Report } from './report.ts';
import type { RawWorkload } from './schemas/pod.ts';

/** Workload → the apiVersions that kpc reads it of, the newest first. Clusters before 1.16 served the old ones. */
export const workloadVersions: Readonly<Record<WorkloadKind, readonly string[]>> = {
  Deployment: ['apps/v1', 'apps/v1beta2', 'apps/v1beta1', 'extensions/v1beta1'],
  StatefulSet: ['apps/v1', 'apps/v1beta2', 'apps/v1beta1'],
  DaemonSet: ['apps/v1', 'apps/v1beta2', 'extensions/v1beta1'],
  ReplicaSet: ['apps/v1', 'apps/v1beta2', 'extensions/v1beta1'],
  ReplicationController: ['v1'],
  Job: ['batch/v1'],
};

/** The workload that an object is; undefined if it is none that kpc reads. */
export function findWorkloadKind(apiVersion: string, kind: string): WorkloadKind | undefined {
  return workloadKinds.find((known) => known === kind && workloadVersions[known].includes(apiVersion));
}

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
    isPartial: (spec.selector ?? undefined) === undefined && Object.keys(labels).length === 0,
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
