// Why a packet is dropped or refused follows from the rule that does it, not from what its Service looks like.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-stop-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const file = join(scratch, name);
  writeFileSync(file, text);
  return file;
}

/** The lines between the heading and the steps. */
async function summary(...args: readonly string[]): Promise<string> {
  const { stdout } = await runKpc(['trace', '-q', ...args]);
  return stdout.slice(stdout.indexOf('\n'), stdout.indexOf('\n  how\n'));
}

const manifests = write(
  'svc.yaml',
  `
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, clusterIP: 10.96.0.80, ports: [{ port: 80, nodePort: 30080 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 80 }]
endpoints: [{ addresses: [10.244.2.20], nodeName: b }]
---
apiVersion: v1
kind: Service
metadata: { name: ungiven }
spec: { type: NodePort, clusterIP: 10.96.0.81, selector: { app: a }, ports: [{ port: 80, nodePort: 30081 }] }
---
apiVersion: v1
kind: Service
metadata: { name: lb }
spec: { type: LoadBalancer, externalTrafficPolicy: Local, clusterIP: 10.96.0.82, loadBalancerSourceRanges: [192.0.2.0/24], ports: [{ port: 443, nodePort: 30082 }] }
status: { loadBalancer: { ingress: [{ ip: 203.0.113.9 }] } }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: lb-1, labels: { kubernetes.io/service-name: lb } }
addressType: IPv4
ports: [{ port: 443 }]
endpoints: [{ addresses: [10.244.2.20], nodeName: b }]
---
{ apiVersion: v1, kind: Node, metadata: { name: a }, spec: { podCIDRs: [10.244.1.0/24] }, status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] } }
`,
);

describe.each(['iptables', 'nftables'])('of manifests, in %s mode', (mode) => {
  const ask = (from: string, to: string) =>
    summary(manifests, '--node', 'a', '--proxy-mode', mode, '--from', from, '--to', to);

  test('source ranges that leave the client out', async () => {
    const said = await ask('198.51.100.4', '203.0.113.9:443');
    expect(said).toContain('loadBalancerSourceRanges of default/lb (192.0.2.0/24) do not include 198.51.100.4');
    expect(said).not.toContain('externalTrafficPolicy');
  });

  test('policy Local, where they include it', async () => {
    const said = await ask('192.0.2.7', '203.0.113.9:443');
    expect(said).toContain('externalTrafficPolicy is Local, but default/lb has no endpoint on this node');
    expect(said).not.toContain('loadBalancerSourceRanges');
  });

  test('endpoints that the input lacks, only where the rules refuse for want of them', async () => {
    const lacks = 'unknown: the input holds no EndpointSlices of default/ungiven';
    expect(await ask('10.244.1.250', '10.96.0.81:80')).toContain(lacks);
    expect(await ask('192.0.2.7', '192.168.50.11:30081')).toContain(lacks);
    // Of the Service with this cluster IP, that node port is none.
    expect(await ask('10.244.1.250', '10.96.0.80:30081')).not.toContain('unknown');
  });
});

test('a port that the Service of a cluster IP does not have, though another one has that node port', async () => {
  const flags = ['--node', 'a', '--proxy-mode', 'nftables'];
  const said = await summary(manifests, ...flags, '--from', '10.244.1.250', '--to', '10.96.0.80:30081');
  expect(said).toContain('10.96.0.80 belongs to default/web, which has no port 30081/TCP (has 80/TCP)');
  expect(said).not.toContain('default/ungiven');
});

describe('of a dump', () => {
  const dumps = join(projectFolder, 'fixtures/dumps');
  const local = join(dumps, 'kube-proxy-iptables-loadbalancer-local/iptables-save');
  const rules = readFileSync(local, 'utf8').replace(/^.*KUBE-SVL-.*\n/gm, '');
  const raw =
    '*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A PREROUTING -s 198.51.100.0/24 -j DROP\nCOMMIT\n';
  const drop = `-A KUBE-EXTERNAL-SERVICES -d 12.12.12.12/32 -p tcp -m comment --comment "default/nginx has no local endpoints" -m tcp --dport 80 -j DROP`;
  const refuses = write('refuses.txt', rules.replace('-A KUBE-FIREWALL', `${drop}\n-A KUBE-FIREWALL`) + raw);

  test("another program's rule", async () => {
    const said = await summary(refuses, '--from', '198.51.100.9', '--to', '12.12.12.12:80');
    expect(said).toContain('iptables raw PREROUTING rule 1 drops the packet, not kube-proxy');
    expect(said).not.toContain('Local');
  });

  test("another program's policy", async () => {
    const closed = write('closed.txt', readFileSync(local, 'utf8').replace(':FORWARD ACCEPT', ':FORWARD DROP'));
    expect(await summary(closed, '--from', '10.244.1.77', '--to', '10.99.99.99:80')).toContain(
      'the policy of iptables mangle FORWARD drops the packet, not kube-proxy',
    );
  });

  test('an endpoint that reaches itself on the way through another node', async () => {
    const nftables = readFileSync(join(dumps, 'kube-proxy-nftables-loadbalancer-source-ranges/nft-ruleset'), 'utf8');
    const one = nftables.replace(/dnat ip to numgen random mod 3 map \{[^}]*\}/, 'dnat to 10.244.2.4:80');
    const dump = write('far.txt', one);
    expect(await summary(dump, '--from', '10.244.2.4', '--to', '10.98.154.163:80')).toContain(
      'the endpoint is the sender itself, which cannot answer a packet from its own address',
    );
  });
});

