import { gateOf, isOn, kubeProxyVersions, releases, type FeatureGates, type Release } from './feature-gates.ts';
import type { ProxyMode } from './modes.ts';

export { kubeProxyVersions, releases, type FeatureGates, type Release };

/** Reports whether a release is not out yet, so that the version kpc follows may change. */
export function isPreview(release: Release): boolean {
  return kubeProxyVersions[release].includes('-');
}

export const newestRelease = releases.findLast((release) => !isPreview(release)) as Release;

export const lastRelease = releases.at(-1) as Release;

/** The first release for which kpc follows all modes, not only a removed one. */
export const firstRelease: Release = '1.30';

export const releaseRange = `${firstRelease} to ${lastRelease}`;

/** A difference between a release's kube-proxy and that of the release before. */
export interface BehaviourChange {
  /** The first release with the behaviour by default; undefined if all have it, `never` if none has. */
  readonly since?: Release | 'never';
  /** The feature gate for the behaviour, in releases that know the gate and have not locked it. */
  readonly gate?: string;
  readonly mode?: ProxyMode;
  /** Pull requests to kubernetes/kubernetes that made the change, or the issue. */
  readonly pullRequests: readonly number[];
  /** What kube-proxy does without and with the behaviour, as clauses without a subject. */
  readonly before: string;
  readonly after: string;
  /** Set if the rules differ, but not where packets go. */
  readonly samePackets?: true;
}

