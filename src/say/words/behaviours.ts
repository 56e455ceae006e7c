import { announcedEnds, type Minor } from '../../kube-proxy/announced.ts';
import {
  behaviourChanges,
  type Behaviour,
  type BehaviourChange,
  type BehaviourReason,
} from '../../kube-proxy/releases.ts';

/** What kube-proxy does without a behaviour and with it, as clauses without a subject. */
export const behaviourWords: Readonly<Record<Behaviour, readonly [before: string, after: string]>> = {
  'traffic-policies': [
    'ignores traffic policies, source ranges and health check node ports',
    'follows traffic policies, source ranges and health check node ports',
  ],
  'endpoint-slices': [
    'reads Endpoints: it matches ports by their name alone, and takes an address that is both ready and not ready for not ready',
    'reads EndpointSlices, and matches ports by name and protocol',
  ],
  'zone-hints': ['ignores the zone hints of endpoints', 'follows the zone hints of endpoints'],
  'zone-hints-without-annotation': [
    'follows zone hints only of a Service with the annotation service.kubernetes.io/topology-mode',
    'follows zone hints whatever the annotations of the Service',
  ],
  'primary-node-ports': [
    'does not start where nodePortAddresses is the word primary',
    'listens for node ports on the addresses of its Node where nodePortAddresses is the word primary',
  ],
  'load-balancer-ip-mode': [
    'programs all load balancer addresses',
    'leaves out load balancer addresses of ipMode Proxy',
  ],
  'reconciled-flows': [
    'forgets the tracked UDP flows to former endpoints of a Service port, and all to the cluster IP of one that is gone',
    'forgets the tracked UDP flows to a Service port with endpoints that go to none of them that serves',
  ],
  'service-cidrs': [
    'ignores ServiceCIDR objects',
    'drops packets to cluster IPs that no Service has, within the networks of ServiceCIDR objects',
  ],
  'node-hints': ['ignores the node hints of endpoints', 'follows the node hints of endpoints'],
  'open-source-range': [
    'programs 0.0.0.0/0 and ::/0 in loadBalancerSourceRanges like any other range',
    'restricts nothing where loadBalancerSourceRanges holds 0.0.0.0/0 or ::/0',
  ],
  'masquerade-by-address': [
    'matches packets to a cluster IP to masquerade by their address, protocol and port',
    'matches packets to a cluster IP to masquerade by their address alone',
  ],
  'running-endpoint-first': [
    'takes the endpoint on this node, where two slices hold the same address and port',
    'takes the endpoint that is not terminating, where two slices hold the same address and port',
  ],
  'separate-watches': [
    'ignores Services and EndpointSlices that have the label service.kubernetes.io/service-proxy-name or service.kubernetes.io/headless',
    'ignores Services by the label service.kubernetes.io/service-proxy-name only, and EndpointSlices by service.kubernetes.io/headless only',
  ],
  'external-ips': ['programs nothing for externalIPs', 'programs externalIPs'],
  'inline-masquerade': [
    'marks packets to masquerade in a chain of its own, mark-for-masquerade',
    'marks packets to masquerade in the rules that match them',
  ],
  'shared-masquerade': [
    'masquerades packets to cluster IPs in the chain of each Service port',
    'masquerades packets to cluster IPs in the chain services, by one rule for all',
  ],
  'hairpin-set': [
    'masquerades packets of an endpoint to itself by a rule in the chain of that endpoint',
    'masquerades packets of an endpoint to itself by one rule and the set hairpin-connections',
  ],
  'direct-dnat': [
    'sends packets to an endpoint through a chain of that endpoint',
    'sends packets to endpoints from the chain of the Service port, unless it has session affinity',
  ],
  'conntrack-limit': [
    'sets net.netfilter.nf_conntrack_max as high as maxPerCore times the number of cores',
    'sets net.netfilter.nf_conntrack_max to 1,048,576 at most',
  ],
  'ipvs-mode': ['does not start in mode ipvs', 'starts in mode ipvs'],
  'node-port-words': [
    'does not start where nodePortAddresses holds the words localhost or all, or the word primary beside others',
    'takes CIDRs and the words primary, localhost and all together in nodePortAddresses',
  ],
  'single-endpoint-dnat': [
    'sends packets to the only endpoint of a Service port by a map with one element, unless it has session affinity',
    'sends packets to the only endpoint of a Service port without a map, unless it has session affinity',
  ],
  'short-comments': [
    'writes the names of Service ports without endpoints as comments of any length, but nft accepts at most 128 bytes',
    'cuts the names of Service ports without endpoints to comments of 128 bytes',
  ],
  'localhost-node-ports': [
    'programs nothing for node ports on localhost',
    'rejects and counts packets to node ports on localhost, except those of TCP ports that it serves itself there',
  ],
  'localhost-within-network': [
    'itself serves TCP node ports on localhost where a network of nodePortAddresses begins with a loopback address',
    'itself serves TCP node ports on localhost where a network of nodePortAddresses contains 127.0.0.1 or ::1, 0.0.0.0/0 and ::/0 excepted',
  ],
  'conntrack-raise': [
    'sets net.netfilter.nf_conntrack_max also where that lowers it',
    'only raises net.netfilter.nf_conntrack_max',
  ],
  'forgotten-flows': [
    'keeps the tracked UDP flows to a Service port that has no endpoints left',
    'forgets the tracked UDP flows to the addresses of a Service port that has no endpoints left',
  ],
  'flows-of-gone-ports': [
    'keeps the tracked UDP flows to a Service port that is gone',
    'forgets the tracked UDP flows to the addresses of a Service port that is gone',
  ],
};

export function behaviourEnds({ behaviour, from, to, isNew }: BehaviourReason) {
  const { pullRequests, samePackets }: BehaviourChange = behaviourChanges[behaviour];
  const [before, after] = behaviourWords[behaviour];
  return {
    from: { release: from, does: isNew ? before : after },
    to: { release: to, does: isNew ? after : before },
    pullRequests,
    ...(samePackets ? { samePackets } : {}),
  };
}

export function behaviourText(reason: BehaviourReason): string {
  const { from, to, pullRequests, samePackets } = behaviourEnds(reason);
  const pulls = pullRequests.map((number) => `kubernetes/kubernetes#${number}`).join(', ');
  const effect = samePackets ? '; packets are treated alike' : '';
  const isOneRelease = from.release === to.release;
  const [before, after] = isOneRelease ? ['on the old side', 'on the new side'] : [from.release, to.release];
  return `kube-proxy ${before} ${from.does}; ${after} ${to.does}${effect} (${pulls})`;
}

/** "off from 1.40 on, unless …": what is announced of a behaviour, as seen from a release. */
export function announcedEndWords(behaviour: keyof typeof announcedEnds, seenFrom: Minor = 0): string {
  const { offIn, goneIn, kep, gate } = announcedEnds[behaviour];
  const source = `(announced: KEP-${kep}, ${kepLink(kep)})`;
  if (seenFrom >= goneIn) return `gone in 1.${goneIn}, and no feature gate keeps it ${source}`;
  return `off from 1.${offIn} on, unless the feature gate ${gate} is true, and gone in 1.${goneIn} ${source}`;
}

export function kepLink(kep: number): string {
  return `https://kep.k8s.io/${kep}`;
}
