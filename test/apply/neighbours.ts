import { readFileSync } from 'node:fs';
import type { Host } from '../../src/apply/node/host.ts';

/** What another program keeps on a node, as it writes it. */
export interface Neighbour {
  /** Input of iptables-restore, and of ip6tables-restore. */
  readonly iptables?: string;
  readonly ip6tables?: string;
  readonly ipset?: string;
  readonly ipvsadm?: string;
  readonly ip?: string;
}

/** kube-router's network policies, as k3s and k0s have them. */
const kubeRouter: Neighbour = {
  ipset: [
    'create kube-router-local-pods hash:ip family inet hashsize 1024 maxelem 65536 timeout 0',
    'add kube-router-local-pods 10.42.0.9 timeout 0',
    'create KUBE-SRC-2FAAHBRBTVYQ4EXA hash:ip family inet hashsize 1024 maxelem 65536',
    'create KUBE-DST-2FAAHBRBTVYQ4EXA hash:ip family inet hashsize 1024 maxelem 65536',
    'add KUBE-DST-2FAAHBRBTVYQ4EXA 10.42.0.9',
    'create inet6:kube-router-local-pods hash:ip family inet6 hashsize 1024 maxelem 65536',
  ].join('\n'),
  iptables: [
    '*filter',
    ':KUBE-ROUTER-INPUT - [0:0]',
    ':KUBE-ROUTER-FORWARD - [0:0]',
    ':KUBE-ROUTER-OUTPUT - [0:0]',
    ':KUBE-NWPLCY-DEFAULT - [0:0]',
    ':KUBE-NWPLCY-2FAAHBRBTVYQ4EXA - [0:0]',
    ':KUBE-POD-FW-WFXGXVKGKQMHXFVC - [0:0]',
    '-A INPUT -m comment --comment "kube-router netpol - 4IA2OSFRMVNDXBVV" -j KUBE-ROUTER-INPUT',
    '-A FORWARD -m comment --comment "kube-router netpol - TEMCG2JMHZYE7H7T" -j KUBE-ROUTER-FORWARD',
    '-A OUTPUT -m comment --comment "kube-router netpol - VEAAIY32XVBHCSCY" -j KUBE-ROUTER-OUTPUT',
    '-A KUBE-ROUTER-INPUT -d 10.43.0.0/16 -m comment --comment "allow traffic to primary cluster IP range" -j RETURN',
    '-A KUBE-ROUTER-FORWARD -d 10.42.0.9/32 -m comment --comment "rule to jump traffic" -j KUBE-POD-FW-WFXGXVKGKQMHXFVC',
    '-A KUBE-NWPLCY-2FAAHBRBTVYQ4EXA -m set --match-set KUBE-SRC-2FAAHBRBTVYQ4EXA src -m set --match-set KUBE-DST-2FAAHBRBTVYQ4EXA dst -j MARK --set-xmark 0x10000/0x10000',
    '-A KUBE-POD-FW-WFXGXVKGKQMHXFVC -d 10.42.0.9/32 -j KUBE-NWPLCY-2FAAHBRBTVYQ4EXA',
    '-A KUBE-POD-FW-WFXGXVKGKQMHXFVC -m mark ! --mark 0x10000/0x10000 -j REJECT --reject-with icmp-port-unreachable',
    'COMMIT',
  ].join('\n'),
};

const docker: Neighbour = {
  iptables: [
    '*nat',
    ':DOCKER - [0:0]',
    '-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER',
    '-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER',
    '-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE',
    '-A DOCKER -i docker0 -j RETURN',
    'COMMIT',
    '*filter',
    ':DOCKER-USER - [0:0]',
    '-A FORWARD -j DOCKER-USER',
    '-A DOCKER-USER -j RETURN',
    'COMMIT',
  ].join('\n'),
};

