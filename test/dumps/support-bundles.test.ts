import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readTar } from '../../src/bundle/pack/read-tar.ts';
import { triesAll } from '../support/rounds.ts';
import { runKpc } from '../support/run-kpc.ts';
import { natList, natSaved } from './listed-rules.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-bundles-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const web = /^shop\/web:http +ClusterIP +10\.96\.7\.7 +80\/TCP +1$/m;
const addresses = '2: eth0    inet 192.0.2.11/24 brd 192.0.2.255 scope global eth0\n';
const flow =
  'udp 17 29 src=10.244.1.9 dst=10.96.7.9 sport=4000 dport=53 src=10.244.9.9 dst=10.244.1.9 sport=53 dport=4000 mark=0 use=1\n';
const log =
  '2026-03-02T10:00:00.1Z stderr F I0302 10:00:00.000001       1 server_linux.go:144] "Using iptables Proxier"\n';

/** What each collector's files are called. */
const collected: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  eks: {
    'networking/iptables-save.txt': natSaved,
    'networking/iptables-nat.txt': `${natList}=======\nTotal Number of Rules: 7\n`,
    'networking/ipvsadm.txt': 'ipvsadm not installed\n',
    'networking/conntrack.txt': `*** Output of conntrack -S *** \ncpu=0   \tfound=0 invalid=0\n*** Output of conntrack -L ***\n${flow}`,
    'var_log/kube-system_kube-proxy-7x_1/kube-proxy/0.log': log,
    'kubelet/kubelet.log': log.replace('iptables', 'ipvs'),
  },
  'sosreport-node1': {
    'sos_commands/firewall_tables/iptables_-t_nat_-nvL': natList,
    'sos_commands/networking/ip_-d_address': addresses,
    'sos_commands/conntrack/conntrack_-L_-o_extended': `ipv4     2 ${flow}`,
    'var/log/pods/kube-system_kube-proxy-7x_1/kube-proxy/0.log': log,
  },
  rancher: {
    'networking/iptablessave': natSaved,
    'networking/iptablesnat': natList,
    'networking/ipaddrshow': addresses,
    'rke2/podlogs/kube-system-kube-proxy-node1': log.replace(/^\S+ stderr F /, ''),
  },
};

