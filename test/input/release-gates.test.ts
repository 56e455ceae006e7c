import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/diagnostics/diagnostic.ts';
import { checkFeatureGates, gatesOf, isGateOn } from '../../src/input/configuration/feature-gates.ts';
import { kubeProxyVersions, releases, type Release } from '../../src/kube-proxy/releases.ts';

const check = (release: Release, gates: Record<string, boolean>) =>
  checkFeatureGates(new Map(Object.entries(gates)), release).map(({ fault }) => {
    const { text, help } = diagnose('bad-feature-gate', fault);
    return [text, help].filter(Boolean).join(': ');
  });

const unknown = (release: Release, name: string) =>
  `kube-proxy ${kubeProxyVersions[release]} knows no feature gate "${name}", and does not start`;

describe('the feature gates of each release', () => {
  // What each kube-proxy's own registry holds, without AllAlpha and AllBeta.
  const counts = {
    '1.30': 167,
    '1.31': 165,
    '1.32': 177,
    '1.33': 189,
    '1.34': 206,
    '1.35': 216,
    '1.36': 240,
    '1.37': 252,
  };

  test.each(releases)(
    '%s: as many as its kube-proxy registers, and no default of one keeps it from starting',
    (release) => {
      const gates = gatesOf(release);
      expect(gates.size).toBe(counts[release]);
      expect(check(release, {})).toEqual([]);
      for (const [name, { isOn }] of gates) {
        expect(checkFeatureGates(new Map([[name, isOn]]), release), name).toEqual([]);
        expect(isGateOn(name, new Map(), gatesOf(release)), name).toBe(isOn);
      }
      for (const [name, { isOn }] of [...gates].filter(([, { isLocked }]) => isLocked)) {
        expect(check(release, { [name]: !isOn }), name).toHaveLength(1);
      }
    },
  );

  test.each([
    // One that came, one that went, and one that did both.
    ['AllowServiceExternalIPs', ['1.36', '1.37']],
    ['KubeProxyNFTablesLocalhostNodePorts', ['1.37']],
    ['TopologyAwareHints', ['1.30', '1.31', '1.32', '1.33', '1.34', '1.35']],
    ['LoadBalancerIPMode', ['1.30', '1.31', '1.32', '1.33', '1.34']],
    ['PreferSameTrafficDistribution', ['1.33', '1.34', '1.35', '1.36', '1.37']],
    ['KubeProxyDrainingTerminatingNodes', ['1.30', '1.31', '1.32']],
    ['APIServerIdentity', releases],
  ] as const)('%s is known in the releases that have it', (name, known: readonly Release[]) => {
    expect(releases.filter((release) => gatesOf(release).has(name))).toEqual(known);
    for (const release of releases.filter((each) => !known.includes(each))) {
      expect(check(release, { [name]: true })[0], release).toContain(unknown(release, name));
    }
  });

  test.each(releases)('a name that is nearly right is told: %s', (release) => {
    expect(check(release, { LoggingBetaOption: true })).toEqual([
      `${unknown(release, 'LoggingBetaOption')}: did you mean LoggingBetaOptions?`,
    ]);
    expect(check(release, { AllAlpha: false, AllBeta: true })).toEqual([]);
  });

  test('one that is locked can be set to what it is', () => {
    expect(check('1.32', { NFTablesProxyMode: false })).toEqual([]);
    expect(check('1.33', { NFTablesProxyMode: true })).toEqual([]);
    expect(check('1.33', { NFTablesProxyMode: false })).toEqual([
      'the feature gate NFTablesProxyMode is true for good, and kube-proxy v1.33.13 does not start with false: leave it out',
    ]);
    expect(check('1.33', { AllowServiceLBStatusOnNonLB: true })).toEqual([
      'the feature gate AllowServiceLBStatusOnNonLB is false for good, and kube-proxy v1.33.13 does not start with true: leave it out',
    ]);
  });

  test('before 1.35 no gate needs another, and what one needs may differ', () => {
    expect(check('1.34', { APIServerIdentity: false, StorageVersionAPI: true })).toEqual([]);
    expect(check('1.35', { APIServerIdentity: false, StorageVersionAPI: true })).toHaveLength(1);
    const hostNetwork = { UserNamespacesHostNetworkSupport: true, NodeDeclaredFeatures: false };
    expect(check('1.35', hostNetwork)).toEqual([]);
    expect(check('1.36', hostNetwork)).toContain(
      'kube-proxy does not start: the feature gate UserNamespacesHostNetworkSupport is on, and needs NodeDeclaredFeatures, too: turn all of them on, or none',
    );
  });

  test('AllAlpha and AllBeta turn what is of their stage in the release', () => {
    const on = (release: Release, name: string, gates: Record<string, boolean>) =>
      isGateOn(name, new Map(Object.entries(gates)), gatesOf(release));
    expect(on('1.30', 'PreferSameTrafficDistribution', { AllAlpha: true })).toBe(false);
    expect(on('1.33', 'PreferSameTrafficDistribution', { AllAlpha: true })).toBe(true);
    expect(on('1.34', 'PreferSameTrafficDistribution', { AllBeta: false })).toBe(false);
    expect(on('1.35', 'PreferSameTrafficDistribution', { AllBeta: false })).toBe(true);
    expect(on('1.30', 'WindowsHostNetwork', { AllAlpha: false })).toBe(false);
    expect(on('1.36', 'NoSuchGate', { AllAlpha: true })).toBe(false);
  });
});
