import type { OtherPart } from '../../base/findings/answers.ts';

/** The titles of differences not known to belong to a Service, and their names in sentences. */
export const otherPartWords: { readonly [P in OtherPart]: { readonly title: string; readonly what: string } } = {
  base: { title: 'What belongs to no Service', what: 'what belongs to no Service' },
  foreign: { title: "What is not kube-proxy's", what: "what is not kube-proxy's" },
  dead: { title: 'Left by iptables mode, nothing jumps to them', what: 'what iptables mode left' },
  live: { title: 'Left by iptables mode, packets still come to them', what: 'what iptables mode left' },
  unaccounted: {
    title: "What may be kube-proxy's or another program's: the dump does not show which",
    what: "what may be kube-proxy's",
  },
};
