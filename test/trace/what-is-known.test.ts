// What a dump does not show decides nothing: the verdict is unknown, and says what settles it.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { join } from 'node:path';
import { fixturesFolder } from '../support/fixtures.ts';
import { runKpc } from '../support/run-kpc.ts';
import { DumpedSnapshot } from '../../src/snapshot/snapshot.ts';
import { readDump } from '../../src/dumps/read-dump.ts';
import { traceMatrix } from '../../src/ask/trace/matrix.ts';
import { ask } from '../../src/ask/trace/ask.ts';
import { holdingTests } from '../../src/say/packet-tests.ts';
import { describeTrace, listTraceLines } from '../../src/say/way/trace.ts';
import { onOneNode, sceneOf, type Scene } from '../../src/ask/trace/scene.ts';
import { sceneOfManifests } from '../support/manifest-scene.ts';
import { resultOf } from '../support/printed-json.ts';

function sceneOfText(text: string): Scene {
  const { state, coverage, doubts } = readDump(new Map([['node.txt', text]]));
  return sceneOf(new DumpedSnapshot({ name: 'node.txt', state: () => state, coverage, doubts }));
}

function trace(text: string, from: string, to: string, inInterface?: string): string {
  const scene = sceneOfText(text);
  const answer = ask({ from, to, protocol: undefined, inInterface, namespace: undefined }, scene);
  if (answer.kind === 'wrong') throw new Error(answer.faults.map(({ diagnostic }) => diagnostic.code).join());
  const lines = listTraceLines(describeTrace(answer.value, scene)).map((line) => line.text);
  const end = lines.indexOf('how');
  return lines.slice(0, end < 0 ? undefined : end).join('\n');
}

const nat = `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SEP-CCCCCCCCCCCCCCCC - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-NODEPORTS -p tcp -m comment --comment "shop/web:http" -m tcp --dport 31674 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE
-A KUBE-SEP-CCCCCCCCCCCCCCCC -p tcp -m comment --comment "shop/web:http" -m tcp -j DNAT --to-destination 10.244.1.63:8080
-A KUBE-SERVICES -d 10.96.73.20/32 -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-SVC-AAAAAAAAAAAAAAAA ! -s 10.244.0.0/16 -d 10.96.73.20/32 -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "shop/web:http -> 10.244.1.63:8080" -j KUBE-SEP-CCCCCCCCCCCCCCCC
COMMIT
`;
const filter = '*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n';
const addresses =
  '1: lo    inet 127.0.0.1/8 scope host lo\n2: eth0    inet 192.168.50.11/24 brd 192.168.50.255 scope global eth0\n';
const whole = nat + filter + addresses;
const web = '10.96.73.20:80';

test('a whole dump decides', () => {
  expect(trace(whole, '192.168.50.99', web)).toContain('delivered to 1 endpoint:');
});

