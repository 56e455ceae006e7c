import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { callApply } from '../apply/call-apply.ts';
import { createFakeNode, type FakeNode } from '../apply/fake-node.ts';
import { fixtureBundle, forge, forgeWhole, type Files } from './forge.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-forged-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const ipvs = fixtureBundle('dual-stack/expected-ipvs');
const iptables = fixtureBundle('dual-stack/expected-iptables');

type Change = (files: Files) => void;

/** What is added at the end of a file. */
function append(file: string, line: string): Change {
  return (files) => void files.set(file, `${files.get(file) ?? ''}${line}\n`);
}

function replace(file: string, from: string | RegExp, to: string): Change {
  return (files) => {
    const text = files.get(file) ?? '';
    const changed = text.replace(from, to);
    if (changed === text) throw new Error(`${file} holds no ${from}`);
    files.set(file, changed);
  };
}

/** A line in the table that comes last, before its COMMIT. */
function addRule(line: string, file = 'iptables.restore'): Change {
  return replace(file, /COMMIT\n$/, `${line}\nCOMMIT\n`);
}

/** A line in table nat, which comes first. */
function addNatRule(line: string, file = 'iptables.restore'): Change {
  return replace(file, 'COMMIT\n*filter', `${line}\nCOMMIT\n*filter`);
}

type Editable = Record<string, any>; // eslint-disable-line

function editJson(file: string, edit: (value: Editable) => void): Change {
  return (files) => {
    const value = JSON.parse(files.get(file) ?? '');
    edit(value);
    files.set(file, `${JSON.stringify(value)}\n`);
  };
}

const settings = (edit: (value: Editable) => void) =>
  editJson('manifest.json', (manifest) => edit(manifest['settings']));
const service = (edit: (port: Editable) => void) => editJson('services.json', (file) => edit(file['servicePorts'][0]));

let count = 0;

function write(files: Files): string {
  const folder = join(scratch, `${++count}`);
  mkdirSync(folder);
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
  return folder;
}

/** On a node that knows none, and on one that has applied the bundle that was forged. */
async function expectRefusal(files: Files, ...reasons: readonly (string | RegExp)[]): Promise<void> {
  await expectRefusalOn(createFakeNode(), files, reasons);
  const settled = createFakeNode();
  const isIpvs = /"mode": ?"ipvs"/.test(files.get('manifest.json') ?? '');
  expect((await callApply(settled.host, 'apply', isIpvs ? ipvsFolder : iptablesFolder)).status).toBe(0);
  expect(settled.files.has('/var/lib/kpc/settled/index.json')).toBe(true);
  settled.commands.length = 0;
  await expectRefusalOn(settled, files, reasons);
}

async function expectRefusalOn(
  { host, commands, dump }: FakeNode,
  files: Files,
  reasons: readonly (string | RegExp)[],
): Promise<void> {
  const there = dump();
  const { status, out, err } = await callApply(host, 'apply', write(files));
  for (const reason of reasons) expect(err).toMatch(reason);
  expect(err).toMatch(/^error: \S+ is not a bundle that can be applied:\n/);
  expect({ status, out }).toEqual({ status: 2, out: '' });
  expect(commands).toEqual([]);
  expect(dump()).toBe(there);
}

const [ipvsFolder, iptablesFolder] = [write(ipvs), write(iptables)];

test.each([
  ['ipvs', ipvs],
  ['iptables', iptables],
])('nothing changed is no forgery: %s', async (_, files) => {
  for (const same of [forge(files, () => {}), forgeWhole(files, () => {})]) {
    expect(await callApply(createFakeNode().host, 'apply', write(same))).toMatchObject({ status: 0 });
  }
});

