// JSON output of kpc equivalence, migrate, diff, lint and compile, with --check.
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
import { destinationFields, effectFields, severitySchema } from '../../ask/equivalence/effects.ts';
import { change, flowChange, kernelChange, place, finding } from './envelope.ts';
import { manifestSchema } from '../../bundle/schemas.ts';

/** The printed form of an Effect. */
const printedEffectFields = {
  ...effectFields,
  senders: listOf(text),
  trace: about('the command that shows the example, or the packet in words if shownBy is missing', text),
};

const divergence = objectOf({
  cause: oneOf(...causeIds),
  title: text,
  reasons: about('what each side does, in sentences', listOf(text)),
  help: about('what to do, in sentences', listOf(text)),
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
  nodes: about('how many there are', wholeNumber(0)),
  standIns: about('how many of them were asked instead of all', wholeNumber(0)),
  represented: about(
    'of several nodes, for each, those that were asked instead: itself, if it was asked everything',
    listOf(objectOf({ node: text, by: listOf(text) })),
  ),
  classes: about('of packets that were sent', wholeNumber(0)),
  unknown: about('classes that neither side knows', wholeNumber(0)),
  unknownOnOne: about('classes that only one side knows', wholeNumber(0)),
  reasons: about('why, and what would settle it', listOf(text)),
  notCompared: about('what was not looked at', listOf(text)),
  summary: text,
  causes: about('why packets fare differently, each with how', listOf(divergence)),
});

const reason = openOf({
  kind: about('decides which other fields there are', text),
  text: about('in words: a field of the Service, or an endpoint', text),
});

const changes = listOf(kernelChange);

/** The differences of one Service port: reasons, if both sides show any, and changes in the kernel. */
export const servicePortDifference = objectOf({
  servicePort: about('"namespace/name" or "namespace/name:port"', text),
  formerServicePort: optional(about('its name before it was renamed', text)),
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
    differs: about('exit status 1', boolean),
    notCompared: about('what one side lacks, and packets that are left out', listOf(text)),
    compared: optional(
      about(
        'the Service ports of each family that were compared, if nothing else was',
        objectOf({
          servicePorts: wholeNumber(0),
          withoutEndpoints: about('of these, those whose endpoints a side does not show', wholeNumber(0)),
        }),
      ),
    ),
    servicePorts: about('the ones that differ, sorted by name', listOf(servicePortDifference)),
    packets: optional(
      about(
        'how packets are treated differently, if both sides name their Services and not too many of them',
        listOf(
          objectOf({
            ...printedEffectFields,
            services: about('"namespace/name", sorted; empty if it concerns no Service', listOf(text)),
            destinations: about("the Services' addresses and ports", listOf(objectOf(destinationFields))),
          }),
        ),
      ),
    ),
    unknown: optional(about('classes of packets that neither side knows, if there are packets', wholeNumber(0))),
    unknownOnOne: optional(about('classes of packets that only one side knows, if there are packets', wholeNumber(0))),
    flows: optional(flowChange),
    base: about('what belongs to no Service', changes),
    foreign: about("what is other programs'; with --foreign", changes),
    unaccounted: about("what may be kube-proxy's or another program's: the dump does not show which", changes),
    leftovers: optional(
      about(
        'what another mode of kube-proxy left on the node of a dump',
        objectOf({
          dead: about('chains that nothing jumps to', changes),
          live: about('chains that packets still come to', changes),
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
  written: about('folders of nodes', wholeNumber(0)),
  unchanged: wholeNumber(0),
});

const accept = optional(
  about('the command that writes the folder again; absent if none can, or if it is the same', text),
);

const comparison = {
  files: about('those with other bytes', listOf(text)),
  problems: about('why there is no comparison', listOf(text)),
  diff: optional(difference),
};

export const checked = objectOf({
  folder: text,
  same: boolean,
  accept,
  notCompared: optional(about('if it is the same: what the folder does not record', listOf(text))),
  ...comparison,
});

const nodeChanges = listOf(objectOf({ node: text, what: text }));

export const checkedFleet = objectOf({
  folder: text,
  same: boolean,
  accept,
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
  ignored: about('findings that flags, kpc.yaml or annotations accept', wholeNumber(0)),
  files: about('that were read', wholeNumber(0)),
  services: about('that were looked at', wholeNumber(0)),
  unserved: about('Services whose endpoints the input does not give: nothing of these was looked at', wholeNumber(0)),
  nodes: about('Nodes of the input', wholeNumber(0)),
};

export const linted = objectOf({
  ...counts,
  hasRun: about('false if errors of the input kept the rules from looking at it', boolean),
  ignoredFindings: listOf(finding),
});
