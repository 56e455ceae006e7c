import { describe as suite, expect, test } from 'vitest';
import { diagnose, service } from './diagnose.ts';

const left = ': remove it [ignored-field]';

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
        '7:14 error: clusterIP cannot be "10.96.0.1": a Service of type ExternalName has no cluster IP: write no address, or another type [bad-value]',
        '8:15 error: clusterIPs cannot be a list: a Service of type ExternalName has no cluster IP: write no address, or another type [bad-value]',
      ],
    ],
    [
      'ExternalName without a name',
      ['type: ExternalName', 'externalName: .'],
      [
        '6:17 error: spec has no externalName: write the DNS name that this Service of type ExternalName stands for [missing-field]',
      ],
    ],
    [
      'ExternalName with an address',
      ['type: ExternalName', 'externalName: 203.0.113.9'],
      [
        '6:17 warning: externalName cannot be "203.0.113.9": DNS looks it up as a name, and finds none: write a DNS name; for an address, use an EndpointSlice and a Service without a selector [bad-value]',
      ],
    ],
    [
      'a class of load balancers of another type',
      ['loadBalancerClass: a.example/b', port],
      [`5:22 warning: the API server refuses loadBalancerClass here, because it needs type LoadBalancer${left}`],
    ],
    [
      'ExternalName with families',
      ['type: ExternalName', 'externalName: db.example.com.', 'ipFamilies: [IPv4]', 'ipFamilyPolicy: SingleStack'],
      [
        `7:15 warning: the API server refuses ipFamilies here, because it needs another type${left}`,
        `8:19 warning: the API server refuses ipFamilyPolicy here, because it needs another type${left}`,
      ],
    ],
    [
      'NodePort and headless',
      ['type: NodePort', 'clusterIP: None', port],
      [
        '6:14 error: clusterIP cannot be "None": a Service of type NodePort or LoadBalancer cannot be headless: write type: ClusterIP, or no clusterIP [bad-value]',
      ],
    ],
    [
      'a family twice',
      ['ipFamilies: [IPv4, IPv4]', 'clusterIP: 10.96.0.1', port],
      ['5:22 error: ipFamilies[1] cannot be "IPv4": write each family once [bad-value]'],
    ],
    [
      'one family by policy, two by name',
      ['ipFamilyPolicy: SingleStack', 'ipFamilies: [IPv4, IPv6]', 'clusterIP: 10.96.0.1', port],
      [
        '5:19 warning: ipFamilyPolicy cannot be "SingleStack": the rules are made without it: write PreferDualStack or RequireDualStack for two ipFamilies [bad-value]',
      ],
    ],
    [
      'a second cluster IP that no family goes with',
      ['ipFamilies: [IPv4]', 'clusterIP: 10.96.0.1', 'clusterIPs: [10.96.0.1, "fd00::1"]', port],
      [
        '7:27 warning: kube-proxy uses only the first of clusterIPs, because ipFamilies names only one family: name the family of each address in ipFamilies [missing-ip-families]',
      ],
    ],
    [
      'clusterIPs without clusterIP',
      ['clusterIPs: [10.96.0.1]', port],
      [
        '5:15 warning: the API server accepts clusterIPs only with a clusterIP: add clusterIP: 10.96.0.1 [missing-cluster-ip]',
      ],
    ],
    [
      'a cluster IP that no Service can have',
      ['clusterIP: 127.0.0.1', port],
      [
        '5:14 error: clusterIP cannot be "127.0.0.1": it is a loopback address: write an IP address such as 10.0.0.1 or fd00::1, without a prefix length [bad-value]',
      ],
    ],
    [
      'an address in another form',
      ['clusterIP: "FD00:0::1"', port],
      [
        '5:14 warning: clusterIP "FD00:0::1" is read as fd00::1: write this form, because other programs may read the address differently [odd-address]',
      ],
    ],
    [
      'leading zeros',
      ['clusterIP: 10.096.0.1', port],
      [
        '5:14 warning: clusterIP "10.096.0.1" is read as 10.96.0.1; API servers refuse it in new objects, by default from Kubernetes 1.36 on and always from 1.38 on: write this form, because other programs may read the address differently [odd-address]',
      ],
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
        `6:26 warning: the API server refuses externalTrafficPolicy here, because it needs type NodePort or LoadBalancer, or externalIPs${left}`,
        `7:24 warning: the API server refuses healthCheckNodePort here, because it needs type LoadBalancer with externalTrafficPolicy Local${left}`,
        `8:29 warning: the API server refuses loadBalancerSourceRanges here, because it needs type LoadBalancer${left}`,
        `9:34 warning: the API server refuses allocateLoadBalancerNodePorts here, because it needs type LoadBalancer${left}`,
      ],
    ],
    [
      'a timeout of an affinity that is not set',
      ['clusterIP: 10.96.0.1', 'sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } }', port],
      [
        `6:26 warning: the API server refuses sessionAffinityConfig here, because it needs sessionAffinity: ClientIP${left}`,
      ],
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
        '7:30 warning: loadBalancerSourceRanges[0] "10.1.2.3/8" is read as 10.0.0.0/8; API servers refuse it in new objects, by default from Kubernetes 1.36 on and always from 1.38 on: write 10.0.0.0/8, or 10.1.2.3/32 for the one address [odd-address]',
        '7:42 warning: loadBalancerSourceRanges[1] "10.0.0.0/08" is read as 10.0.0.0/8; API servers refuse it in new objects, by default from Kubernetes 1.36 on and always from 1.38 on: write this form, because other programs may read the address differently [odd-address]',
        '7:58 warning: loadBalancerSourceRanges[2] "FD00::/8" is read as fd00::/8: write this form, because other programs may read the address differently [odd-address]',
      ],
    ],
    [
      'an unknown distribution of traffic',
      ['clusterIP: 10.96.0.1', 'trafficDistribution: PreferCloses', port],
      [
        '6:24 warning: trafficDistribution cannot be "PreferCloses": API servers refuse it, and the rules are made without it: write PreferSameZone, PreferSameNode or PreferClose [bad-value]',
      ],
    ],
    [
      'the selector of a Deployment',
      ['clusterIP: 10.96.0.1', 'selector: { matchLabels: { app: web } }', port],
      [
        '6:28 error: matchLabels cannot be a mapping: write the labels themselves here: this selector takes no matchLabels and no matchExpressions [bad-value]',
      ],
    ],
    [
      'two ports of a protocol without a name',
      ['clusterIP: 10.96.0.1', 'ports: [{port: 80}, {port: 81}, {port: 81, protocol: UDP}]'],
      [
        '6:11 warning: this port has no name: name each port if there are several [unnamed-port]',
        '6:23 error: neither this port nor ports[0] has a name: give each port its own name [duplicate-port]',
        '6:35 warning: this port has no name: name each port if there are several [unnamed-port]',
      ],
    ],
  ])('%s', (_, spec, messages) => {
    expect(ofService(...spec)).toEqual(messages);
  });

  test.each(['"web\\nx"', 'Web', 'a--b', '-web', 'a-name-of-more-than-15', '"123-"', "''''", '1-2'])(
    'targetPort %s',
    (name) => {
      const messages = ofService('clusterIP: 10.96.0.1', `ports: [{port: 80, targetPort: ${name}}]`);
      expect(messages).toHaveLength(1);
      expect(messages[0]).toMatch(
        /^6:34 error: targetPort cannot be .*: write lower-case letters.*15 at most \[bad-value\]$/,
      );
    },
  );

  test.each(['http', 'http-2', 'a', '8080', '15-characters-x'])('targetPort %s is right', (name) => {
    expect(ofService('clusterIP: 10.96.0.1', `ports: [{port: 80, targetPort: ${name}}]`)).toEqual([]);
  });

  test('the address and host name of a load balancer on another type', () => {
    const text = `${service('clusterIP: 10.96.0.1', port)}status: {loadBalancer: {ingress: [{ip: 203.0.113.1, hostname: "a b"}]}}\n`;
    expect(diagnose(text)).toEqual([
      `7:24 warning: the API server of 1.29 or later clears status.loadBalancer here, because it needs type LoadBalancer${left}`,
      '7:63 warning: hostname cannot be "a b": write lower-case letters, digits, dashes and dots, 253 characters at most, with a letter or digit at both ends [bad-value]',
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
      '5:12 warning: the API server refuses this EndpointSlice: it has 1001 endpoints, but 1000 are allowed: split it [too-many]',
    ]);
  });

  test('more ports than one may hold', () => {
    const ports = Array.from({ length: 20_001 }, (_, i) => `{name: p-${i}, port: 80}`).join(', ');
    expect(ofSlice('addressType: IPv4', `ports: [${ports}]`)).toEqual([
      '5:8 warning: the API server refuses this EndpointSlice: it has 20001 ports, but 20000 are allowed: split it [too-many]',
    ]);
  });

  test('more than one address of an endpoint', () => {
    expect(ofSlice('addressType: IPv4', 'endpoints: [{addresses: [10.0.0.1, 10.0.0.2]}]')).toEqual([
      '5:25 warning: kube-proxy uses only the first of the 2 addresses of endpoints[0]: write an endpoint for each address [extra-addresses]',
    ]);
  });

  test.each([
    [
      'ports: [{name: a, port: 80}, {name: a, port: 81}]',
      '5:30 warning: name a is already used by ports[0]: give each port its own name [duplicate-port]',
    ],
    [
      'ports: [{port: 80}, {name: "", port: 81}]',
      '5:21 warning: neither this port nor ports[0] has a name: give each port its own name [duplicate-port]',
    ],
    [
      'ports: [{name: a, port: 80}, {name: a, port: 80, protocol: UDP}]',
      '5:30 warning: name a is already used by ports[0]: give each port its own name [duplicate-port]',
    ],
  ])('%s', (ports, message) => {
    expect(ofSlice('addressType: IPv4', ports)).toEqual([message]);
  });

  test('an IPv6 address in another form', () => {
    expect(ofSlice('addressType: IPv6', 'endpoints: [{addresses: ["FD00::1"]}]')).toEqual([
      '5:26 warning: addresses[0] "FD00::1" is read as fd00::1: write this form, because other programs may read the address differently [odd-address]',
    ]);
  });

  test('names that are none', () => {
    expect(ofSlice('addressType: FQDN', 'endpoints: [{addresses: ["a\\nb"]}, {addresses: [db.example.com.]}]')).toEqual(
      [expect.stringMatching(/^5:26 error: addresses\[0\] cannot be "a\\nb": .*\[bad-value\]$/)],
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
      '9:22 warning: forZones[0] cannot be "a b": write letters, digits, dashes, underscores and dots, 63 characters at most, with a letter or digit at both ends [bad-value]',
      '9:49 warning: forNodes[0] cannot be "A_b": write lower-case letters, digits, dashes and dots, 253 characters at most, with a letter or digit at both ends [bad-value]',
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
      '6:27 error: ports[0] has no port: write a number from 1 to 65535 [missing-field]',
      '6:31 error: ports[1] has no port: write a number from 1 to 65535 [missing-field]',
      '6:42 warning: this port has no name: name each port if there are several [unnamed-port]',
    ]);
  });

  test('a host name that is none', () => {
    expect(of('- addresses: [{ip: 10.0.0.1, hostname: "a\\nb"}]', '  ports: [{port: 80}]')).toEqual([
      expect.stringMatching(/^5:40 error: hostname cannot be "a\\nb": .*\[bad-value\]$/),
    ]);
  });
});

