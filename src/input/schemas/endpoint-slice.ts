import { flag, list, object, text, type Schema } from '../../diagnostics/json-schema.ts';
import type { RawMetadata } from './service.ts';
import { metadata, optionalPort, protocol, targetRef, textMap, word } from './shared.ts';

const named: Schema = { ...object({ name: text }), type: 'object' };

/** What kpc reads of a discovery.k8s.io/v1 EndpointSlice. */
export const endpointSliceSchema: Schema = object({
  metadata,
  addressType: word(['IPv4', 'IPv6', 'FQDN'], 'bad-address-type'),
  ports: list({ ...object({ name: text, protocol, port: optionalPort, appProtocol: text }), type: 'object' }),
  endpoints: list({
    ...object({
      addresses: list({ type: 'string', expected: 'a string' }),
      conditions: object({ ready: flag, serving: flag, terminating: flag }),
      hostname: text,
      nodeName: text,
      zone: text,
      targetRef,
      deprecatedTopology: textMap,
      hints: object({ forZones: list(named), forNodes: list(named) }),
    }),
    type: 'object',
  }),
});

/** An EndpointSlice as its schema has it. */
export interface RawEndpointSlice {
  readonly metadata?: RawMetadata | null;
  readonly addressType?: 'IPv4' | 'IPv6' | 'FQDN' | '' | null;
  readonly ports?: readonly RawEndpointPort[] | null;
  readonly endpoints?: readonly RawSliceEndpoint[] | null;
}

export interface RawEndpointPort {
  readonly name?: string | null;
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP' | '' | null;
  readonly port?: number | null;
}

export interface RawSliceEndpoint {
  readonly addresses?: readonly string[] | null;
  readonly conditions?: {
    readonly ready?: boolean | null;
    readonly serving?: boolean | null;
    readonly terminating?: boolean | null;
  } | null;
  readonly hostname?: string | null;
  readonly nodeName?: string | null;
  readonly zone?: string | null;
  readonly hints?: {
    readonly forZones?: readonly { readonly name?: string | null }[] | null;
    readonly forNodes?: readonly { readonly name?: string | null }[] | null;
  } | null;
}
