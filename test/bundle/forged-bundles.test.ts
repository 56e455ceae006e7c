import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { callApply } from '../apply/call-apply.ts';
import { createFakeNode } from '../apply/fake-node.ts';
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

type Editable = Record<string, any>; // oxlint-disable-line

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

async function expectRefusal(files: Files, ...reasons: readonly (string | RegExp)[]): Promise<void> {
  const { host, commands, dump } = createFakeNode();
  const there = dump();
  const { status, out, err } = await callApply(host, 'apply', write(files));
  for (const reason of reasons) expect(err).toMatch(reason);
  expect(err).toMatch(/^error: \S+ is not a bundle that can be applied:\n/);
  expect({ status, out }).toEqual({ status: 2, out: '' });
  expect(commands).toEqual([]);
  expect(dump()).toBe(there);
}

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
      'sysctl.conf:5: not what kpc writes: "net.ipv6.conf.all.disable_ipv6 = 1"',
    ],
    [
      'IPv6 off on one link',
      append('sysctl.conf', 'net.ipv6.conf.eth0.disable_ipv6 = 1'),
      'sysctl.conf:5: not what kpc writes: "net.ipv6.conf.eth0.disable_ipv6 = 1"',
    ],
    [
      'no forwarding',
      replace('sysctl.conf', 'ip_forward = 1', 'ip_forward = 0'),
      'sysctl.conf:1: not what kpc writes: "net.ipv4.ip_forward = 0"',
    ],
    [
      'a sysctl twice',
      append('sysctl.conf', 'net.ipv4.ip_forward = 1'),
      'sysctl.conf:5: not what kpc writes: "net.ipv4.ip_forward = 1"',
    ],
    [
      'a core pattern',
      append('sysctl.conf', 'kernel.core_pattern = |/tmp/x'),
      'sysctl.conf:5: not what kpc writes: "kernel.core_pattern = |/tmp/x"',
    ],
    [
      'redirects accepted',
      append('sysctl.conf', 'net.ipv4.conf.all.accept_redirects = 1'),
      'sysctl.conf:5: not what kpc writes: "net.ipv4.conf.all.accept_redirects = 1"',
    ],
    [
      'source routes accepted',
      append('sysctl.conf', 'net.ipv4.conf.all.accept_source_route = 1'),
      'sysctl.conf:5: not what kpc writes: "net.ipv4.conf.all.accept_source_route = 1"',
    ],
    [
      'no path filter',
      append('sysctl.conf', 'net.ipv4.conf.all.rp_filter = 0'),
      'sysctl.conf:5: not what kpc writes: "net.ipv4.conf.all.rp_filter = 0"',
    ],
    [
      'a connection table of one',
      append('sysctl.conf', 'net.netfilter.nf_conntrack_max = 1'),
      'sysctl.conf:5: not what kpc writes: "net.netfilter.nf_conntrack_max = 1"',
    ],
    [
      'route_localnet in mode ipvs',
      append('sysctl.conf', 'net.ipv4.conf.all.route_localnet = 1'),
      'sysctl.conf:5: not what kpc writes: "net.ipv4.conf.all.route_localnet = 1"',
    ],
    [
      'a tiny port range',
      append('sysctl.conf', 'net.ipv4.ip_local_port_range = 1024'),
      'sysctl.conf:5: not what kpc writes: "net.ipv4.ip_local_port_range = 1024"',
    ],
    [
      'a sysctl by slashes',
      append('sysctl.conf', 'net/ipv4/ip_forward = 0'),
      'sysctl.conf:5: not what kpc writes: "net/ipv4/ip_forward = 0"',
    ],
    [
      'a sysctl with a minus sign',
      replace('sysctl.conf', 'net.ipv4.ip_forward', '-net.ipv4.ip_forward'),
      'sysctl.conf:1: ',
    ],
    [
      'a sysctl left out',
      replace('sysctl.conf', 'net.ipv4.ip_forward = 1\n', ''),
      'expected "net.ipv4.ip_forward = 1"',
    ],
    // modules.conf
    [
      'a module of hardware',
      append('modules.conf', 'usb_storage'),
      'modules.conf:19: not what kpc writes: "usb_storage"',
    ],
    [
      'a module that copies packets',
      append('modules.conf', 'xt_TEE'),
      'modules.conf:19: not what kpc writes: "xt_TEE"',
    ],
    ['a module with an option of modprobe', append('modules.conf', '-r'), 'modules.conf:19: not what kpc writes: "-r"'],
    [
      'a scheduler that nothing uses',
      append('modules.conf', 'ip_vs_mh'),
      'modules.conf:19: not what kpc writes: "ip_vs_mh"',
    ],
    // ipset.restore
    [
      'a set of another program',
      append('ipset.restore', 'create cali40all hash:ip family inet hashsize 1024 maxelem 65536'),
      'ipset.restore:55: not what kpc writes: "create cali40all hash:ip family inet hashsize 1024 maxelem 65536"',
    ],
    [
      'a set with a timeout',
      replace(
        'ipset.restore',
        'create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536',
        'create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536 timeout 5',
      ),
      'ipset.restore:3: not what kpc writes: "create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536 timeout 5"',
    ],
    [
      'a huge hash',
      replace('ipset.restore', 'hashsize 1024', 'hashsize 1073741824'),
      'ipset.restore:1: not what kpc writes: "create KUBE-LOOP-BACK hash:ip,port,ip family inet hashsize 1073741824 maxelem 65536"',
    ],
    [
      'a set for one entry',
      replace('ipset.restore', 'maxelem 65536', 'maxelem 1'),
      'ipset.restore:1: not what kpc writes: "create KUBE-LOOP-BACK hash:ip,port,ip family inet hashsize 1024 maxelem 1"',
    ],
    [
      'a set without end',
      replace('ipset.restore', 'maxelem 65536', 'maxelem 4294967295'),
      'ipset.restore:1: not what kpc writes: "create KUBE-LOOP-BACK hash:ip,port,ip family inet hashsize 1024 maxelem 4294967295"',
    ],
    [
      'a set of another type',
      replace('ipset.restore', 'create KUBE-IPVS-IPS hash:ip ', 'create KUBE-IPVS-IPS hash:net '),
      'ipset.restore:24: not what kpc writes: "create KUBE-IPVS-IPS hash:net family inet hashsize 1024 maxelem 65536"',
    ],
    [
      'a set of another family',
      replace(
        'ipset.restore',
        'create KUBE-CLUSTER-IP hash:ip,port family inet ',
        'create KUBE-CLUSTER-IP hash:ip,port family inet6 ',
      ),
      'ipset.restore:3: not what kpc writes: "create KUBE-CLUSTER-IP hash:ip,port family inet6 hashsize 1024 maxelem 65536"',
    ],
    [
      'an entry of no Service',
      append('ipset.restore', 'add KUBE-CLUSTER-IP 192.0.2.1,tcp:22'),
      'ipset.restore:55: not what kpc writes: "add KUBE-CLUSTER-IP 192.0.2.1,tcp:22"',
    ],
    [
      'an address of the node as one of Services',
      append('ipset.restore', 'add KUBE-IPVS-IPS 192.168.50.11'),
      'ipset.restore:55: not what kpc writes: "add KUBE-IPVS-IPS 192.168.50.11"',
    ],
    [
      'an open source range',
      append('ipset.restore', 'add KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.160,tcp:443,0.0.0.0/0'),
      'ipset.restore:55: not what kpc writes: "add KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.160,tcp:443,0.0.0.0/0"',
    ],
    [
      'all ports as health checks',
      append('ipset.restore', 'add KUBE-HEALTH-CHECK-NODE-PORT 0-65535'),
      'ipset.restore:55: not what kpc writes: "add KUBE-HEALTH-CHECK-NODE-PORT 0-65535"',
    ],
    [
      'an entry with nomatch',
      replace('ipset.restore', /(add KUBE-LOAD-BALANCER-SOURCE-CIDR \S+)/, '$1 nomatch'),
      'ipset.restore:15: not what kpc writes: "add KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.160,tcp:443,192.0.2.0/24 nomatch"',
    ],
    [
      'an ssh port as node port',
      append('ipset.restore', 'add KUBE-NODE-PORT-TCP 22'),
      'ipset.restore:55: not what kpc writes: "add KUBE-NODE-PORT-TCP 22"',
    ],
    [
      'an entry left out',
      replace('ipset.restore', /add KUBE-LOAD-BALANCER-FW .*\n/, ''),
      'expected "add KUBE-LOAD-BALANCER-FW',
    ],
    ['a set destroyed', append('ipset.restore', 'destroy'), 'ipset.restore:'],
    // ipvsadm.restore
    [
      'a virtual server of no Service',
      append('ipvsadm.restore', '-A -t 192.0.2.1:22 -s rr'),
      'ipvsadm.restore:31: not what kpc writes: "-A -t 192.0.2.1:22 -s rr"',
    ],
    [
      'a virtual server everywhere',
      append('ipvsadm.restore', '-A -t 0.0.0.0:22 -s rr'),
      'ipvsadm.restore:31: not what kpc writes: "-A -t 0.0.0.0:22 -s rr"',
    ],
    ['a virtual server for a mark', append('ipvsadm.restore', '-A -f 1 -s rr'), 'ipvsadm.restore:'],
    [
      'a real server elsewhere',
      append('ipvsadm.restore', '-a -t 10.96.32.60:443 -r 203.0.113.66:443 -m -w 1'),
      'ipvsadm.restore:31: not what kpc writes: "-a -t 10.96.32.60:443 -r 203.0.113.66:443 -m -w 1"',
    ],
    [
      'a real server on loopback',
      append('ipvsadm.restore', '-a -t 10.96.32.60:443 -r 127.0.0.1:22 -m -w 1'),
      'ipvsadm.restore:31: not what kpc writes: "-a -t 10.96.32.60:443 -r 127.0.0.1:22 -m -w 1"',
    ],
    [
      'a real server by direct routing',
      replace('ipvsadm.restore', / -m /, ' -g '),
      'ipvsadm.restore:2: not what kpc writes: "-a -t 10.96.32.60:443 -r 10.244.1.160:8443 -g -w 1"',
    ],
    [
      'a real server with all the weight',
      replace('ipvsadm.restore', '-w 1', '-w 65535'),
      'ipvsadm.restore:2: not what kpc writes: "-a -t 10.96.32.60:443 -r 10.244.1.160:8443 -m -w 65535"',
    ],
    [
      'a real server left out',
      replace('ipvsadm.restore', /-a .*\n/, ''),
      'expected "-a -t 10.96.32.60:443 -r 10.244.1.160:8443 -m -w 1"',
    ],
    [
      'another scheduler',
      replace('ipvsadm.restore', '-s rr', '-s sh'),
      'ipvsadm.restore:1: not what kpc writes: "-A -t 10.96.32.60:443 -s sh"',
    ],
    [
      'one client for ever',
      replace('ipvsadm.restore', '-s rr', '-s rr -p 4294967295'),
      'ipvsadm.restore:1: not what kpc writes: "-A -t 10.96.32.60:443 -s rr -p 4294967295"',
    ],
    [
      'a persistence engine',
      replace('ipvsadm.restore', '-s rr', '-s rr --pe sip'),
      'ipvsadm.restore:1: not what kpc writes: "-A -t 10.96.32.60:443 -s rr --pe sip"',
    ],
    // ip.batch
    [
      'an address on eth0',
      append('ip.batch', 'addr add 10.9.9.9/32 dev eth0'),
      'ip.batch:8: not what kpc writes: "addr add 10.9.9.9/32 dev eth0"',
    ],
    [
      'an address of no Service',
      append('ip.batch', 'addr add 192.0.2.1/32 dev kube-ipvs0'),
      'ip.batch:8: not what kpc writes: "addr add 192.0.2.1/32 dev kube-ipvs0"',
    ],
    [
      'all addresses there are',
      append('ip.batch', 'addr add 0.0.0.0/0 dev kube-ipvs0'),
      'ip.batch:8: not what kpc writes: "addr add 0.0.0.0/0 dev kube-ipvs0"',
    ],
    [
      'a whole network',
      replace('ip.batch', '/32 dev', '/8 dev'),
      'ip.batch:2: not what kpc writes: "addr add 10.96.32.60/8 dev kube-ipvs0"',
    ],
    [
      'the address of the gateway',
      append('ip.batch', 'addr add 192.168.50.1/32 dev kube-ipvs0'),
      'ip.batch:8: not what kpc writes: "addr add 192.168.50.1/32 dev kube-ipvs0"',
    ],
    ['an address with a scope', replace('ip.batch', /(addr add \S+ dev kube-ipvs0)/, '$1 scope host'), 'ip.batch:'],
    [
      'a second link',
      append('ip.batch', 'link add kube-ipvs1 type dummy'),
      'ip.batch:8: not what kpc writes: "link add kube-ipvs1 type dummy"',
    ],
    [
      'a link of another type',
      replace('ip.batch', 'type dummy', 'type bridge'),
      'ip.batch:1: not what kpc writes: "link add kube-ipvs0 type bridge"',
    ],
    [
      'a tunnel',
      append('ip.batch', 'link add t0 type ipip'),
      'ip.batch:8: not what kpc writes: "link add t0 type ipip"',
    ],
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
      'iptables.restore:53: not what kpc writes: "-A KUBE-IPVS-FILTER -j ACCEPT"',
    ],
    [
      'the reject left out',
      replace('iptables.restore', /-A KUBE-IPVS-FILTER .* -j REJECT\n/, ''),
      'expected "-A KUBE-IPVS-FILTER',
    ],
    [
      'a match turned round',
      replace('iptables.restore', '-m physdev ! --physdev-is-in', '-m physdev --physdev-is-in'),
      'iptables.restore:11: not what kpc writes: "-A KUBE-SERVICES -m comment --comment \\"Kubernetes service external ip + port for masquerade and filter purpose\\" -m set --match-set KUBE-EXTERNAL-IP dst,dst -..."',
    ],
  ];

  test.each(cases)('%s', (_, change, reason) => expectRefusal(forge(ipvs, change), reason));
});