function writeAll(folder: string, files: Readonly<Record<string, string>>): string {
  for (const [name, text] of Object.entries(files)) {
    const path = join(scratch, folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  return join(scratch, folder);
}

function tar(...args: readonly string[]): void {
  execFileSync('tar', args, { cwd: scratch });
}

beforeAll(() => {
  for (const [folder, files] of Object.entries(collected)) writeAll(folder, files);
  // A sosreport has links to what is asked for most; a hostile one has one to a file of whoever reads it.
  symlinkSync('sos_commands/networking/ip_-d_address', join(scratch, 'sosreport-node1/ip_addr'));
  mkdirSync(join(scratch, 'sosreport-node1/sos_commands/ipvs'));
  symlinkSync('/etc/hostname', join(scratch, 'sosreport-node1/sos_commands/ipvs/ipvsadm_-Ln'));
  tar('-czf', 'eks.tar.gz', '-C', 'eks', '.');
  tar('-czf', 'sos.tar.gz', 'sosreport-node1');
  tar('-cf', 'sos.tar', 'sosreport-node1');
  tar('--format=pax', '-czf', 'pax.tgz', 'sosreport-node1');
  tar('--format=gnu', '-czf', 'gnu.tgz', '--transform', `s,^,${'long'.repeat(30)}-,`, 'sosreport-node1');
  tar('-czf', 'rancher.tar.gz', 'rancher');
});

describe('the Services, flows and log of a node are read from', () => {
  test.each(['eks', 'eks.tar.gz', 'sosreport-node1', 'sos.tar.gz', 'sos.tar', 'pax.tgz', 'gnu.tgz'])(
    '%s',
    async (name) => {
      const { status, stdout, stderr } = await runKpc(['describe', join(scratch, name)]);
      expect(status).toBe(0);
      expect(stdout).toMatch(web);
      expect(stdout).toContain('1 UDP flow, ');
      expect(stdout).toContain("kube-proxy's log: 1 line, from 03-02 10:00:00 to 03-02 10:00:00\n  mode iptables\n");
      expect(stderr).not.toContain('unrecognised');
    },
  );

  test.each(['rancher', 'rancher.tar.gz'])('%s', async (name) => {
    const { stdout } = await runKpc(['describe', '-q', join(scratch, name)]);
    expect(stdout).toMatch(web);
    expect(stdout).toContain("kube-proxy's log: 1 line");
  });
});

test('a collector says which tool a node does not have', async () => {
  const { stderr } = await runKpc(['describe', join(scratch, 'eks')]);
  expect(stderr).toMatch(/eks\/networking\/ipvsadm\.txt: warning: .*ipvsadm -Sn \[unread-file\]/);
});

const savedByNames = `-A -t ip-10-96-7-7.eu-west-1.compute.internal:https -s rr
-a -t ip-10-96-7-7.eu-west-1.compute.internal:https -r ip-10-1-9-1.eu-west-1.compute.internal:https -m -w 1
-A -u 10.96.0.10:domain -s rr
-a -u 10.96.0.10:domain -r 10.1.9.2:domain -m -w 1
`;
const rates = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port                 CPS    InPPS   OutPPS    InBPS   OutBPS
  -> RemoteAddress:Port
TCP  10.96.7.7:443                       0        0        0        0        0
  -> 10.1.9.1:443                        0        0        0        0        0
UDP  10.96.0.10:53                       0        0        0        0        0
  -> 10.1.9.2:53                         0        0        0        0        0
`;

test('virtual servers by names get the addresses of the list below them', async () => {
  const written = (name: string, list: string) =>
    writeAll(name, { 'networking/ipvsadm.txt': `${savedByNames}\n\n${list}\n\n${list.replace('CPS ', 'Conns')}` });
  const { stdout, stderr } = await runKpc(['describe', written('eks-ipvs', rates)]);
  expect(stdout).toMatch(/^10\.96\.7\.7:443\/TCP +10\.96\.7\.7 +443\/TCP +1$/m);
  expect(stdout).toMatch(/^10\.96\.0\.10:53\/UDP +10\.96\.0\.10 +53\/UDP +1$/m);
  expect(stderr).not.toContain('unread');
});

test.each([
  ['another port', rates.replace('10.96.7.7:443', '10.96.7.7:80')],
  ['another address of a number', rates.replace('10.1.9.2:53', '10.1.9.3:53')],
  ['another protocol', rates.replace('UDP', 'TCP')],
  ['a server less', rates.replace(/^UDP.*\n.*\n/m, '')],
  ['a server more', `${rates}  -> 10.1.9.3:53                         0        0        0        0        0\n`],
])('and none if the list has %s', async (_name, list) => {
  const path = writeAll('eks-other', { 'networking/ipvsadm.txt': `${savedByNames}\n\n${list}` });
  const { stdout, stderr } = await runKpc(['describe', path]);
  expect(stdout).not.toContain('10.96.7.7');
  expect(stderr).toMatch(/warning: .*ipvsadm -Sn.* \[unread-line\]/);
});

const services = {
  apiVersion: 'v1',
  kind: 'List',
  items: [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', namespace: 'shop' },
      spec: { clusterIP: '10.96.7.7', ports: [{ port: 443 }] },
    },
  ],
};

test('the manifests in a sosreport name its Services, unless they have errors', async () => {
  const kubectl = 'sos_commands/kubernetes/cluster-info';
  const name = 'kubectl_--kubeconfig_.etc.kubernetes.admin.conf_get_-o_json_--namespace_shop_services';
  const list = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
TCP  10.96.7.7:443 rr
  -> 10.1.9.1:443                 Masq    1      0          0
`;
  const written = (text: string) =>
    writeAll('sos-manifests', {
      'sos_commands/ipvs/ipvsadm_-Ln': list,
      [`${kubectl}/shop/${name}`]: text,
      [`${kubectl}/kubectl_get_namespaces`]: 'NAME STATUS AGE\nshop Active 3d\n',
    });
  const { stdout } = await runKpc(['describe', written(JSON.stringify(services))]);
  expect(stdout).toMatch(/^shop\/web +ClusterIP +10\.96\.7\.7 +443\/TCP +1$/m);
  tar('-czf', 'sos-manifests.tar.gz', '-C', 'sos-manifests', '.');
  const packed = await runKpc(['describe', join(scratch, 'sos-manifests.tar.gz')]);
  expect(packed.stdout).toBe(stdout);
  const cut = await runKpc(['describe', written(JSON.stringify(services).slice(0, -20))]);
  expect(cut.status).toBe(0);
  expect(cut.stdout).toMatch(/^10\.96\.7\.7:443\/TCP/m);
  expect(cut.stderr).toMatch(/warning: .*\[reading\]/);
  const dump = written(JSON.stringify(services).slice(0, -20));
  const traced = await runKpc(['trace', dump, '--from', 'external', '--to', '10.96.7.7:443']);
  expect(traced.stderr).toMatch(/warning: .*\[reading\]/);
});

test('no link is followed, in a folder or an archive', async () => {
  for (const name of ['sosreport-node1', 'sos.tar.gz']) {
    const { stderr } = await runKpc(['describe', join(scratch, name)]);
    expect(stderr).not.toContain('ipvsadm_-Ln');
  }
});

test('the bundles of two nodes are not taken for one', async () => {
  writeAll('nodes/one', collected['eks'] ?? {});
  writeAll('nodes/two', collected['eks'] ?? {});
  const { status, stderr } = await runKpc(['describe', join(scratch, 'nodes')]);
  expect(status).toBe(2);
  expect(stderr).toContain(
    'nodes cannot be read: it holds the support bundles of several nodes: name one of them, such as one/',
  );
});