describe('what is not shown', () => {
  test.each([
    [
      'table nat alone',
      nat + addresses,
      'the dump lacks table filter of IPv4',
      'add the output of iptables-save without -t',
    ],
    [
      '-t nat',
      `$ iptables-save -t nat\n${nat}$ ip addr\n${addresses}`,
      'tables filter, mangle, raw and security',
      'without -t',
    ],
    [
      'a line that cannot be read',
      whole.replace('COMMIT', '-R OUTPUT 1 -j DROP\nCOMMIT'),
      'could not read the rule in line',
      'iptables-save',
    ],
    [
      'legacy rules',
      `# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n${whole}`,
      'iptables-legacy',
      'iptables-legacy-save',
    ],
    [
      'lines that grep took out, of a chain with rules',
      whole.replace(':FORWARD ACCEPT [0:0]\n', '-A FORWARD -p udp -j DROP\n'),
      'the dump lacks a part of the output of iptables-save',
      'add all of it',
    ],
    [
      'a chain of the kernel',
      whole.replace(':FORWARD ACCEPT [0:0]\n', ''),
      'if the policy of FORWARD is to accept',
      'add all of the output of iptables-save',
    ],
    [
      'a set',
      whole.replace(
        ':FORWARD ACCEPT [0:0]\n',
        ':FORWARD ACCEPT [0:0]\n-A FORWARD -m set --match-set bad src -j DROP\n',
      ),
      'the set bad',
      'add the output of ipset save',
    ],
  ])('%s', (_, text, lack, settle) => {
    const answer = trace(text, '192.168.50.99', web);
    expect(answer).toContain('unknown: ');
    expect(answer).toContain(lack);
    expect(answer).toContain(settle);
    expect(answer.split('\n')[1]).not.toMatch(/^delivered/);
  });

  test('that an address is the node’s, where none of its addresses is known: the condition says so', () => {
    const answer = trace(nat + filter, 'external', 'shop/web');
    expect(answer).toContain('to the node, port 31674');
    expect(answer).toMatch(/^ *if the destination is an address of this node.*: delivered to 1 endpoint:$/m);
    expect(answer).not.toContain('if :');
  });

  test('whether an address that a part of ip addr does not show is another host’s', () => {
    const part = addresses.replace(/^1: lo.*\n/, '');
    expect(trace(nat + filter + part, '192.168.50.99', '192.168.50.12:31674')).toContain('unknown: ');
    expect(trace(whole, '192.168.50.99', '192.168.50.12:31674')).toContain('left to routing');
  });

  const eth0 = '2: eth0    inet 192.168.50.11/24 brd 192.168.50.255 scope global eth0\n';
  test.each([
    ['# ip addr', 'left to routing'],
    ['root@node1:~# ip -br -c a', 'left to routing'],
    ['$ ip -o -4 addr show', 'left to routing'],
    ['== ip address list ==', 'left to routing'],
    ['# ip addr show eth0', 'unknown'],
    ['# ip -o -6 addr', 'unknown'],
    ['# ip addr show up scope global', 'unknown'],
    ['# ip addr | grep inet', 'unknown'],
    ['# cat addresses.txt', 'unknown'],
  ])('by the command above it, what ip addr prints is all of it: %s: %s', (command, answer) => {
    const text = `${nat}${filter}${command}\n${eth0}`;
    expect(trace(text, '192.168.50.99', '192.168.50.12:31674')).toContain(answer);
  });

  test('links that are printed one by one are a part', () => {
    const link = '5: kube-ipvs0    inet 10.96.73.20/32 scope global kube-ipvs0\n';
    const text = `${nat}${filter}# ip addr show eth0\n${eth0}# ip addr show kube-ipvs0\n${link}`;
    expect(trace(text, '192.168.50.99', '192.168.50.12:31674')).toContain('unknown');
  });

  test('addresses of one family say nothing of the other', () => {
    const six = (text: string): string =>
      `$ nft list ruleset\ntable inet f {\n}\n$ ip6tables-save\n${filter}$ ${text}\n${eth0}`;
    expect(trace(six('ip addr'), '2001:db8::9', '[fd00::5]:80')).not.toContain('unknown');
    expect(trace(six('ip -4 addr'), '2001:db8::9', '[fd00::5]:80')).toContain('unknown');
    const ofSix = '1: lo: <UP>\n    inet6 ::1/128 scope host\n2: eth0: <UP>\n    inet6 fd00::1/64 scope global\n';
    expect(trace(`${nat}${filter}${ofSix}`, '192.168.50.99', '192.168.50.12:31674')).toContain('unknown');
  });

  test('addresses that the other side has, without the name of their link', () => {
    const link = (links: Scene['links']) => [{ name: 'node', addresses: links.flatMap((each) => each.addresses) }];
    const other = sceneOfText(whole);
    const [scene] = onOneNode(sceneOfText(nat + filter), { ...other, links: link(other.links) });
    const packet = { from: '192.168.50.99', to: '192.168.50.12:31674', protocol: undefined, inInterface: undefined };
    expect(ask({ ...packet, namespace: undefined }, scene)).toMatchObject({
      value: { fate: { verdict: 'forwarded' } },
    });
  });

  test('which address the node sends from, where rules tell its addresses apart', () => {
    const other = '2: eth0    inet 10.244.9.9/24 scope global secondary eth0\n';
    const ranged = filter.replace(/COMMIT\n$/, '-A OUTPUT -s 10.244.0.0/16 -j DROP\nCOMMIT\n');
    expect(trace(nat + ranged + addresses + other, 'node', web)).toContain(
      'ip route get 10.96.73.20 on the node shows that address: name it with --from, such as --from 192.168.50.11',
    );
    const cache = '1: lo    inet 169.254.20.10/32 scope global lo\n';
    const docker = '3: docker0    inet 172.17.0.1/16 brd 172.17.255.255 scope global docker0\n';
    expect(trace(nat + ranged + cache + addresses + docker, 'node', web)).toContain('delivered');
    const ofEth0 = ranged.replace('10.244.0.0/16', '192.168.50.11/32');
    expect(trace(nat + ofEth0 + cache + addresses, 'node', web)).toContain('dropped');
    expect(trace(nat + ofEth0 + cache + addresses + docker, 'node', web)).toContain('such as --from 192.168.50.11');
    expect(trace(nat + ofEth0 + cache + addresses + docker, '192.168.50.11', web)).toContain('dropped');
    const part = addresses.replace(/^1: lo.*\n/, '');
    expect(trace(nat + ranged + part, 'node', web)).toContain('add the output of ip addr');
    expect(trace(nat + ranged + addresses, 'node', web)).toContain('delivered');
    expect(trace(whole, 'node', web)).toContain('delivered');
  });

  test.each([
    ['table netdev fw', 'device "eth0"'],
    ['table inet fw', 'devices = { "cni0", "eth0" }'],
    ['table netdev fw', 'device "eth*"'],
  ])('rules at an interface: %s, %s', (head, device) => {
    const table = (rules: string): string =>
      `$ nft list ruleset\n${head} {\n\tchain f {\n\t\ttype filter hook ingress ${device} priority filter; policy accept;\n${rules}\t}\n}\n`;
    const hooked = whole + table('\t\ttcp dport 80 drop\n');
    expect(trace(hooked, '192.168.50.99', web, 'eth0')).toContain('dropped');
    const closed = hooked.replace('policy accept', 'policy drop').replace('80 drop', '80 accept');
    expect(trace(closed, '192.168.50.99', web, 'eth0')).toContain(`kpc could not read all of ${head}`);
    expect(trace(hooked, '203.0.113.9', web)).toContain('unknown: ');
    expect(trace(hooked, '192.168.50.99', web, 'wlan0')).toContain('delivered');
    expect(trace(hooked, 'node', web)).toContain('delivered');
    expect(trace(whole + table(''), '192.168.50.99', web, 'eth0')).toContain('delivered');
  });

  test('no policy where a rule decides before', () => {
    const text = whole.replace(':FORWARD ACCEPT [0:0]\n', '-A FORWARD -p tcp -j DROP\n');
    expect(trace(text, '192.168.50.99', web)).toContain('dropped');
  });

  test('whether an address is the node’s own, with what a node port does if it is', () => {
    const answer = trace(nat + filter, '192.168.50.99', '192.168.50.12:31674');
    expect(answer).toContain(
      'unknown: kpc does not know whether 192.168.50.12 is an address of the node; add the output of ip addr',
    );
    expect(answer).toContain('if 192.168.50.12 is an address of this node');
    expect(answer).toContain('100%  10.244.1.63:8080');
  });

  test('where a packet comes in, until --in-interface says so', () => {
    const text = whole.replace('COMMIT\n1:', '-A FORWARD -i docker0 -j REJECT\nCOMMIT\n1:');
    expect(trace(text, '203.0.113.9', web)).toContain('name it with --in-interface, such as --in-interface eth0');
    expect(trace(text, '203.0.113.9', web, 'eth0')).toContain('delivered');
    expect(trace(text, '203.0.113.9', web, 'docker0')).toContain('refused');
  });

  test('a sysctl: absent is not zero', () => {
    const local = nat.replace(
      '-A KUBE-SVC-AAAAAAAAAAAAAAAA -m',
      '-A KUBE-SVC-AAAAAAAAAAAAAAAA -j KUBE-MARK-MASQ\n-A KUBE-SVC-AAAAAAAAAAAAAAAA -m',
    );
    expect(trace(local + filter + addresses, 'node', '127.0.0.1:31674')).toContain(
      'sysctl net.ipv4.conf.all.route_localnet',
    );
  });
});

