// Lists the schemas for which #checks has checks. The checks have the same names as the schemas.
import { listOf, mapOf, anything, objectOf, wholeNumber } from '../base/json/schema.ts';
import { assignedSchema, assumedHeadSchema, assumedSchema, sourcesSchema } from '../bundle/schemas.ts';

export { manifestSchema as manifest } from '../bundle/schemas.ts';
export { servicesSchema as services } from '../bundle/schemas.ts';
export { signatureSchema as signature } from '../bundle/schemas.ts';

export const fields = mapOf(anything);
export const anyManifest = objectOf({ formatVersion: wholeNumber(1) });
export const assignedLines = listOf(assignedSchema);
export const assumedLines = listOf(assumedSchema);
export const sourcesLines = listOf(sourcesSchema);
export const assumedHead = assumedHeadSchema;

export {
  balancerRecordSchema as balancerRecord,
  bootSchema as boot,
  claimSchema as claim,
  doingSchema as doing,
  keptSchema as keptBundle,
  knownTablesSchema as knownTables,
  lastCommandSchema as lastCommand,
  recordSchema as ownershipRecord,
  serialSchema as serial,
  snapshotSchema as snapshot,
  unconfirmedSchema as unconfirmed,
} from '../apply/state/schemas.ts';

// Kubernetes objects, by kind, and files that are read in the same way as objects.
export { autoscalerSchema as Autoscaler } from '../input/objects/shapes/node.ts';
export { endpointsSchema as Endpoints } from '../input/objects/shapes/service.ts';
export { endpointSliceSchema as EndpointSlice } from '../input/objects/shapes/service.ts';
export { gatewaySchema as Gateway } from '../input/objects/shapes/traffic.ts';
export { ingressSchema as Ingress } from '../input/objects/shapes/traffic.ts';
export { kubeProxyConfigurationSchema as KubeProxyConfiguration } from '../input/objects/shapes/kube-proxy-configuration.ts';
export { namespaceSchema as Namespace } from '../input/objects/shapes/traffic.ts';
export { networkPolicySchema as NetworkPolicy } from '../input/objects/shapes/traffic.ts';
export { nodeSchema as Node } from '../input/objects/shapes/node.ts';
export { packetTestsSchema as PacketTests } from '../input/objects/shapes/packet-tests.ts';
export { podSchema as Pod } from '../input/objects/shapes/node.ts';
export { referenceGrantSchema as ReferenceGrant } from '../input/objects/shapes/traffic.ts';
export { routeSchema as Route } from '../input/objects/shapes/traffic.ts';
export { serviceCidrSchema as ServiceCIDR } from '../input/objects/shapes/node.ts';
export { serviceSchema as Service } from '../input/objects/shapes/service.ts';
export { workloadSchema as Workload } from '../input/objects/shapes/node.ts';

export { acceptedCodes, oneOrTrue, onOrOff, word, words } from '../library/node/kpc-yaml-schema.ts';