test('the logs of two nodes in one bundle are not taken for one', async () => {
  const text = log.replace(/^\S+ stderr F /, '');
  const logs = ['a', 'a-previous', 'b'].map((name) => [`rke2/podlogs/kube-system-kube-proxy-node-${name}`, text]);
  const path = writeAll('rancher-logs', { 'networking/iptablessave': natSaved, ...Object.fromEntries(logs) });
  const { stdout, stderr } = await runKpc(['describe', path]);
  expect(stdout).toContain("kube-proxy's log: 2 lines");
  expect(stderr).toMatch(/warning: .*kube-proxy-node-b \[second-listing\]/);
});

test('an archive that is cut off, or packed in another way, is one sentence', async () => {
  const path = join(scratch, 'cut.tar.gz');
  tar('-czf', 'cut.tar.gz', 'sosreport-node1');
  truncateSync(path, 400);
  const cut = await runKpc(['describe', path]);
  expect([cut.status, cut.stdout]).toEqual([2, '']);
  expect(cut.stderr).toMatch(/error: .*\[unreadable\]/);
  writeFileSync(join(scratch, 'sos.tar.xz'), Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]));
  const xz = await runKpc(['describe', join(scratch, 'sos.tar.xz')]);
  expect(xz.stderr).toMatch(/error: .*\bxz\b.*unxz.*\[unreadable\]/);
});

describe('an archive', () => {
  const pathOf = (name: string, bytes: Buffer): string => {
    writeFileSync(join(scratch, name), bytes);
    return join(scratch, name);
  };
  const header = (name: string, size: string, kind = '0'): Buffer => {
    const bytes = Buffer.alloc(512);
    bytes.write(name);
    bytes.write('0000644\0', 100);
    bytes.write(size, 124);
    bytes.write(`        ${kind}`, 148);
    bytes.write('ustar\x0000', 257);
    const sum = bytes.reduce((total, byte) => total + byte, 0);
    bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return bytes;
  };
  const body = (text: string): Buffer => Buffer.concat([Buffer.from(text), Buffer.alloc(-text.length & 511)]);
  const all = (path: string) => readTar(path, false, () => true);

  test('gives no file outside of it, no link and no device', async () => {
    const parts = [
      header('../up', '00000000001\0'),
      body('a'),
      header('/etc/passwd', '00000000001\0'),
      body('b'),
      header('link', '00000000000\0', '2'),
      header('device', '00000000000\0', '3'),
      header('./in/file', '00000000001\0'),
      body('c'),
    ];
    const files = await all(pathOf('odd.tar', Buffer.concat([...parts, Buffer.alloc(1024)])));
    expect(files.map(({ path, bytes }) => [path, bytes.toString()])).toEqual([['in/file', 'c']]);
  });

  test('keeps the long name of GNU tar past a header of pax that names none', async () => {
    const [name, records] = [`${'long/'.repeat(40)}file`, '20 mtime=1700000000\n'];
    const sizeOf = (text: string) => `${text.length.toString(8).padStart(11, '0')}\0`;
    const parts = [
      header('././@LongLink', sizeOf(name), 'L'),
      body(name),
      header('pax', sizeOf(records), 'x'),
      body(records),
      header('short', '00000000001\0'),
      body('c'),
    ];
    const files = await all(pathOf('names.tar', Buffer.concat([...parts, Buffer.alloc(1024)])));
    expect(files.map(({ path }) => path)).toEqual([name]);
  });

  test.each([
    ['a size that is none', header('file', 'x')],
    ['a changed byte', Buffer.concat([header('a', '00000000000\0'), header('b', '00000000000\0').fill('z', 0, 1)])],
    ['an end that is missing', header('file', '00000001000\0')],
    ['a name without end', header('long', '77777777777\0', 'L')],
  ])('with %s is refused, or holds nothing', async (_name, bytes) => {
    const read = all(pathOf('bad.tar', bytes)).then((files) => `${files.length} files`);
    expect(await read.catch((error: unknown) => String(error))).toMatch(/^0 files$|damaged|too-long/);
  });

  /** So many times so many bytes of zeros. */
  const read = (count: number, size: number, limit?: number) => {
    const zeros = gzipSync(Buffer.alloc(size), { level: 9 });
    const parts = [gzipSync(header('zeros', '37777777777\0')), ...Array.from({ length: count }, () => zeros)];
    return readTar(pathOf('bomb.tar.gz', Buffer.concat(parts)), true, () => false, limit);
  };

  test('that unpacks to far more than it is, is read up to a limit', async () => {
    await expect(read(1, 2 ** 22, 2 ** 21)).rejects.toThrow('"of":"archive"');
  });

  test.runIf(triesAll)('that unpacks to more than is read of any, is read up to that', async () => {
    await expect(read(40, 2 ** 26)).rejects.toThrow('"of":"archive","most":2147483648');
  });
});
