import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { findKnownLine } from '../../src/kube-proxy/log-lines.ts';
import { runKpc } from '../support/run-kpc.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-log-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(scratch, name);
  writeFileSync(path, text);
  return path;
}

const klog = `I0302 10:00:00.000001       1 flags.go:64] FLAG: --config="/var/lib/kube-proxy/config.conf"
I0302 10:00:00.000002       1 flags.go:64] FLAG: --masquerade-all="true"
I0302 10:00:00.000003       1 flags.go:64] FLAG: --cluster-cidr=""
I0302 10:00:00.000004       1 server.go:715] "Version info" version="v1.34.3"
I0302 10:00:00.000005       1 server.go:228] "Successfully retrieved NodeIPs" NodeIPs=["192.0.2.11","2001:db8::11"]
I0302 10:00:00.000006       1 conntrack.go:115] "Set sysctl" entry="net/netfilter/nf_conntrack_max" value=262144
I0302 10:00:01.000000       1 server_linux.go:144] "Using iptables Proxier"
I0302 10:00:01.000001       1 proxier.go:301] "Iptables sync params" minSyncPeriod="1s" syncPeriod="30s" maxSyncPeriod="1h0m0s"
I0302 10:00:05.000001       1 proxier.go:649] "SyncProxyRules complete" elapsed="612.5ms"
I0302 10:00:15.000001       1 proxier.go:649] "SyncProxyRules complete" elapsed="12.25s"
E0302 10:01:00.000001       1 proxier.go:697] "Failed to ensure chain jumps" err=<
	error checking rule: exit status 2: ip6tables v1.8.6 (nf_tables): Couldn't find match \`conntrack'

	Try \`ip6tables -h' or 'ip6tables --help' for more information.
 > table="filter" srcChain="INPUT" dstChain="KUBE-EXTERNAL-SERVICES"
I0302 10:01:01.000001       1 proxier.go:660] "Sync failed" retryingTime="30s"
E0302 10:02:00.000001       1 proxier.go:1390] "Failed to execute iptables-restore" err="exit status 4: Another app is currently holding the xtables lock. Stopped waiting after 5s."
E0302 10:02:30.000001       1 proxier.go:1390] "Failed to execute iptables-restore" err="exit status 4: Another app is currently holding the xtables lock. Stopped waiting after 5s."
E0302 10:03:00.000001       1 proxier.go:9999] "A line of a later release" err="no"
I0302 10:03:01.000001       1 proxier.go:9998] "Another one"
`;

const report = (file: string) => `kube-proxy's log: 16 lines, from 03-02 10:00:00 to 03-02 10:03:01
  mode iptables, from /var/lib/kube-proxy/config.conf or the default, v1.34.3
  node addresses 192.0.2.11, 2001:db8::11
  flags --config=/var/lib/kube-proxy/config.conf --masquerade-all=true
  sysctls set: net.netfilter.nf_conntrack_max=262144
  2 syncs, the slowest in 12.25s; this is longer than minSyncPeriod (1s), so changes wait; nftables mode is faster  (${file}:10)
  iptables lacks a match or target that kube-proxy needs, or the kernel lacks its module  (${file}:11)
`;

test('a log says how kube-proxy is set up, which problems it had and what to do; lines that no row knows are counted', async () => {
  const { status, stdout, stderr } = await runKpc(['describe', write('proxy.log', klog)]);
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toContain(report('proxy.log'));
  expect(stdout).toMatch(/\n {2}2 times: .*\(proxy\.log:17\)\n/);
  expect(stdout).toMatch(/\n {2}2 lines .*\b1 error .*proxy\.log:19\n$/);
  const { stdout: json } = await runKpc(['describe', write('proxy.log', klog), '--output', 'json']);
  expect(resultOf(json)).toMatchObject({
    log: {
      firstTime: '03-02 10:00:00',
      lastTime: '03-02 10:03:01',
      mode: 'iptables',
      modeFrom: 'config',
      version: 'v1.34.3',
      nodeAddresses: ['192.0.2.11', '2001:db8::11'],
      syncs: 2,
      slowestSync: 12.25,
      slowestSyncAt: { file: 'proxy.log', line: 10 },
      minSyncPeriod: '1s',
      problems: [
        { code: 'restore-extension', count: 1 },
        { code: 'sync-failed' },
        { code: 'lock', count: 2, line: 17 },
      ],
      unknown: { lines: 2, errors: 1, firstError: { file: 'proxy.log', line: 19 } },
    },
  });
});

