import {
  about,
  listOf,
  named,
  objectOf,
  oneOf,
  optional,
  text,
  type Schema,
  type Shaped,
} from '../../base/json/schema.ts';
import { assignedSchema, assumedSchema } from '../../bundle/schemas.ts';
import { families } from '../../kernel/family.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { releases } from '../../kube-proxy/releases.ts';
import { finding } from './shared.ts';

const assumed = named(
  'assumed',
  objectOf({
    mode: optional(about('nothing names one', oneOf(true))),
    node: optional(about('no input holds the Node', oneOf(true))),
    services: optional(about('addresses and ports that kpc chose', listOf(assignedSchema))),
    pods: optional(about('Pods that the workloads of the input would have', listOf(assumedSchema))),
    clusterCIDRs: optional(about("kube-proxy's clusterCIDR", listOf(text))),
  }),
);

/** What a command looked at: one node, whatever it was read from. */
const snapshot = named(
  'snapshot',
  objectOf({
    name: about('as it was called', text),
    kind: oneOf('manifests', 'bundle', 'dump'),
    node: optional(about('absent if none is named, and for a dump', text)),
    mode: optional(about('absent if a dump does not show it', oneOf(...proxyModes))),
    release: optional(about('the Kubernetes release of the kube-proxy; absent for a dump', oneOf(...releases))),
    families: listOf(oneOf(...families)),
    assumed: optional(about('what kpc chose because the input lacks it; absent if nothing', assumed)),
  }),
);

export type SnapshotJson = Shaped<typeof snapshot>;

/** What every command prints with --output json. */
export interface Envelope<T> {
  readonly kpc: string;
  readonly command: string;
  readonly snapshots: readonly SnapshotJson[];
  readonly findings: readonly Shaped<typeof finding>[];
  readonly result?: T | undefined;
}

export function envelopeOf<T>(result: Schema<T>): Schema<Envelope<T>> {
  return objectOf<Envelope<T>>({
    kpc: about('the version of kpc', text),
    command: about('which command printed it, such as "kpc trace"', text),
    snapshots: about('what it looked at, the old side first', listOf(snapshot)),
    findings: about('what kpc has to say of the input', listOf(finding)),
    result: optional(about('absent if findings keep kpc from an answer', result)),
  });
}
