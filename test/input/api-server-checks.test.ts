import { describe as suite, expect, test } from 'vitest';
import { diagnose, service } from './diagnose.ts';

/** A field that the API server refuses here, because it needs something else. */
const refused = (at: string, field: string, needs: string, more: object = {}): string =>
  `${at} warning ignored-field ${JSON.stringify({ field, needs, ...more })}`;

/** What is said of a Service with these lines of spec; they start at line 5. */
function ofService(...spec: string[]): string[] {
  return diagnose(service(...spec));
}

const port = 'ports: [{port: 80}]';

suite('a Service', () => {
  test.each<[string, string[], string[]]>([
    [
      'ExternalName with a cluster IP',
      ['type: ExternalName', 'externalName: db.example.com', 'clusterIP: 10.96.0.1', 'clusterIPs: [10.96.0.1]'],
      [
        '7:14 error bad-value {"field":"clusterIP","found":{"type":"string","value":"10.96.0.1"},"form":"of-other-type"}',
        '8:15 error bad-value {"field":"clusterIPs","found":{"type":"list"},"form":"of-other-type"}',
      ],
    ],
    [
      'ExternalName without a name',
      ['type: ExternalName', 'externalName: .'],
      ['6:17 error missing-field {"owner":"spec","field":"externalName"}'],
    ],
    [
      'ExternalName with an address',
      ['type: ExternalName', 'externalName: 203.0.113.9'],
      [
        '6:17 warning bad-value {"field":"externalName","found":{"type":"string","value":"203.0.113.9"},"form":"external-name","isWarning":true}',
      ],
    ],
    [
      'a class of load balancers of another type',
      ['loadBalancerClass: a.example/b', port],
      [refused('5:22', 'loadBalancerClass', 'type LoadBalancer')],
    ],
    [
      'ExternalName with families',
      ['type: ExternalName', 'externalName: db.example.com.', 'ipFamilies: [IPv4]', 'ipFamilyPolicy: SingleStack'],
      [refused('7:15', 'ipFamilies', 'another type'), refused('8:19', 'ipFamilyPolicy', 'another type')],
    ],
    [
      'NodePort and headless',
      ['type: NodePort', 'clusterIP: None', port],
      [
        '6:14 error bad-value {"field":"clusterIP","found":{"type":"string","value":"None"},"form":"of-cluster-ip-type"}',
      ],
    ],
    [
      'a family twice',
      ['ipFamilies: [IPv4, IPv4]', 'clusterIP: 10.96.0.1', port],
      ['5:22 error bad-value {"field":"ipFamilies[1]","found":{"type":"string","value":"IPv4"},"form":"families"}'],
    ],
    [
      'one family by policy, two by name',
      ['ipFamilyPolicy: SingleStack', 'ipFamilies: [IPv4, IPv6]', 'clusterIP: 10.96.0.1', port],
      [
        '5:19 warning bad-value {"field":"ipFamilyPolicy","found":{"type":"string","value":"SingleStack"},"form":"family-policy","isWarning":true}',
      ],
    ],
    [
      'a second cluster IP that no family goes with',
      ['ipFamilies: [IPv4]', 'clusterIP: 10.96.0.1', 'clusterIPs: [10.96.0.1, "fd00::1"]', port],
      ['7:27 warning missing-ip-families {"families":1}'],
    ],
    [
      'clusterIPs without clusterIP',
      ['clusterIPs: [10.96.0.1]', port],
      ['5:15 warning missing-cluster-ip {"first":"10.96.0.1"}'],
    ],
    [
      'a cluster IP that no Service can have',
      ['clusterIP: 127.0.0.1', port],
      [
        '5:14 error bad-value {"field":"clusterIP","found":{"type":"string","value":"127.0.0.1"},"form":"address","use":"loopback"}',
      ],
    ],
    [
      'an address in another form',
      ['clusterIP: "FD00:0::1"', port],
      ['5:14 warning odd-address {"field":"clusterIP","value":"FD00:0::1","address":"fd00::1","isRefused":false}'],
    ],
    [
      'leading zeros',
      ['clusterIP: 10.096.0.1', port],
      ['5:14 warning odd-address {"field":"clusterIP","value":"10.096.0.1","address":"10.96.0.1","isRefused":true}'],
    ],
    [
      'fields of other types on ClusterIP',
      [
        'clusterIP: 10.96.0.1',
        'externalTrafficPolicy: Local',
        'healthCheckNodePort: 30000',
        'loadBalancerSourceRanges: [10.0.0.0/8]',
        'allocateLoadBalancerNodePorts: false',
        port,
      ],
      [
        refused('6:26', 'externalTrafficPolicy', 'type NodePort or LoadBalancer, or externalIPs'),
        refused('7:24', 'healthCheckNodePort', 'type LoadBalancer with externalTrafficPolicy Local'),
        refused('8:29', 'loadBalancerSourceRanges', 'type LoadBalancer'),
        refused('9:34', 'allocateLoadBalancerNodePorts', 'type LoadBalancer'),
      ],
    ],
    [
      'a timeout of an affinity that is not set',
      ['clusterIP: 10.96.0.1', 'sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } }', port],
      [refused('6:26', 'sessionAffinityConfig', 'sessionAffinity: ClientIP')],
    ],
    [
      'ranges that are not written as they are read',
      [
        'type: LoadBalancer',
        'clusterIP: 10.96.0.1',
        'loadBalancerSourceRanges: [10.1.2.3/8, " 10.0.0.0/08", "FD00::/8"]',
        'ports: [{port: 80, nodePort: 30080}]',
      ],
      [
        '7:30 warning odd-address {"field":"loadBalancerSourceRanges[0]","value":"10.1.2.3/8","address":"10.0.0.0/8","single":"10.1.2.3/32","isRefused":true}',
        '7:42 warning odd-address {"field":"loadBalancerSourceRanges[1]","value":"10.0.0.0/08","address":"10.0.0.0/8","isRefused":true}',
        '7:58 warning odd-address {"field":"loadBalancerSourceRanges[2]","value":"FD00::/8","address":"fd00::/8","isRefused":false}',
      ],
    ],
    [
      'an unknown distribution of traffic',
      ['clusterIP: 10.96.0.1', 'trafficDistribution: PreferCloses', port],
      [
        '6:24 warning bad-value {"field":"trafficDistribution","found":{"type":"string","value":"PreferCloses"},"form":"traffic-distribution","isWarning":true}',
      ],
    ],
    [
      'the selector of a Deployment',
      ['clusterIP: 10.96.0.1', 'selector: { matchLabels: { app: web } }', port],
      [
        '6:28 error bad-value {"field":"matchLabels","found":{"type":"mapping"},"types":["string","null"],"expected":"a string"}',
      ],
    ],
    [
      'two ports of a protocol without a name',
      ['clusterIP: 10.96.0.1', 'ports: [{port: 80}, {port: 81}, {port: 81, protocol: UDP}]'],
      [
        '6:11 warning unnamed-port {}',
        '6:23 error duplicate-port {"field":"name","value":"","first":0}',
        '6:35 warning unnamed-port {}',
      ],
    ],
  ])('%s', (_, spec, messages) => {
    expect(ofService(...spec)).toEqual(messages);
  });

  test.each(['"web\\nx"', 'Web', 'a--b', '-web', 'a-name-of-more-than-15', '"123-"', "''''", '1-2'])(
    'targetPort %s',
    (name) => {
      const messages = ofService('clusterIP: 10.96.0.1', `ports: [{port: 80, targetPort: ${name}}]`);
      expect(messages).toEqual([
        expect.stringMatching(/^6:34 error bad-value \{"field":"targetPort",.*"form":"port-name"\}$/),
      ]);
    },
  );

  test.each(['http', 'http-2', 'a', '8080', '15-characters-x'])('targetPort %s is right', (name) => {
    expect(ofService('clusterIP: 10.96.0.1', `ports: [{port: 80, targetPort: ${name}}]`)).toEqual([]);
  });

  test('the address and host name of a load balancer on another type', () => {
    const text = `${service('clusterIP: 10.96.0.1', port)}status: {loadBalancer: {ingress: [{ip: 203.0.113.1, hostname: "a b"}]}}\n`;
    expect(diagnose(text)).toEqual([
      refused('7:24', 'status.loadBalancer', 'type LoadBalancer', { clearedFrom: '1.29' }),
      '7:63 warning bad-value {"field":"hostname","found":{"type":"string","value":"a b"},"form":"subdomain","isWarning":true}',
    ]);
  });

  test('what a cluster holds is taken without a word', () => {
    expect(
      ofService(
        'type: LoadBalancer',
        'allocateLoadBalancerNodePorts: true',
        'clusterIP: 10.96.0.1',
        'clusterIPs: [10.96.0.1]',
        'externalTrafficPolicy: Local',
        'healthCheckNodePort: 32000',
        'internalTrafficPolicy: Cluster',
        'ipFamilies: [IPv4]',
        'ipFamilyPolicy: SingleStack',
        'loadBalancerSourceRanges: [" 10.0.0.0/8 "]',
        'trafficDistribution: PreferSameNode',
        'ports: [{name: a, port: 80, nodePort: 30080, targetPort: http}, {name: b, port: 80, protocol: UDP, nodePort: 30080}]',
      ),
    ).toEqual([]);
    expect(ofService('clusterIP: 10.96.0.1', 'externalIPs: [192.0.2.1]', 'externalTrafficPolicy: Local', port)).toEqual(
      [],
    );
    // The API server looks at externalName of no other type.
    expect(ofService('clusterIP: 10.96.0.1', 'externalName: "a b"', port)).toEqual([]);
  });
});