test('how many connections end otherwise, where rules refuse some and drop others', () => {
  const rules =
    '-A FORWARD -p tcp -m statistic --mode random --probability 0.25000000000 -j DROP\n-A FORWARD -p tcp -j REJECT\n';
  const text = nat + filter.replace('COMMIT', `${rules}COMMIT`) + addresses;
  expect(trace(text, '192.168.50.99', web)).toContain(
    'refused: the sender gets an error at once; 25% of connections end differently',
  );
});

test('what a rule refuses at a loopback address has no other cause', () => {
  const refusing = filter.replace('COMMIT', '-A OUTPUT -p tcp -m tcp --dport 8080 -j DROP\nCOMMIT');
  const answer = trace(nat + refusing + addresses, 'node', '127.0.0.1:31674');
  expect(answer).toContain('dropped');
  expect(answer).not.toContain('use another address of the node');
});

describe('a TCP reset to a packet that was sent on to another address', () => {
  // nf_send_reset sends it to a port of a bridge without the way back through NAT: measured with a kernel.
  const rule = '-A FORWARD -p tcp -j REJECT --reject-with tcp-reset\n';
  const refusing = nat + filter.replace('COMMIT', `${rule}COMMIT`);
  const linkOf = (name: string, kind: string, local: string) => {
    const info = [{ family: 'inet', local, prefixlen: 24, scope: 'global' }];
    return { ifname: name, linkinfo: kind === '' ? undefined : { info_kind: kind }, addr_info: info };
  };
  const json = JSON.stringify([
    linkOf('lo', '', '127.0.0.1'),
    linkOf('eth0', 'veth', '192.168.50.11'),
    linkOf('cni0', 'bridge', '10.244.1.1'),
  ]);
  const answer = (sysctl: string, from: string, to = web, links = json): string => {
    const text = `${refusing}$ ip -d -j addr\n${links}\n$ sysctl net.bridge.bridge-nf-call-iptables\n${sysctl}`;
    return trace(text, from, to);
  };
  const isOn = 'net.bridge.bridge-nf-call-iptables = 1\n';

  test('is lost on its way over a bridge', () => {
    expect(answer(isOn, '10.244.1.9')).toContain('dropped');
    expect(answer('net.bridge.bridge-nf-call-iptables = 0\n', '10.244.1.9')).toContain('refused');
    expect(answer(isOn, '192.168.50.99')).toContain('refused');
  });

  test('arrives where the sender asked for that address', () => {
    expect(answer(isOn, '10.244.1.9', '10.244.2.2:8080')).toContain('refused');
  });

  test('may be lost where the dump does not say what is a bridge', () => {
    expect(answer('', '10.244.1.9')).toContain(
      'add the output of sysctl net.bridge.bridge-nf-call-iptables and ip -d -j addr',
    );
    expect(answer(isOn, '192.168.50.99', web, json.replace('veth', ''))).toMatch(/unknown: .*TCP reset/);
    expect(trace(refusing.replace('--reject-with tcp-reset', '') + addresses, '192.168.50.99', web)).toContain(
      'refused',
    );
  });

  test('as nft prints it', () => {
    const table =
      'table inet fw {\n\tchain f {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\treject with tcp reset\n\t}\n}\n';
    expect(trace(`${whole}$ nft list ruleset\n${table}`, '192.168.50.99', web)).toMatch(/unknown: .*TCP reset/);
    expect(trace(`${whole}$ nft list ruleset\n${table}`, '192.168.50.99', '10.244.1.63:8080')).toContain('refused');
  });
});