describe('an iptables bundle with', () => {
  const cases: readonly (readonly [name: string, change: Change, reason: string | RegExp])[] = [
    ['a policy', addRule(':INPUT DROP [0:0]'), 'iptables.restore:58: not what kpc writes: ":INPUT DROP [0:0]"'],
    [
      'an accepting policy',
      addRule(':FORWARD ACCEPT [0:0]'),
      'iptables.restore:58: not what kpc writes: ":FORWARD ACCEPT [0:0]"',
    ],
    [
      'a rule that accepts all',
      addRule('-A INPUT -j ACCEPT'),
      'iptables.restore:58: not what kpc writes: "-A INPUT -j ACCEPT"',
    ],
    [
      'a rule that accepts all first',
      addRule('-I INPUT 1 -j ACCEPT'),
      'iptables.restore:58: not what kpc writes: "-I INPUT 1 -j ACCEPT"',
    ],
    [
      'a rule that drops all',
      addRule('-A KUBE-FORWARD -j DROP'),
      'iptables.restore:58: not what kpc writes: "-A KUBE-FORWARD -j DROP"',
    ],
    [
      'a rule that drops a port',
      addRule('-A KUBE-FIREWALL -p tcp --dport 22 -j DROP'),
      'iptables.restore:58: not what kpc writes: "-A KUBE-FIREWALL -p tcp --dport 22 -j DROP"',
    ],
    [
      'a chain of Docker',
      addRule(':DOCKER-USER - [0:0]\n-A DOCKER-USER -j ACCEPT'),
      'iptables.restore:58: not what kpc writes: ":DOCKER-USER - [0:0]"',
    ],
    [
      'a rule in a chain of Docker',
      addRule('-I DOCKER-USER 1 -j ACCEPT'),
      'iptables.restore:58: not what kpc writes: "-I DOCKER-USER 1 -j ACCEPT"',
    ],
    [
      'a jump to a chain of another program',
      addRule('-A KUBE-FORWARD -j KUBE-ROUTER-FORWARD'),
      'iptables.restore:58: not what kpc writes: "-A KUBE-FORWARD -j KUBE-ROUTER-FORWARD"',
    ],
    [
      'a jump from another built-in chain',
      addNatRule('-I INPUT 1 -j KUBE-SERVICES'),
      'iptables.restore:34: not what kpc writes: "-I INPUT 1 -j KUBE-SERVICES"',
    ],
    [
      'a second jump',
      addNatRule('-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES'),
      'iptables.restore:34: not what kpc writes: "-A PREROUTING -m comment --comment \\"kubernetes service portals\\" -j KUBE-SERVICES"',
    ],
    [
      'a goto',
      replace('iptables.restore', /-j (KUBE-SVC-\w+)/, '-g $1'),
      'iptables.restore:14: not what kpc writes: "-A KUBE-SERVICES -m comment --comment \\"office/portal:https cluster IP\\" -m tcp -p tcp -d 10.96.32.60 --dport 443 -g KUBE-SVC-HQUMXT5Z5SJX3RC6"',
    ],
    [
      'a chain of a Service that is not there',
      addNatRule(':KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]'),
      'iptables.restore:34: not what kpc writes: ":KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]"',
    ],
    [
      'another address as destination',
      replace('iptables.restore', /--to-destination 10\.244\.1\.160:8443/, '--to-destination 203.0.113.66:8443'),
      'iptables.restore:31: not what kpc writes: "-A KUBE-SEP-7WECJSD2NU2IQES7 -m comment --comment office/portal:https -m tcp -p tcp -j DNAT --to-destination 203.0.113.66:8443"',
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
      'iptables.restore:34: not what kpc writes: "-A KUBE-SERVICES -p tcp --dport 22 -j KUBE-MARK-MASQ"',
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
      'iptables.restore:34: not what kpc writes: "-A KUBE-MARK-MASQ -j MARK --set-xmark 0xffffffff/0xffffffff"',
    ],
    ['a program of BPF', addRule('-A KUBE-FORWARD -m bpf --object-pinned /sys/fs/bpf/x -j ACCEPT'), '-m bpf'],
    ['a program to load modules', addRule('-A KUBE-FORWARD --modprobe=/tmp/x -j ACCEPT'), '--modprobe'],
    ['a short option to load modules', addRule('-A KUBE-FORWARD -M /tmp/x -j ACCEPT'), '-M /tmp/x'],
    ['a target in a library', addRule('-A KUBE-FORWARD -j ../../tmp/x'), '../../tmp/x'],
    [
      'table raw',
      append('iptables.restore', '*raw\n-A PREROUTING -j CT --notrack\nCOMMIT'),
      'iptables.restore:59: not what kpc writes: "*raw"',
    ],
    [
      'table mangle',
      append('iptables.restore', '*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT'),
      'iptables.restore:59: not what kpc writes: "*mangle"',
    ],
    [
      'a table twice',
      append('iptables.restore', '*filter\n-A INPUT -j ACCEPT\nCOMMIT'),
      'iptables.restore:59: not what kpc writes: "*filter"',
    ],
    ['a chain emptied', addRule('-F INPUT'), 'iptables.restore:'],
    ['a rule deleted', addRule('-D INPUT -j KUBE-ROUTER-INPUT'), 'iptables.restore:'],
    ['a chain renamed', addRule('-E KUBE-FIREWALL X'), 'iptables.restore:'],
    [
      'counters',
      replace('iptables.restore', ':KUBE-SERVICES - [0:0]', ':KUBE-SERVICES - [5:5]'),
      'iptables.restore:2: not what kpc writes: ":KUBE-SERVICES - [5:5]"',
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
      'not what kpc writes',
    ],
    [
      'rules in another order',
      replace('iptables.restore', /(-A KUBE-POSTROUTING -m mark .*\n)(-A KUBE-POSTROUTING -j MARK .*\n)/, '$2$1'),
      /iptables\.restore:\d+: not what kpc writes/,
    ],
    [
      'the firewall left out',
      replace('iptables.restore', /-A KUBE-PROXY-FIREWALL .* -j DROP\n/, ''),
      'expected "-A KUBE-PROXY-FIREWALL',
    ],
    [
      'the guard of loopback left out',
      replace('iptables.restore', /-A KUBE-FIREWALL .*\n/, ''),
      'expected "-A KUBE-FIREWALL',
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
      'iptables.restore:1: not what kpc writes: ""; expected "*nat"',
    ],
    [
      'an IPv6 rule',
      addRule('-A KUBE-FORWARD -j ACCEPT', 'ip6tables.restore'),
      'ip6tables.restore:57: not what kpc writes: "-A KUBE-FORWARD -j ACCEPT"',
    ],
    [
      'sets',
      append('ipset.restore', 'create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536'),
      '"ipset.restore" is not a file of this bundle',
    ],
    ['a link', append('ip.batch', 'link add kube-ipvs0 type dummy'), '"ip.batch" is not a file of this bundle'],
    [
      'virtual servers',
      append('ipvsadm.restore', '-A -t 10.96.32.60:443 -s rr'),
      '"ipvsadm.restore" is not a file of this bundle',
    ],
    ['no rules of one family', (files) => void files.delete('ip6tables.restore'), 'ip6tables.restore is missing'],
    [
      'route_localnet off',
      replace('sysctl.conf', 'route_localnet = 1', 'route_localnet = 2'),
      'sysctl.conf:1: not what kpc writes: "net.ipv4.conf.all.route_localnet = 2"',
    ],
  ];

  test.each(cases)('%s', (_, change, reason) => expectRefusal(forge(iptables, change), reason));
});