test.each([
  ['NodeIPs=["192.0.2.11","2001:db8::11"]', '192.0.2.11, 2001:db8::11'],
  ['NodeIPs={"IPv4":"192.0.2.11","IPv6":"2001:db8::11"}', '192.0.2.11, 2001:db8::11'],
  ['NodeIP="2001:db8::11"', '2001:db8::11'],
])('the node addresses in any form: %s', async (values, addresses) => {
  const line = (text: string) => `I0302 10:00:00.000005       1 server.go:234] ${text}\n`;
  const [name = '', value = ''] = values.split('=');
  const json = JSON.stringify({
    ts: 1772445600000,
    caller: 'app/server.go:234',
    msg: `Successfully retrieved ${name}`,
    v: 0,
    [name]: JSON.parse(value),
  });
  for (const text of [line(`"Successfully retrieved ${name}" ${values}`), `${json}\n`]) {
    const file = write('addresses.log', line('"Using iptables Proxier"') + text);
    const { log } = resultOf((await runKpc(['describe', file, '--output', 'json'])).stdout);
    expect(log.nodeAddresses.join(', ')).toBe(addresses);
    expect(log).toMatchObject({ unknown: { lines: 0 } });
  }
});

const eachLine = (before: string) => klog.replace(/^(?!$)/gm, before);

test.each([
  ['journalctl', eachLine('Mar 02 10:00:00 node-1 kube-proxy[1957]: ')],
  ['journalctl -o short-iso', eachLine('2026-03-02T10:00:00+0000 node-1 kube-proxy[1957]: ')],
  ['a file of a container', eachLine('2026-03-02T10:00:00.123456789Z stderr F ')],
  ['kubectl logs --timestamps', eachLine('2026-03-02T10:00:00.123456789Z ')],
  ['kubectl logs --prefix', eachLine('[pod/kube-proxy-7xk2v/kube-proxy] ')],
  [
    'Docker',
    klog
      .split('\n')
      .filter((line) => /^[IE]/.test(line))
      .map((line) => `${JSON.stringify({ log: `${line}\n`, stream: 'stderr', time: '2026-03-02T10:00:00Z' })}\n`)
      .join(''),
  ],
])('a log is read as %s prints it', async (_name, text) => {
  const { stdout } = await runKpc(['describe', write('proxy.log', text), '--output', 'json']);
  const { log } = resultOf(stdout);
  expect(log).toMatchObject({ mode: 'iptables', modeFrom: 'config', version: 'v1.34.3', unknown: { lines: 2 } });
  expect(log.problems).toContainEqual(expect.objectContaining({ code: 'lock', count: 2 }));
});

const plain = `I0513 15:57:17.424330       1 node.go:172] Successfully retrieved node IP: 192.0.2.11
W0513 15:57:17.443661       1 server_others.go:578] Unknown proxy mode "", assuming iptables proxy
I0513 15:57:17.443803       1 server_others.go:185] Using iptables Proxier.
I0513 15:57:17.445506       1 server.go:650] Version: v1.20.2
I0513 15:57:17.447366       1 conntrack.go:100] Set sysctl 'net/netfilter/nf_conntrack_max' to 524288
F0513 15:57:17.447425       1 server.go:495] open /proc/sys/net/netfilter/nf_conntrack_max: permission denied
`;

test.each([
  ['as it is', plain],
  ['from a journal without dates', plain.replace(/^(?!$)/gm, '12:10:43 node-1 k3s[22385]: ')],
  ['from the screen of k9s', plain.replace(/^(.+)$/gm, '│ $1      │').slice(2)],
])('a log of 1.20, without structure, is read %s', async (_name, text) => {
  const { stdout } = await runKpc(['describe', write('plain.log', text)]);
  expect(stdout).toBe(`kube-proxy's log: 6 lines, from 05-13 15:57:17 to 05-13 15:57:17
  mode iptables, the default, because none is configured, v1.20.2
  node addresses 192.0.2.11
  sysctls set: net.netfilter.nf_conntrack_max=524288
  kube-proxy could not set a conntrack limit, and exited  (plain.log:6)
    open /proc/sys/net/netfilter/nf_conntrack_max: permission denied
    → load nf_conntrack before kube-proxy starts; if kube-proxy may not write sysctls, set conntrack.maxPerCore and conntrack.min to 0
`);
});

test('a log of kubectl cluster-info dump is read with the lines around it', async () => {
  const at = 'logs for container kube-proxy of pod kube-system/kube-proxy-a ====';
  const { stdout, stderr } = await runKpc([
    'describe',
    write('logs.txt', `==== START ${at}\n${plain}==== END ${at}\n`),
  ]);
  expect(stdout).toMatch(/^ {2}mode iptables\b/m);
  expect(stderr).toBe('');
});

