import fc from 'fast-check';
import { expect, test } from 'vitest';
import { assignAddresses, type Assignment } from '../../src/cluster/assign-addresses.ts';
import type { Service, Sourced } from '../../src/cluster/objects.ts';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { contains, parseAddress, parseNetwork } from '../../src/kernel/address.ts';
import { rounds } from '../support/rounds.ts';
import { describe } from './diagnose.ts';

const networks = (...texts: string[]): NonNullable<ReturnType<typeof parseNetwork>>[] =>
  texts.flatMap((text) => parseNetwork(text) ?? []);

function services(...specs: readonly object[]): readonly Sourced<Service>[] {
  const items = specs.map((spec, i) => ({ apiVersion: 'v1', kind: 'Service', metadata: { name: `s${i}` }, spec }));
  return collectFiles([new TextFile('in.json', JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))]).services;
}

const nodePorts = { first: 30000, last: 32767 };
const port = { ports: [{ port: 80 }] };

const specsOf = ({ services: all }: Assignment): Service['spec'][] => all.map(({ object }) => object.spec);

test('families as the API server chooses them', () => {
  const ranges = { clusterIPs: networks('10.96.0.0/16', 'fd00:10:96::/112') };
  const result = assignAddresses(
    services(
      port,
      { ...port, ipFamilyPolicy: 'PreferDualStack' },
      { ...port, ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6'] },
      { ...port, ipFamilies: ['IPv6'] },
      { ...port, clusterIP: '10.96.0.7', ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'PreferDualStack' },
      { ...port, clusterIP: '10.96.0.8' },
      { ...port, clusterIP: 'None' },
      { type: 'ExternalName', externalName: 'example.com' },
      { ...port, clusterIP: 'None', selector: { app: 'web' } },
      { ...port, clusterIP: 'None', selector: { app: 'web' }, ipFamilyPolicy: 'PreferDualStack' },
      { ...port, clusterIP: 'None', ipFamilyPolicy: 'SingleStack' },
    ),
    ranges,
  );
  expect(specsOf(result).map(({ ipFamilies }) => ipFamilies)).toEqual([
    ['IPv4'],
    ['IPv4', 'IPv6'],
    ['IPv6', 'IPv4'],
    ['IPv6'],
    ['IPv4', 'IPv6'],
    [],
    ['IPv4', 'IPv6'],
    [],
    ['IPv4'],
    ['IPv4', 'IPv6'],
    ['IPv4'],
  ]);
  for (const { clusterIP, clusterIPs, ipFamilies } of specsOf(result).slice(0, 5)) {
    expect(clusterIP).toBe(clusterIPs[0]);
    const families = clusterIPs.map((text) => parseAddress(text)?.family);
    expect(families).toEqual(ipFamilies.map((family) => family.toLowerCase()));
  }
  expect(result.assigned.map(({ service }) => service)).toEqual([
    'default/s0',
    'default/s1',
    'default/s2',
    'default/s3',
    'default/s4',
  ]);
  expect(result.assigned[4]?.clusterIPs).toEqual([specsOf(result)[4]?.clusterIPs[1]]);
  expect(result.diagnostics).toEqual([]);
  const headless = services({ ...port, clusterIP: 'None', selector: { app: 'web' } });
  expect(specsOf(assignAddresses(headless, ranges))[0]?.ipFamilies).toEqual(['IPv4']);
  expect(specsOf(assignAddresses(headless, { clusterIPs: [] }))[0]?.ipFamilies).toEqual([]);
});

test('node ports: one number for both protocols of a port, none where they are not wanted', () => {
  const dns = [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'dns-tcp', port: 53 },
    { name: 'metrics', port: 9153, nodePort: 30153 },
  ];
  const result = assignAddresses(
    services(
      { clusterIP: '10.96.0.1', type: 'NodePort', ports: dns },
      { clusterIP: '10.96.0.2', type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, ...port },
      { clusterIP: '10.96.0.3', type: 'LoadBalancer', externalTrafficPolicy: 'Local', ...port },
      { clusterIP: '10.96.0.4', ...port },
    ),
    { clusterIPs: [], nodePorts },
  );
  const [first, second, third, fourth] = specsOf(result);
  const [udp, tcp, metrics] = first?.ports.map(({ nodePort }) => nodePort) ?? [];
  expect(udp).toBe(tcp);
  expect(udp).toBeGreaterThanOrEqual(30000);
  expect(metrics).toBe(30153);
  expect(second?.ports[0]?.nodePort).toBe(0);
  expect(third?.ports[0]?.nodePort).not.toBe(third?.healthCheckNodePort);
  expect(third?.healthCheckNodePort).toBeGreaterThanOrEqual(30000);
  expect(fourth?.ports[0]?.nodePort).toBe(0);
  expect(result.assigned).toEqual([
    { service: 'default/s0', clusterIPs: [], nodePorts: { 'dns/UDP': udp, 'dns-tcp/TCP': tcp } },
    {
      service: 'default/s2',
      clusterIPs: [],
      nodePorts: { TCP: third?.ports[0]?.nodePort },
      healthCheckNodePort: third?.healthCheckNodePort,
    },
  ]);
});