/** Calico in iptables mode, with its sets. */
const calico: Neighbour = {
  ipset: [
    'create cali40masq-ipam-pools hash:net family inet hashsize 1024 maxelem 1048576',
    'add cali40masq-ipam-pools 192.168.0.0/16',
    'create cali40all-ipam-pools hash:net family inet hashsize 1024 maxelem 1048576',
    'create cali60masq-ipam-pools hash:net family inet6 hashsize 1024 maxelem 1048576',
  ].join('\n'),
  iptables: [
    '*nat',
    ':cali-POSTROUTING - [0:0]',
    '-A POSTROUTING -m comment --comment "cali:O3lYWMrLQYEMJtB5" -j cali-POSTROUTING',
    '-A cali-POSTROUTING -m set --match-set cali40masq-ipam-pools src -m set ! --match-set cali40all-ipam-pools dst -j MASQUERADE',
    'COMMIT',
    '*filter',
    ':cali-FORWARD - [0:0]',
    '-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD',
    '-A cali-FORWARD -m mark --mark 0x10000/0x10000 -j ACCEPT',
    'COMMIT',
  ].join('\n'),
};

const keepalived: Neighbour = {
  ipvsadm: [
    '-A -t 100.64.9.1:80 -s wrr',
    '-a -t 100.64.9.1:80 -r 100.64.9.7:80 -g -w 7',
    '-A -u 100.64.9.2:53 -s sh',
    '-A -t 100.64.9.1:30080 -s rr',
    '-a -t 100.64.9.1:30080 -r 100.64.9.7:30080 -m -w 1',
  ].join('\n'),
};

const localnet =
  '-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP';

/** syncIPTablesRules of v1.36's kubelet, and its canary. */
const kubelet: Neighbour = {
  iptables: [
    '*mangle',
    ':KUBE-IPTABLES-HINT - [0:0]',
    ':KUBE-KUBELET-CANARY - [0:0]',
    'COMMIT',
    '*nat',
    ':KUBE-KUBELET-CANARY - [0:0]',
    'COMMIT',
    '*filter',
    ':KUBE-FIREWALL - [0:0]',
    ':KUBE-KUBELET-CANARY - [0:0]',
    '-A INPUT -j KUBE-FIREWALL',
    '-A OUTPUT -j KUBE-FIREWALL',
    localnet,
    'COMMIT',
  ].join('\n'),
  ip6tables: [
    '*mangle',
    ':KUBE-IPTABLES-HINT - [0:0]',
    ':KUBE-KUBELET-CANARY - [0:0]',
    'COMMIT',
    '*nat',
    ':KUBE-KUBELET-CANARY - [0:0]',
    'COMMIT',
    '*filter',
    ':KUBE-KUBELET-CANARY - [0:0]',
    'COMMIT',
  ].join('\n'),
};

/** What kubelets up to 1.26 make in each family: they mark packets for kube-proxy, and drop what is marked. */
const oldKubeletTables = [
  '*mangle',
  ':KUBE-KUBELET-CANARY - [0:0]',
  'COMMIT',
  '*nat',
  ':KUBE-KUBELET-CANARY - [0:0]',
  ':KUBE-MARK-DROP - [0:0]',
  ':KUBE-MARK-MASQ - [0:0]',
  ':KUBE-POSTROUTING - [0:0]',
  '-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING',
  '-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000',
  '-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000',
  '-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN',
  '-A KUBE-POSTROUTING -j MARK --set-xmark 0x00004000/0x00000000',
  '-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
  'COMMIT',
  '*filter',
  ':KUBE-FIREWALL - [0:0]',
  ':KUBE-KUBELET-CANARY - [0:0]',
  '-A INPUT -j KUBE-FIREWALL',
  '-A OUTPUT -j KUBE-FIREWALL',
  '-A KUBE-FIREWALL -m comment --comment "kubernetes firewall for dropping marked packets" -m mark --mark 0x8000/0x8000 -j DROP',
];
const oldKubelet: Neighbour = {
  iptables: [...oldKubeletTables, localnet, 'COMMIT'].join('\n'),
  ip6tables: [...oldKubeletTables, 'COMMIT'].join('\n'),
};