describe('an IPVS bundle with', () => {
  const cases: readonly (readonly [name: string, change: Change, reason: string | RegExp])[] = [
    // sysctl.conf
    [
      'IPv6 off',
      append('sysctl.conf', 'net.ipv6.conf.all.disable_ipv6 = 1'),
      /sysctl\.conf:\d+: net\.ipv6\.conf\.all\.disable_ipv6 is not a sysctl that kpc sets/,
    ],
    [
      'IPv6 off on one link',
      append('sysctl.conf', 'net.ipv6.conf.eth0.disable_ipv6 = 1'),
      'net.ipv6.conf.eth0.disable_ipv6 is no',
    ],
    [
      'no forwarding',
      replace('sysctl.conf', 'ip_forward = 1', 'ip_forward = 0'),
      /sysctl\.conf:1: net\.ipv4\.ip_forward is set to 0, but kpc writes "net\.ipv4\.ip_forward = 1"/,
    ],
    ['a sysctl twice', append('sysctl.conf', 'net.ipv4.ip_forward = 1'), 'net.ipv4.ip_forward is set twice'],
    [
      'a core pattern',
      append('sysctl.conf', 'kernel.core_pattern = |/tmp/x'),
      'kernel.core_pattern is not a network sysctl',
    ],
    [
      'redirects accepted',
      append('sysctl.conf', 'net.ipv4.conf.all.accept_redirects = 1'),
      'accept_redirects is not a sysctl that kpc sets',
    ],
    [
      'source routes accepted',
      append('sysctl.conf', 'net.ipv4.conf.all.accept_source_route = 1'),
      'accept_source_route is no',
    ],
    [
      'no path filter',
      append('sysctl.conf', 'net.ipv4.conf.all.rp_filter = 0'),
      'rp_filter is not a sysctl that kpc sets',
    ],
    [
      'a connection table of one',
      append('sysctl.conf', 'net.netfilter.nf_conntrack_max = 1'),
      'nf_conntrack_max is not a sysctl that kpc sets',
    ],
    [
      'route_localnet in mode ipvs',
      append('sysctl.conf', 'net.ipv4.conf.all.route_localnet = 1'),
      'route_localnet is no',
    ],
    ['a tiny port range', append('sysctl.conf', 'net.ipv4.ip_local_port_range = 1024'), 'ip_local_port_range is no'],
    [
      'a sysctl by slashes',
      append('sysctl.conf', 'net/ipv4/ip_forward = 0'),
      'net/ipv4/ip_forward is not a network sysctl',
    ],
    [
      'a sysctl with a minus sign',
      replace('sysctl.conf', 'net.ipv4.ip_forward', '-net.ipv4.ip_forward'),
      'sysctl.conf:1: ',
    ],
    [
      'a sysctl left out',
      replace('sysctl.conf', 'net.ipv4.ip_forward = 1\n', ''),
      'sysctl.conf: lines that services.json calls for are missing: "net.ipv4.ip_forward = 1"',
    ],
    // modules.conf
    ['a module of hardware', append('modules.conf', 'usb_storage'), /modules\.conf:\d+: usb_storage is not a module/],
    ['a module that copies packets', append('modules.conf', 'xt_TEE'), 'xt_TEE is not a module'],
    ['a module with an option of modprobe', append('modules.conf', '-r'), '-r is not a module'],
    ['a scheduler that nothing uses', append('modules.conf', 'ip_vs_mh'), 'ip_vs_mh is not a module'],
    // ipset.restore
    [
      'a set of another program',
      append('ipset.restore', 'create cali40all hash:ip family inet hashsize 1024 maxelem 65536'),
      'set cali40all does not belong to',
    ],
    [
      'a set with a timeout',
      replace(
        'ipset.restore',
        'create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536',
        'create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536 timeout 5',
      ),
      'set KUBE-CLUSTER-IP is not made as kpc makes it',
    ],
    ['a huge hash', replace('ipset.restore', 'hashsize 1024', 'hashsize 1073741824'), 'is not made as kpc makes it'],
    ['a set for one entry', replace('ipset.restore', 'maxelem 65536', 'maxelem 1'), 'is not made as kpc makes it'],
    [
      'a set without end',
      replace('ipset.restore', 'maxelem 65536', 'maxelem 4294967295'),
      'is not made as kpc makes it',
    ],
    [
      'a set of another type',
      replace('ipset.restore', 'create KUBE-IPVS-IPS hash:ip ', 'create KUBE-IPVS-IPS hash:net '),
      'set KUBE-IPVS-IPS is not made',
    ],
    [
      'a set of another family',
      replace(
        'ipset.restore',
        'create KUBE-CLUSTER-IP hash:ip,port family inet ',
        'create KUBE-CLUSTER-IP hash:ip,port family inet6 ',
      ),
      'set KUBE-CLUSTER-IP is not made',
    ],
    [
      'an entry of no Service',
      append('ipset.restore', 'add KUBE-CLUSTER-IP 192.0.2.1,tcp:22'),
      /ipset\.restore:\d+: entry 192\.0\.2\.1,tcp:22 of set KUBE-CLUSTER-IP belongs to no Service/,
    ],
    [
      'an address of the node as one of Services',
      append('ipset.restore', 'add KUBE-IPVS-IPS 192.168.50.11'),
      'entry 192.168.50.11 of set KUBE-IPVS-IPS',
    ],
    [
      'an open source range',
      append('ipset.restore', 'add KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.160,tcp:443,0.0.0.0/0'),
      'of set KUBE-LOAD-BALANCER-SOURCE-CIDR',
    ],
    [
      'all ports as health checks',
      append('ipset.restore', 'add KUBE-HEALTH-CHECK-NODE-PORT 0-65535'),
      'entry 0-65535 of set KUBE-HEALTH',
    ],
    [
      'an entry with nomatch',
      replace('ipset.restore', /(add KUBE-LOAD-BALANCER-SOURCE-CIDR \S+)/, '$1 nomatch'),
      'belongs to no Service',
    ],
    [
      'an ssh port as node port',
      append('ipset.restore', 'add KUBE-NODE-PORT-TCP 22'),
      'entry 22 of set KUBE-NODE-PORT-TCP',
    ],
    [
      'an entry left out',
      replace('ipset.restore', /add KUBE-LOAD-BALANCER-FW .*\n/, ''),
      'ipset.restore: lines that services.json calls for are missing: "add KUBE-LOAD-BALANCER-FW',
    ],
    ['a set destroyed', append('ipset.restore', 'destroy'), 'ipset.restore:'],
    // ipvsadm.restore
    [
      'a virtual server of no Service',
      append('ipvsadm.restore', '-A -t 192.0.2.1:22 -s rr'),
      /ipvsadm\.restore:\d+: virtual server 192\.0\.2\.1:22 is not in services\.json/,
    ],
    ['a virtual server everywhere', append('ipvsadm.restore', '-A -t 0.0.0.0:22 -s rr'), 'virtual server 0.0.0.0:22'],
    ['a virtual server for a mark', append('ipvsadm.restore', '-A -f 1 -s rr'), 'ipvsadm.restore:'],
    [
      'a real server elsewhere',
      append('ipvsadm.restore', '-a -t 10.96.32.60:443 -r 203.0.113.66:443 -m -w 1'),
      'real server 203.0.113.66:443 of virtual server 10.96.32.60:443 is not one of its endpoints',
    ],
    [
      'a real server on loopback',
      append('ipvsadm.restore', '-a -t 10.96.32.60:443 -r 127.0.0.1:22 -m -w 1'),
      'real server 127.0.0.1:22',
    ],
    [
      'a real server by direct routing',
      replace('ipvsadm.restore', / -m /, ' -g '),
      'is not one of its endpoints in services.json, or differs from it',
    ],
    ['a real server with all the weight', replace('ipvsadm.restore', '-w 1', '-w 65535'), 'or differs from it'],
    [
      'a real server left out',
      replace('ipvsadm.restore', /-a .*\n/, ''),
      'ipvsadm.restore: lines that services.json calls for are missing',
    ],
    [
      'another scheduler',
      replace('ipvsadm.restore', '-s rr', '-s sh'),
      /virtual server \S+ is not in services\.json, or differs from it/,
    ],
    ['one client for ever', replace('ipvsadm.restore', '-s rr', '-s rr -p 4294967295'), 'or differs from it'],
    ['a persistence engine', replace('ipvsadm.restore', '-s rr', '-s rr --pe sip'), 'or differs from it'],
    // ip.batch
    [
      'an address on eth0',
      append('ip.batch', 'addr add 10.9.9.9/32 dev eth0'),
      /ip\.batch:\d+: address 10\.9\.9\.9\/32 on link eth0 belongs to no Service/,
    ],
    [
      'an address of no Service',
      append('ip.batch', 'addr add 192.0.2.1/32 dev kube-ipvs0'),
      'address 192.0.2.1/32 on link kube-ipvs0',
    ],
    [
      'all addresses there are',
      append('ip.batch', 'addr add 0.0.0.0/0 dev kube-ipvs0'),
      'address 0.0.0.0/0 on link kube-ipvs0',
    ],
    ['a whole network', replace('ip.batch', '/32 dev', '/8 dev'), '/8 on link kube-ipvs0'],
    [
      'the address of the gateway',
      append('ip.batch', 'addr add 192.168.50.1/32 dev kube-ipvs0'),
      'address 192.168.50.1/32',
    ],
    ['an address with a scope', replace('ip.batch', /(addr add \S+ dev kube-ipvs0)/, '$1 scope host'), 'ip.batch:'],
    [
      'a second link',
      append('ip.batch', 'link add kube-ipvs1 type dummy'),
      /ip\.batch:\d+: link kube-ipvs1: kpc makes one link only, kube-ipvs0/,
    ],
    [
      'a link of another type',
      replace('ip.batch', 'type dummy', 'type bridge'),
      'link kube-ipvs0: kpc makes one link only',
    ],
    ['a tunnel', append('ip.batch', 'link add t0 type ipip'), 'link t0: kpc makes'],
    ['a link taken down', append('ip.batch', 'link set eth0 down'), 'ip.batch:'],
    ['a link deleted', append('ip.batch', 'link del eth0'), 'ip.batch:'],
    ['a route', append('ip.batch', 'route add default via 192.0.2.1'), 'ip.batch:'],
    ['another network namespace', append('ip.batch', 'netns add x'), 'ip.batch:'],
    [
      'a forced batch',
      append('ip.batch', 'addr replace 192.0.2.1/32 dev kube-ipvs0'),
      'not what kpc writes: "addr replace',
    ],
    // rules of mode ipvs
    [
      'all that is new accepted',
      addRule('-A KUBE-IPVS-FILTER -j ACCEPT'),
      /iptables\.restore:\d+: a rule of chain KUBE-IPVS-FILTER that kpc does not compile from services\.json: "-A KUBE-IPVS-FILTER -j ACCEPT"/,
    ],
    [
      'the reject left out',
      replace('iptables.restore', /-A KUBE-IPVS-FILTER .* -j REJECT\n/, ''),
      'iptables.restore: lines that services.json calls for are missing',
    ],
    [
      'a match turned round',
      replace('iptables.restore', '-m physdev ! --physdev-is-in', '-m physdev --physdev-is-in'),
      'a rule of chain KUBE-SERVICES that',
    ],
  ];

  test.each(cases)('%s', (_, change, reason) => expectRefusal(forge(ipvs, change), reason));
});