test('an error in the screen of k9s keeps its further lines', async () => {
  const text = `│ E0504 11:39:31.916310       1 proxier.go:1200] "nftables sync failed" err=<                       │
│     /dev/stdin:892:87-100: Error: Could not process rule: No such file or directory              │
│  > ipFamily="IPv4"                                                                                │
`;
  const { stdout } = await runKpc(['describe', write('k9s.log', text), '--output', 'json']);
  expect(resultOf(stdout).log.problems).toMatchObject([{ code: 'nft-kernel' }]);
  expect(findingsOf(stdout)).toEqual([]);
});

test('a log in JSON is read', async () => {
  const lines = [
    { ts: 1772445600000.5, caller: 'app/server.go:715', msg: 'Version info', v: 0, version: 'v1.36.2' },
    { ts: 1772445601000.5, caller: 'app/server_linux.go:231', msg: 'Using nftables Proxier', v: 0 },
    {
      ts: 1772445602000.5,
      caller: 'nftables/proxier.go:1874',
      msg: 'nftables sync failed',
      err: '/dev/stdin:3:33-164: Error: comment too long, 128 characters maximum allowed',
    },
  ];
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  const { stdout } = await runKpc(['describe', write('json.log', text), '--output', 'json']);
  expect(resultOf(stdout).log).toMatchObject({
    lines: 3,
    firstTime: '03-02 10:00:00',
    lastTime: '03-02 10:00:02',
    mode: 'nftables',
    version: 'v1.36.2',
    problems: [{ code: 'nft-comment' }],
  });
});

test('the log of a second pod is left out, and one of another mode than the dump is said to be', async () => {
  const [first = '', ...rest] = klog.trimEnd().split('\n');
  const mixed = [
    `[pod/kube-proxy-a/kube-proxy] ${first}`,
    ...rest.map((line) => `[pod/kube-proxy-b/kube-proxy] ${line}`),
  ];
  const two = await runKpc(['describe', write('two.log', mixed.join('\n'))]);
  expect(two.stderr).toMatch(/warning: .*kube-proxy-b \[second-listing\]/);
  expect(two.stdout).toContain("kube-proxy's log: 1 line,");
  const dump = 'fixtures/dumps/kube-proxy-nftables-loadbalancer-source-ranges/nft-ruleset';
  const { stdout } = await runKpc(['describe', dump, write('proxy.log', klog), '--output', 'json']);
  expect(findingsOf(stdout).map((each) => each.arguments)).toContainEqual({
    problem: 'dump',
    note: 'two-modes',
    logged: 'iptables',
    shown: 'nftables',
  });
  expect(resultOf(stdout)).toMatchObject({ servicePorts: [{}], log: { mode: 'iptables' } });
});

test("another program's log is none of kube-proxy's", async () => {
  const header = 'I0302 10:00:00.000001       1 controller.go:250] ';
  const other = `${header}attempting to acquire leader lease\n${header}"Starting controller"\n${header}"Caches are synced"\n${header.replace('I', 'F')}no more\n`;
  const { status, stdout } = await runKpc(['describe', write('other.log', other)]);
  expect(status).not.toBe(0);
  expect(stdout).toBe('');
});

