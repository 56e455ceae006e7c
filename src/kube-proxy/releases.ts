import {
  gateOf,
  isOn,
  isPreview,
  kubeProxyVersions,
  newestRelease,
  releases,
  type FeatureGates,
  type Release,
} from './feature-gates.ts';
import type { ProxyMode } from './modes.ts';

export { isPreview, kubeProxyVersions, newestRelease, releases, type FeatureGates, type Release };

export const lastRelease = releases.at(-1) as Release;

/** The first release for which kpc follows all modes. For older releases, kpc follows only a mode that was removed later. */
export const firstRelease: Release = '1.30';

export const releaseRange = `${firstRelease} to ${lastRelease}`;

/** A difference between the kube-proxies of a release and of the release before it. */
export interface BehaviourChange {
  /** The first release with the behaviour by default; undefined if all have it, `never` if none has. */
  readonly since?: Release | 'never';
  /** The feature gate for the behaviour. It counts in releases that know the gate and have not locked it. */
  readonly gate?: string;
  readonly mode?: ProxyMode;
  /** Numbers in kubernetes/kubernetes: the pull requests that made the change, or else the issue about it. */
  readonly pullRequests: readonly number[];
  /** Set if only the rules differ, and packets go to the same places. */
  readonly samePackets?: true;
}

/** All differences between releases in what kube-proxy programs. Code uses the names of behaviours, never releases. */
export const behaviourChanges = {
  'traffic-policies': {
    since: '1.30',
    mode: 'userspace',
    pullRequests: [112133],
  },
  'endpoint-slices': {
    since: '1.30',
    mode: 'userspace',
    pullRequests: [112133],
  },
  'zone-hints': {
    gate: 'TopologyAwareHints',
    pullRequests: [100728],
  },
  'zone-hints-without-annotation': {
    since: '1.31',
    gate: 'ServiceTrafficDistribution',
    pullRequests: [123487],
  },
  'primary-node-ports': {
    since: '1.31',
    pullRequests: [123105],
  },
  'load-balancer-ip-mode': {
    since: '1.30',
    gate: 'LoadBalancerIPMode',
    pullRequests: [119937],
  },
  'reconciled-flows': {
    since: '1.32',
    pullRequests: [127318],
  },
  'service-cidrs': {
    since: '1.33',
    gate: 'MultiCIDRServiceAllocator',
    mode: 'nftables',
    pullRequests: [122692],
  },
  'node-hints': {
    since: '1.34',
    gate: 'PreferSameTrafficDistribution',
    pullRequests: [130844],
  },
  'open-source-range': {
    since: '1.34',
    pullRequests: [132722],
  },
  'masquerade-by-address': {
    since: '1.34',
    mode: 'nftables',
    pullRequests: [131492],
    samePackets: true,
  },
  'running-endpoint-first': {
    since: '1.36',
    pullRequests: [135593],
  },
  'separate-watches': {
    since: '1.36',
    pullRequests: [134623],
  },
  'external-ips': {
    gate: 'AllowServiceExternalIPs',
    pullRequests: [137293],
  },
  'inline-masquerade': {
    since: '1.36',
    mode: 'nftables',
    pullRequests: [135800],
    samePackets: true,
  },
  'shared-masquerade': {
    since: '1.36',
    mode: 'nftables',
    pullRequests: [136499],
    samePackets: true,
  },
  'hairpin-set': {
    since: '1.36',
    mode: 'nftables',
    pullRequests: [136499],
  },
  'direct-dnat': {
    since: '1.36',
    mode: 'nftables',
    pullRequests: [135639],
    samePackets: true,
  },
  'conntrack-limit': {
    since: '1.36',
    pullRequests: [137002],
  },
  'ipvs-mode': {
    gate: 'KubeProxyIPVS',
    mode: 'ipvs',
    pullRequests: [139397],
  },
  'node-port-words': {
    since: '1.37',
    pullRequests: [138427],
  },
  'single-endpoint-dnat': {
    since: '1.37',
    mode: 'nftables',
    pullRequests: [140723],
    samePackets: true,
  },
  'short-comments': {
    since: '1.37',
    mode: 'nftables',
    pullRequests: [139516],
  },
  'localhost-node-ports': {
    since: '1.38',
    gate: 'KubeProxyNFTablesLocalhostNodePorts',
    mode: 'nftables',
    pullRequests: [138427],
  },
  'localhost-within-network': {
    since: '1.38',
    mode: 'nftables',
    pullRequests: [142129],
  },
  'conntrack-raise': {
    since: '1.37',
    pullRequests: [142035],
  },
  'forgotten-flows': {
    since: '1.37',
    pullRequests: [139629],
  },
  'flows-of-gone-ports': {
    since: '1.38',
    pullRequests: [141371],
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

/** The releases that have each mode. A new mode needs a row here. */
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

/** A behaviour that explains a difference between two kube-proxies. `isNew`: only the later release has it. */
export interface BehaviourReason {
  readonly kind: 'behaviour';
  readonly behaviour: Behaviour;
  readonly from: Release;
  readonly to: Release;
  readonly isNew: boolean;
}

/** Returns the reason for a behaviour that only one of two releases has. `does`: the behaviours of `to`. */
export function behaviourReason(behaviour: Behaviour, from: Release, to: Release, does: Behaviours): BehaviourReason {
  return { kind: 'behaviour', behaviour, from, to, isNew: does.has(behaviour) };
}

interface BehaviourStep {
  readonly behaviour: Behaviour;
  /** The behaviours after this step. */
  readonly does: Behaviours;
}

/**
 * Changes one behaviour at a time, until all behaviours of the modes are as in `to`. The changes in one step are caused by its behaviour.
 */
export function stepsBetween(from: Behaviours, to: Behaviours, modes: readonly ProxyMode[]): readonly BehaviourStep[] {
  const does = new Set(from);
  const differing = behaviours.filter(
    (each) => from.has(each) !== to.has(each) && modes.some((mode) => concernsMode(each, mode)),
  );
  return differing.map((behaviour) => {
    if (!does.delete(behaviour)) does.add(behaviour);
    return { behaviour, does: new Set(does) };
  });
}

export function concernsMode(behaviour: Behaviour, mode: ProxyMode): boolean {
  const change: BehaviourChange = behaviourChanges[behaviour];
  return change.mode === undefined || change.mode === mode;
}

/** Reports whether a behaviour that kpc compiles depends on a feature gate. */
export function shapesRules(gate: string): boolean {
  return behaviours.some((behaviour) => (behaviourChanges[behaviour] as BehaviourChange).gate === gate);
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
