import { describe, expect, test } from 'vitest';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import { releases } from '../../src/kube-proxy/releases.ts';
import { readRecordings } from './cases.mjs';
import { compareWithKubeProxy } from './compare.ts';
import { withoutPurpose } from './differences.ts';

/** Compares all recordings of a mode, in each release that kpc follows and that is recorded: `npm run test:kube-proxy`. */
export function compareAll(mode: ProxyMode): void {
  const { inputs, states } = readRecordings();
  const keys = Object.keys(states).filter((key) => key.endsWith(`/${mode}`));
  const recorded = releases.filter((release) => keys.some((key) => states[key]?.[release] !== undefined));
  describe.each(recorded)(`${mode} in %s`, (release) => {
    const cases = keys.filter((key) => states[key]?.[release] !== undefined);
    test.each(cases)('%s', (key) => {
      const state = states[key]?.[release] ?? '';
      const input = inputs[key.slice(0, key.indexOf('/'))] ?? {};
      const differences = compareWithKubeProxy({ input, mode, release, state });
      expect(withoutPurpose(differences, key, release)).toEqual([]);
    });
  });
}
