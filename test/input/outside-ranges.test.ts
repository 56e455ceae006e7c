import { expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const service = (name: string, spec: object) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'shop' },
  spec,
});

const cidr = (name: string, ...cidrs: string[]) => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'ServiceCIDR',
  metadata: { name },
  spec: { cidrs },
});

/** The warnings of this kind, each with its line and column. */
async function warnings(objects: readonly object[], ...flags: string[]): Promise<readonly string[]> {
  const stdin = objects.map((object) => JSON.stringify(object)).join('\n');
  const { status, stderr } = await runKpc(['compile', '-f', '-', '--print', 'ipvsadm', ...flags], { stdin });
  expect(status).toBe(0);
  return stderr.split('\n').filter((line) => line.includes('[outside-range]'));
}

const nodePort = (number: number) => ({
  type: 'NodePort',
  clusterIP: '10.96.0.9',
  ports: [{ port: 80, nodePort: number }],
});
const ranges = ['--service-cluster-ip-range', '10.96.0.0/16', '--service-node-port-range', '30000-32767'];

test('a node port outside of the range of the API server', async () => {
  const line = JSON.stringify(service('web', nodePort(8080)));
  expect(await warnings([service('web', nodePort(8080))], ...ranges)).toEqual([
    `-:1:${line.indexOf('8080') + 1}: warning: nodePort outside of the range 30000-32767, which the API server refuses: shop/web 8080 [outside-range]`,
  ]);
  for (const number of [30000, 32767]) {
    expect(await warnings([service('web', nodePort(number))], ...ranges)).toEqual([]);
  }
  expect(await warnings([service('web', nodePort(8080))])).toEqual([]);
});

test('a health check node port outside of it', async () => {
  const spec = { ...nodePort(30080), type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 1234 };
  expect(await warnings([service('web', spec)], ...ranges)).toEqual([
    expect.stringContaining('nodePort outside of the range 30000-32767, which the API server refuses: shop/web 1234'),
  ]);
});

test('cluster IPs outside of the networks of their family are told in one warning', async () => {
  const ports = [{ port: 80 }];
  const objects = [
    service('a', { clusterIP: '10.96.255.255', ports }),
    service('b', { clusterIP: '10.97.0.1', ports }),
    service('c', { clusterIP: 'None', ports }),
    service('d', { type: 'ExternalName', externalName: 'example.com' }),
    // Of a family without a range: nothing is known.
    service('e', { clusterIP: 'fd00::1', ports }),
    service('f', { clusterIP: '172.16.0.1', ports }),
  ];
  expect(await warnings(objects, ...ranges)).toEqual([
    expect.stringMatching(
      /^-:2:\d+: warning: clusterIP outside of the range 10\.96\.0\.0\/16, which the API server refuses: shop\/b 10\.97\.0\.1, shop\/f 172\.16\.0\.1 \[/,
    ),
  ]);
});

test('the second address of a Service counts, too', async () => {
  const dual = {
    clusterIP: '10.96.0.9',
    clusterIPs: ['10.96.0.9', 'fd00:1::9'],
    ipFamilies: ['IPv4', 'IPv6'],
    ports: [{ port: 80 }],
  };
  expect(await warnings([service('web', dual)], '--service-cluster-ip-range', '10.96.0.0/16,fd00::/112')).toEqual([
    expect.stringContaining('the range 10.96.0.0/16, fd00::/112, which the API server refuses: shop/web fd00:1::9'),
  ]);
});

test('Services of a cluster that is given with its ServiceCIDRs are as its API server has them', async () => {
  const web = service('web', { clusterIP: '10.97.0.9', ports: [{ port: 80 }] });
  expect(await warnings([web, cidr('kubernetes', '10.96.0.0/16')])).toEqual([]);
});

test('what kpc chooses itself is never outside', async () => {
  const objects = [service('web', { type: 'NodePort', ports: [{ port: 80 }] })];
  expect(await warnings(objects, ...ranges)).toEqual([]);
});
