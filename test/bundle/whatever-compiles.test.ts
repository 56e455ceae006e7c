import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkBundle } from '../../src/bundle/check-bundle.ts';
import { compileState } from '../../src/snapshot/open/compile-node.ts';
import { modeHistories } from '../../src/kube-proxy/releases.ts';
import { proxyModes } from '../../src/kube-proxy/modes.ts';
import { compile } from '../../src/library/index.ts';
import { makeCluster } from '../support/make-cluster.ts';
import { makeRandom } from '../support/random.ts';
import { rounds } from '../support/rounds.ts';

const some = <T>(...values: readonly T[]) => fc.constantFrom(...values);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const list = <T>(arbitrary: fc.Arbitrary<T>, maxLength = 3) => fc.array(arbitrary, { maxLength });

const names = some('odd', 'b-2');
const portNames = some('', 'http', 'a', '0-a');
const addresses = some(
  '10.1.2.3',
  '10.244.1.9',
  '192.168.50.11',
  '::ffff:10.1.2.3',
  'fd00::1',
  '2001:db8:0::1',
  '10.01.2.3',
);
const hosts = some('db.example.com', 'a', 'xn--a.example.', '10.1.2.3', 'fd00::1');
const zones = some('east', 'a.b_c', 'west/1', '', 'ü');

const port = fc.record({
  name: maybe(portNames),
  port: some(1, 80, 65_535),
  protocol: maybe(some('TCP', 'UDP', 'SCTP')),
  targetPort: maybe(some<number | string>(0, 8080, 'http', '')),
  nodePort: maybe(some(0, 30_001, 32_767)),
});

const service = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Service'),
  metadata: fc.record({
    name: names,
    namespace: fc.constant('odd'),
    labels: maybe(fc.record({ 'service.kubernetes.io/headless': maybe(fc.constant('')) })),
    annotations: maybe(fc.record({ 'kpc.dev/ipvs-scheduler': some('rr', 'mh', '') })),
  }),
  spec: fc.record({
    type: maybe(some('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName')),
    clusterIP: maybe(some('None', '10.96.77.1', '10.96.77.2', 'fd00:96::77', '')),
    externalName: maybe(hosts),
    externalIPs: maybe(list(addresses)),
    loadBalancerSourceRanges: maybe(
      list(some('10.0.0.0/8', ' 10.1.0.0/16 ', '10.1.2.3/8', '0.0.0.0/0', 'fd00::/8', '::/0')),
    ),
    sessionAffinity: maybe(some('None', 'ClientIP')),
    sessionAffinityConfig: maybe(fc.constant({ clientIP: { timeoutSeconds: 86_400 } })),
    internalTrafficPolicy: maybe(some('Cluster', 'Local')),
    externalTrafficPolicy: maybe(some('Cluster', 'Local')),
    healthCheckNodePort: maybe(some(0, 31_999)),
    publishNotReadyAddresses: maybe(fc.boolean()),
    ports: maybe(list(port)),
  }),
  status: maybe(
    fc.record({
      loadBalancer: fc.record({ ingress: list(fc.record({ ip: maybe(addresses), hostname: maybe(hosts) })) }),
    }),
  ),
});

const slice = fc.record({
  apiVersion: fc.constant('discovery.k8s.io/v1'),
  kind: fc.constant('EndpointSlice'),
  metadata: names.map((name) => ({
    name: `${name}.1`,
    namespace: 'odd',
    labels: { 'kubernetes.io/service-name': name },
  })),
  addressType: some('IPv4', 'IPv6', 'FQDN'),
  ports: maybe(
    list(
      fc.record({ name: maybe(portNames), port: maybe(some(1, 8080)), protocol: maybe(some('TCP', 'UDP', 'SCTP')) }),
    ),
  ),
  endpoints: maybe(
    list(
      fc.record({
        addresses: fc.array(fc.oneof(addresses, hosts), { minLength: 1, maxLength: 2 }),
        hostname: maybe(some('a', 'a-1')),
        nodeName: maybe(some('node-1', 'n.example')),
        zone: maybe(zones),
        conditions: maybe(
          fc.record({ ready: maybe(fc.boolean()), serving: maybe(fc.boolean()), terminating: maybe(fc.boolean()) }),
        ),
        hints: maybe(
          fc.record({
            forZones: maybe(list(fc.record({ name: zones }))),
            forNodes: maybe(list(fc.record({ name: zones }))),
          }),
        ),
      }),
      8,
    ),
  ),
});

/** A Service that is skipped, or any; and a slice that is right of its kind, or any. */
const skipped = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Service'),
  metadata: names.map((name) => ({ name, namespace: 'odd' })),
  spec: some(
    { clusterIP: 'None', ports: [{ port: 80 }] },
    { clusterIP: 'None' },
    { type: 'ExternalName', externalName: 'a.example.' },
  ),
});
const known = fc
  .tuple(slice, some(['IPv4', '10.1.2.3'], ['IPv6', 'fd00::1'], ['FQDN', 'db.example.com']))
  .map(([any, [addressType, address]]) => ({
    ...any,
    addressType,
    endpoints: any.endpoints?.map((each) => ({ ...each, addresses: [address], zone: 'a' })),
  }));

const oddObjects = fc.array(fc.oneof(service, slice, skipped, known), { maxLength: 8 });

/** The releases where a mode starts, and its last. */
const releasesOf = (mode: (typeof proxyModes)[number]) => {
  const { since, until = '1.38' } = modeHistories[mode];
  return some(since, until);
};

describe.each(proxyModes)('what kpc compiles in mode %s, kpc-apply takes', (mode) => {
  test('of any cluster, whatever is odd in it', () => {
    let compiled = 0;
    const cluster = fc.record({
      seed: fc.integer({ min: 1, max: 1_000_000 }),
      odd: oddObjects,
      release: releasesOf(mode),
    });
    fc.assert(
      fc.property(cluster, ({ seed, odd, release }) => {
        const manifests = [...makeCluster(3, makeRandom(seed)), ...odd].map((object, i) => ({
          name: `${i}.json`,
          text: JSON.stringify(object),
        }));
        const options = { node: 'node-1', ipFamily: 'dual', assume: true, skipInvalid: true } as const;
        const { bundle } = compile({ manifests, proxyMode: mode, kubernetesVersion: release, ...options });
        if (!bundle) return;
        compiled++;
        const reading = checkBundle(bundle.files, compileState);
        expect(reading.kind === 'broken' ? reading.problems : []).toEqual([]);
      }),
      { numRuns: rounds(150) },
    );
    expect(compiled).toBeGreaterThan(rounds(150) / 3);
  });
});
