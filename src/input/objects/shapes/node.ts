import { anyOf, anything, nullable, number, text as string } from '../../../base/json/schema.ts';
import {
  type ValueOf,
  flag,
  integer,
  item,
  list,
  object,
  openItem,
  openObject,
  text,
  texts,
} from '../../../base/json/kubernetes-schema.ts';
import {
  conditions,
  metadata,
  objectConditions,
  port,
  protocol,
  textMap,
  typed,
  unreadFields,
  word,
} from './shared.ts';

const cpu = nullable(anyOf('a number of CPUs, such as 4 or 3920m', string, number('a number')));

export const nodeSchema = object({
  ...typed,
  metadata,
  spec: object({
    podCIDR: text,
    podCIDRs: texts,
    providerID: text,
    unschedulable: flag,
    ...unreadFields(anything, 'configSource', 'externalID', 'podPreemptionPolicy'),
    taints: list(item({ key: text, value: text, effect: text, ...unreadFields(text, 'timeAdded') })),
  }),
  status: object({
    allocatable: openObject({ cpu }),
    conditions,
    nodeInfo: openObject({ kernelVersion: text, kubeProxyVersion: text, kubeletVersion: text, operatingSystem: text }),
    addresses: list(item({ type: text, address: text })),
    ...unreadFields(anything, 'capacity', 'phase', 'daemonEndpoints', 'images', 'volumesInUse', 'volumesAttached'),
    ...unreadFields(anything, 'config', 'runtimeHandlers', 'features', 'declaredFeatures'),
  }),
});

export const serviceCidrSchema = object({
  ...typed,
  metadata,
  spec: object({ cidrs: texts }),
  status: object({ conditions: objectConditions }),
});

export type RawNode = ValueOf<typeof nodeSchema>;
export type RawServiceCidr = ValueOf<typeof serviceCidrSchema>;

const containers = list(
  openItem({
    restartPolicy: text,
    readinessProbe: anything,
    startupProbe: anything,
    ports: list(openItem({ name: text, containerPort: port, hostPort: port, protocol })),
  }),
);

const requirements = list(openItem({ key: text, operator: text, values: texts }));
const nodeSelectorTerms = list(openItem({ matchExpressions: requirements, matchFields: requirements }));

const podSpecSchema = openObject({
  nodeName: text,
  hostname: text,
  subdomain: text,
  hostNetwork: flag,
  nodeSelector: textMap,
  affinity: openObject({
    nodeAffinity: openObject({ requiredDuringSchedulingIgnoredDuringExecution: openObject({ nodeSelectorTerms }) }),
  }),
  tolerations: list(openItem({ key: text, operator: text, value: text, effect: text })),
  containers,
  initContainers: containers,
  readinessGates: anything,
  schedulingGates: anything,
});

const podStatus = openObject({
  phase: word(['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown']),
  conditions,
  podIP: text,
  podIPs: list(openItem({ ip: text })),
});

export const podSchema = openObject({ metadata, spec: podSpecSchema, status: podStatus });

const amount = integer(0, 2 ** 31 - 1, 'a whole number from 0 to 2147483647');

export const workloadSchema = openObject({
  metadata,
  spec: openObject({
    replicas: amount,
    parallelism: amount,
    completions: amount,
    suspend: flag,
    serviceName: text,
    ordinals: openObject({ start: amount }),
    /** A ReplicationController's selector has only labels. kpc checks only that it exists. */
    selector: openObject({ matchLabels: textMap, matchExpressions: requirements }),
    template: openObject({ metadata, spec: podSpecSchema }),
  }),
  status: openObject({ conditions }),
});

export const autoscalerSchema = openObject({
  metadata,
  spec: openObject({
    scaleTargetRef: openObject({ kind: text, name: text }),
    minReplicas: amount,
    maxReplicas: amount,
  }),
});

export type RawAutoscaler = ValueOf<typeof autoscalerSchema>;
export type RawPod = ValueOf<typeof podSchema>;
export type RawPodSpec = ValueOf<typeof podSpecSchema>;
export type RawPodStatus = ValueOf<typeof podStatus>;
export type RawWorkload = ValueOf<typeof workloadSchema>;