describe('an iptables bundle with', () => {
  const cases: readonly (readonly [name: string, change: Change, reason: string | RegExp])[] = [
    ['a policy', addRule(':INPUT DROP [0:0]'), /iptables\.restore:\d+: chain INPUT is not one that kpc makes/],
    ['an accepting policy', addRule(':FORWARD ACCEPT [0:0]'), 'chain FORWARD is not one that kpc makes'],
    ['a rule that accepts all', addRule('-A INPUT -j ACCEPT'), 'a rule of chain INPUT that kpc does not compile'],
    ['a rule that accepts all first', addRule('-I INPUT 1 -j ACCEPT'), 'a rule of chain INPUT'],
    ['a rule that drops all', addRule('-A KUBE-FORWARD -j DROP'), 'a rule of chain KUBE-FORWARD'],
    [
      'a rule that drops a port',
      addRule('-A KUBE-FIREWALL -p tcp --dport 22 -j DROP'),
      'a rule of chain KUBE-FIREWALL',
    ],
    [
      'a chain of Docker',
      addRule(':DOCKER-USER - [0:0]\n-A DOCKER-USER -j ACCEPT'),
      'chain DOCKER-USER is not one that kpc makes',
    ],
    ['a rule in a chain of Docker', addRule('-I DOCKER-USER 1 -j ACCEPT'), 'a rule of chain DOCKER-USER'],
    [
      'a jump to a chain of another program',
      addRule('-A KUBE-FORWARD -j KUBE-ROUTER-FORWARD'),
      'a rule of chain KUBE-FORWARD',
    ],
    ['a jump from another built-in chain', addNatRule('-I INPUT 1 -j KUBE-SERVICES'), 'a rule of chain INPUT'],
    [
      'a second jump',
      addNatRule('-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES'),
      'a rule of chain PREROUTING',
    ],
    ['a goto', replace('iptables.restore', /-j (KUBE-SVC-\w+)/, '-g $1'), 'a rule of chain KUBE-'],
    [
      'a chain of a Service that is not there',
      addNatRule(':KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]'),
      'chain KUBE-SVC-AAAAAAAAAAAAAAAA is not one',
    ],
    [
      'another address as destination',
      replace('iptables.restore', /--to-destination 10\.244\.1\.160:8443/, '--to-destination 203.0.113.66:8443'),
      /a rule of chain KUBE-SEP-\w+ that kpc does not compile.*203\.0\.113\.66:8443/,
    ],
    [
      'the node as destination',
      replace('iptables.restore', /--to-destination 10\.244\.1\.160:8443/, '--to-destination 127.0.0.1:22'),
      '127.0.0.1:22',
    ],
    [
      'nothing as destination',
      replace('iptables.restore', /--to-destination 10\.244\.1\.160:8443/, '--to-destination 0.0.0.0:22'),
      '0.0.0.0:22',
    ],
    [
      'a range of destinations',
      replace(
        'iptables.restore',
        /--to-destination 10\.244\.1\.160:8443/,
        '--to-destination 10.244.1.160-10.244.1.200:1-65535',
      ),
      'KUBE-SEP-',
    ],
    [
      'persistent DNAT',
      replace('iptables.restore', /(--to-destination 10\.244\.1\.160:8443)/, '$1 --persistent'),
      '--persistent',
    ],
    [
      'another port captured',
      replace('iptables.restore', '-d 10.96.32.60 --dport 443 -j', '-d 10.96.32.60 --dport 1:65535 -j'),
      '--dport 1:65535',
    ],
    [
      'everything captured',
      addNatRule('-A KUBE-SERVICES -p tcp --dport 22 -j KUBE-MARK-MASQ'),
      'a rule of chain KUBE-SERVICES',
    ],
    ['packets to a program', addRule('-A KUBE-FORWARD -j NFQUEUE --queue-num 0'), '-j NFQUEUE'],
    ['packets copied', addRule('-A KUBE-FORWARD -j TEE --gateway 203.0.113.66'), '-j TEE'],
    ['packets traced', addRule('-A KUBE-FORWARD -j TRACE'), '-j TRACE'],
    ['packets logged', addRule('-A KUBE-FORWARD -j LOG --log-prefix "x"'), '-j LOG'],
    [
      'packets counted by nfacct',
      addRule('-A KUBE-FORWARD -m nfacct --nfacct-name ct_state_invalid_dropped_pkts'),
      '-m nfacct',
    ],
    ['packets redirected', addNatRule('-A KUBE-SERVICES -p tcp --dport 80 -j REDIRECT --to-ports 8080'), '-j REDIRECT'],
    ['packets let past', addNatRule('-A KUBE-POSTROUTING -j SNAT --to-source 203.0.113.66'), '-j SNAT'],
    [
      'marks of other programs',
      addNatRule('-A KUBE-MARK-MASQ -j MARK --set-xmark 0xffffffff/0xffffffff'),
      'a rule of chain KUBE-MARK-MASQ',
    ],
    ['a program of BPF', addRule('-A KUBE-FORWARD -m bpf --object-pinned /sys/fs/bpf/x -j ACCEPT'), '-m bpf'],
    ['a program to load modules', addRule('-A KUBE-FORWARD --modprobe=/tmp/x -j ACCEPT'), '--modprobe'],
    ['a short option to load modules', addRule('-A KUBE-FORWARD -M /tmp/x -j ACCEPT'), '-M /tmp/x'],
    ['a target in a library', addRule('-A KUBE-FORWARD -j ../../tmp/x'), '../../tmp/x'],
    [
      'table raw',
      append('iptables.restore', '*raw\n-A PREROUTING -j CT --notrack\nCOMMIT'),
      /table raw is not one that kpc writes/,
    ],
    [
      'table mangle',
      append('iptables.restore', '*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT'),
      'table mangle is not one',
    ],
    [
      'a table twice',
      append('iptables.restore', '*filter\n-A INPUT -j ACCEPT\nCOMMIT'),
      'table filter is not one that kpc writes, or is here twice',
    ],
    ['a chain emptied', addRule('-F INPUT'), 'iptables.restore:'],
    ['a rule deleted', addRule('-D INPUT -j KUBE-ROUTER-INPUT'), 'iptables.restore:'],
    ['a chain renamed', addRule('-E KUBE-FIREWALL X'), 'iptables.restore:'],
    [
      'counters',
      replace('iptables.restore', ':KUBE-SERVICES - [0:0]', ':KUBE-SERVICES - [5:5]'),
      /chain KUBE-SERVICES is not declared as kpc declares it/,
    ],
    ['a comment', append('iptables.restore', '# nothing to see'), 'not what kpc writes: "# nothing to see"'],
    [
      'another spelling',
      replace('iptables.restore', '-j KUBE-MARK-MASQ', '--jump KUBE-MARK-MASQ'),
      '--jump KUBE-MARK-MASQ',
    ],
    ['a line end of Windows', replace('iptables.restore', '*nat\n', '*nat\r\n'), 'iptables.restore:1:'],
    [
      'no line end',
      (files) => void files.set('iptables.restore', (files.get('iptables.restore') ?? '').trimEnd()),
      'iptables.restore: lines that services.json calls for are missing',
    ],
    [
      'rules in another order',
      replace('iptables.restore', /(-A KUBE-POSTROUTING -m mark .*\n)(-A KUBE-POSTROUTING -j MARK .*\n)/, '$2$1'),
      /iptables\.restore:\d+: is not where kpc writes it/,
    ],
    [
      'the firewall left out',
      replace('iptables.restore', /-A KUBE-PROXY-FIREWALL .* -j DROP\n/, ''),
      'are missing: "-A KUBE-PROXY-FIREWALL',
    ],
    [
      'the guard of loopback left out',
      replace('iptables.restore', /-A KUBE-FIREWALL .*\n/, ''),
      'are missing: "-A KUBE-FIREWALL',
    ],
    ['another source range', replace('iptables.restore', '-s 192.0.2.0/24', '-s 0.0.0.0/0'), '-s 0.0.0.0/0'],
    [
      'another probability',
      replace('iptables.restore', '--probability 0.5000000000', '--probability 1.0000000000'),
      '--probability 1.0000000000',
    ],
    ['another file of addresses', addRule('-A KUBE-FORWARD -m recent --name x --rdest --set'), '-m recent'],
    [
      'an empty file of rules',
      (files) => void files.set('iptables.restore', ''),
      'iptables.restore: lines that services.json calls for are missing: "*nat" and',
    ],
    [
      'an IPv6 rule',
      addRule('-A KUBE-FORWARD -j ACCEPT', 'ip6tables.restore'),
      /ip6tables\.restore:\d+: a rule of chain KUBE-FORWARD/,
    ],
    [
      'sets',
      append('ipset.restore', 'create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536'),
      'ipset.restore: a bundle of this mode and these families has no such file',
    ],
    ['a link', append('ip.batch', 'link add kube-ipvs0 type dummy'), 'ip.batch: a bundle of this mode'],
    [
      'virtual servers',
      append('ipvsadm.restore', '-A -t 10.96.32.60:443 -s rr'),
      'ipvsadm.restore: a bundle of this mode',
    ],
    ['no rules of one family', (files) => void files.delete('ip6tables.restore'), 'ip6tables.restore is missing'],
    [
      'route_localnet off',
      replace('sysctl.conf', 'route_localnet = 1', 'route_localnet = 2'),
      'route_localnet is set to 2',
    ],
  ];

  test.each(cases)('%s', (_, change, reason) => expectRefusal(forge(iptables, change), reason));
});

