import { describe, expect, test } from 'vitest';
import { behaviourWords } from '../../src/say/words/behaviours.ts';
import { gateOf } from '../../src/kube-proxy/feature-gates.ts';
import {
  behaviourChanges,
  behaviours,
  behavioursOf,
  isPreview,
  kubeProxyVersions,
  lastRelease,
  newestRelease,
  parseRelease,
  releases,
  type Behaviour,
  type Release,
} from '../../src/kube-proxy/releases.ts';

/** The behaviours of each release by default, written out once more. */
const byDefault: Record<Release, readonly Behaviour[]> = (() => {
  const oldest: readonly Behaviour[] = ['zone-hints', 'external-ips', 'ipvs-mode'];
  const since130 = [...oldest, 'traffic-policies', 'endpoint-slices', 'load-balancer-ip-mode'] as const;
  const since131 = [...since130, 'zone-hints-without-annotation', 'primary-node-ports'] as const;
  const since132 = [...since131, 'reconciled-flows'] as const;
  const since133 = [...since132, 'service-cidrs'] as const;
  const since134 = [...since133, 'node-hints', 'open-source-range', 'masquerade-by-address'] as const;
  const since136 = [
    ...since134,
    'inline-masquerade',
    'shared-masquerade',
    'hairpin-set',
    'direct-dnat',
    'running-endpoint-first',
    'separate-watches',
    'conntrack-limit',
  ] as const;
  const since137 = [
    ...since136,
    'node-port-words',
    'single-endpoint-dnat',
    'short-comments',
    'conntrack-raise',
    'forgotten-flows',
  ] as const;
  return {
    '1.25': oldest,
    '1.30': since130,
    '1.31': since131,
    '1.32': since132,
    '1.33': since133,
    '1.34': since134,
    '1.35': since134,
    '1.36': since136,
    '1.37': since137,
    '1.38': [...since137, 'localhost-node-ports', 'localhost-within-network', 'flows-of-gone-ports'],
  };
})();

describe('the table of releases', () => {
  test.each(releases)('Kubernetes %s behaves by default as its kube-proxy does', (release) => {
    expect([...behavioursOf(release)].toSorted()).toEqual(byDefault[release].toSorted());
    expect(kubeProxyVersions[release]).toMatch(
      new RegExp(`^v${release.replace('.', '\\.')}\\.\\d+${isPreview(release) ? String.raw`-(?:beta|rc)\.\d+` : ''}$`),
    );
  });

  test('the last release has every behaviour but those of alpha gates, and the newest is the last that is out', () => {
    expect([...behavioursOf(lastRelease, new Map([['AllAlpha', true]]))]).toEqual(behaviours);
    const later = releases.slice(releases.indexOf(newestRelease) + 1);
    expect(releases.filter(isPreview)).toEqual(later);
  });

  test.each(behaviours)('%s says what changed, and where that can be read', (behaviour) => {
    const [before, after] = behaviourWords[behaviour];
    const { pullRequests } = behaviourChanges[behaviour];
    expect(before).not.toBe(after);
    for (const clause of [before, after]) expect(clause).toMatch(/^[a-z].*[^.]$/);
    expect(pullRequests.length).toBeGreaterThan(0);
  });
});

/** Gate, behaviour, and what each release makes of the gate: whether it turns the behaviour, or is not there to. */
const gates: readonly (readonly [string, Behaviour, readonly Release[]])[] = [
  ['TopologyAwareHints', 'zone-hints', ['1.25', '1.30', '1.31', '1.32']],
  ['ServiceTrafficDistribution', 'zone-hints-without-annotation', ['1.30', '1.31', '1.32']],
  ['LoadBalancerIPMode', 'load-balancer-ip-mode', ['1.30', '1.31']],
  ['PreferSameTrafficDistribution', 'node-hints', ['1.33', '1.34']],
  ['AllowServiceExternalIPs', 'external-ips', ['1.36', '1.37', '1.38']],
  ['KubeProxyIPVS', 'ipvs-mode', ['1.37', '1.38']],
  ['KubeProxyNFTablesLocalhostNodePorts', 'localhost-node-ports', ['1.37', '1.38']],
];

describe('feature gates', () => {
  test.each(gates)('%s turns %s on and off in the releases where it can be set', (name, behaviour, settable) => {
    for (const release of releases) {
      const [on, off] = [true, false].map((isOn) => behavioursOf(release, new Map([[name, isOn]])).has(behaviour));
      const usual = behavioursOf(release).has(behaviour);
      const expected = settable.includes(release) ? [true, false] : [usual, usual];
      expect([on, off], release).toEqual(expected);
      const gate = gateOf(name, release);
      expect(gate !== undefined && !gate.isLocked, release).toBe(settable.includes(release));
    }
  });

  test('AllBeta and AllAlpha turn what is of their stage, unless the gate itself is set', () => {
    const of = (release: Release, set: Record<string, boolean>) => behavioursOf(release, new Map(Object.entries(set)));
    expect(of('1.30', { AllBeta: false }).has('zone-hints')).toBe(false);
    expect(of('1.30', { AllBeta: false, TopologyAwareHints: true }).has('zone-hints')).toBe(true);
    expect(of('1.33', { AllBeta: false }).has('zone-hints')).toBe(true);
    expect(of('1.30', { AllAlpha: true }).has('zone-hints-without-annotation')).toBe(true);
    expect(of('1.33', { AllAlpha: true }).has('node-hints')).toBe(true);
    expect(of('1.34', { AllBeta: false }).has('node-hints')).toBe(false);
    expect(of('1.36', { AllBeta: false, AllAlpha: true }).has('external-ips')).toBe(true);
    expect(of('1.36', { AllAlpha: true }).has('localhost-node-ports')).toBe(false);
    expect(of('1.37', { AllAlpha: true }).has('localhost-node-ports')).toBe(true);
    expect(of('1.38', { AllBeta: false }).has('localhost-node-ports')).toBe(false);
    expect(of('1.37', { AllAlpha: false, AllBeta: false }).has('ipvs-mode')).toBe(true);
  });
});

describe('versions', () => {
  test.each([
    ['1.34', '1.34'],
    ['v1.34', '1.34'],
    ['1.34.2', '1.34'],
    ['v1.34.2-gke.1240000', '1.34'],
    ['v1.33.1+k3s1', '1.33'],
    ['v1.32.9-eks-113cf36', '1.32'],
    ['v1.31.0-alpha.1.45+1a2b3c', '1.31'],
  ])('%s is of %s', (text, release) => expect(parseRelease(text)).toBe(release));

  test.each(['1.29', 'v1.39.0', '2.36', '1.3', '01.36'])('%s is of a release that kpc does not follow', (text) =>
    expect(parseRelease(text)).toBeUndefined(),
  );

  test.each(['', 'latest', '1', '1.36.', '1.36.x', 'v 1.36', '1.36\n', '1.36.3.1', '1.36-', '-1.36', '1.36.3-ü'])(
    '%j is no version',
    (text) => expect(parseRelease(text)).toBeUndefined(),
  );
});
