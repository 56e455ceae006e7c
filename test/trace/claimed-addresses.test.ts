// A Service's address whose rule was removed: other rules and manifests still name it, so a packet that no rule takes does not simply go on.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-claimed-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

/** A Service with a node port and a load balancer on a node, as iptables-save, ip addr and ip route print it. */
function nodeOf(cluster: string, balancer: string, [own, pods, pod]: readonly [string, string, string]): string {
  const bits = cluster.includes(':') ? 128 : 32;
  const six = bits === 128 ? '6' : '';
  return `*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
-A FORWARD -m conntrack --ctstate NEW -j KUBE-PROXY-FIREWALL
-A KUBE-PROXY-FIREWALL -d ${balancer}/${bits} -p tcp -m comment --comment "shop/web:http traffic not accepted by KUBE-FW-AAAAAAAAAAAAAAAA" -m tcp --dport 80 -j DROP
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-EXT-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-FW-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-SERVICES -d ${cluster}/${bits} -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SERVICES -d ${balancer}/${bits} -p tcp -m comment --comment "shop/web:http loadbalancer IP" -m tcp --dport 80 -j KUBE-FW-AAAAAAAAAAAAAAAA
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-NODEPORTS -p tcp -m comment --comment "shop/web:http" -m tcp --dport 30080 -j KUBE-EXT-AAAAAAAAAAAAAAAA
-A KUBE-EXT-AAAAAAAAAAAAAAAA -j KUBE-MARK-MASQ
-A KUBE-EXT-AAAAAAAAAAAAAAAA -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-FW-AAAAAAAAAAAAAAAA -s 203.0.113.0/24 -m comment --comment "shop/web:http loadbalancer IP" -j KUBE-EXT-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA ! -s ${pods} -d ${cluster}/${bits} -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "shop/web:http -> ${pod.includes(':') ? `[${pod}]` : pod}:8080" -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m comment --comment "shop/web:http" -m tcp -j DNAT --to-destination ${pod.includes(':') ? `[${pod}]` : pod}:8080
COMMIT
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    inet${six} ${six ? '::1/128' : '127.0.0.1/8'} scope host lo
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default qlen 1000
    inet${six} ${own} scope global
default via ${six ? 'fd00:50::1' : '192.168.50.1'} dev eth0
${own.replace(/[^.:]+\//, six ? '/' : '0/')} dev eth0 proto kernel scope link
net.ipv4.ip_forward = 1
net.ipv6.conf.all.forwarding = 1
`;
}

const manifests = `{ apiVersion: v1, kind: Service, metadata: { name: web, namespace: shop }, spec: { type: LoadBalancer, clusterIP: 10.96.0.80, ports: [{ name: http, port: 80, targetPort: 8080, nodePort: 30080 }], loadBalancerSourceRanges: [203.0.113.0/24] }, status: { loadBalancer: { ingress: [{ ip: 198.51.100.20 }] } } }
`;

const without = (text: string, pattern: RegExp): string =>
  text.replaceAll(new RegExp(`^.*${pattern.source}.*\n`, 'gm'), '');
const node = nodeOf('10.96.0.80', '198.51.100.20', ['192.168.50.11/24', '10.244.0.0/16', '10.244.2.10']);
const six = nodeOf('fd00:96::80', 'fd00:99::20', ['fd00:50::11/64', 'fd00:244::/32', 'fd00:244:2::10']);
const capture = /-A KUBE-SERVICES -d \S+ .*cluster IP/;

writeFolder(cwd, {
  'node.txt': node,
  'cluster-ip.txt': without(node, capture),
  'six.txt': without(six, capture),
  'local.txt': without(node, capture).replaceAll('KUBE-SVC-', 'KUBE-SVL-'),
  'unnamed.txt': without(node, /(KUBE-SVC|KUBE-SEP|KUBE-SERVICES -d|KUBE-EXT|KUBE-FW|-FIREWALL)/),
  'node-port.txt': without(node, /-A KUBE-NODEPORTS/),
  'balancer.txt': without(node, /-A KUBE-SERVICES .*loadbalancer IP/),
  'web.yaml': manifests,
  'nat.txt': /\*nat\n.*?COMMIT\n/s.exec(without(node, /KUBE-SERVICES -d .*cluster IP/))?.[0] ?? '',
  'idle.yaml': manifests.replaceAll('10.96.0.80', '10.96.0.81').replace('name: web', 'name: idle'),
  'no-masquerading.txt': node.replace(
    'COMMIT\n1: lo',
    ':KUBE-POSTROUTING - [0:0]\n-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN\n-A KUBE-POSTROUTING -j MASQUERADE\nCOMMIT\nnet.ipv4.conf.all.route_localnet = 1\n1: lo',
  ),
});

