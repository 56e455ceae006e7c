import { anything, flag, integer, item, list, object, text, type DescribedValue } from '../../../diagnostics/json-schema.ts';
import { conditions, metadata, port, protocol, word } from './shared.ts';

const containers = list(
  item({ restartPolicy: text, ports: list(item({ name: text, containerPort: port, protocol })) }),
);

/** What kpc reads of a Pod's spec, in a Pod or in a template. */
export const podSpecSchema = object({
  nodeName: text,
  hostname: text,
  subdomain: text,
  hostNetwork: flag,
  containers,
  initContainers: containers,
});

const podStatus = object({
  phase: word(['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'], 'bad-phase'),
  conditions,
  podIP: text,
  podIPs: list(item({ ip: text })),
});

/** What kpc reads of a v1 Pod. */
export const podSchema = object({ metadata, spec: podSpecSchema, status: podStatus });

const amount = integer(0, 2 ** 31 - 1, 'a whole number from 0 to 2147483647');

/** What kpc reads of an object that makes Pods from a template: a Deployment, a StatefulSet, a DaemonSet, a Job. */
export const workloadSchema = object({
  metadata,
  spec: object({
    replicas: amount,
    parallelism: amount,
    completions: amount,
    suspend: flag,
    serviceName: text,
    ordinals: object({ start: amount }),
    /** Only whether it is there counts. */
    selector: anything,
    template: object({ metadata, spec: podSpecSchema }),
  }),
  status: object({ conditions }),
});

export type RawPod = DescribedValue<typeof podSchema>;
export type RawPodSpec = DescribedValue<typeof podSpecSchema>;
export type RawPodStatus = DescribedValue<typeof podStatus>;
export type RawWorkload = DescribedValue<typeof workloadSchema>;
