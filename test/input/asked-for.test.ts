import { expect, test } from 'vitest';
import { assignAddresses, type Assignment } from '../../src/cluster/assign-addresses.ts';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { parseNetwork } from '../../src/kernel/address.ts';
import { describe } from './diagnose.ts';

const networks = (...texts: string[]) => texts.flatMap((text) => parseNetwork(text) ?? expect.fail(text));

/** What Services of these specs are given, named a, b, c …; each is on a line of its own, from line 3. */
function assign(
  specs: readonly object[],
  clusterIPs: readonly string[],
  loadBalancerIPs: readonly string[] = [],
): Assignment {
  const items = specs.map((spec, i) => {
    const name = String.fromCharCode(97 + i);
    const object = { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } };
    return `- ${JSON.stringify(object)}\n`;
  });
  const text = `{kind: List, apiVersion: v1, items: [\n\n${items.map((item) => item.slice(2).replace('\n', ',\n')).join('')}]}\n`;
  const { services } = collectFiles([new TextFile('in.yaml', text)]);
  return assignAddresses(services, {
    clusterIPs: networks(...clusterIPs),
    loadBalancerIPs: networks(...loadBalancerIPs),
  });
}

const addressesOf = ({ services }: Assignment) =>
  services.map(({ object: { ingress } }) => ingress.map(({ ip }) => ip).join());

const balanced = (name: string, more: object = {}) => ({
  type: 'LoadBalancer',
  allocateLoadBalancerNodePorts: false,
  clusterIP: `10.96.0.${name}`,
  ...more,
});

test('a load balancer gets the address that its Service asks for', () => {
  const range = ['203.0.113.0/29'];
  const all = assign(
    [balanced('1'), balanced('2'), balanced('3'), balanced('4'), balanced('5', { loadBalancerIP: '203.0.113.3' })],
    [],
    range,
  );
  const [, , , , asking] = addressesOf(all);
  expect(asking).toBe('203.0.113.3');
  // None of the others got it, although they come first.
  expect(new Set(addressesOf(all)).size).toBe(5);
  expect(describe(all.diagnostics)).toEqual([]);
  expect(all.assigned.at(-1)).toMatchObject({ service: 'default/e', loadBalancerIPs: ['203.0.113.3'] });
});

test('of two that ask for one address, the first by name gets it, in any order', () => {
  const specs = [
    balanced('1', { loadBalancerIP: '203.0.113.3' }),
    balanced('2', { loadBalancerIP: '203.0.113.3' }),
  ] as const;
  const all = assign(specs, [], ['203.0.113.0/24']);
  const [first, second] = addressesOf(all);
  expect(first).toBe('203.0.113.3');
  expect(second).toMatch(/^203\.0\.113\./);
  expect(second).not.toBe(first);
  expect(describe(all.diagnostics)).toEqual([
    expect.stringMatching(
      /^4:\d+ warning other-load-balancer-ip \{"service":"default\/b","asked":"203\.0\.113\.3",.*"holder":"default\/a"\}$/,
    ),
  ]);
});

test('Services with different ports share the address that they ask for', () => {
  const ask = (last: string, port: number, protocol: string) =>
    balanced(last, { loadBalancerIP: '203.0.113.3', ports: [{ port, protocol }] });
  const all = assign(
    [ask('1', 53, 'TCP'), ask('2', 53, 'UDP'), ask('3', 80, 'TCP'), balanced('4')],
    [],
    ['203.0.113.0/29'],
  );
  const [first, second, third, other] = addressesOf(all);
  expect([first, second, third]).toEqual(['203.0.113.3', '203.0.113.3', '203.0.113.3']);
  expect(other).not.toBe('203.0.113.3');
  expect(describe(all.diagnostics)).toEqual([]);
});

