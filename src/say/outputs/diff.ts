import {
  about,
  boolean,
  listOf,
  named,
  objectOf,
  openOf,
  optional,
  text,
  wholeNumber,
} from '../../base/json/schema.ts';
import { printedEffectFields } from './equivalence.ts';
import { change, flowChange, kernelChange, place } from './shared.ts';

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
    servicePorts: about('sorted by name', listOf(servicePortDifference)),
    packets: optional(
      about(
        'how packets are treated differently, if both sides name their Services and there are not too many',
        listOf(
          objectOf({
            ...printedEffectFields,
            services: about('"namespace/name", sorted; empty if it concerns no Service', listOf(text)),
          }),
        ),
      ),
    ),
    unknown: optional(about('classes of packets that neither side knows, if there are packets', wholeNumber(0))),
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
