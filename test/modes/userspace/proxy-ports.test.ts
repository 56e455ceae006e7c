import { describe, expect, test } from 'vitest';
import {
  diffProxyPorts,
  formatBalancer,
  parseBalancer,
  type ProxyPort,
} from '../../../src/kernel/balancer/balancer.ts';
import { parseAddress, unspecifiedIPv4, type Address } from '../../../src/kernel/address.ts';
import type { ServicePort } from '../../../src/cluster/model.ts';
import { assignProxyPorts } from '../../../src/modes/userspace/compile-userspace.ts';
import { compile } from '../../../src/library/index.ts';

function servicePort(label: string): ServicePort {
  return { label, family: 'ipv4', protocol: 'TCP' } as ServicePort;
}

function assign(labels: readonly string[], first: number, last: number): ReadonlyMap<string, number> {
  return assignProxyPorts({ servicePorts: labels.map(servicePort) }, { first, last });
}

const labels = Array.from({ length: 500 }, (_, i) => `default/web-${i}:http`);

describe('proxy ports', () => {
  test('each Service port has one of its own, whatever the order of the input', () => {
    const ports = assign(labels, 61000, 61499);
    expect(new Set(ports.values()).size).toBe(500);
    expect(assign(labels.toReversed(), 61000, 61499)).toEqual(ports);
    for (const port of ports.values()) expect(port >= 61000 && port <= 61499).toBe(true);
  });

  test('most stay where another Service comes', () => {
    const [before, after] = [assign(labels.slice(1), 61000, 65535), assign(labels, 61000, 65535)];
    const moved = [...before].filter(([label, port]) => after.get(label) !== port);
    expect(moved.length).toBeLessThan(5);
  });

  test('a range that is full leaves the last by name without', () => {
    const ports = assign(['a/a', 'a/b', 'a/c'], 61000, 61001);
    expect([...ports.keys()]).toEqual(['a/a', 'a/b']);
  });
});

describe('what nginx is told', () => {
  const port: ProxyPort = {
    protocol: 'UDP',
    address: unspecifiedIPv4,
    port: 61000,
    endpoints: [{ address: parseAddress('10.244.0.1') as Address, port: 53 }],
    affinity: true,
    udpIdle: 250,
    origin: { servicePort: 'default/dns:dns', place: undefined },
  };

  test('is read again as it was', () => {
    const { proxyPorts, unread } = parseBalancer(formatBalancer([port]).join(''));
    expect(unread).toEqual([]);
    expect(proxyPorts).toEqual([port]);
  });

  test('holds no name that could be more than a comment', () => {
    for (const name of ['a/b\n}; daemon off;', 'a/b;', 'a/b}', 'a b', 'a/\u2028b']) {
      const text = formatBalancer([{ ...port, origin: { servicePort: name, place: undefined } }]).join('');
      expect(text).toBe(formatBalancer([{ ...port, origin: undefined }]).join(''));
    }
  });

  test('of another program is not taken for what kpc wrote', () => {
    const { proxyPorts, unread } = parseBalancer('http {\n  listen 80;\n}\nload_module x.so;\n');
    expect(proxyPorts).toEqual([]);
    expect(unread.map(({ line }) => line)).toEqual([1, 2, 4]);
  });

  test('differs where an endpoint or an option does, and not by its name', () => {
    expect(diffProxyPorts([port], [{ ...port, origin: undefined }])).toEqual([]);
    expect(diffProxyPorts([port], [{ ...port, affinity: false }])).toHaveLength(1);
    expect(diffProxyPorts([port], [{ ...port, endpoints: [] }])).toHaveLength(1);
    expect(diffProxyPorts([port], [])).toHaveLength(1);
  });
});

describe('userspace mode', () => {
  const service = (spec: string): string =>
    `apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.96.0.10, ${spec} }\n`;
  const compiled = (spec: string, options: object = {}) =>
    compile({
      manifests: [{ name: 'in.yaml', text: service(spec) }],
      proxyMode: 'userspace',
      kubernetesVersion: '1.25',
      ...options,
    });
  const errorsOf = (spec: string, options: object): readonly string[] =>
    compiled(spec, options).diagnostics.flatMap(({ severity, text }) => (severity === 'error' ? [text] : []));

  test('takes ports from --proxy-port-range, in the three ways to write one', () => {
    for (const proxyPortRange of ['8000-8000', '8000', '8000+0']) {
      const { bundle } = compiled('ports: [{ port: 80 }]', { proxyPortRange });
      expect(bundle?.files.get('balancer.conf')).toContain('listen 0.0.0.0:8000 so_keepalive=on;');
    }
  });

  test('refuses a range that is none, or too small, a bind address of loopback, and other releases', () => {
    const ports = 'ports: [{ name: a, port: 80 }, { name: b, port: 81 }]';
    expect(errorsOf(ports, { proxyPortRange: '9-8' })).toHaveLength(1);
    expect(errorsOf(ports, { proxyPortRange: '8000' })).toHaveLength(1);
    expect(errorsOf(ports, { bindAddress: '127.0.0.1' })).toHaveLength(1);
    expect(errorsOf(ports, { udpTimeout: '0s' })).toHaveLength(1);
    expect(errorsOf(ports, { kubernetesVersion: '1.37' })).toEqual([
      'proxyMode is userspace: kpc follows userspace mode of Kubernetes 1.25, not of 1.37',
    ]);
    expect(errorsOf(ports, { proxyMode: 'iptables' })).toEqual([
      'proxyMode is iptables: kpc follows iptables mode of Kubernetes 1.30 to 1.38, not of 1.25',
    ]);
  });
});
