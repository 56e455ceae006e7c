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
} from '../../base/json/schema.ts';
import { changeKinds, kernelObjectKinds } from '../../ask/changes/kernel-change.ts';

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
        kind: oneOf('service', 'object'),
        name: about('a Service as "namespace/name", any other object as "Node worker-1"', text),
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
