import { indexCluster } from '../../src/cluster/address-index.ts';
import { expect, test } from 'vitest';
import { checkBundle } from '../../src/bundle/check-bundle.ts';
import { makeBundle, type BundleContent } from '../../src/bundle/make-bundle.ts';
import { readBundle } from '../../src/bundle/read-bundle.ts';
import { compileState } from '../../src/snapshot/open/compile-node.ts';
import type { Cluster } from '../../src/cluster/model.ts';
import { describeNode } from '../../src/cluster/node-context.ts';
import { resolveSettings } from '../../src/input/configuration/read-settings.ts';
import { emptyState } from '../../src/kernel/state.ts';
import { parseNetwork } from '../../src/kernel/address.ts';
import { proxyModes } from '../../src/kube-proxy/modes.ts';
import { fixtureBundle, forge, type Files } from './forge.ts';

const serviceCidrs: Cluster['serviceCidrs'] = ['10.96.0.0/12', 'fd00::/112'].flatMap((text, i) => {
  const network = parseNetwork(text);
  return network
    ? [{ network, from: i === 0 ? ('ServiceCIDR' as const) : ('--service-cluster-ip-range' as const) }]
    : [];
});

test.each(proxyModes)(
  'a manifest of mode %s says what tells the networks of cluster IPs, if the mode looks at them',
  (mode) => {
    const { settings } = resolveSettings(undefined, { proxyMode: mode });
    const content: BundleContent = {
      state: emptyState,
      cluster: indexCluster({ services: [], servicePorts: [], healthChecks: [], serviceCidrs }),
      node: describeNode('', undefined, undefined, settings),
      settings,
      families: ['ipv4'],
      assigned: [],
      kpcVersion: '0',
    };
    const expected = [
      { cidr: '10.96.0.0/12', from: 'ServiceCIDR' },
      { cidr: 'fd00::/112', from: '--service-cluster-ip-range' },
    ];
    expect(makeBundle(content).manifest.serviceCidrs).toEqual(mode === 'nftables' ? expected : undefined);
  },
);

const bundle = fixtureBundle('dual-stack/expected-iptables');

/** The bundle with these networks in its manifest, which is of a mode that does not look at any. */
function forgeRanges(ranges: unknown): Files {
  return forge(bundle, (files) => {
    const manifest: object = JSON.parse(files.get('manifest.json') ?? '');
    files.set('manifest.json', JSON.stringify({ ...manifest, serviceCidrs: ranges }));
  });
}

test.each([
  ['10.96.0.0/12'],
  [[{ cidr: '10.96.0.0', from: 'ServiceCIDR' }]],
  [[{ cidr: '10.96.0.0/12 }; flush ruleset; #', from: 'ServiceCIDR' }]],
  [[{ cidr: '10.96.0.0/12', from: 'me' }]],
  [[{ cidr: '10.96.0.0/12' }]],
])('what is no list of networks is refused: %j', (ranges) => {
  expect(readBundle(forgeRanges(ranges), compileState)).toMatchObject({
    kind: 'broken',
    problems: [{ file: 'manifest.json', line: expect.any(Number), column: expect.any(Number) }],
  });
});

test('networks in a mode that does not look at them are no form of a bundle', () => {
  const forged = forgeRanges([{ cidr: '10.96.0.0/12', from: 'ServiceCIDR' }]);
  const reading = readBundle(forged, compileState);
  if (reading.kind !== 'bundle') throw new Error(reading.kind);
  expect(reading.bundle.snapshot.cluster.serviceCidrs.map(({ network }) => network.text)).toEqual(['10.96.0.0/12']);
  expect(checkBundle(forged, (...args) => compileState(...args, undefined))).toMatchObject({
    problems: [{ file: 'manifest.json', problem: 'value', name: 'serviceCidrs' }],
  });
});