test('an address that no range has, or that another Service has already, is not given', () => {
  const all = assign(
    [
      balanced('1', { loadBalancerIP: '198.51.100.7' }),
      balanced('2', { loadBalancerIP: '203.0.113.9' }),
      { clusterIP: '10.96.0.3', externalIPs: ['203.0.113.9'] },
    ],
    [],
    ['203.0.113.0/24'],
  );
  expect(addressesOf(all)).toEqual([
    expect.stringMatching(/^203\.0\.113\.(?!9$)/),
    expect.stringMatching(/^203\.0\.113\.(?!9$)/),
    '',
  ]);
  expect(all.diagnostics.map(({ severity, code }) => `${severity} ${code}`)).toEqual([
    'warning other-load-balancer-ip',
    'warning other-load-balancer-ip',
  ]);
});

test('the other family of a Service that asks for one address is chosen', () => {
  const dual = { clusterIPs: ['10.96.0.1', 'fd00::1'], ipFamilies: ['IPv4', 'IPv6'], loadBalancerIP: '2001:db8::0007' };
  const all = assign([balanced('1', dual)], [], ['203.0.113.0/24', '2001:db8::/64']);
  expect(addressesOf(all)).toEqual([expect.stringMatching(/^203\.0\.113\.\d+,2001:db8::7$/)]);
  expect(describe(all.diagnostics)).toEqual([]);
});

test('what is no address says nothing to a load balancer, and nothing where no range is given', () => {
  const all = assign([balanced('1', { loadBalancerIP: 'any' })], [], ['203.0.113.0/24']);
  expect(addressesOf(all)).toEqual([expect.stringMatching(/^203\.0\.113\./)]);
  expect(describe(all.diagnostics)).toEqual([]);
  expect(addressesOf(assign([balanced('1', { loadBalancerIP: '203.0.113.3' })], []))).toEqual(['']);
});

test('a Service that requires both families is an error where there is a range of one', () => {
  const all = assign(
    [
      { ipFamilyPolicy: 'RequireDualStack' },
      { ipFamilyPolicy: 'RequireDualStack', clusterIP: '10.96.0.9' },
      { ipFamilyPolicy: 'PreferDualStack' },
      { ipFamilyPolicy: 'PreferDualStack', clusterIP: '10.96.0.10' },
    ],
    ['10.96.0.0/16'],
  );
  expect(describe(all.diagnostics)).toEqual([
    expect.stringMatching(/^3:\d+ error range-is-full \{"what":"ipv6",.*"service":"default\/a"\}$/),
    expect.stringMatching(/^4:\d+ error range-is-full \{"what":"ipv6",.*"service":"default\/b"\}$/),
  ]);
  expect(all.services.map(({ object }) => object.spec.clusterIPs.length)).toEqual([0, 1, 1, 1]);
  expect(all.assigned.map(({ service }) => service)).toEqual(['default/c']);
});

test('a cluster IP that the manifest names gets one of the other family beside it, as its policy says', () => {
  const range = ['10.96.0.0/16', 'fd00::/112'];
  const all = assign(
    [
      { ipFamilyPolicy: 'RequireDualStack', clusterIP: '10.96.0.9' },
      { ipFamilyPolicy: 'PreferDualStack', clusterIP: 'fd00::9' },
      { ipFamilyPolicy: 'SingleStack', clusterIP: '10.96.0.10' },
      // As a cluster has it that became dual stack later.
      { ipFamilyPolicy: 'PreferDualStack', clusterIP: '10.96.0.11', clusterIPs: ['10.96.0.11'], ipFamilies: ['IPv4'] },
      { ipFamilyPolicy: 'RequireDualStack', clusterIP: 'None' },
    ],
    range,
  );
  expect(describe(all.diagnostics)).toEqual([]);
  expect(all.services.map(({ object: { spec } }) => [spec.ipFamilies.join(), spec.clusterIPs.length])).toEqual([
    ['IPv4,IPv6', 2],
    ['IPv6,IPv4', 2],
    ['', 1],
    ['IPv4', 1],
    ['IPv4,IPv6', 1],
  ]);
  expect(all.services[0]?.object.spec.clusterIPs[0]).toBe('10.96.0.9');
  expect(all.services[1]?.object.spec.clusterIPs[0]).toBe('fd00::9');
});