test('a pod is of the network that the rules name, and the node of none of it', () => {
  expect(trace(whole, 'pod', web)).toMatch(
    /from a pod on this node \(such as 10\.244\.[\d.]+\).*\n.*\n.*sees the client's own address/,
  );
  const many = `${whole}3: docker0    inet 172.17.0.1/16 scope global docker0\n1: lo    inet 169.254.20.10/32 scope global lo\n`;
  expect(trace(many, 'node', web)).toContain("sees the node's address as the client");
  const ranged = many.replace(
    ':OUTPUT ACCEPT [0:0]\nCOMMIT',
    ':OUTPUT ACCEPT [0:0]\n-A OUTPUT -s 172.17.0.0/16 -j DROP\nCOMMIT',
  );
  expect(trace(ranged, 'node', web)).toContain("the node's routes choose the source address of the packet");
});

test('a node port and pods, over iptables mode as nft lists it', () => {
  const text = `${readFileSync('test/trace/node-of-iptables-nft.txt', 'utf8')}table ip filter {\n}\n`;
  expect(trace(text, '192.168.50.99', '192.168.50.11:31674')).toContain(
    'if 192.168.50.11 is an address of this node and 10.244.1.63 is no address of this node: delivered',
  );
  expect(trace(text, 'pod', web)).toMatch(/from a pod on this node \(such as 10\.244\.[\d.]+\)/);
});

