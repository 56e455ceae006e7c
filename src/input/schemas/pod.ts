import { flag, list, object, text, type Schema } from '../../diagnostics/json-schema.ts';
import { conditions, type RawCondition } from './node.ts';
import type { RawMetadata } from './service.ts';
import { metadata, port, protocol, word } from './shared.ts';

const containers = list({
  ...object({
    restartPolicy: text,
    ports: list({ ...object({ name: text, containerPort: port, protocol }), type: 'object' }),
  }),
  type: 'object',
});

/** What kpc reads of a Pod's spec, be it in a Pod or in a template. */
export const podSpecSchema: Schema = object({
  nodeName: text,
  hostname: text,
  subdomain: text,
  hostNetwork: flag,
  containers,
  initContainers: containers,
});

/** What kpc reads of a v1 Pod. */
export const podSchema: Schema = object({
  metadata,
  spec: podSpecSchema,
  status: object({
    phase: word(['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'], 'bad-phase'),
    conditions,
    podIP: text,
    podIPs: list({ ...object({ ip: text }), type: 'object' }),
  }),
});

/** A Pod as its schema has it. */
export interface RawPod {
  readonly metadata?: RawOwnedMetadata | null;
  readonly spec?: RawPodSpec | null;
  readonly status?: RawPodStatus | null;
}

export interface RawOwnedMetadata extends RawMetadata {
  readonly ownerReferences?: readonly RawOwnerReference[] | null;
}

interface RawOwnerReference {
  readonly kind?: string | null;
  readonly name?: string | null;
  readonly controller?: boolean | null;
}

export interface RawPodSpec {
  readonly nodeName?: string | null;
  readonly hostname?: string | null;
  readonly subdomain?: string | null;
  readonly hostNetwork?: boolean | null;
  readonly containers?: readonly RawContainer[] | null;
  readonly initContainers?: readonly RawContainer[] | null;
}

interface RawContainer {
  readonly restartPolicy?: string | null;
  readonly ports?: readonly RawContainerPort[] | null;
}

interface RawContainerPort {
  readonly name?: string | null;
  readonly containerPort?: number | null;
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP' | '' | null;
}

export interface RawPodStatus {
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown' | '' | null;
  readonly conditions?: readonly RawCondition[] | null;
  readonly podIP?: string | null;
  readonly podIPs?: readonly { readonly ip?: string | null }[] | null;
}
