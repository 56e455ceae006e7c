import { flag, integer, object, text, type Schema } from '../../diagnostics/json-schema.ts';
import { conditions, type RawCondition } from './node.ts';
import { podSpecSchema, type RawOwnedMetadata, type RawPodSpec } from './pod.ts';
import { metadata } from './shared.ts';
import type { RawMetadata } from './service.ts';

const amount = integer(0, 2 ** 31 - 1, 'a whole number from 0 to 2147483647');

/** What kpc reads of what makes Pods by a template: a Deployment, a StatefulSet, a DaemonSet, a ReplicaSet, a Job. */
export const workloadSchema: Schema = object({
  metadata,
  spec: object({
    replicas: amount,
    parallelism: amount,
    completions: amount,
    suspend: flag,
    serviceName: text,
    ordinals: object({ start: amount }),
    selector: {},
    template: object({ metadata, spec: podSpecSchema }),
  }),
  status: object({ conditions }),
});

/** A workload as its schema has it. */
export interface RawWorkload {
  readonly metadata?: RawOwnedMetadata | null;
  readonly spec?: {
    readonly replicas?: number | null;
    readonly parallelism?: number | null;
    readonly completions?: number | null;
    readonly suspend?: boolean | null;
    readonly serviceName?: string | null;
    readonly ordinals?: { readonly start?: number | null } | null;
    /** Whatever it selects: only whether it is there counts. */
    readonly selector?: unknown;
    readonly template?: { readonly metadata?: RawMetadata | null; readonly spec?: RawPodSpec | null } | null;
  } | null;
  readonly status?: { readonly conditions?: readonly RawCondition[] | null } | null;
}
