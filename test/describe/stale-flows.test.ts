import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-flows-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(scratch, name);
  writeFileSync(path, text);
  return path;
}

const manifests = `apiVersion: v1
kind: Service
metadata: { name: dns, namespace: infra }
spec: { clusterIP: 10.96.0.53, ports: [{ port: 53, protocol: UDP }] }
---
apiVersion: v1
kind: Service
metadata: { name: statsd, namespace: infra }
spec: { type: NodePort, clusterIP: 10.96.0.25, ports: [{ port: 8125, protocol: UDP, nodePort: 30125 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: dns-1, namespace: infra, labels: { kubernetes.io/service-name: dns } }
addressType: IPv4
ports: [{ port: 53, protocol: UDP }]
endpoints:
  - { addresses: [10.244.1.5], conditions: { ready: true } }
  - { addresses: [10.244.1.6], conditions: { ready: false, serving: true, terminating: true } }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: statsd-1, namespace: infra, labels: { kubernetes.io/service-name: statsd } }
addressType: IPv4
ports: [{ port: 8125, protocol: UDP }]
endpoints: [{ addresses: [10.244.2.8], conditions: { ready: true } }]
`;

const addresses = `2: eth0: <BROADCAST,UP> mtu 1500
    inet 192.0.2.11/24 scope global eth0
`;

interface Flow {
  readonly to: string;
  readonly by: string;
  readonly protocol?: string;
  readonly from?: string;
  readonly isAnswered?: boolean;
}

let clientPort = 40_000;

function flow({ to, by, protocol = 'udp', from = '10.244.1.9', isAnswered = true }: Flow): string {
  const [address, port] = to.split(':');
  const [answers, answeringPort] = by.split(':');
  const sport = clientPort++;
  const silent = isAnswered ? '' : '[UNREPLIED] ';
  return `${protocol}      17 29 src=${from} dst=${address} sport=${sport} dport=${port} ${silent}src=${answers} dst=${from} sport=${answeringPort} dport=${sport} mark=0 use=1\n`;
}

const dns = '10.96.0.53:53';
const listing = [
  flow({ to: dns, by: '10.244.1.5:53' }),
  flow({ to: dns, by: '10.244.9.9:53' }),
  flow({ to: dns, by: '10.244.9.9:53', isAnswered: false }),
  flow({ to: '10.96.0.25:8125', by: '10.96.0.25:8125', isAnswered: false }),
  flow({ to: '192.0.2.11:30125', by: '10.244.2.7:8125', isAnswered: false }),
  // None of these is a Service's: another host, another program's port, a Service's number at another host, a connection.
  flow({ to: '8.8.8.8:53', by: '8.8.8.8:53' }),
  flow({ to: '192.0.2.11:9000', by: '10.244.3.3:90' }),
  flow({ to: '198.51.100.7:30125', by: '198.51.100.7:30125' }),
  flow({ to: dns, by: '10.244.9.9:53', protocol: 'tcp' }),
  'icmp     1 29 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=9 src=10.0.0.2 dst=10.0.0.1 type=0 code=0 id=9 mark=0 use=1\n',
  'conntrack v1.4.7 (conntrack-tools): 10 flow entries have been shown.\n',
].join('');

let rules = '';

beforeAll(async () => {
  const path = write('in.yaml', manifests);
  const { stdout } = await runKpc(['compile', '-q', '-f', path, '--proxy-mode', 'iptables', '--print', 'iptables']);
  const hostPort = '-A PREROUTING -p udp -m udp --dport 9000 -j DNAT --to-destination 10.244.3.3:90\n';
  rules = stdout.replace('COMMIT\n', `${hostPort}COMMIT\n`) + addresses;
});