/** All differences between releases in what kube-proxy programs. Code uses the names of behaviours, never releases. */
export const behaviourChanges = {
  'traffic-policies': {
    since: '1.30',
    mode: 'userspace',
    pullRequests: [112133],
    before: 'ignores traffic policies, source ranges and health check node ports',
    after: 'follows traffic policies, source ranges and health check node ports',
  },
  'endpoint-slices': {
    since: '1.30',
    mode: 'userspace',
    pullRequests: [112133],
    before:
      'reads Endpoints: it matches ports by their name alone, and takes an address that is both ready and not ready for not ready',
    after: 'reads EndpointSlices, and matches ports by name and protocol',
  },
  'zone-hints': {
    gate: 'TopologyAwareHints',
    pullRequests: [100728],
    before: 'ignores the zone hints of endpoints',
    after: 'follows the zone hints of endpoints',
  },
  'zone-hints-without-annotation': {
    since: '1.31',
    gate: 'ServiceTrafficDistribution',
    pullRequests: [123487],
    before: 'follows zone hints only of a Service with the annotation service.kubernetes.io/topology-mode',
    after: 'follows zone hints whatever the annotations of the Service',
  },
  'primary-node-ports': {
    since: '1.31',
    pullRequests: [123105],
    before: 'does not start where nodePortAddresses is the word primary',
    after: 'listens for node ports on the addresses of its Node where nodePortAddresses is the word primary',
  },
  'load-balancer-ip-mode': {
    since: '1.30',
    gate: 'LoadBalancerIPMode',
    pullRequests: [119937],
    before: 'programs all load balancer addresses',
    after: 'leaves out load balancer addresses of ipMode Proxy',
  },
  'reconciled-flows': {
    since: '1.32',
    pullRequests: [127318],
    before:
      'forgets the tracked UDP flows to former endpoints of a Service port, and all to the cluster IP of one that is gone',
    after: 'forgets the tracked UDP flows to a Service port with endpoints that go to none of them that serves',
  },
  'service-cidrs': {
    since: '1.33',
    gate: 'MultiCIDRServiceAllocator',
    mode: 'nftables',
    pullRequests: [122692],
    before: 'ignores ServiceCIDR objects',
    after: 'drops packets to cluster IPs that no Service has, within the networks of ServiceCIDR objects',
  },
  'node-hints': {
    since: '1.34',
    gate: 'PreferSameTrafficDistribution',
    pullRequests: [130844],
    before: 'ignores the node hints of endpoints',
    after: 'follows the node hints of endpoints',
  },
  'open-source-range': {
    since: '1.34',
    pullRequests: [132722],
    before: 'programs 0.0.0.0/0 and ::/0 in loadBalancerSourceRanges like any other range',
    after: 'restricts nothing where loadBalancerSourceRanges holds 0.0.0.0/0 or ::/0',
  },
  'masquerade-by-address': {
    since: '1.34',
    mode: 'nftables',
    pullRequests: [131492],
    before: 'matches packets to a cluster IP to masquerade by their address, protocol and port',
    after: 'matches packets to a cluster IP to masquerade by their address alone',
    samePackets: true,
  },
  'running-endpoint-first': {
    since: '1.36',
    pullRequests: [135593],
    before: 'takes the endpoint on this node, where two slices hold the same address and port',
    after: 'takes the endpoint that is not terminating, where two slices hold the same address and port',
  },
  'separate-watches': {
    since: '1.36',
    pullRequests: [134623],
    before:
      'ignores Services and EndpointSlices that have the label service.kubernetes.io/service-proxy-name or service.kubernetes.io/headless',
    after:
      'ignores Services by the label service.kubernetes.io/service-proxy-name only, and EndpointSlices by service.kubernetes.io/headless only',
  },
  'external-ips': {
    gate: 'AllowServiceExternalIPs',
    pullRequests: [137293],
    before: 'programs nothing for externalIPs',
    after: 'programs externalIPs',
  },
  'inline-masquerade': {
    since: '1.36',
    mode: 'nftables',
    pullRequests: [135800],
    before: 'marks packets to masquerade in a chain of its own, mark-for-masquerade',
    after: 'marks packets to masquerade in the rules that match them',
    samePackets: true,
  },
  'shared-masquerade': {
    since: '1.36',
    mode: 'nftables',
    pullRequests: [136499],
    before: 'masquerades packets to cluster IPs in the chain of each Service port',
    after: 'masquerades packets to cluster IPs in the chain services, by one rule for all',
    samePackets: true,
  },
  'hairpin-set': {
    since: '1.36',
    mode: 'nftables',
    pullRequests: [136499],
    before: 'masquerades packets of an endpoint to itself by a rule in the chain of that endpoint',
    after: 'masquerades packets of an endpoint to itself by one rule and the set hairpin-connections',
  },
  'direct-dnat': {
    since: '1.36',
    mode: 'nftables',
    pullRequests: [135639],
    before: 'sends packets to an endpoint through a chain of that endpoint',
    after: 'sends packets to endpoints from the chain of the Service port, unless it has session affinity',
    samePackets: true,
  },
  'conntrack-limit': {
    since: '1.36',
    pullRequests: [137002],
    before: 'sets net.netfilter.nf_conntrack_max as high as maxPerCore times the number of cores',
    after: 'sets net.netfilter.nf_conntrack_max to 1,048,576 at most',
  },
  'ipvs-mode': {
    gate: 'KubeProxyIPVS',
    mode: 'ipvs',
    pullRequests: [139397],
    before: 'does not start in mode ipvs',
    after: 'starts in mode ipvs',
  },
  'node-port-words': {
    since: '1.37',
    pullRequests: [138427],
    before:
      'does not start where nodePortAddresses holds the words localhost or all, or the word primary beside others',
    after: 'takes CIDRs and the words primary, localhost and all together in nodePortAddresses',
  },
  'single-endpoint-dnat': {
    since: '1.37',
    mode: 'nftables',
    pullRequests: [140723],
    before:
      'sends packets to the only endpoint of a Service port by a map with one element, unless it has session affinity',
    after: 'sends packets to the only endpoint of a Service port without a map, unless it has session affinity',
    samePackets: true,
  },
  'short-comments': {
    since: '1.37',
    mode: 'nftables',
    pullRequests: [139516],
    before: 'writes the names of Service ports without endpoints as comments of any length, and nft takes 128 bytes',
    after: 'cuts the names of Service ports without endpoints to comments of 128 bytes',
  },
  'localhost-node-ports': {
    since: '1.38',
    gate: 'KubeProxyNFTablesLocalhostNodePorts',
    mode: 'nftables',
    pullRequests: [138427],
    before: 'programs nothing for node ports on localhost',
    after:
      'rejects and counts packets to node ports on localhost, except those of TCP ports that it serves itself there',
  },
  'localhost-within-network': {
    since: '1.38',
    mode: 'nftables',
    pullRequests: [142129],
    before:
      'itself serves TCP node ports on localhost where a network of nodePortAddresses begins with a loopback address',
    after:
      'itself serves TCP node ports on localhost where a network of nodePortAddresses contains 127.0.0.1 or ::1, 0.0.0.0/0 and ::/0 excepted',
  },
  'conntrack-raise': {
    since: '1.37',
    pullRequests: [142035],
    before: 'sets net.netfilter.nf_conntrack_max also where that lowers it',
    after: 'only raises net.netfilter.nf_conntrack_max',
  },
  'forgotten-flows': {
    since: '1.37',
    pullRequests: [139629],
    before: 'keeps the tracked UDP flows to a Service port that has no endpoints left',
    after: 'forgets the tracked UDP flows to the addresses of a Service port that has no endpoints left',
  },
  'flows-of-gone-ports': {
    since: '1.38',
    pullRequests: [141371],
    before: 'keeps the tracked UDP flows to a Service port that is gone',
    after: 'forgets the tracked UDP flows to the addresses of a Service port that is gone',
  },
} as const satisfies Record<string, BehaviourChange>;