suite('a Node', () => {
  const of = (...lines: string[]) => diagnose(`apiVersion: v1\nkind: Node\n${lines.join('\n')}\n`);

  test.each([
    [
      'podCIDRs: [10.244.0.0/24, 10.244.1.0/24]',
      '4:18 error: podCIDRs cannot be "10.244.0.0/24,10.244.1.0/24": write one network, or one of each family [bad-value]',
    ],
    [
      'podCIDR: 10.244.0.5/24',
      '4:17 warning: podCIDR "10.244.0.5/24" is read as 10.244.0.0/24; API servers refuse it in new objects, by default from Kubernetes 1.36 on and always from 1.38 on: write 10.244.0.0/24, or 10.244.0.5/32 for the one address [odd-address]',
    ],
  ])('%s', (spec, message) => {
    expect(of('metadata: {name: worker-1}', `spec: {${spec}}`)).toEqual([message]);
  });

  test('a zone that is none', () => {
    expect(of('metadata: {name: worker-1, labels: {topology.kubernetes.io/zone: "a b"}}')).toEqual([
      '3:66 error: topology.kubernetes.io/zone cannot be "a b": write letters, digits, dashes, underscores and dots, 63 characters at most, with a letter or digit at both ends [bad-value]',
    ]);
  });
});