test('flows that go where no rule leads are named, with the commands that delete these and no others', async () => {
  const { stdout, status } = await runKpc([
    'describe',
    '-q',
    write('node.txt', rules),
    write('conntrack.txt', listing),
  ]);
  expect(status).toBe(0);
  const command = (to: string, port: number, by: string, byPort: number) =>
    `    conntrack -D -f ipv4 -p udp --orig-dst ${to} --orig-port-dst ${port} --reply-src ${by} --reply-port-src ${byPort}\n`;
  expect(stdout).toContain(`
8 UDP flows, 4 stale
  infra/dns, 10.96.0.53:53/udp: 2 flows, 1 without an answer, to 10.244.9.9:53, to which no rule leads now
${command('10.96.0.53', 53, '10.244.9.9', 53)}  infra/statsd, 10.96.0.25:8125/udp: 1 flow without an answer to 10.96.0.25:8125, which is not an endpoint: the flow began before the Service had rules here
${command('10.96.0.25', 8125, '10.96.0.25', 8125)}  infra/statsd, 192.0.2.11:30125/udp: 1 flow without an answer to 10.244.2.7:8125, to which no rule leads now
${command('192.0.2.11', 30125, '10.244.2.7', 8125)}`);
});

test('a flow to a Service that is gone is named only where the rules are known whole', async () => {
  const gone = write('gone.txt', flow({ to: '10.96.0.99:53', by: '10.244.4.4:53' }));
  const flowsOf = async (file: string) =>
    resultOf((await runKpc(['describe', '-q', file, gone, '--output', 'json'])).stdout).flows;
  expect(await flowsOf(write('node.txt', rules))).toMatchObject({
    listed: 1,
    stale: [{ destination: '10.96.0.99:53', endpoint: '10.244.4.4:53', because: 'no-service', flows: 1 }],
  });
  const part = write('part.txt', rules.replace(/\*filter[^]*?COMMIT\n/, ''));
  expect(await flowsOf(part)).toMatchObject({ listed: 1, stale: [] });
});

test('manifests decide by the status of endpoints: one that terminates keeps its flows', async () => {
  const flows = write('c.txt', flow({ to: dns, by: '10.244.1.6:53' }) + flow({ to: dns, by: '10.244.9.9:53' }));
  const { stdout, stderr } = await runKpc(['describe', flows, write('in.yaml', manifests)]);
  expect(stdout).toMatch(/^2 UDP flows, 1 stale\n.*1 flow to 10\.244\.9\.9:53\b/);
  expect(stderr).toBe('');
  const { stdout: json } = await runKpc(['describe', '-q', flows, write('in.yaml', manifests), '--output', 'json']);
  expect(resultOf(json)).toMatchObject({
    flows: {
      listed: 2,
      stale: [{ servicePort: 'infra/dns', endpoint: '10.244.9.9:53', because: 'not-serving', flows: 1 }],
    },
  });
});

test('a Service that is asked about has its own stale flows below it', async () => {
  const { stdout } = await runKpc(['describe', '-q', 'dns', write('node.txt', rules), write('conntrack.txt', listing)]);
  expect(stdout).toContain('8 UDP flows, 2 stale\n  infra/dns, ');
  expect(stdout).not.toContain('infra/statsd');
});

test('flows alone say what to add', async () => {
  const { status, stderr } = await runKpc(['describe', '-q', write('conntrack.txt', listing)]);
  expect(status).toBe(1);
  expect(stderr).toMatch(/\[[a-z-]+\]\n {2}help: .*iptables-save, nft list ruleset or ipvsadm -Sn/);
});

test.each([
  ['conntrack -L -o extended', (text: string) => text.replace(/^(?=udp)/gm, 'ipv4     2 ')],
  [
    '/proc/net/nf_conntrack',
    (text: string) => text.replace(/^(?=udp)/gm, 'ipv4     2 ').replaceAll('use=1', 'zone=0 use=2'),
  ],
  ['counters', (text: string) => text.replace(/(dport=\d+) /g, '$1 packets=1 bytes=60 ')],
  ['lines in a log', (text: string) => text.replace(/^/gm, 'Nov 14 11:06:11 node1 collect[12]: ')],
])('flows are read from %s', async (_name, change) => {
  const { stdout } = await runKpc(['describe', '-q', write('node.txt', rules), write('c.txt', change(listing))]);
  expect(stdout).toContain('8 UDP flows, 4 stale');
});