describe('tables that iptables keeps in nftables', () => {
  const table = (rule: string): string =>
    `$ nft list ruleset\ntable ip filter {\n\tchain INPUT {\n\t\ttype filter hook input priority filter; policy accept;\n\t\t${rule}\n\t}\n}\n$ ip addr\n${addresses}`;
  test.each([
    ['tcp dport 22 counter packets 1 bytes 60 drop', 'dropped'],
    ['ct state established counter packets 1 bytes 60 drop', 'reaches the node itself'],
    ['xt match "string" counter packets 1 bytes 60 drop', 'add the output of iptables-save'],
    // nft prints nothing in the place of some targets.
    ['meta l4proto tcp   counter packets 1 bytes 60', 'add the output of iptables-save'],
    ['# xt_string counter packets 1 bytes 60 drop', 'add the output of iptables-save'],
  ])('%s: %s', (rule, expected) => {
    expect(trace(table(rule), '192.168.50.99', '192.168.50.11:22')).toContain(expected);
  });

  test('what iptables-save shows of them counts', () => {
    const text = `${table('tcp dport 80 drop')}\n${nat}${filter}`;
    expect(trace(text, '192.168.50.99', '192.168.50.11:80')).toContain('reaches the node itself');
  });
});

test('a table of the family inet beside one of the same name', () => {
  const drop = (family: string, port: number): string =>
    `table ${family} filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy accept;\n\t\ttcp dport ${port} drop\n\t}\n}\n`;
  const text = `$ nft list ruleset\n${drop('ip', 22)}${drop('inet', 23)}$ ip addr\n${addresses}`;
  for (const port of [22, 23]) expect(trace(text, '192.168.50.99', `192.168.50.11:${port}`)).toContain('dropped');
  expect(trace(text, '192.168.50.99', '192.168.50.11:24')).toContain('reaches the node itself');
});

test('both variants of iptables decide', () => {
  const nft = `# Generated by iptables-save v1.8.9 (nf_tables) on Mon\n${nat}${filter}`;
  // Of 1.8.9, iptables-legacy-save prints no variant.
  const legacy = ['v1.8.9 (legacy)', 'v1.8.9', 'v1.8.11', 'v1.6.1'].map(
    (version) =>
      `# Generated by iptables-save ${version} on Mon\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A FORWARD -j DROP\nCOMMIT\n`,
  );
  for (const parts of legacy.flatMap((each) => [
    [each, nft],
    [nft, each],
  ]))
    expect(trace(parts.join('') + addresses, '192.168.50.99', web)).toContain('dropped');
});

test('kpc test --init asks for no node port where the node has no known address', () => {
  const head = { inputs: [], hostAddresses: undefined, namespace: undefined, mode: undefined, release: undefined };
  const written = (text: string) => holdingTests({ ...head, node: undefined }, [sceneOfText(text)]);
  const part = written(nat + filter);
  expect(part.untested.leftOut).not.toEqual([]);
  expect(part.untested.listings).toContain('ip addr');
  expect(JSON.stringify(part.file)).not.toContain('31674');
  expect(written(whole).untested.leftOut).toEqual([]);
  expect(JSON.stringify(written(whole).file)).toContain('192.168.50.11:31674');
});

describe('a dump of nftables mode without ip addr', () => {
  const dump = readFileSync('fixtures/dumps/kube-proxy-nftables-dual-stack-nodeport/nft-ruleset', 'utf8');
  const cellsOf = (text: string) => {
    const scene = sceneOfText(text);
    return traceMatrix(scene.side.ports, scene).cells.map(({ from, kind, target }) => ({
      from,
      kind,
      at: target.address.text,
    }));
  };

  test('node ports are asked at the addresses that the rules serve them at', () => {
    const asked = cellsOf(dump).filter(({ kind }) => kind === 'node-port');
    expect(new Set(asked.map(({ at }) => at))).toEqual(new Set(['192.168.10.11', '2001:db8:1::11']));
  });

  test('an endpoint sends to itself only where the rules know it to be on the node', () => {
    expect(cellsOf(dump).some(({ from }) => from === 'itself')).toBe(true);
    const elsewhere = dump.replaceAll(/elements = \{ (\S+) \. \1 \. tcp \. 8080 \}/g, '');
    expect(elsewhere).not.toBe(dump);
    expect(cellsOf(elsewhere).some(({ from }) => from === 'itself')).toBe(false);
  });
});

