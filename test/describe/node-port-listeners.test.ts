import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { runKpc, type Run } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const link = (ifindex: number, ifname: string, ...addresses: readonly string[]) => ({
  ifindex,
  ifname,
  flags: ['UP'],
  addr_info: addresses.map((local) => ({ family: 'inet', local, prefixlen: 24, scope: 'global' })),
});

const ipAddr = JSON.stringify([
  link(1, 'lo', '127.0.0.1'),
  link(2, 'eth0', '192.168.50.11', '172.20.0.5'),
  link(3, 'docker0', '172.17.0.1'),
]);

const services = `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { type: NodePort, clusterIP: 10.96.0.80, ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-x, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.10], nodeName: node-1 }]
---
{ apiVersion: v1, kind: Node, metadata: { name: node-1 }, status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] } }
`;

const cwd = mkdtempSync(join(tmpdir(), 'kpc-node-ports-'));
writeFolder(cwd, { 'services.yaml': services, 'ip-addr.json': ipAddr });
const manifests = ['-f', 'services.yaml', '--host-addresses', 'ip-addr.json'] as const;

const only = (addresses: string) => `node port 30080 of shop/web listens on ${addresses} only`;
const exceptLoopback = 'node port 30080 of shop/web listens on all addresses of the node except loopback';

/**
 * Where node port 30080 answers, as packets in a kernel showed it: flags, the addresses with an answer, and what is said of the
 * others of the node.
 */
const cases = [
  [['--proxy-mode', 'nftables'], ['192.168.50.11'], only('192.168.50.11')],
  [
    ['--proxy-mode', 'nftables', '--nodeport-addresses', '0.0.0.0/0'],
    ['192.168.50.11', '172.20.0.5', '172.17.0.1'],
    exceptLoopback,
  ],
  [['--proxy-mode', 'nftables', '--nodeport-addresses', '172.20.0.0/24'], ['172.20.0.5'], only('172.20.0.5')],
  [['--proxy-mode', 'iptables'], ['192.168.50.11', '172.20.0.5', '172.17.0.1', '127.0.0.1'], ''],
  [
    ['--proxy-mode', 'iptables', '--iptables-localhost-nodeports=false'],
    ['192.168.50.11', '172.20.0.5', '172.17.0.1'],
    exceptLoopback,
  ],
  [
    ['--proxy-mode', 'iptables', '--nodeport-addresses', '172.16.0.0/12'],
    ['172.20.0.5', '172.17.0.1'],
    only('172.17.0.1, 172.20.0.5'),
  ],
  [
    ['--proxy-mode', 'ipvs'],
    ['192.168.50.11', '172.20.0.5', '172.17.0.1'],
    only('172.17.0.1, 172.20.0.5, 192.168.50.11'),
  ],
] as const;

const own = ['192.168.50.11', '172.20.0.5', '172.17.0.1', '127.0.0.1'];

/** The first lines of an answer, or why there is none. */
function said({ status, stdout, stderr }: Run, lines: number): string {
  return status === 0 ? stdout.split('\n').slice(0, lines).join('\n') : (stderr.trimEnd().split('\n').at(-1) ?? '');
}

const refuse = (address: string, refusal: string) =>
  `error: no Service answers at ${address}:30080: ${refusal} [not-found]`;

describe.each(cases)('where a node port listens: %j', (flags, answering, refusal) => {
  const expected = (address: string, answer: string) =>
    answering.some((each) => each === address) ? answer : refuse(address, refusal);

  test.each(own)('manifests, %s', async (address) => {
    const run = await runKpc(['describe', `${address}:30080`, ...manifests, ...flags], { cwd });
    expect(said(run, 2)).toBe(expected(address, 'Service shop/web  (services.yaml:4)\n  this is its node port'));
  });

  test.each(own)('a bundle, %s', async (address) => {
    await runKpc(['compile', ...manifests, ...flags, '-o', 'bundle'], { cwd });
    const run = await runKpc(['describe', `${address}:30080/tcp`, 'bundle'], { cwd });
    expect(said(run, 2)).toBe(expected(address, 'Service shop/web\n  this is its node port'));
  });
});

describe('where a node port listens, by a dump with the addresses of the node', () => {
  const printed = {
    nftables: { 'nft-ruleset': 'nftables' },
    iptables: { 'iptables-save': 'iptables' },
    ipvs: { 'ipvsadm-save': 'ipvsadm', 'ipset-save': 'ipset' },
  };

  beforeAll(async () => {
    for (const [flags] of cases) {
      for (const [file, part] of Object.entries(printed[flags[1]])) {
        const { stdout } = await runKpc(['compile', ...manifests, ...flags, '--print', part], { cwd });
        writeFolder(join(cwd, folderOf(flags)), { [file]: stdout, 'ip-addr.json': ipAddr });
      }
    }
  });

  test.each(cases.flatMap(([flags, answering, refusal]) => own.map((at) => [flags, at, answering, refusal] as const)))(
    '%j, %s',
    async (flags, address, answering, refusal) => {
      const run = await runKpc(['describe', `${address}:30080`, folderOf(flags), '-f', 'services.yaml'], { cwd });
      const answers = answering.some((each) => each === address);
      expect(said(run, 1)).toBe(answers ? 'shop/web' : refuse(address, refusal));
    },
  );

  test('without a name for the Service, the text has none', async () => {
    const run = await runKpc(['describe', '127.0.0.1:30080', folderOf(['--proxy-mode', 'ipvs'])], { cwd });
    expect(run.status).toBe(1);
    expect(run.stderr).toContain(
      'error: no Service answers at 127.0.0.1:30080: node port 30080 listens on 172.17.0.1, ',
    );
  });

  test('an address that is not the node’s is no matter of node ports', async () => {
    const run = await runKpc(['describe', '192.168.50.12:30080', folderOf(['--proxy-mode', 'nftables'])], { cwd });
    expect(run.stderr).toMatch(/error: .*"192\.168\.50\.12:30080".*\[not-found\]/);
  });

  function folderOf(flags: readonly string[]): string {
    return flags.join('').replaceAll(/[^a-z0-9]/g, '');
  }
});
