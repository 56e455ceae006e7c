import { expect, test } from 'vitest';
import { buildCluster } from '../../src/cluster/build-cluster.ts';
import type { Service } from '../../src/cluster/objects.ts';
import { behavioursOf, newestRelease } from '../../src/kube-proxy/releases.ts';

/** The ports of a Service without endpoints. */
function portsOf(spec: Partial<Service['spec']>) {
  const object: Service = {
    metadata: { namespace: 'shop', name: 'web', labels: {}, annotations: {} },
    spec: {
      type: 'ClusterIP',
      clusterIP: '10.96.0.10',
      clusterIPs: ['10.96.0.10'],
      ipFamilies: ['IPv4'],
      externalIPs: [],
      ports: [{ name: '', protocol: 'TCP', port: 80, targetPort: 8080, nodePort: 0 }],
      sessionAffinity: 'None',
      sessionAffinityTimeout: 10800,
      internalTrafficPolicy: 'Cluster',
      externalTrafficPolicy: 'Cluster',
      healthCheckNodePort: 0,
      loadBalancerSourceRanges: [],
      publishNotReadyAddresses: false,
      allocateLoadBalancerNodePorts: true,
      selector: undefined,
      trafficDistribution: '',
      ...spec,
    },
    ingress: [],
  };
  const source = { place: () => ({ file: 'web.yaml', locate: () => ({ file: 'web.yaml', line: 1, column: 1 }) }) };
  const service = { object, source, slices: [], given: [], isServed: false };
  return buildCluster([service], behavioursOf(newestRelease)).servicePorts;
}

function portOf(spec: Partial<Service['spec']>) {
  const [port] = portsOf(spec);
  if (!port) throw new Error('the Service has no port');
  return port;
}

test('ports come by name, then protocol, then family, in whatever order the Service has them', () => {
  const port = (name: string, protocol: 'TCP' | 'UDP') => ({ name, protocol, port: 80, targetPort: 8080, nodePort: 0 });
  const ports = [port('dns', 'UDP'), port('web', 'TCP'), port('', 'TCP'), port('dns', 'TCP')];
  const clusterIPs = ['fd00:96::10', '10.96.0.10'];
  const keysOf = (spec: Partial<Service['spec']>) =>
    portsOf({ clusterIPs, ipFamilies: ['IPv6', 'IPv4'], ...spec }).map((each) =>
      [each.portName, each.protocol, each.family].join(),
    );
  expect(keysOf({ ports })).toEqual(keysOf({ ports: ports.toReversed() }));
  expect(keysOf({ ports })).toEqual(keysOf({ ports }).toSorted());
});

// ExternalPolicyLocal of newBaseServiceInfo (pkg/proxy/serviceport.go).
test.each<[string, Partial<Service['spec']>, boolean]>([
  ['a ClusterIP Service without external addresses', { type: 'ClusterIP' }, false],
  ['a ClusterIP Service with external IPs', { type: 'ClusterIP', externalIPs: ['203.0.113.9'] }, true],
  ['a NodePort Service', { type: 'NodePort' }, true],
  ['a LoadBalancer Service', { type: 'LoadBalancer' }, true],
])('externalTrafficPolicy Local of %s counts: %j is %s', (_, spec, isLocal) => {
  expect(portOf({ ...spec, externalTrafficPolicy: 'Local' }).externalPolicyLocal).toBe(isLocal);
  expect(portOf({ ...spec, externalTrafficPolicy: 'Cluster' }).externalPolicyLocal).toBe(false);
});

test('internalTrafficPolicy Local counts whatever the type', () => {
  expect(portOf({ internalTrafficPolicy: 'Local' }).internalPolicyLocal).toBe(true);
  expect(portOf({}).internalPolicyLocal).toBe(false);
});

test('a timeout of affinity counts with ClientIP alone', () => {
  expect(portOf({ sessionAffinity: 'ClientIP', sessionAffinityTimeout: 60 }).affinitySeconds).toBe(60);
  expect(portOf({ sessionAffinityTimeout: 60 }).affinitySeconds).toBe(0);
});

test.each<[Service['spec']['type'], Service['spec']['externalTrafficPolicy'], number]>([
  ['LoadBalancer', 'Local', 32000],
  ['LoadBalancer', 'Cluster', 0],
  ['NodePort', 'Local', 0],
])('the health check of type %s under policy %s is on port %d', (type, externalTrafficPolicy, port) => {
  expect(portOf({ type, externalTrafficPolicy, healthCheckNodePort: 32000 }).healthCheckNodePort).toBe(port);
});
