import { object, texts, type Schema } from '../../diagnostics/json-schema.ts';
import type { RawMetadata } from './service.ts';
import { metadata, objectConditions } from './shared.ts';

/** What kpc reads of a ServiceCIDR of networking.k8s.io/v1 or v1beta1. */
export const serviceCidrSchema: Schema = object({
  metadata,
  spec: object({ cidrs: texts }),
  status: object({ conditions: objectConditions }),
});

/** A ServiceCIDR as its schema has it. */
export interface RawServiceCidr {
  readonly metadata?: RawMetadata | null;
  readonly spec?: { readonly cidrs?: readonly string[] | null } | null;
}
