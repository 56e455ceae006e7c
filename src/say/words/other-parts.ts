import type { OtherPart } from '../../base/findings/answers.ts';

/** Differences that are not known to belong to a Service: as titles, and within sentences. */
export const otherPartWords: { readonly [P in OtherPart]: { readonly title: string; readonly what: string } } = {
  base: { title: 'What belongs to no Service', what: 'what belongs to no Service' },
  foreign: { title: "What is not kube-proxy's", what: "what is not kube-proxy's" },
  dead: { title: 'Left by iptables mode and no longer reached', what: 'what iptables mode left' },
  live: { title: 'Left by iptables mode and still reached by packets', what: 'what iptables mode left' },
  unaccounted: {
    title: "What may be kube-proxy's or another program's: the dump does not show which",
    what: "what may be kube-proxy's",
  },
};
