import { anything, flag, item, list, object, text, texts, type DescribedValue } from '../../../diagnostics/json-schema.ts';
import { metadata, optionalPort, protocol, targetRef, textMap, typed, word } from './shared.ts';

const port = item({ name: text, protocol, port: optionalPort, appProtocol: text });
const names = list(item({ name: text }));

const sliceEndpoint = item({
  addresses: texts,
  conditions: object({ ready: flag, serving: flag, terminating: flag }),
  hostname: text,
  nodeName: text,
  zone: text,
  targetRef,
  deprecatedTopology: textMap,
  topology: anything,
  hints: object({ forZones: names, forNodes: names }),
});

/** A discovery.k8s.io/v1 EndpointSlice. */
export const endpointSliceSchema = object({
  ...typed,
  metadata,
  addressType: word(['IPv4', 'IPv6', 'FQDN'], 'bad-address-type'),
  ports: list(port),
  endpoints: list(sliceEndpoint),
});

const address = item({ ip: text, hostname: text, nodeName: text, targetRef });

/** v1 Endpoints. */
export const endpointsSchema = object({
  ...typed,
  metadata,
  subsets: list(item({ addresses: list(address), notReadyAddresses: list(address), ports: list(port) })),
});

export type RawEndpointSlice = DescribedValue<typeof endpointSliceSchema>;
export type RawSliceEndpoint = DescribedValue<typeof sliceEndpoint>;
export type RawEndpoints = DescribedValue<typeof endpointsSchema>;
export type RawEndpointAddress = DescribedValue<typeof address>;
export type RawEndpointPort = DescribedValue<typeof port>;