test('a line that is cut off names no endpoint, and one of another listing does not count', async () => {
  const [, stale = ''] = listing.split('\n');
  const cut = write('cut.txt', `${listing}${stale.slice(0, stale.indexOf(' mark')).slice(0, -1)}`);
  const { stdout, stderr } = await runKpc(['describe', write('node.txt', rules), cut]);
  expect(stderr).toMatch(/warning: .*conntrack -L.* \[unread-line\]/);
  expect(stdout).toContain('8 UDP flows, 4 stale');
  const later = write('later.txt', listing.replaceAll('10.244.9.9', '10.244.9.8'));
  const both = await runKpc(['describe', write('node.txt', rules), write('first.txt', listing), later]);
  expect(both.stderr).toMatch(/warning: .*conntrack -L.* \[second-listing\]/);
  expect(both.stdout).toContain('8 UDP flows, 4 stale');
});

test('a flow of a zone that no rule uses is no other flow of these ends', async () => {
  const stale = listing.split('\n').find((line) => line.includes('10.244.9.9')) ?? '';
  const inZone = (zone: string) =>
    `${stale.replace('10.244.9.9', '10.244.9.8').replace(/ use=/, ` zone=${zone} use=`)}\n`;
  const flowsOf = async (text: string, more = '') => {
    const { stdout, stderr } = await runKpc(['describe', write('node.txt', rules + more), write('c.txt', text)]);
    expect(stderr).not.toContain('second-listing');
    return /\d UDP flows, \d stale/.exec(stdout)?.[0];
  };
  expect(await flowsOf(inZone('65520') + listing + inZone('65520'))).toBe('8 UDP flows, 4 stale');
  const raw = '*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -i eth1 -j CT --zone 7\nCOMMIT\n';
  expect(await flowsOf(listing + inZone('7'), raw)).toBe('9 UDP flows, 5 stale');
});

test('beside manifests, a trace has the flows of the listing and the rules of the manifests', async () => {
  const flags = ['--proxy-mode', 'iptables', '--from', '10.244.1.9', '--to', dns, '--proto', 'udp'];
  const inputs = [write('in.yaml', manifests), write('conntrack.txt', listing)];
  const { stdout, status } = await runKpc(['trace', '-q', ...inputs, ...flags, '--output', 'json']);
  expect(status).toBe(0);
  expect(resultOf(stdout).traces).toMatchObject([
    { verdict: 'delivered', existingFlows: [{ address: '10.244.9.9', port: 53, flows: 2 }, { address: '10.244.1.5' }] },
  ]);
  // Only a trace compiles: describe has the endpoints of the manifests.
  const other = await runKpc(['describe', ...inputs, '--proxy-mode', 'iptables', '--output', 'json']);
  expect(findingsOf(other.stdout, 'bad-call')).toMatchObject([
    {
      arguments: { problem: 'idle-flag', flags: ['--proxy-mode'], because: { kind: 'compiled-already', of: 'dump' } },
    },
  ]);
});

test('a trace says where flows of the same ends keep going', async () => {
  const inputs = [write('node.txt', rules), write('conntrack.txt', listing)];
  const ask = (from: string, ...more: readonly string[]) =>
    runKpc(['trace', '-q', ...inputs, '--from', from, '--to', dns, '--proto', 'udp', ...more]);
  expect((await ask('10.244.1.9')).stdout).toMatch(/3 flows .*: 2 to 10\.244\.9\.9:53\b.*; 1 to 10\.244\.1\.5:53\n/);
  expect((await ask('10.244.1.200')).stdout).toMatch(/3 flows /);
  expect(resultOf((await ask('pod', '--output', 'json')).stdout).traces[0]).toMatchObject({
    existingFlows: [{ address: '10.244.9.9', port: 53, flows: 2 }, { address: '10.244.1.5' }],
  });
});