describe('a bundle whose manifest has', () => {
  test.each<readonly [name: string, change: Change, reason: string]>([
    [
      'a table for one connection',
      settings((s) => Object.assign(s['conntrack'], { maxPerCore: 1, min: 1 })),
      'settings.conntrack.maxPerCore must be 0, or 1024 at least',
    ],
    [
      'a table without end',
      settings((s) => Object.assign(s['conntrack'], { min: 2_147_483_647 })),
      'settings.conntrack.min must be 16777216 at most',
    ],
    [
      'connections that never end',
      settings((s) => Object.assign(s['conntrack'], { tcpEstablishedTimeout: 1e12 })),
      'settings.conntrack.tcpEstablishedTimeout must be 0, or from 1',
    ],
    [
      'connections that end at once',
      settings((s) => Object.assign(s['conntrack'], { udpTimeout: 0.1 })),
      'settings.conntrack.udpTimeout must be',
    ],
    [
      'IPVS connections that never end',
      editJson('manifest.json', (m) => (m['ipvsTimeouts'] = { tcp: 1e9, tcpFin: 1, udp: 1 })),
      'ipvsTimeouts.tcp must be 2678400 seconds at most',
    ],
    [
      'an unknown scheduler',
      settings((s) => (s['ipvs']['scheduler'] = 'evil')),
      'settings.ipvs.scheduler must be one of rr',
    ],
    [
      'an interface with an option',
      settings((s) => (s['detectLocal'] = { mode: 'BridgeInterface', bridgeInterface: 'x -j ACCEPT' })),
      'settings.detectLocal must name an interface',
    ],
    [
      'an interface with a line break',
      settings((s) => (s['detectLocal'] = { mode: 'BridgeInterface', bridgeInterface: 'x\ny' })),
      'settings.detectLocal must name an interface',
    ],
    [
      'node ports nowhere',
      settings((s) => (s['nodePortAddresses'] = ['everywhere'])),
      'settings.nodePortAddresses must be CIDRs',
    ],
    [
      'a family twice',
      editJson('manifest.json', (m) => (m['families'] = ['ipv4', 'ipv4'])),
      'families must be ipv4, ipv6, or both',
    ],
    ['no family', editJson('manifest.json', (m) => (m['families'] = [])), 'families must be'],
    [
      'a node with a line break',
      editJson('manifest.json', (m) => (m['node']['name'] = 'a\nb')),
      "node.name must be a node's name",
    ],
    [
      'a zone with an escape',
      editJson('manifest.json', (m) => (m['node']['zone'] = '\u001b[2J')),
      'node.zone must be plain text',
    ],
    [
      'another mode than its settings',
      editJson('manifest.json', (m) => (m['mode'] = 'iptables')),
      'manifest.json: mode does not match services.json',
    ],
    ['another mode', settings((s) => (s['mode'] = 'iptables')), 'manifest.json: mode does not match services.json'],
    [
      'a health check on a port of the node',
      editJson(
        'manifest.json',
        (m) => (m['healthChecks'] = [{ port: 22, service: 'a/b', localEndpoints: { ipv4: 1 } }]),
      ),
      'manifest.json: healthChecks does not match services.json',
    ],
    [
      'other counts',
      editJson('manifest.json', (m) => (m['counts'] = { '\n::error::x': 1 })),
      'manifest.json: counts does not match services.json',
    ],
    [
      'other tools',
      editJson('manifest.json', (m) => (m['tools'] = { iptables: '0' })),
      'manifest.json: tools does not match services.json',
    ],
    [
      'masquerading of everything',
      settings((s) => (s['masqueradeAll'] = true)),
      'a rule of chain KUBE-SERVICES that kpc does not compile',
    ],
    ['another mark', settings((s) => (s['masqueradeBit'] = 3)), 'a rule of chain KUBE-'],
  ])('%s', (_, change, reason) => expectRefusal(forge(ipvs, change), reason));

  test('a file of no bundle', async () => {
    const forged = forge(ipvs, () => {});
    const manifest = JSON.parse(forged.get('manifest.json') ?? '');
    manifest.files['../../etc/passwd'] = '0'.repeat(64);
    await expectRefusal(
      forged.set('manifest.json', JSON.stringify(manifest)),
      'files lists "../../etc/passwd", which is not',
    );
  });
});

