import { isObject } from '../base/shape.ts';

type Mapping = Readonly<Record<string, unknown>>;

/**
 * An EndpointSlice of discovery.k8s.io/v1beta1 as v1 has it: the node and the zone of an endpoint, which stood in its topology,
 * have fields of their own.
 */
export function updateSlice(slice: Mapping): Mapping {
  const { endpoints } = slice;
  return {
    ...slice,
    apiVersion: 'discovery.k8s.io/v1',
    ...(Array.isArray(endpoints) ? { endpoints: endpoints.map((endpoint: unknown) => updateEndpoint(endpoint)) } : {}),
  };
}

function updateEndpoint(endpoint: unknown): unknown {
  if (!isObject(endpoint)) return endpoint;
  const { topology, ...others } = endpoint;
  if (!isObject(topology)) return endpoint;
  const nodeName = others['nodeName'] ?? topology['kubernetes.io/hostname'];
  const zone = others['zone'] ?? topology['topology.kubernetes.io/zone'];
  return { ...others, ...(nodeName === undefined ? {} : { nodeName }), ...(zone === undefined ? {} : { zone }) };
}