test('a Service of the manifests that the node has no rule of is named, and its address asked', async () => {
  const wiped = `*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\nCOMMIT\n${filter}$ nft list ruleset\ntable inet f {\n}\n$ ip addr\n${addresses}`;
  const manifests = join(fixturesFolder, 'quickstart', 'svc.yaml');
  const run = await runKpc(['trace', '-', '-f', manifests, '--from', 'node', '--to', 'svc/nginx', '--output', 'json'], {
    stdin: wiped,
  });
  const printed = resultOf(run.stdout).traces[0] as { verdict: string; notes: readonly string[] };
  expect(printed).toMatchObject({ verdict: 'forwarded' });
  expect(printed.notes.join()).toContain('the manifests have default/nginx');
});

test('each port of a Service with session affinity has its own', async () => {
  const port = (name: string, number: number) => `{ name: ${name}, port: ${number}, targetPort: 8080 }`;
  const manifest = (ports: string) => `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.9, sessionAffinity: ClientIP, ports: [${ports}] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-a, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: a, port: 8080 }, { name: b, port: 8080 }]
endpoints: [{ addresses: [10.244.0.5] }, { addresses: [10.244.0.6] }]
`;
  const notesOf = async (ports: string) => {
    const args = ['trace', '-', '--proxy-mode', 'nftables', '--from', '10.244.0.9', '--to', '10.96.0.9:80', '-q'];
    const { stdout, stderr } = await runKpc(args, { stdin: manifest(ports) });
    expect(stderr).toBe('');
    return stdout;
  };
  expect(await notesOf(`${port('a', 80)}, ${port('b', 81)}`)).toContain(
    'each port of the Service has its own session affinity',
  );
  expect(await notesOf(port('a', 80))).not.toContain('each port of the Service');
});

describe.each(['iptables', 'ipvs', 'nftables'] as const)(
  'a node port in the pod network of the node, in mode %s',
  (proxyMode) => {
    const scene = sceneOfManifests(
      `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: NodePort, clusterIP: 10.96.0.7, ports: [{port: 80, nodePort: 30080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.10], nodeName: one}]
---
{apiVersion: v1, kind: Node, metadata: {name: one}, spec: {podCIDR: 10.244.1.0/24}, status: {addresses: [{type: InternalIP, address: 192.168.50.11}]}}
`,
      'one',
      { proxyMode },
    );

    test.each([
      ['10.244.1.1', 'unknown'],
      ['10.244.1.10', 'forwarded'],
      ['10.244.1.77', 'forwarded'],
    ])('at %s: %s', (address, verdict) => {
      const answer = ask(
        { from: 'external', to: `${address}:30080`, protocol: undefined, inInterface: undefined, namespace: undefined },
        scene,
      );
      expect(answer).toMatchObject({ value: { fate: { verdict } } });
    });
  },
);

test.each(['iptables', 'ipvs', 'nftables'] as const)(
  'where the node sends a packet for a Service whose endpoints are not given: %s',
  (proxyMode) => {
    const scene = sceneOfManifests(
      `{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { type: LoadBalancer, clusterIP: 10.96.1.9, externalIPs: [203.0.113.61], ports: [{ port: 443, nodePort: 30443 }], selector: { app: web } }, status: { loadBalancer: { ingress: [{ ip: 203.0.113.60 }] } } }
---
{ apiVersion: v1, kind: Service, metadata: { name: other }, spec: { clusterIP: 10.96.1.8, ports: [{ port: 80 }], selector: { app: other } } }
---
{ apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: { name: other-x, labels: { kubernetes.io/service-name: other } }, addressType: IPv4, ports: [{ port: 80 }], endpoints: [] }
---
{ apiVersion: v1, kind: Node, metadata: { name: n1 }, status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] } }
`,
      'n1',
      { proxyMode },
    );
    for (const to of ['203.0.113.60:443', '203.0.113.61:443', '10.96.1.9:443', '192.168.50.11:30443']) {
      const answer = ask(
        { from: 'node', to, protocol: undefined, inInterface: undefined, namespace: undefined },
        scene,
      );
      if (answer.kind === 'wrong') throw new Error(to);
      expect(answer.value.fate.verdict, to).toBe('unknown');
    }
  },
);