/** What is said of an IPv4 slice with these lines, which start at line 4. */
function ofSlice(...lines: string[]): string[] {
  return diagnose(
    `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web-1, labels: {kubernetes.io/service-name: web}}\n${lines.join('\n')}\n`,
  );
}

suite('an EndpointSlice', () => {
  const address = (i: number) => `10.244.${i >> 8}.${(i & 255) === 0 ? 1 : i & 255}`;

  test('more endpoints than one may hold', () => {
    const endpoints = (count: number) =>
      `endpoints: [${Array.from({ length: count }, (_, i) => `{addresses: [${address(i)}]}`).join(', ')}]`;
    expect(ofSlice('addressType: IPv4', endpoints(1000))).toEqual([]);
    expect(ofSlice('addressType: IPv4', endpoints(1001))).toEqual([
      '5:12 warning too-many {"object":"EndpointSlice","field":"endpoints","count":1001,"limit":1000}',
    ]);
  });

  test('more ports than one may hold', () => {
    const ports = Array.from({ length: 20_001 }, (_, i) => `{name: p-${i}, port: 80}`).join(', ');
    expect(ofSlice('addressType: IPv4', `ports: [${ports}]`)).toEqual([
      '5:8 warning too-many {"object":"EndpointSlice","field":"ports","count":20001,"limit":20000}',
    ]);
  });

  test('more than one address of an endpoint', () => {
    expect(ofSlice('addressType: IPv4', 'endpoints: [{addresses: [10.0.0.1, 10.0.0.2]}]')).toEqual([
      '5:25 warning extra-addresses {"index":0,"count":2}',
    ]);
  });

  test.each([
    [
      'ports: [{name: a, port: 80}, {name: a, port: 81}]',
      '5:30 warning duplicate-port {"field":"name","value":"a","first":0,"isOfSlice":true}',
    ],
    [
      'ports: [{port: 80}, {name: "", port: 81}]',
      '5:21 warning duplicate-port {"field":"name","value":"","first":0,"isOfSlice":true}',
    ],
    [
      'ports: [{name: a, port: 80}, {name: a, port: 80, protocol: UDP}]',
      '5:30 warning duplicate-port {"field":"name","value":"a","first":0,"isOfSlice":true}',
    ],
  ])('%s', (ports, message) => {
    expect(ofSlice('addressType: IPv4', ports)).toEqual([message]);
  });

  test('an IPv6 address in another form', () => {
    expect(ofSlice('addressType: IPv6', 'endpoints: [{addresses: ["FD00::1"]}]')).toEqual([
      '5:26 warning odd-address {"field":"addresses[0]","value":"FD00::1","address":"fd00::1","isRefused":false}',
    ]);
  });

  test('names that are none', () => {
    expect(ofSlice('addressType: FQDN', 'endpoints: [{addresses: ["a\\nb"]}, {addresses: [db.example.com.]}]')).toEqual(
      ['5:26 error bad-value {"field":"addresses[0]","found":{"type":"string","value":"a\\nb"},"form":"subdomain"}'],
    );
  });

  test('hints that are none, and too many', () => {
    const zones = Array.from({ length: 9 }, (_, i) => `{name: zone-${i}}`).join(', ');
    expect(
      ofSlice(
        'addressType: IPv4',
        'endpoints:',
        '- addresses: [10.0.0.1]',
        `  hints: {forZones: [${zones}]}`,
        '- addresses: [10.0.0.2]',
        '  hints: {forZones: [{name: "a b"}], forNodes: [{name: A_b}]}',
      ),
    ).toEqual([
      '9:22 warning bad-value {"field":"forZones[0]","found":{"type":"string","value":"a b"},"form":"label-value","isWarning":true}',
      '9:49 warning bad-value {"field":"forNodes[0]","found":{"type":"string","value":"A_b"},"form":"subdomain","isWarning":true}',
    ]);
  });

  test('a port without a number stands for all of them', () => {
    expect(ofSlice('addressType: IPv4', 'ports: [{name: "", protocol: TCP, port: null}]')).toEqual([]);
  });
});