/** Names that look near those of kube-proxy, or are its own in another table. */
const nearNames: Neighbour = {
  ipset: [
    'create KUBE-CLUSTER-IPS hash:ip,port family inet hashsize 1024 maxelem 65536',
    'create kube-cluster-ip hash:ip,port family inet hashsize 1024 maxelem 65536',
    'create KUBE-6-LOOP-BACK-2 hash:ip family inet6 hashsize 1024 maxelem 65536',
  ].join('\n'),
  iptables: [
    '*nat',
    ':KUBE-SVC-abcdefghijklmnop - [0:0]',
    ':KUBE-SVC-SHORT - [0:0]',
    ':KUBE-SVC-ABCDEFGHIJKLMNO1 - [0:0]',
    ':KUBE-SVC-ABCDEFGHIJKLMNOPQ - [0:0]',
    ':KUBE-SERVICES-MINE - [0:0]',
    ':KUBE-FORWARD - [0:0]',
    ':KUBE-HOSTPORTS - [0:0]',
    '-A PREROUTING -j KUBE-HOSTPORTS',
    '-A KUBE-HOSTPORTS -p tcp -m tcp --dport 8080 -j RETURN',
    '-A KUBE-SVC-SHORT -j RETURN',
    'COMMIT',
    '*filter',
    ':KUBE-SVC-ABCDEFGHIJKLMNOP - [0:0]',
    ':KUBE-POSTROUTING - [0:0]',
    '-A FORWARD -j KUBE-SVC-ABCDEFGHIJKLMNOP',
    '-A KUBE-SVC-ABCDEFGHIJKLMNOP -j RETURN',
    'COMMIT',
    '*mangle',
    ':KUBE-SERVICES - [0:0]',
    '-A PREROUTING -j KUBE-SERVICES',
    'COMMIT',
  ].join('\n'),
};

/** A link for a cache of names on the node, which is not kube-ipvs0. */
const nodeLocalDns: Neighbour = {
  ip: 'link add nodelocaldns type dummy\naddr add 169.254.20.10/32 dev nodelocaldns',
  iptables: [
    '*filter',
    '-A INPUT -d 169.254.20.10/32 -p udp -m udp --dport 53 -j ACCEPT',
    '-A OUTPUT -s 169.254.20.10/32 -p udp -m udp --sport 53 -j ACCEPT',
    'COMMIT',
  ].join('\n'),
};

export const neighbours = { kubeRouter, docker, calico, keepalived, kubelet, oldKubelet, nearNames, nodeLocalDns };

/** Feeds each part to its tool. `run` throws if the tool complains. */
export function moveIn(
  neighbour: Neighbour,
  run: (tool: string, args: readonly string[], stdin: string) => void,
): void {
  const { ipset, iptables, ip6tables, ipvsadm, ip } = neighbour;
  if (ipset !== undefined) run('ipset', ['restore'], `${ipset}\n`);
  if (iptables !== undefined) run('iptables-restore', ['--noflush'], `${iptables}\n`);
  if (ip6tables !== undefined) run('ip6tables-restore', ['--noflush'], `${ip6tables}\n`);
  if (ipvsadm !== undefined) run('ipvsadm', ['-R'], `${ipvsadm}\n`);
  if (ip !== undefined) run('ip', ['-batch', '-'], `${ip}\n`);
}

/** A bundle's own files as a neighbour: the node is then as a kube-proxy that has stopped leaves it. */
export function readBundleFiles(folder: string): Neighbour {
  const read = (file: string): string | undefined => {
    try {
      return readFileSync(`${folder}/${file}`, 'utf8').trimEnd() || undefined;
    } catch {
      return undefined;
    }
  };
  const parts = {
    ipset: read('ipset.restore'),
    iptables: read('iptables.restore'),
    ip6tables: read('ip6tables.restore'),
    ipvsadm: read('ipvsadm.restore'),
    ip: read('ip.batch'),
  };
  return Object.fromEntries(Object.entries(parts).filter(([, text]) => text !== undefined));
}

/** The same on a host in memory. */
export async function moveInto(host: Host, ...others: readonly Neighbour[]): Promise<void> {
  const inputs: { readonly tool: string; readonly args: readonly string[]; readonly stdin: string }[] = [];
  for (const other of others) moveIn(other, (tool, args, stdin) => void inputs.push({ tool, args, stdin }));
  for (const input of inputs) {
    const result = await host.run(input);
    if (result.kind !== 'ended' || result.status !== 0 || result.stderr !== '') {
      throw new Error(`${input.tool}: ${JSON.stringify(result)}`);
    }
  }
}
