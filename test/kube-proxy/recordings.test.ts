import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import { projectFolder } from '../support/run-kpc.ts';
import { readRecordings, readScenarioStates, recordedRelease, recordedReleaseOf, scenarioInput } from './cases.mjs';
import { compareWithKubeProxy } from './compare.ts';
import { differencesOnPurpose, withoutPurpose } from './differences.ts';

describe('the scenarios, as the newest recorded kube-proxy programs them', () => {
  test.each(Object.entries(readScenarioStates()))('%s', (key, states) => {
    const [name = '', mode = ''] = key.split('/');
    const release = recordedReleaseOf(mode);
    const state = states[release] ?? '';
    const recording = { input: scenarioInput(name), mode: mode as ProxyMode, release, state } as const;
    expect(withoutPurpose(compareWithKubeProxy(recording), key, release)).toEqual([]);
  });
});

describe('a difference on purpose', () => {
  const page = readFileSync(join(projectFolder, 'docs', 'differences.md'), 'utf8').replaceAll(/\s+/g, ' ');
  const { inputs, states } = readRecordings();

  test.each(differencesOnPurpose)('"$said" is on the page, and a recording shows it', ({ said, shownBy, explains }) => {
    expect(page).toContain(said);
    const { key, release } = shownBy;
    const [name = '', mode] = key.split('/');
    const state = states[key]?.[release];
    if (state === undefined) throw new Error(`no recording of ${key} in ${release}`);
    const found = compareWithKubeProxy({ input: inputs[name] ?? {}, mode: mode as ProxyMode, release, state });
    expect(found.filter((difference) => explains({ difference, key, release }))).not.toEqual([]);
  });
});

test('the comparison finds what is missing, what is too much, and another order', () => {
  const key = 'loadbalancer/iptables';
  const state = readScenarioStates()[key]?.[recordedRelease] ?? '';
  const compare = (changed: string) =>
    compareWithKubeProxy({
      input: scenarioInput('loadbalancer'),
      mode: 'iptables',
      release: recordedRelease,
      state: changed,
    });
  const rule = '-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\n';
  expect(state).toContain(rule);
  expect(compare(state.replaceAll(rule, ''))).toEqual([
    `+ ipv4 filter KUBE-FORWARD: ${rule.trim()}`,
    `+ ipv6 filter KUBE-FORWARD: ${rule.trim()}`,
  ]);
  expect(compare(state.replace(rule, `${rule}-A KUBE-FORWARD -j ACCEPT\n`))).toEqual([
    '- ipv4 filter KUBE-FORWARD: -A KUBE-FORWARD -j ACCEPT',
  ]);
  const [first = ''] = /-A KUBE-POSTROUTING .*\n/.exec(state) ?? [];
  const last = /-A KUBE-POSTROUTING .*\n(?!-A KUBE-POSTROUTING)/.exec(state)?.[0] ?? '';
  expect(compare(state.replace(first, '').replace(last, last + first))).toEqual([
    '~ ipv4 nat KUBE-POSTROUTING: in another order',
  ]);
  expect(
    compare(state.replace('net.ipv4.conf.all.route_localnet = 1', 'net.ipv4.conf.all.route_localnet = 0')),
  ).toEqual(['- sysctls: net.ipv4.conf.all.route_localnet = 0']);
});
