import { describe, expect, test } from 'vitest';
import { buildCluster } from '../../src/cluster/build-cluster.ts';
import { findSlices } from '../../src/cluster/slices/find-slices.ts';
import type { ServicePort } from '../../src/cluster/model.ts';
import { behavioursOf, type Release } from '../../src/kube-proxy/releases.ts';
import { readInputs } from '../support/read-inputs.ts';

/** The ports of the Service shop/web with these fields in its spec, and others in its metadata and status. */
function portsOf(
  spec: string,
  { metadata = '', status = '', sliceLabels = '', release = '1.37' as Release } = {},
): readonly ServicePort[] {
  const text = `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop${metadata}}
spec: {clusterIP: 10.96.0.10, ports: [{port: 80}], ${spec}}
status: {${status}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web${sliceLabels}}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.244.1.5], hints: {forZones: [{name: a}], forNodes: [{name: node-1}]}}]
`;
  const inputs = readInputs(['-'], { stdin: text });
  return buildCluster(findSlices(inputs, undefined).services, behavioursOf(release)).servicePorts;
}

const only = (...args: Parameters<typeof portsOf>): ServicePort | undefined => {
  const [port, ...others] = portsOf(...args);
  expect(others).toEqual([]);
  return port;
};

describe('source ranges', () => {
  const spec = (ranges: string) => `type: LoadBalancer, loadBalancerSourceRanges: [${ranges}]`;
  const texts = (port: ServicePort | undefined) => port?.sourceRanges.map(({ text }) => text);

  test('are those of the family of the cluster IP', () => {
    expect(texts(only(spec('10.0.0.0/8, "fd00::/8"')))).toEqual(['10.0.0.0/8']);
  });

  test('that hold every address restrict nothing, from 1.34 on', () => {
    expect(texts(only(spec('10.0.0.0/8, 0.0.0.0/0')))).toEqual([]);
    expect(texts(only(spec('10.0.0.0/8, 0.0.0.0/0'), { release: '1.33' }))).toEqual(['10.0.0.0/8', '0.0.0.0/0']);
  });
});

test('a load balancer address of mode Proxy is not programmed', () => {
  const status = 'loadBalancer: {ingress: [{ip: 192.0.2.1, ipMode: Proxy}, {ip: 192.0.2.2}]}';
  expect(only('type: LoadBalancer', { status })?.loadBalancerIPs.map(({ text }) => text)).toEqual(['192.0.2.2']);
});

describe('hints up to 1.30', () => {
  const hints = (metadata: string, release: Release) => {
    const [endpoint] = only('type: ClusterIP', { metadata, release })?.endpoints ?? [];
    return [endpoint?.status.zoneHints.length, endpoint?.status.nodeHints.length];
  };
  const annotated = (value: string, name = 'topology-mode') =>
    `, annotations: {service.kubernetes.io/${name}: ${value}}`;

  test('count where the annotation asks for them, and the older annotation goes first', () => {
    expect(hints('', '1.30')).toEqual([0, 0]);
    expect(hints(annotated('Auto'), '1.30')).toEqual([1, 0]);
    expect(hints(annotated('Disabled'), '1.30')).toEqual([0, 0]);
    expect(hints(annotated('disabled', 'topology-aware-hints'), '1.30')).toEqual([0, 0]);
    const both = `, annotations: {service.kubernetes.io/topology-aware-hints: Disabled, service.kubernetes.io/topology-mode: Auto}`;
    expect(hints(both, '1.30')).toEqual([0, 0]);
    expect(hints('', '1.31')).toEqual([1, 0]);
    expect(hints('', '1.34')).toEqual([1, 1]);
  });
});

test('kube-proxy watches no slice of a headless Service, and up to 1.35 none that is left to another proxy', () => {
  const count = (label: string, release: Release) =>
    only('type: ClusterIP', { sliceLabels: `, service.kubernetes.io/${label}: ""`, release })?.endpoints.length;
  expect([count('headless', '1.35'), count('headless', '1.36')]).toEqual([0, 0]);
  expect([count('service-proxy-name', '1.35'), count('service-proxy-name', '1.36')]).toEqual([0, 1]);
});
