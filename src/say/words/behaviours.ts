import { announcedEnds, type Minor } from '../../kube-proxy/announced.ts';
import {
  behaviourChanges,
  type Behaviour,
  type BehaviourChange,
  type BehaviourReason,
} from '../../kube-proxy/releases.ts';

/** What kube-proxy does without a behaviour and with it. The clauses have no subject. */
export const behaviourWords: Readonly<Record<Behaviour, readonly [before: string, after: string]>> = {
  'traffic-policies': [
    'ignores traffic policies, source ranges and health check node ports',
    'follows traffic policies, source ranges and health check node ports',
  ],
  'endpoint-slices': [
    'reads Endpoints: it matches ports by name alone, and treats an address listed as both ready and not ready as not ready',
    'reads EndpointSlices, and matches ports by name and protocol',
  ],
  'zone-hints': ['ignores the zone hints of endpoints', 'follows the zone hints of endpoints'],
  'zone-hints-without-annotation': [
    'follows zone hints only of a Service with the annotation service.kubernetes.io/topology-mode',
    'follows zone hints whatever annotations the Service has',
  ],
  'primary-node-ports': [
    'does not start if nodePortAddresses is the word primary',
    'listens for node ports on the addresses of its Node if nodePortAddresses is the word primary',
  ],
  'load-balancer-ip-mode': [
    'programs all load balancer addresses',
    'leaves out load balancer addresses of ipMode Proxy',
  ],
  'reconciled-flows': [
    'forgets the tracked UDP flows to former endpoints of a Service port, and all those to the cluster IP of a removed Service port',
    'forgets the tracked UDP flows to a Service port with endpoints, except flows to a serving endpoint',
  ],
  'service-cidrs': [
    'ignores ServiceCIDR objects',
    'drops packets to cluster IPs that no Service has, within the networks of ServiceCIDR objects',
  ],
  'node-hints': ['ignores the node hints of endpoints', 'follows the node hints of endpoints'],
  'open-source-range': [
    'programs 0.0.0.0/0 and ::/0 in loadBalancerSourceRanges like any other range',
    'restricts nothing if loadBalancerSourceRanges holds 0.0.0.0/0 or ::/0',
  ],
  'masquerade-by-address': [
    'recognises packets to a cluster IP that it masquerades by address, protocol and port',
    'recognises packets to a cluster IP that it masquerades by address alone',
  ],
  'running-endpoint-first': [
    'uses the endpoint on this node if two slices hold the same address and port',
    'uses the endpoint that is not terminating if two slices hold the same address and port',
  ],
  'separate-watches': [
    'ignores Services and EndpointSlices that have the label service.kubernetes.io/service-proxy-name or service.kubernetes.io/headless',
    'ignores Services only by the label service.kubernetes.io/service-proxy-name, and EndpointSlices only by service.kubernetes.io/headless',
  ],
  'external-ips': ['programs nothing for externalIPs', 'programs externalIPs'],
  'inline-masquerade': [
    'marks packets for masquerading in a separate chain, mark-for-masquerade',
    'marks packets for masquerading in the rules that match them',
  ],
  'shared-masquerade': [
    'masquerades packets to cluster IPs in the chain of each Service port',
    'masquerades packets to cluster IPs in the chain services, with one rule for all',
  ],
  'hairpin-set': [
    "masquerades packets from an endpoint to itself with a rule in that endpoint's chain",
    'masquerades packets from an endpoint to itself with one rule and the set hairpin-connections',
  ],
  'direct-dnat': [
    "sends packets to an endpoint through that endpoint's own chain",
    'sends packets to endpoints from the chain of the Service port, unless it has session affinity',
  ],
  'conntrack-limit': [
    'sets net.netfilter.nf_conntrack_max to maxPerCore times the number of cores, without a limit',
    'sets net.netfilter.nf_conntrack_max to 1,048,576 at most',
  ],
  'ipvs-mode': ['does not start in mode ipvs', 'starts in mode ipvs'],
  'node-port-words': [
    'does not start if nodePortAddresses holds the words localhost or all, or the word primary with others',
    'accepts CIDRs and the words primary, localhost and all together in nodePortAddresses',
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
    'rejects and counts packets to node ports on localhost, except to TCP ports that kube-proxy itself serves',
  ],
  'localhost-within-network': [
    'itself serves TCP node ports on localhost if a network of nodePortAddresses begins with a loopback address',
    'itself serves TCP node ports on localhost if a network of nodePortAddresses other than 0.0.0.0/0 and ::/0 contains 127.0.0.1 or ::1',
  ],
  'conntrack-raise': [
    'sets net.netfilter.nf_conntrack_max even if that lowers it',
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

/** Returns what is announced about a behaviour, as seen from a release: "off from 1.40 on, unless …". */
export function announcedEndWords(behaviour: keyof typeof announcedEnds, seenFrom: Minor = 0): string {
  const { offIn, goneIn, kep, gate } = announcedEnds[behaviour];
  const source = `(announced: KEP-${kep}, ${kepLink(kep)})`;
  if (seenFrom >= goneIn) return `gone in 1.${goneIn}, and no feature gate keeps it ${source}`;
  return `off from 1.${offIn} on, unless the feature gate ${gate} is true, and gone in 1.${goneIn} ${source}`;
}

export function kepLink(kep: number): string {
  return `https://kep.k8s.io/${kep}`;
}
