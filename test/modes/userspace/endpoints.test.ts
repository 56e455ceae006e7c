import { expect, test } from 'vitest';
import { compile } from '../../../src/library/index.ts';

const service = (spec: object) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'stats' },
  spec: { clusterIP: '10.96.0.5', ...spec },
});
const slice = (name: string, protocol: string, port: number, ...ready: readonly boolean[]) => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name, labels: { 'kubernetes.io/service-name': 'stats' } },
  addressType: 'IPv4',
  ports: [{ name: '', port, protocol }],
  endpoints: ready.map((each) => ({ addresses: ['10.244.1.4'], conditions: { ready: each } })),
});

/** The files of a bundle as kube-proxy 1.25 has its rules and proxy ports. */
function compileAll(...objects: readonly object[]) {
  const manifests = objects.map((object, i) => ({ name: `${i}.json`, text: JSON.stringify(object) }));
  const { bundle } = compile({ manifests, proxyMode: 'userspace', kubernetesVersion: '1.25' });
  const servers = (bundle?.files.get('balancer.conf') ?? '').matchAll(/^ *server (\S+) /gm);
  return { endpoints: [...servers].map(([, at]) => at), rules: bundle?.files.get('iptables.restore') ?? '' };
}

const udp = service({ ports: [{ port: 8125, protocol: 'UDP' }] });

test('a Service port takes the endpoints of its name, whatever their protocol', () => {
  expect(compileAll(udp, slice('a', 'TCP', 8080, true)).endpoints).toEqual(['10.244.1.4:8080']);
  const both = compileAll(udp, slice('a', 'TCP', 8080, true), slice('b', 'UDP', 5353, true));
  expect(both.endpoints.toSorted()).toEqual(['10.244.1.4:5353', '10.244.1.4:8080']);
});

test('an address that is ready and not ready is not ready, unless that is at ports of two protocols', () => {
  for (const ready of [
    [true, false],
    [false, true],
  ]) {
    expect(compileAll(udp, slice('a', 'UDP', 8080, ...ready)).endpoints).toEqual([]);
    const [one = true, other = true] = ready;
    expect(compileAll(udp, slice('a', 'UDP', 8080, one), slice('b', 'UDP', 8080, other)).endpoints).toEqual([]);
    expect(compileAll(udp, slice('a', 'UDP', 8080, one), slice('b', 'TCP', 8080, other)).endpoints).toEqual([
      '10.244.1.4:8080',
    ]);
  }
});

test('an address that is named twice has its rules once', () => {
  const once = compileAll(service({ externalIPs: ['198.51.100.5'], ports: [{ port: 80 }] })).rules;
  const twice = compileAll(service({ externalIPs: ['198.51.100.5', '198.51.100.5'], ports: [{ port: 80 }] })).rules;
  expect(once).toContain('198.51.100.5');
  expect(twice).toBe(once);
});