describe('a line is known as', () => {
  test.each([
    ['nft-crash', 'nftables sync failed', 'err="signal: segmentation fault (core dumped)"'],
    [
      'nft-syntax',
      'nftables sync failed',
      `err="/dev/stdin:73:50-55: Error: syntax error, unexpected string, expecting comma or '}'"`,
    ],
    [
      'nft-kernel',
      'nftables sync failed',
      'err="/dev/stdin:892:87-100: Error: Could not process rule: No such file or directory"',
    ],
    ['nft-sync', 'nftables sync failed', 'err="exit status 1"'],
    [
      'conntrack-max',
      'Error running ProxyServer',
      'err="open /proc/sys/net/netfilter/nf_conntrack_max: no such file or directory"',
    ],
    [
      'kernel-too-old',
      'Error running ProxyServer',
      'err="unable to create proxier: kube-proxy in nftables mode requires kernel 5.13 or later"',
    ],
    [
      'no-ipvs',
      'Error running ProxyServer',
      `err="can't use the IPVS proxier: error getting ipset version, error: executable file not found"`,
    ],
    ['ended', 'Error running ProxyServer', 'err="no"'],
    [
      'restore-incompatible',
      'Failed to ensure chain jumps',
      `err="chain \`POSTROUTING' in table \`nat' is incompatible, use 'nft' tool."`,
    ],
    ['flushed', 'IPTables canary deleted', 'table="mangle" chain="KUBE-PROXY-CANARY"'],
    ['cleanup', 'Error cleaning up nftables rules', 'err="could not find nftables binary"'],
    ['fallback', "Can't use ipvs proxier, trying iptables proxier", ''],
    [
      'ipvs-needs',
      "Can't use the IPVS proxier: IPVS proxier will not be used because the following required kernel modules are not loaded: [ip_vs_rr]",
      '',
    ],
    [
      'no-ipvs',
      'command failed',
      'err="failed complete: can\'t use the IPVS proxier: IPVS proxier will not be used because the following required kernel modules are not loaded: [ip_vs]"',
    ],
    ['no-ipvs', 'Could not create dummy VS', 'err="no such file or directory" scheduler="rr"'],
    [
      'bridge-netfilter',
      'Missing br-netfilter module or unset sysctl br-nf-call-iptables, proxy may not work as intended',
      '',
    ],
    [
      'bridge-netfilter',
      'missing br-netfilter module or unset sysctl br-nf-call-iptables; proxy may not work as intended',
      '',
    ],
    [
      'no-conntrack',
      'Failed to delete endpoint connections',
      'err="error deleting conntrack entries for UDP peer {10.96.0.10, 10.244.0.2}, error: error looking for path of conntrack: executable file not found in $PATH"',
    ],
    ['conntrack-list', 'Failed to clear udp conntrack', 'err="exit status 2" nodePort=30053'],
    [
      'conntrack-list',
      'Failed to delete kube-system/kube-dns:dns endpoint connections, error: conntrack command returned: "mismatched address family"',
      '',
    ],
    [
      'watch',
      'k8s.io/client-go/informers/factory.go:135: Failed to watch *v1.Endpoints: Get https://127.0.0.1:6443',
      '',
    ],
    ['no-node', 'command failed unable to get node IP for hostname 127.0.0.1', ''],
    [
      'restore-extension',
      'Failed to execute iptables-restore',
      'err=< exit status 2: ip6tables-restore v1.8.7 (nf_tables): unknown option "--xor-mark"',
    ],
    [
      'watch',
      'Unhandled Error',
      'err="k8s.io/client-go/informers/factory.go:160: Failed to watch *v1.Service: connection refused"',
    ],
    [
      'missing-chain',
      "Failed to execute iptables-restore: exit status 2 (ip6tables-restore v1.8.3 (legacy): Couldn't load target `KUBE-MARK-DROP':No such file or directory",
      '',
    ],
    ['default-mode', "No kube-proxy mode specified: defaulting to 'iptables'.", ''],
  ])('%s', (code, message, detail) => {
    expect(findKnownLine(message, detail)).toMatchObject({ problem: { code } });
  });
});

describe('lines that any program writes which watches Services', () => {
  const line = (type: string): string =>
    `E1127 10:00:00.000000       1 reflector.go:150] k8s.io/client-go/informers/factory.go:160: Failed to watch *v1.${type}: connection refused\n`;

  test('are no log of kube-proxy alone', async () => {
    const stdin = line('Service') + line('Node');
    const { stdout } = await runKpc(['describe', '-', '--output', 'json'], { stdin });
    expect(resultOf(stdout)?.log).toBeUndefined();
  });

  test.each([
    'Get "https://192.0.2.1:6443/api/v1/services?labelSelector=%21service.kubernetes.io%2Fheadless&limit=500": EOF',
    'services is forbidden: User "system:serviceaccount:kube-system:kube-proxy" cannot list resource "services"',
  ])('are one that name what kube-proxy asks for, or its account: %s', async (error) => {
    const stdin = line('Service').replace('connection refused', error);
    const run = await runKpc(['describe', '-', '--output', 'json'], { stdin });
    expect(resultOf(run.stdout)).toMatchObject({ log: { problems: [{ code: 'watch', count: 1 }] } });
  });

  test('are one in its pod, or beside a line of its own', async () => {
    const own = 'I1127 10:00:00.000000       1 server_linux.go:53] Using iptables Proxier\n';
    for (const stdin of [
      own + line('Service'),
      line('Service') + own,
      `[pod/kube-proxy-abcde/kube-proxy] ${line('Service')}`,
    ]) {
      const { stdout } = await runKpc(['describe', '-', '--output', 'json'], { stdin });
      expect(resultOf(stdout), stdin).toMatchObject({ log: { problems: [{ code: 'watch' }] } });
    }
  });
});
