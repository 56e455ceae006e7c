// Shared parts of JSON output: findings, places and changes, the envelope of every command, and its version.
import {
  about,
  anyObject,
  listOf,
  named,
  objectOf,
  oneOf,
  openOf,
  optional,
  text,
  wholeNumber,
  type Schema,
  type Shaped,
} from '../../base/json/schema.ts';
import { changeKinds, kernelObjectKinds } from '../../ask/changes/kernel-change.ts';
import { assignedSchema, assumedSchema } from '../../bundle/schemas.ts';
import { families } from '../../kernel/family.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { releases } from '../../kube-proxy/releases.ts';

export const place = named(
  'place',
  objectOf({
    file: about('as it was named', text),
    line: optional(about('from 1; absent for a whole file', wholeNumber(1))),
    column: optional(about('from 1, in UTF-16 units, as editors count', wholeNumber(1))),
  }),
);

/** A finding of any command. */
export const finding = named(
  'finding',
  objectOf({
    severity: about('an error means that nothing was written', oneOf('error', 'warning', 'note')),
    code: about('stable: "kpc explain CODE" says more', text),
    text: about('what is wrong', text),
    help: optional(about('what to do about it, if kpc knows', text)),
    arguments: about('what the text was made of, for programs', anyObject),
    place: optional(about('absent if it is about no file', place)),
    about: optional(
      objectOf({
        kind: oneOf('service', 'object', 'side'),
        name: about(
          'a Service as "namespace/name", any other object as "Node worker-1", a side as it was called',
          text,
        ),
      }),
    ),
    trace: optional(
      objectOf({
        command: about('prints the way of a packet that shows it', text),
        verdict: about('how that packet ends', text),
      }),
    ),
    page: optional(about('where the code is explained; "kpc explain CODE" says the same', text)),
    fingerprint: optional(about('the same as long as the finding is about the same, wherever its lines are', text)),
  }),
);

export const change = oneOf(...changeKinds);

export const flowChange = about(
  'what becomes of UDP flows if the Services of the dump become those of the manifests',
  objectOf({
    release: about('the Kubernetes release of the kube-proxy', text),
    flows: about(
      'those that no serving endpoint takes afterwards',
      listOf(
        objectOf({
          servicePort: optional(about('absent if nothing shows which it is', text)),
          destination: about('"address:port", where the client sends', text),
          endpoint: about('"address:port", where the flow goes', text),
          kubeProxy: about(
            'unknown if the dump does not show whose address it was',
            oneOf('forgets', 'keeps', 'unknown'),
          ),
          flows: wholeNumber(1),
        }),
      ),
    ),
  }),
);

export const kernelChange = named(
  'kernelChange',
  openOf({
    kind: about('which object it is; it decides which other fields there are', oneOf(...kernelObjectKinds)),
    change,
  }),
);

const assumed = named(
  'assumed',
  objectOf({
    mode: optional(about('nothing names one', oneOf(true))),
    node: optional(about('no input holds the Node', oneOf(true))),
    services: optional(about('addresses and ports that kpc chose', listOf(assignedSchema))),
    pods: optional(about('Pods that the workloads of the input would have', listOf(assumedSchema))),
    clusterCIDRs: optional(about("kube-proxy's clusterCIDR", listOf(text))),
    families: optional(about('those of the cluster, if a Service takes these', listOf(oneOf(...families)))),
    unplaced: optional(about('workloads whose nodeSelector or affinity no Node is known to meet', listOf(text))),
  }),
);

/** One node that a command looked at, from any kind of input. */
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

/** The output of every command with --output json. */
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

/** Output of `kpc version` and `kpc-apply version`. */
export const version = objectOf({
  kubeProxyVersion: about('the kube-proxy that it follows', text),
  releases: about('of Kubernetes, whose kube-proxy it follows', listOf(oneOf(...releases))),
  nodeVersion: about('of the Node that runs it', text),
});