suite('Endpoints', () => {
  const of = (...lines: string[]) =>
    diagnose(`apiVersion: v1\nkind: Endpoints\nmetadata: {name: web}\nsubsets:\n${lines.join('\n')}\n`);

  test('port 0, no port, and ports without a name', () => {
    expect(of('- addresses: [{ip: 10.0.0.1}]', '  ports: [{name: a, port: 0}, {name: b}, {port: 80}]')).toEqual([
      '6:27 error missing-field {"owner":"ports[0]","field":"port"}',
      '6:31 error missing-field {"owner":"ports[1]","field":"port"}',
      '6:42 warning unnamed-port {}',
    ]);
  });

  test('a host name that is none', () => {
    expect(of('- addresses: [{ip: 10.0.0.1, hostname: "a\\nb"}]', '  ports: [{port: 80}]')).toEqual([
      '5:40 error bad-value {"field":"hostname","found":{"type":"string","value":"a\\nb"},"form":"label"}',
    ]);
  });
});

suite('a Node', () => {
  const of = (...lines: string[]) => diagnose(`apiVersion: v1\nkind: Node\n${lines.join('\n')}\n`);

  test.each([
    [
      'podCIDRs: [10.244.0.0/24, 10.244.1.0/24]',
      '4:18 error bad-value {"field":"podCIDRs","found":{"type":"string","value":"10.244.0.0/24,10.244.1.0/24"},"form":"networks"}',
    ],
    [
      'podCIDR: 10.244.0.5/24',
      '4:17 warning odd-address {"field":"podCIDR","value":"10.244.0.5/24","address":"10.244.0.0/24","single":"10.244.0.5/32","isRefused":true}',
    ],
  ])('%s', (spec, message) => {
    expect(of('metadata: {name: worker-1}', `spec: {${spec}}`)).toEqual([message]);
  });

  test('a zone that is none', () => {
    expect(of('metadata: {name: worker-1, labels: {topology.kubernetes.io/zone: "a b"}}')).toEqual([
      '3:66 error bad-value {"field":"topology.kubernetes.io/zone","found":{"type":"string","value":"a b"},"form":"label-value"}',
    ]);
  });
});