export type Behaviour = keyof typeof behaviourChanges;

export type Behaviours = ReadonlySet<Behaviour>;

export const behaviours = Object.keys(behaviourChanges) as readonly Behaviour[];

interface ModeHistory {
  readonly since: Release;
  readonly until?: Release;
  readonly needs?: Behaviour;
}

/** When each mode came and went. A new mode needs a row here. */
export const modeHistories: Readonly<Record<ProxyMode, ModeHistory>> = {
  ipvs: { since: firstRelease, needs: 'ipvs-mode' },
  iptables: { since: firstRelease },
  nftables: { since: '1.33' },
  userspace: { since: '1.25', until: '1.25' },
};

export function releasesOfMode(mode: ProxyMode): string {
  const { since, until = lastRelease } = modeHistories[mode];
  return since === until ? since : `${since} to ${until}`;
}

export function startsIn(mode: ProxyMode, behaviour: Behaviours): boolean {
  const { needs } = modeHistories[mode];
  return needs === undefined || behaviour.has(needs);
}

export function isModeOf(mode: ProxyMode, release: Release): boolean {
  const { since, until = lastRelease } = modeHistories[mode];
  return isSince(release, since) && isSince(until, release);
}

export function concernsMode(behaviour: Behaviour, mode: ProxyMode): boolean {
  const change: BehaviourChange = behaviourChanges[behaviour];
  return change.mode === undefined || change.mode === mode;
}

/** Returns how a release's kube-proxy behaves with these feature gates. */
export function behavioursOf(release: Release, gates: FeatureGates = new Map()): Behaviours {
  return new Set(behaviours.filter((behaviour) => behaves(behaviourChanges[behaviour], release, gates)));
}

function behaves({ since, gate }: BehaviourChange, release: Release, gates: FeatureGates): boolean {
  const known = gate === undefined ? undefined : gateOf(gate, release);
  if (known && !known.isLocked) return isOn(known, gates);
  return since === undefined || (since !== 'never' && isSince(release, since));
}

function isSince(release: Release, since: Release): boolean {
  return releases.indexOf(release) >= releases.indexOf(since);
}

/** Reads "1.34", "v1.34.2", "v1.34.2-gke.100" or "v1.34.1+k3s1"; undefined if kpc does not follow the release. */
export function parseRelease(text: string): Release | undefined {
  const minor = /^v?(\d{1,3}\.\d{1,3})(?:\.\d{1,5})?(?:[-+][\w.+-]{1,100})?$/.exec(text)?.[1];
  return releases.find((known) => known === minor);
}
