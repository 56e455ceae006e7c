import { anything, flag, item, list, object, openObject, text, texts, type DescribedValue, type Schema } from '../../diagnostics/json-schema.ts';
import { conditions, metadata, objectConditions, typed } from './shared.ts';

const cpu: Schema<string | number | null> = {
  type: ['string', 'number', 'null'],
  expected: 'a number of CPUs, such as 4 or 3920m',
};

/** A v1 Node. */
export const nodeSchema = object({
  ...typed,
  metadata,
  spec: object({
    podCIDR: text,
    podCIDRs: texts,
    providerID: text,
    unschedulable: flag,
    configSource: anything,
    externalID: anything,
    podPreemptionPolicy: anything,
    taints: list(item({ key: text, value: text, effect: text, timeAdded: text })),
  }),
  status: object({
    capacity: anything,
    allocatable: openObject({ cpu }),
    phase: anything,
    conditions,
    daemonEndpoints: anything,
    nodeInfo: openObject({ kubeProxyVersion: text, kubeletVersion: text }),
    images: anything,
    volumesInUse: anything,
    volumesAttached: anything,
    config: anything,
    runtimeHandlers: anything,
    features: anything,
    declaredFeatures: anything,
    addresses: list(item({ type: text, address: text })),
  }),
});

/** A ServiceCIDR of networking.k8s.io/v1 or v1beta1. */
export const serviceCidrSchema = object({
  ...typed,
  metadata,
  spec: object({ cidrs: texts }),
  status: object({ conditions: objectConditions }),
});

export type RawNode = DescribedValue<typeof nodeSchema>;
export type RawServiceCidr = DescribedValue<typeof serviceCidrSchema>;