async function trace(inputs: readonly string[], from: string, to: string) {
  const { stdout } = await runKpc(['trace', '-q', ...inputs, '--from', from, '--to', to, '--output', 'json'], { cwd });
  return resultOf(stdout).traces[0];
}

const named = 'the rules of shop/web:http name';
const written = 'the manifests have shop/web:http there, but this node has no rule for it';

describe('the cluster IP', () => {
  test.each([
    ['its own chain', ['cluster-ip.txt'], '10.244.1.9', '10.96.0.80:80', named],
    ['its own chain, of IPv6', ['six.txt'], 'fd00:244:1::9', '[fd00:96::80]:80', named],
    ['its own chain, of policy Local', ['local.txt'], '10.244.1.9', '10.96.0.80:80', named],
    ['manifests', ['unnamed.txt', 'web.yaml'], '10.244.1.9', '10.96.0.80:80', written],
  ])(
    'is known from %s: whether the connection works depends on what is there',
    async (_title, inputs, from, to, note) => {
      const answer = await trace(inputs, from, to);
      expect(answer).toMatchObject({ verdict: 'forwarded', connection: 'depends' });
      expect(JSON.stringify(answer)).toContain(note);
    },
  );

  test('has other ports, which are no less of the Service', async () => {
    const answer = await trace(['cluster-ip.txt'], '10.244.1.9', '10.96.0.80:81');
    expect(answer).toMatchObject({ verdict: 'forwarded', connection: 'depends' });
    expect(JSON.stringify(answer)).not.toContain(named);
  });

  test('is described as one without a rule', async () => {
    const { stderr, status } = await runKpc(['describe', '-q', 'cluster-ip.txt', '10.96.0.80'], { cwd });
    expect(stderr).toContain(`${named} 10.96.0.80, but no rule leads packets from there`);
    expect(status).toBe(1);
  });
});

test('a jump to the firewall of source ranges that is missing is the cause', async () => {
  const { cause } = await trace(['balancer.txt'], '203.0.113.9', '198.51.100.20:80');
  expect(cause).toEqual({ kind: 'kube-proxy', text: expect.stringContaining(named) as string });
  const { cause: other } = await trace(['node.txt'], '192.0.2.9', '198.51.100.20:80');
  expect(other).toMatchObject({ kind: 'source-ranges' });
});

test.each([
  ['the node port', 'node-port.txt', '192.168.50.11:30080'],
  ['the load balancer, whose firewall drops what no rule takes', 'balancer.txt', '198.51.100.20:80'],
])('manifests have %s', async (_title, file, to) => {
  expect(JSON.stringify(await trace([file, 'web.yaml'], '203.0.113.9', to))).toContain(written);
  expect(JSON.stringify(await trace(['node.txt', 'web.yaml'], '203.0.113.9', to))).not.toContain(written);
});

describe('table nat alone', () => {
  test('does not show that a Service of the manifests has no rule: table filter refuses packets to one without endpoints', async () => {
    const answer = await trace(['nat.txt', 'idle.yaml'], '10.244.1.9', '10.96.0.81:80');
    expect(answer).toMatchObject({ verdict: 'unknown', otherwise: { verdict: 'forwarded' } });
    expect(JSON.stringify(answer)).not.toContain('this node has no rule for it');
    const described = await runKpc(['describe', '-q', 'nat.txt', 'idle.yaml', '10.96.0.81:80'], { cwd });
    expect(described.stderr).not.toContain('this node has no rule for it');
  });

  test('shows that a rule which leads to endpoints is lost', async () => {
    for (const inputs of [['nat.txt'], ['nat.txt', 'web.yaml']])
      expect(JSON.stringify(await trace(inputs, '10.244.1.9', '10.96.0.80:80'))).toContain(named);
  });
});

test.each([
  ['of the node', '127.0.0.1'],
  ['of the endpoint itself', '10.244.2.10'],
])('a packet %s that kube-proxy masquerades no more is lost for want of that jump', async (_title, from) => {
  const { verdict, cause } = await trace(['no-masquerading.txt'], from, '10.96.0.80:80');
  expect(verdict).toBe('dropped');
  expect(cause).toEqual({
    kind: 'kube-proxy',
    text: expect.stringMatching(/POSTROUTING .*KUBE-POSTROUTING/) as string,
  });
});