test('without ranges, each Service that kube-proxy would leave out gets a warning', () => {
  const result = assignAddresses(
    services(port, { clusterIP: '10.96.0.3', type: 'LoadBalancer', externalTrafficPolicy: 'Local', ...port }),
    { clusterIPs: [] },
  );
  expect(describe(result.diagnostics).map((line) => line.replace(/^\S+ /, ''))).toEqual([
    'warning not-assigned {"field":"clusterIP","service":"default/s0"}',
    'note no-load-balancer-ip {"services":["default/s1"]}',
    'warning not-assigned {"field":"healthCheckNodePort","service":"default/s1"}',
    'warning not-assigned {"field":"nodePort","service":"default/s1","ports":["80/TCP"]}',
  ]);
  expect(result.assigned).toEqual([]);
});

test('a range that is used up, and a family without a range', () => {
  const result = assignAddresses(services(port, port, { ...port, ipFamilies: ['IPv6'] }), {
    clusterIPs: networks('10.96.0.0/30'),
  });
  expect(specsOf(result).map(({ clusterIP }) => clusterIP)).toEqual(['10.96.0.2', '', '']);
  expect(describe(result.diagnostics).map((line) => line.replace(/^\S+ /, ''))).toEqual([
    'error range-is-full {"what":"clusterIP","ranges":["10.96.0.0/30"],"service":"default/s1"}',
    'error range-is-full {"what":"ipv6","ranges":["--service-cluster-ip-range"],"service":"default/s2"}',
  ]);
});

test('the choice hangs on the set of Services alone, is free and in range, and hardly moves when one comes', () => {
  const range = networks('10.96.0.0/20', 'fd00::/112');
  const spec = fc.record({
    name: fc.stringMatching(/^[a-z]{1,6}$/),
    policy: fc.constantFrom('SingleStack', 'PreferDualStack'),
    given: fc.option(fc.integer({ min: 2, max: 4000 }), { nil: undefined }),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(spec, { selector: ({ name }) => name, minLength: 1, maxLength: 40 }),
      fc.nat(),
      (specs, seed) => {
        const bodies = specs.map(({ policy, given }) => {
          const clusterIP = given === undefined ? {} : { clusterIP: `10.96.${given >> 8}.${given & 255}` };
          return { type: 'NodePort', ipFamilyPolicy: policy, ...clusterIP, ...port };
        });
        const made = services(...bodies).map(({ object, source }, i) => {
          const metadata = { ...object.metadata, name: specs[i]?.name ?? '' };
          return { object: { metadata, spec: object.spec, ingress: object.ingress }, source };
        });
        const shuffled = made.toSorted((a, b) => scramble(a, seed) - scramble(b, seed));
        const assign = (all: typeof made): Assignment => assignAddresses(all, { clusterIPs: range, nodePorts });
        const result = assign(made);
        expect(assign(shuffled).assigned).toEqual(result.assigned);
        const chosen = result.assigned.flatMap(({ clusterIPs }) => clusterIPs);
        const given = made.flatMap(({ object }) => object.spec.clusterIPs);
        expect(new Set([...chosen, ...given]).size).toBe(chosen.length + new Set(given).size);
        for (const text of chosen) {
          const address = parseAddress(text);
          expect(address && range.some((network) => contains(network, address))).toBe(true);
        }
        const numbers = result.assigned.flatMap(({ nodePorts: ports }) => Object.values(ports));
        expect(new Set(numbers).size).toBe(numbers.length);
        // One Service fewer: the others keep theirs, except for one that had to give way.
        const fewer = new Map(assign(made.slice(1)).assigned.map((each) => [each.service, each]));
        const moved = result.assigned.filter((each) => {
          const before = fewer.get(each.service);
          return before && JSON.stringify(before) !== JSON.stringify(each);
        });
        expect(moved.length).toBeLessThanOrEqual(3);
      },
    ),
    { numRuns: rounds(100) },
  );
});

function scramble({ object }: Sourced<Service>, seed: number): number {
  return [...object.metadata.name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0) + seed) % 1009, 7);
}

test('load balancers without an address are one note, whatever else they lack', () => {
  const type = 'LoadBalancer';
  const nodePort = { ports: [{ port: 80, nodePort: 30080 }] };
  const pending = services(
    { ...port, type },
    { ...nodePort, type, clusterIP: '10.96.0.7' },
    { ...nodePort, type: 'NodePort', clusterIP: '10.96.0.8' },
    { ...port, type, clusterIP: '10.96.0.9', allocateLoadBalancerNodePorts: false },
  );
  const notes = ({ diagnostics }: Assignment): readonly string[] =>
    describe(diagnostics.filter(({ code }) => code === 'no-load-balancer-ip')).map((line) => line.replace(/^\S+ /, ''));
  expect(notes(assignAddresses(pending, { clusterIPs: [] }))).toEqual([
    'note no-load-balancer-ip {"services":["default/s0","default/s1","default/s3"]}',
  ]);
  expect(notes(assignAddresses(pending.slice(1, 2), { clusterIPs: [] }))).toEqual([
    'note no-load-balancer-ip {"services":["default/s1"]}',
  ]);
  const loadBalancerIPs = networks('203.0.113.0/24');
  expect(notes(assignAddresses(pending, { clusterIPs: networks('10.96.0.0/16'), loadBalancerIPs }))).toEqual([]);
  expect(notes(assignAddresses(pending.slice(2, 3), { clusterIPs: [] }))).toEqual([]);
});
