// Declares the JSON output of kpc equivalence, migrate, diff, lint and compile (with --check).
import {
  about,
  listOf,
  objectOf,
  text,
  wholeNumber,
  boolean,
  named,
  oneOf,
  openOf,
  optional,
  anyOf,
  mapOf,
} from '../../base/json/schema.ts';
import { causeIds } from '../../ask/equivalence/causes.ts';
import { choiceFields, destinationFields, effectFields, severitySchema } from '../../ask/equivalence/effects.ts';
import { change, flowChange, kernelChange, place, finding } from './envelope.ts';
import { manifestSchema } from '../../bundle/schemas.ts';

/** The form in which an Effect is printed. */
const printedEffectFields = {
  ...effectFields,
  senders: listOf(text),
  from: text,
  to: text,
  choice: optional(
    about(
      'both sides deliver to endpoints, but choose them differently',
      objectOf({
        ...choiceFields,
        source: optional(
          about('whose source address the endpoints see, if that differs', objectOf({ from: text, to: text })),
        ),
      }),
    ),
  ),
  lacks: optional(about('why the outcome of the example is unknown on that side, and what settles it', text)),
  trace: about('the command that shows the example, or the packet in words if shownBy is missing', text),
};

const divergence = objectOf({
  cause: oneOf(...causeIds),
  title: text,
  reasons: about('what each side does, as sentences', listOf(text)),
  help: about('what to do, as sentences', listOf(text)),
  severity: severitySchema,
  services: about('"namespace/name", sorted', listOf(text)),
  servicePorts: about('"namespace/name:port", sorted', listOf(text)),
  effects: listOf(objectOf(printedEffectFields)),
  classes: about('how many classes of packets', wholeNumber(0)),
  nodes: listOf(text),
});

/** Output of `kpc equivalence` and `kpc migrate`. */
export const equivalence = objectOf({
  from: text,
  to: text,
  nodes: about('how many nodes there are', wholeNumber(0)),
  standIns: about('how many nodes were traced to represent all', wholeNumber(0)),
  represented: about(
    'with several nodes: for each node, the nodes traced in its place, or the node itself',
    listOf(objectOf({ node: text, by: listOf(text) })),
  ),
  classes: about('how many classes of packets were traced', wholeNumber(0)),
  unknown: about('classes whose outcome neither side shows', wholeNumber(0)),
  unknownOnOne: about('classes whose outcome only one side shows', wholeNumber(0)),
  reasons: about('why outcomes are unknown, and what would settle them', listOf(text)),
  notCompared: about('what was not compared', listOf(text)),
  summary: text,
  causes: about('the causes of differences, each with its effects', listOf(divergence)),
});

const reason = openOf({
  kind: about('determines the other fields', text),
  text: about('a sentence about the difference: a field of the Service that changed, or an endpoint', text),
});

const changes = listOf(kernelChange);

/** The differences of one Service port: the reasons, if the sides show any, and the changes to the kernel. */
export const servicePortDifference = objectOf({
  servicePort: about('"namespace/name" or "namespace/name:port"', text),
  formerServicePort: optional(about("the port's name before it was renamed", text)),
  change,
  place: optional(place),
  reasons: about('what differs in the manifests', listOf(reason)),
  kernel: changes,
});

export const difference = named(
  'difference',
  objectOf({
    from: about('the name of the old side', text),
    to: about('the name of the new side', text),
    differs: about('whether the exit status is 1', boolean),
    changed: optional(
      about(
        'other differences in what the sides were compiled for',
        listOf(
          objectOf({ of: oneOf('mode', 'node', 'release', 'podCIDRs'), from: optional(text), to: optional(text) }),
        ),
      ),
    ),
    notCompared: about('what one side lacks, and packets that are left out', listOf(text)),
    compared: optional(
      about(
        'how many Service ports of each family were compared, if nothing else was compared',
        objectOf({
          servicePorts: wholeNumber(0),
          withoutEndpoints: about('how many of these have endpoints that a side does not show', wholeNumber(0)),
        }),
      ),
    ),
    servicePorts: about('the Service ports that differ, sorted by name', listOf(servicePortDifference)),
    packets: optional(
      about(
        'how packets are treated differently; absent if a side does not name its Services, or names too many',
        listOf(
          objectOf({
            ...printedEffectFields,
            services: about('"namespace/name", sorted; empty if it concerns no Service', listOf(text)),
            destinations: about("the Services' addresses and ports", listOf(objectOf(destinationFields))),
          }),
        ),
      ),
    ),
    unknown: optional(
      about('classes of packets whose outcome neither side shows; absent without packets', wholeNumber(0)),
    ),
    unknownOnOne: optional(
      about('classes of packets whose outcome only one side shows; absent without packets', wholeNumber(0)),
    ),
    flows: optional(flowChange),
    base: about('changes to objects of no Service', changes),
    foreign: about('changes to objects of other programs; with --foreign', changes),
    unaccounted: about(
      "changes to objects that may be kube-proxy's or another program's: the dump does not show which",
      changes,
    ),
    leftovers: optional(
      about(
        'what another mode of kube-proxy left on the node of a dump',
        objectOf({
          dead: about('chains that nothing jumps to', changes),
          live: about('chains that packets still reach', changes),
        }),
      ),
    ),
    rulesThatDifferInCommentsAlone: optional(wholeNumber(0)),
  }),
);

export const compiled = objectOf({
  manifest: manifestSchema,
  files: optional(about('file name to content, without -o', mapOf(text))),
  folder: optional(about('what -o or --golden named', text)),
});

export const compiledFleet = objectOf({
  folder: text,
  nodes: wholeNumber(0),
  written: about('how many folders of nodes were written', wholeNumber(0)),
  unchanged: wholeNumber(0),
});

const accept = optional(
  about('the command that writes the folder again; absent if no command can, or if nothing differs', text),
);

const comparison = {
  files: about('files whose bytes differ', listOf(text)),
  problems: about('why there is no comparison', listOf(text)),
  diff: optional(difference),
};

const unrecorded = optional(about('if nothing differs: what the folder does not record', listOf(text)));

export const checked = objectOf({
  folder: text,
  same: boolean,
  accept,
  notCompared: unrecorded,
  ...comparison,
});

const nodeChanges = listOf(objectOf({ node: text, what: text }));

export const checkedFleet = objectOf({
  folder: text,
  same: boolean,
  accept,
  notCompared: unrecorded,
  nodes: wholeNumber(0),
  changed: nodeChanges,
  stale: about('folders of nodes that the input does not have', nodeChanges),
  example: optional(about('one node that changes', objectOf({ folder: text, ...comparison }))),
});

export const compile = anyOf('one node, or several', compiled, compiledFleet);

export const check = anyOf('one node, or several', checked, checkedFleet);

const counts = {
  errors: wholeNumber(0),
  warnings: wholeNumber(0),
  notes: wholeNumber(0),
  ignored: about('how many findings are accepted by flags, kpc.yaml or annotations', wholeNumber(0)),
  files: about('how many files were read', wholeNumber(0)),
  services: about('how many Services were checked', wholeNumber(0)),
  unserved: about(
    'how many Services have no endpoints in the input, so that nothing about their endpoints was checked',
    wholeNumber(0),
  ),
  nodes: about('how many Nodes the input holds', wholeNumber(0)),
};

export const linted = objectOf({
  ...counts,
  hasRun: about('false if errors in the input kept the rules of kpc lint from running', boolean),
  ignoredFindings: listOf(finding),
});
