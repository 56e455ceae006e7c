import { expect, test } from 'vitest';
import { runKpc } from '../../support/run-kpc.ts';

const service = `apiVersion: v1
kind: Service
metadata: { name: db }
spec: { clusterIP: 10.96.0.11, ports: [{ port: 80, name: http }, { port: 81, name: metrics }] }
---
`;

/** Where kpc sees the port that the Service port's name misses. */
async function placeOf(endpoints: string): Promise<string | undefined> {
  const { stderr } = await runKpc(['compile', '-f', '-', '--print', 'ipvsadm'], { stdin: service + endpoints });
  return /^-:(\d+:\d+): warning: .*\[unknown-port\]$/m.exec(stderr)?.[1];
}

test('a port of Endpoints is told at that port', async () => {
  const endpoints = `apiVersion: v1
kind: Endpoints
metadata: { name: db }
subsets:
  - addresses: [{ ip: 192.0.2.5 }]
    ports:
      - { name: metrics, port: 9090 }
      - { name: htp, port: 8080 }
`;
  expect(await placeOf(endpoints)).toBe('13:9');
});

test('a port of an EndpointSlice is told at that port, not at the first one', async () => {
  const slice = (port: string): string => `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: db-1, labels: { kubernetes.io/service-name: db } }
addressType: IPv4
endpoints: [{ addresses: [192.0.2.5] }]
ports:
  - { name: metrics, port: 9090 }
  - { ${port} }
`;
  expect(await placeOf(slice('name: htp, port: 8080'))).toBe('13:5');
  expect(await placeOf(slice('port: 8080'))).toBe('13:5');
  expect(await placeOf(slice('name: http, port: 8080, protocol: UDP'))).toBe('13:5');
  expect(await placeOf(slice('name: something-else, port: 8080'))).toBe('13:5');
  expect(await placeOf(slice('name: http, port: 8080'))).toBe(undefined);
});
