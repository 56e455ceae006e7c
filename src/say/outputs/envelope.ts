// Declares the parts that all JSON output shares: findings, places, changes, the envelope of each command, and its version.
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
import { families } from '../../kernel/address.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { releases } from '../../kube-proxy/releases.ts';

export const place = named(
  'place',
  objectOf({
    file: about('the file, as it was named', text),
    line: optional(about('from 1; absent for a whole file', wholeNumber(1))),
    column: optional(about('from 1, in UTF-16 units, as editors count', wholeNumber(1))),
  }),
);

export const finding = named(
  'finding',
  objectOf({
    severity: about('an error means that nothing was written', oneOf('error', 'warning', 'note')),
    code: about('stable: "kpc explain CODE" says more', text),
    text: about('what is wrong', text),
    help: optional(about('what to do about the problem, if kpc knows', text)),
    arguments: about('the values in the text, for programs', anyObject),
    place: optional(about('absent if it is about no file', place)),
    about: optional(
      objectOf({
        kind: oneOf('service', 'object', 'side'),
        name: about(
          'a Service as "namespace/name", any other object as "Node worker-1", a side by the name it was given',
          text,
        ),
      }),
    ),
    trace: optional(
      objectOf({
        command: about('traces a packet that shows the finding', text),
        verdict: about('how that packet ends', text),
      }),
    ),
    page: optional(about('where the code is explained; "kpc explain CODE" says the same', text)),
    fingerprint: optional(about('stays the same if the finding only moves to other lines', text)),
  }),
);

export const change = oneOf(...changeKinds);

export const flowChange = about(
  'what happens to UDP flows if the Services in the dump are replaced by those in the manifests',
  objectOf({
    release: about('the Kubernetes release of the kube-proxy', text),
    flows: about(
      'flows that no longer go to a serving endpoint',
      listOf(
        objectOf({
          servicePort: optional(about('absent if nothing shows which Service port it is', text)),
          destination: about('"address:port", where the client sends', text),
          endpoint: about('"address:port", where the flow goes', text),
          kubeProxy: about(
            'unknown if the dump does not show whose address this was',
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
    kind: about('which object it is, which determines the other fields', oneOf(...kernelObjectKinds)),
    change,
  }),
);

const assumed = named(
  'assumed',
  objectOf({
    mode: optional(about('nothing names a mode', oneOf(true))),
    node: optional(about('the input does not hold the Node', oneOf(true))),
    services: optional(about('addresses and ports that kpc chose', listOf(assignedSchema))),
    pods: optional(about('Pods that the workloads in the input would have', listOf(assumedSchema))),
    clusterCIDRs: optional(about("kube-proxy's clusterCIDR", listOf(text))),
    families: optional(
      about('the IP families of the cluster, if a Service takes its families from them', listOf(oneOf(...families))),
    ),
    unplaced: optional(about('workloads for which no known Node meets the nodeSelector or affinity', listOf(text))),
  }),
);

/** A node that a command examined. The input may be of any kind. */
const snapshot = named(
  'snapshot',
  objectOf({
    name: about('the name of the input, as it was given', text),
    kind: oneOf('manifests', 'bundle', 'dump'),
    node: optional(about('absent for a dump, and if no node is named', text)),
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
    command: about('the command that printed this JSON, such as "kpc trace"', text),
    snapshots: about('the inputs that were examined, the old side first', listOf(snapshot)),
    findings: about('findings about the input', listOf(finding)),
    result: optional(about('absent if findings prevent an answer', result)),
  });
}

/** Output of `kpc version` and `kpc-apply version`. */
export const version = objectOf({
  kubeProxyVersion: about('the version of kube-proxy that kpc follows', text),
  releases: about('the releases of Kubernetes whose kube-proxy kpc follows', listOf(oneOf(...releases))),
  nodeVersion: about('the version of the Node.js that runs kpc', text),
});
