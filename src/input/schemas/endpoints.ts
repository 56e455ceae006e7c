import { list, object, text, type Schema } from '../../diagnostics/json-schema.ts';
import type { RawEndpointPort } from './endpoint-slice.ts';
import type { RawMetadata } from './service.ts';
import { metadata, optionalPort, protocol, targetRef } from './shared.ts';

const addresses = list({ ...object({ ip: text, hostname: text, nodeName: text, targetRef }), type: 'object' });

/** What kpc reads of v1 Endpoints. */
export const endpointsSchema: Schema = object({
  metadata,
  subsets: list({
    ...object({
      addresses,
      notReadyAddresses: addresses,
      ports: list({ ...object({ name: text, protocol, port: optionalPort, appProtocol: text }), type: 'object' }),
    }),
    type: 'object',
  }),
});

/** Endpoints as their schema has them. */
export interface RawEndpoints {
  readonly metadata?: RawMetadata | null;
  readonly subsets?: readonly RawEndpointSubset[] | null;
}

interface RawEndpointSubset {
  readonly addresses?: readonly RawEndpointAddress[] | null;
  readonly notReadyAddresses?: readonly RawEndpointAddress[] | null;
  readonly ports?: readonly RawEndpointPort[] | null;
}

export interface RawEndpointAddress {
  readonly ip?: string | null;
  readonly hostname?: string | null;
  readonly nodeName?: string | null;
}
