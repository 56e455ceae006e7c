import { flag, item, list, object, text, texts, type Schema } from '../../diagnostics/json-schema.ts';
import type { RawMetadata } from './service.ts';
import { metadata } from './shared.ts';

/** The conditions of a Node or a Pod. */
export const conditions = list({ ...object({ type: text, status: text }), type: 'object' });

const taints = list(item({ key: text, value: text, effect: text, timeAdded: text }));

/** What kpc reads of a v1 Node. */
export const nodeSchema: Schema = object({
  metadata,
  spec: object({ podCIDR: text, podCIDRs: texts, providerID: text, unschedulable: flag, taints }),
  status: object({
    addresses: list({ ...object({ type: text, address: text }), type: 'object' }),
    allocatable: object({
      cpu: { type: ['string', 'number', 'null'], expected: 'a number of CPUs, such as 4 or 3920m' },
    }),
    conditions,
    nodeInfo: object({ kubeProxyVersion: text, kubeletVersion: text }),
  }),
});

/** A Node as its schema has it. */
export interface RawNode {
  readonly metadata?: RawMetadata | null;
  readonly spec?: { readonly podCIDR?: string | null; readonly podCIDRs?: readonly string[] | null } | null;
  readonly status?: {
    readonly nodeInfo?: { readonly kubeProxyVersion?: string | null; readonly kubeletVersion?: string | null } | null;
    readonly allocatable?: { readonly cpu?: string | number | null } | null;
    readonly conditions?: readonly RawCondition[] | null;
    readonly addresses?: readonly { readonly type?: string | null; readonly address?: string | null }[] | null;
  } | null;
}

/** A condition of a Node's or a Pod's. */
export interface RawCondition {
  readonly type?: string | null;
  readonly status?: string | null;
}