describe('a change of Services', () => {
  const [dnsBefore, ...others] = manifests.split('---\n');
  const withoutDns = others.filter((text) => !text.includes('dns')).join('---\n');
  const moved = manifests.replace('clusterIP: 10.96.0.53', 'clusterIP: 10.96.0.54');
  const flows = [
    flow({ to: dns, by: '10.244.1.5:53' }),
    flow({ to: dns, by: '10.244.9.9:53' }),
    flow({ to: '10.96.0.25:8125', by: '10.244.2.8:8125' }),
    flow({ to: '10.96.0.25:8125', by: '10.244.2.7:8125' }),
    flow({ to: '192.0.2.11:30125', by: '10.244.2.8:8125' }),
    flow({ to: '8.8.8.8:53', by: '8.8.8.8:53' }),
  ].join('');
  async function fates(release: string, after: string, dump = rules) {
    const inputs = [write('node.txt', dump), write('c.txt', flows), '-f', write('after.yaml', after)];
    const { stdout } = await runKpc(['describe', ...inputs, '--kubernetes-version', release, '--output', 'json']);
    const read = resultOf(stdout) as { flows: { change: { release: string; flows: readonly Fate[] } } };
    expect(read.flows.change.release).toBe(release);
    return read.flows.change.flows
      .map(({ kubeProxy, destination, endpoint }) => `${kubeProxy} ${destination} ${endpoint}`)
      .toSorted();
  }

  const statsd = '10.96.0.25:8125 10.244.2.7:8125';

  test.each([
    ['1.37', 'keeps'],
    ['1.38', 'forgets'],
  ])('in %s, kube-proxy %s the flows to a port that is gone', async (release, fate) => {
    expect(dnsBefore).toContain('dns');
    expect(await fates(release, withoutDns)).toEqual(
      [`forgets ${statsd}`, `${fate} ${dns} 10.244.1.5:53`, `${fate} ${dns} 10.244.9.9:53`].toSorted(),
    );
  });

  test('the flows to an address that a port has left are kept', async () => {
    expect(await fates('1.38', moved)).toEqual(
      [`forgets ${statsd}`, `keeps ${dns} 10.244.1.5:53`, `keeps ${dns} 10.244.9.9:53`].toSorted(),
    );
  });

  test('the flows to the node port of a port that is gone are kept', async () => {
    const withoutStatsd = manifests.split('---\n').filter((text) => !text.includes('statsd'));
    expect(await fates('1.38', withoutStatsd.join('---\n'))).toEqual(
      [
        'forgets 10.96.0.25:8125 10.244.2.8:8125',
        `forgets ${statsd}`,
        `forgets ${dns} 10.244.9.9:53`,
        'keeps 192.0.2.11:30125 10.244.2.8:8125',
      ].toSorted(),
    );
  });

  test('without all rules of the node, it is unknown whose an address was', async () => {
    const part = rules.replace(/\*filter[^]*?COMMIT\n/, '');
    expect(await fates('1.38', withoutDns, part)).toEqual(
      [`forgets ${statsd}`, `unknown ${dns} 10.244.1.5:53`, `unknown ${dns} 10.244.9.9:53`].toSorted(),
    );
  });

  test('diff follows the flows of a dump to the manifests', async () => {
    mkdirSync(join(scratch, 'node'), { recursive: true });
    const sides = [join(scratch, 'node'), write('after.yaml', withoutDns)];
    write('node/rules.txt', rules);
    write('node/conntrack.txt', flows);
    const ask = (release: string, ...more: readonly string[]) =>
      runKpc(['diff', '-q', ...sides, '--kubernetes-version', release, ...more]);
    expect((await ask('1.38')).stdout).toContain(`infra/dns, ${dns}/udp: 1 flow to 10.244.1.5:53: forgotten\n`);
    expect((await ask('1.37', '--output', 'markdown')).stdout).toContain('10.244.1.5:53: kept\n');
    const json = resultOf((await ask('1.38', '--output', 'json')).stdout) as { flows: { flows: readonly Fate[] } };
    expect(json.flows.flows).toHaveLength(3);
  });
});

interface Fate {
  readonly kubeProxy: string;
  readonly destination: string;
  readonly endpoint: string;
}