describe('source ranges of a dump are those of its rules', () => {
  const folder = join(projectFolder, 'fixtures/dumps/kube-proxy-nftables-loadbalancer-source-ranges');
  const ruleset = readFileSync(join(folder, 'nft-ruleset'), 'utf8').replace(', 203.0.113.0/24 } drop', ' } drop');
  const node = write('node.txt', ruleset);
  const service = (range: string): string =>
    write(
      'nginx.yaml',
      `{ apiVersion: v1, kind: Service, metadata: { name: nginx }, spec: { type: LoadBalancer, clusterIP: 10.98.154.163, loadBalancerSourceRanges: [192.168.10.0/24${range}], ports: [{ port: 80, nodePort: 30938 }] }, status: { loadBalancer: { ingress: [{ ip: 12.12.12.12 }] } } }`,
    );
  const ask = ['--from', '203.0.113.7', '--to', '12.12.12.12:80'];
  const rules =
    "this node's rules for loadBalancerSourceRanges of default/nginx (192.168.10.0/24) do not include 203.0.113.7";

  test('which the Service beside it may not have', async () => {
    expect(await summary(node, ...ask)).toContain(`${rules}\n`);
    expect(await summary(node, '-f', service(''), ...ask)).toContain(`${rules}\n`);
    expect(await summary(node, '-f', service(', 203.0.113.0/24'), ...ask)).toContain(
      `${rules}; the manifests have 192.168.10.0/24, 203.0.113.0/24: kube-proxy has not programmed it yet`,
    );
  });
});

const stopped = async (...args: readonly string[]): Promise<unknown> => {
  const { stdout } = await runKpc(['trace', '-q', ...args, '--output', 'json']);
  return (JSON.parse(stdout) as { result: { traces: readonly { cause: unknown }[] } }).result.traces[0]?.cause;
};

test('IPVS mode: source ranges that leave the node out', async () => {
  const flags = ['--node', 'a', '--proxy-mode', 'ipvs', '--from', 'node', '--to', '203.0.113.9:443'];
  expect(await stopped(manifests, ...flags)).toMatchObject({ kind: 'source-ranges' });
});

test.each([
  ['KUBE-SERVICES', 'no-endpoints'],
  ['GUARD', 'stranger'],
])("iptables' chain %s, as nft lists it", async (chain, kind) => {
  const hook = `\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\tcounter packets 0 bytes 0 jump ${chain}\n\t}\n`;
  const rule = `\tchain ${chain} {\n\t\tmeta l4proto tcp ip daddr 10.96.0.80 tcp dport 80 counter packets 0 bytes 0 reject\n\t}\n`;
  const ruleset = write('ruleset.txt', `table ip filter {\n${rule}${hook}}\n`);
  expect(await stopped(ruleset, '--from', '10.244.1.250', '--to', '10.96.0.80:80')).toMatchObject({ kind });
});

describe("kube-proxy's own rules are incomplete", () => {
  const dumps = join(projectFolder, 'fixtures/dumps');
  const from = ['--from', '10.244.1.250', '--to', '10.98.154.163:80'];

  test('nftables: no translation of the Service', async () => {
    const ruleset = readFileSync(join(dumps, 'kube-proxy-nftables-loadbalancer-source-ranges/nft-ruleset'), 'utf8');
    const lacking = write('undirected.txt', ruleset.replace(/.*dnat ip to numgen random mod 3.*\n/, ''));
    expect(await stopped(lacking, ...from)).toMatchObject({ kind: 'kube-proxy' });
  });

  test('IPVS: no rule that admits packets to cluster IPs', async () => {
    const folder = join(dumps, 'kube-proxy-ipvs-loadbalancer-source-ranges');
    const [rules = '', ...others] = ['iptables-save', 'ipset-save', 'ipvsadm-save', 'ip-addr.json'].map((name) =>
      readFileSync(join(folder, name), 'utf8'),
    );
    const admits = '-A KUBE-IPVS-FILTER -m set --match-set KUBE-CLUSTER-IP dst,dst -j RETURN\n';
    expect(rules).toContain(admits);
    const ask = [write('ipvs.txt', [rules.replace(admits, ''), ...others].join('\n')), ...from];
    expect(await stopped(...ask)).toMatchObject({ kind: 'kube-proxy' });
    expect(await summary(...ask)).toContain("something removed kube-proxy's rules");
  });
});
