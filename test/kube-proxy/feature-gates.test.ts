import { expect, test } from 'vitest';
import { findGateFaults, gateOf, gatesOf, releasesWithGate } from '../../src/kube-proxy/feature-gates.ts';
import { recordedGates } from '../../src/kube-proxy/feature-gates.recorded.ts';
import { behaviourChanges, kubeProxyVersions, releases, type BehaviourChange } from '../../src/kube-proxy/releases.ts';
import { some } from '../support/rounds.ts';
import { readGates } from './gates-table.mjs';

const faultsOf = (set: Record<string, boolean>, release: (typeof releases)[number]) =>
  findGateFaults(new Map(Object.entries(set)), release);

test('the table is of the kube-proxies that kpc follows', () => {
  expect(recordedGates.trim().split('\n')[0]?.split(' ')).toEqual(Object.values(kubeProxyVersions));
});

test.each(releases)('kpc reads the gates of %s as the recorder writes them', (release) => {
  const recorded = readGates()[kubeProxyVersions[release]] ?? {};
  expect(gatesOf(release).map(({ name }) => name)).toEqual(Object.keys(recorded));
  for (const [name, { default: isOnByDefault, locked, needs }] of Object.entries(recorded)) {
    expect(gateOf(name, release), name).toMatchObject({ isOnByDefault, isLocked: locked, needs });
  }
});

test.each(some([...releases].toReversed()))(
  'of %s, each gate may be set but locked ones to their other value, and unknown ones',
  (release) => {
    for (const { name, isLocked, isOnByDefault } of gatesOf(release)) {
      const problems = [true, false].map((value) => faultsOf({ [name]: value }, release)[0]?.problem ?? 'none');
      const whenLocked = isOnByDefault ? ['none', 'locked'] : ['locked', 'none'];
      expect(isLocked ? problems : problems.filter((problem) => problem !== 'needs'), name).toEqual(
        isLocked ? whenLocked : problems.filter((problem) => problem === 'none'),
      );
    }
    expect(faultsOf({ NoSuchGate: true }, release)).toEqual([{ problem: 'unknown', gate: 'NoSuchGate', release }]);
  },
);

test('the gates of behaviours are known somewhere', () => {
  const gates = (Object.values(behaviourChanges) as readonly BehaviourChange[]).flatMap(({ gate }) => gate ?? []);
  expect(gates.filter((gate) => releasesWithGate(gate).length === 0)).toEqual([]);
});