describe('a bundle compiled of forged Services, with', () => {
  test.each<readonly [name: string, change: Change, reason: string]>([
    [
      'an endpoint on loopback',
      service((p) => (p['endpoints'][0].address = '127.0.0.1')),
      '"office/portal:https": endpoint 127.0.0.1 is a loopback address',
    ],
    [
      'an endpoint nowhere',
      service((p) => (p['endpoints'][0].address = '0.0.0.0')),
      'endpoint 0.0.0.0 is the unspecified address',
    ],
    [
      'an endpoint that tells secrets',
      service((p) => (p['endpoints'][0].address = '169.254.169.254')),
      'endpoint 169.254.169.254 is a link-local address',
    ],
    [
      'an endpoint of the other family',
      service((p) => (p['endpoints'][0].address = 'fd00::1')),
      'endpoint fd00::1 is not an ipv4 address',
    ],
    [
      'a cluster IP everywhere',
      service((p) => (p['clusterIP'] = '0.0.0.0')),
      'cluster IP 0.0.0.0 is the unspecified address',
    ],
    [
      'a cluster IP on loopback',
      service((p) => (p['clusterIP'] = '127.0.0.1')),
      'cluster IP 127.0.0.1 is a loopback address',
    ],
    [
      "the node's address as cluster IP",
      (files) =>
        service((p) => (p['clusterIP'] = JSON.parse(files.get('manifest.json') ?? '').node.nodeIPs.ipv4))(files),
      'is an address of the node itself',
    ],
    [
      'an external IP on loopback',
      service((p) => (p['externalIPs'] = ['127.0.0.5'])),
      'external IP 127.0.0.5 is a loopback',
    ],
    [
      'a load balancer of the other family',
      service((p) => (p['loadBalancerIPs'] = ['2001:db8::1'])),
      'load balancer IP 2001:db8::1 is not an ipv4 address',
    ],
    ['a name with a quote', service((p) => (p['service'] = 'a" -j ACCEPT')), 'is not a Service name'],
    ['a namespace with an escape', service((p) => (p['namespace'] = '\u001b[31m')), 'is not a Service name'],
    ['a port name with blanks', service((p) => (p['port'] = 'a b')), '"a b" is not a port name'],
    [
      'an affinity for ever',
      service((p) => (p['affinitySeconds'] = 4_294_967_295)),
      'session affinity of 4294967295 seconds',
    ],
    ['a scheduler of no kernel', service((p) => (p['scheduler'] = 'evil')), '"evil" is not a scheduler'],
    [
      'a node name with a blank',
      service((p) => (p['endpoints'][0].node = 'a b')),
      'of endpoint 10.244.1.160:8443 is not a valid name',
    ],
  ])('%s', (_, change, reason) => expectRefusal(forgeWhole(ipvs, change), `services.json: `, reason));

  test('what is in services.json and not compiled', async () => {
    await expectRefusal(
      forge(
        ipvs,
        service((p) => (p['number'] = 444)),
      ),
      /services\.json:\d+: not what kpc writes/,
      'ipvsadm.restore',
    );
    await expectRefusal(
      forge(ipvs, replace('services.json', '"services"', '"note":"x","services"')),
      'services.json:2: not what kpc writes',
    );
  });
});