describe('a bundle whose manifest has', () => {
  test.each<readonly [name: string, change: Change, reason: string | RegExp]>([
    [
      'a table for one connection',
      settings((s) => Object.assign(s['conntrack'], { maxPerCore: 1, min: 1 })),
      'settings.conntrack.maxPerCore must be 0, or from 1024 to 1048576',
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
      'ipvsTimeouts.tcp is not what kpc writes',
    ],
    [
      'an unknown scheduler',
      settings((s) => (s['ipvs']['scheduler'] = 'evil')),
      'settings.ipvs.scheduler must be one of rr',
    ],
    [
      'an interface with an option',
      settings((s) => (s['detectLocal'] = { mode: 'BridgeInterface', bridgeInterface: 'x -j ACCEPT' })),
      'settings.detectLocal.bridgeInterface must be the name of an interface',
    ],
    [
      'an interface with a line break',
      settings((s) => (s['detectLocal'] = { mode: 'BridgeInterface', bridgeInterface: 'x\ny' })),
      'settings.detectLocal.bridgeInterface must be the name of an interface',
    ],
    [
      'node ports nowhere',
      settings((s) => (s['nodePortAddresses'] = ['everywhere'])),
      'settings.nodePortAddresses must be CIDRs',
    ],
    [
      'a family twice',
      editJson('manifest.json', (m) => (m['families'] = ['ipv4', 'ipv4'])),
      'families is not what kpc writes',
    ],
    ['no family', editJson('manifest.json', (m) => (m['families'] = [])), 'families is not'],
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
      /manifest\.json:\d+:\d+: mode is not what kpc writes/,
    ],
    ['another mode', settings((s) => (s['mode'] = 'iptables')), /manifest\.json:\d+:\d+: mode is not what kpc writes/],
    [
      'a health check on a port of the node',
      editJson(
        'manifest.json',
        (m) => (m['healthChecks'] = [{ port: 22, service: 'a/b', localEndpoints: { ipv4: 1 } }]),
      ),
      /manifest\.json:\d+:\d+: healthChecks is not what kpc writes/,
    ],
    [
      'other counts',
      editJson('manifest.json', (m) => (m['counts'] = { '\n::error::x': 1 })),
      /manifest\.json:\d+:\d+: counts is not what kpc writes/,
    ],
    [
      'other tools',
      editJson('manifest.json', (m) => (m['tools'] = { iptables: '0' })),
      /manifest\.json:\d+:\d+: tools is not what kpc writes/,
    ],
    [
      'masquerading of everything',
      settings((s) => (s['masqueradeAll'] = true)),
      'iptables.restore:9: not what kpc writes: "-A KUBE-SERVICES -m comment --comment \\"Kubernetes service cluster ip + port for masquerade purpose\\" -m set --match-set KUBE-CLUSTER-IP dst,dst ! -s 10.244.0...."',
    ],
    [
      'another mark',
      settings((s) => (s['masqueradeBit'] = 3)),
      'iptables.restore:17: not what kpc writes: "-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN"',
    ],
  ])('%s', (_, change, reason) => expectRefusal(forge(ipvs, change), reason));

  test('a file of no bundle', async () => {
    const forged = forge(ipvs, () => {});
    const manifest = JSON.parse(forged.get('manifest.json') ?? '');
    manifest.files['../../etc/passwd'] = '0'.repeat(64);
    await expectRefusal(
      forged.set('manifest.json', JSON.stringify(manifest)),
      '"../../etc/passwd" is not a file of this bundle',
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
      'endpoint fd00::1 is of another family',
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
      'load balancer IP 2001:db8::1 is of another family',
    ],
  ])('%s', (_, change, reason) => expectRefusal(forgeWhole(ipvs, change), 'services.json', reason));

  test.each<readonly [name: string, change: Change, reason: string]>([
    ['a name with a quote', service((p) => (p['service'] = 'a" -j ACCEPT')), 'must be a name of Kubernetes'],
    ['a namespace with an escape', service((p) => (p['namespace'] = '\u001b[31m')), 'must be a name of Kubernetes'],
    ['a node name with a blank', service((p) => (p['endpoints'][0].node = 'a b')), "must be a node's name"],
    ['a hint with an escape', service((p) => (p['endpoints'][0].zoneHints = ['\u001b[2J'])), 'must be plain text'],
    ['a port name with blanks', service((p) => (p['port'] = 'a b')), 'must be a port name'],
    [
      'an affinity for ever',
      service((p) => (p['affinitySeconds'] = 4_294_967_295)),
      'affinitySeconds must be a whole number from 1 to 86400',
    ],
    ['a scheduler of no kernel', service((p) => (p['scheduler'] = 'evil')), 'scheduler must be "rr" or'],
  ])('%s', (_, change, reason) => expectRefusal(forge(ipvs, change), 'services.json:', reason));

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
      'services.json:2:1: it has an unknown field "note"',
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
    service((p) => (p['externalIPs'] = Array.from({ length: 200 }, (_, i) => `127.0.0.${i}`)))(files);
  };
  await expectRefusal(
    forge(ipvs, change),
    'sysctl.conf:',
    'modules.conf:',
    'ip.batch:',
    'iptables.restore:',
    'settings.ipvs.tcpTimeout',
    /and 1\d\d more/,
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

test.each([
  ['net.ipv4.ip_forward = 1; reboot', 'is not what kpc writes'],
  ['net.ipv4.ip_forward = one', 'is not what kpc writes'],
  ['kernel.core_pattern = 1', 'is not what kpc writes'],
])('a dump with the sysctl %s is refused', async (line, reason) => {
  const node = createFakeNode();
  await callApply(node.host, 'apply', write(ipvs));
  const folder = join(scratch, `dump-${count++}`);
  await callApply(node.host, 'dump', '-o', folder);
  const dumped: Files = new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
  const name = line.split(' ')[0] ?? '';
  const set = (files: Files): void => {
    const others = (files.get('sysctl.conf') ?? '').split('\n').filter((each) => each !== '' && !each.startsWith(name));
    files.set('sysctl.conf', `${[...others, line].join('\n')}\n`);
  };
  const { status, err } = await callApply(node.host, 'plan', write(forge(dumped, set)));
  expect([status, err]).toEqual([2, expect.stringContaining(reason)]);
});

test('that a bundle says it was dumped lets nothing in', async () => {
  const change: Change = (files) => {
    editJson('manifest.json', (manifest) => (manifest['dumped'] = true))(files);
    append('ip.batch', 'addr add 10.9.9.9/32 dev eth0')(files);
  };
  expect((await callApply(createFakeNode().host, 'apply', write(forge(ipvs, change)))).status).toBe(2);
});
