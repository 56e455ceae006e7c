import type { RawMetadata } from './service.ts';
import { list, metadata, object, type Schema, text, texts } from './shared.ts';

/** What kpc reads of a v1 Node. */
export const nodeSchema: Schema = object({
  metadata,
  spec: object({ podCIDR: text, podCIDRs: texts }),
  status: object({
    addresses: list({ ...object({ type: text, address: text }), type: 'object' }),
    nodeInfo: object({ kubeProxyVersion: text, kubeletVersion: text }),
  }),
});

/** A Node as its schema has it. */
export interface RawNode {
  readonly metadata?: RawMetadata | null;
  readonly spec?: { readonly podCIDR?: string | null; readonly podCIDRs?: readonly string[] | null } | null;
  readonly status?: {
    readonly nodeInfo?: { readonly kubeProxyVersion?: string | null; readonly kubeletVersion?: string | null } | null;
    readonly addresses?: readonly { readonly type?: string | null; readonly address?: string | null }[] | null;
  } | null;
}