test('all that is wrong is said in one run, and cut where it is much', async () => {
  const change: Change = (files) => {
    append('sysctl.conf', 'net.ipv4.conf.all.rp_filter = 0')(files);
    append('modules.conf', 'usb_storage')(files);
    append('ip.batch', 'addr add 10.9.9.9/32 dev eth0')(files);
    addRule('-A INPUT -j ACCEPT')(files);
    settings((s) => (s['ipvs']['tcpTimeout'] = 1e9))(files);
    const entries = Array.from({ length: 200 }, (_, i) => `add KUBE-CLUSTER-IP 192.0.2.${i},tcp:1`);
    append('ipset.restore', entries.join('\n'))(files);
  };
  await expectRefusal(
    forge(ipvs, change),
    'sysctl.conf:',
    'modules.conf:',
    'ip.batch:',
    'iptables.restore:',
    'settings.ipvs.tcpTimeout',
    'ipset.restore: and 150 more of this kind',
  );
});

test('a line of a forged bundle acts on no terminal and on no CI', async () => {
  const { err } = await callApply(
    createFakeNode().host,
    'plan',
    write(forge(ipvs, append('ip.batch', '\u001b[2J\u202e ::error::x ##[error]y'))),
  );
  expect(err).not.toMatch(/[^\P{Cc}\n]|\u202e|^\s*::|##\[/mu);
  expect(err).toContain('\\u001b[2J\\u202e ::error::x ##·error]y');
});

test('what was dumped from a node can be planned and not applied', async () => {
  const node = createFakeNode();
  await callApply(node.host, 'apply', write(ipvs));
  const folder = join(scratch, 'dump');
  await callApply(node.host, 'dump', '-o', folder);
  expect((await callApply(node.host, 'plan', folder)).status).toBe(0);
  const { status, err } = await callApply(createFakeNode().host, 'apply', folder);
  expect(status).toBe(2);
  expect(err).toMatch(
    /is a dump that "kpc-apply dump" wrote, not a bundle: .* \[bad-bundle\]\n {2}help: compile a bundle/,
  );
});

test('that a bundle says it was dumped lets nothing in', async () => {
  const change: Change = (files) => {
    editJson('manifest.json', (manifest) => (manifest['dumped'] = true))(files);
    append('ip.batch', 'addr add 10.9.9.9/32 dev eth0')(files);
  };
  expect((await callApply(createFakeNode().host, 'apply', write(forge(ipvs, change)))).status).toBe(2);
});
