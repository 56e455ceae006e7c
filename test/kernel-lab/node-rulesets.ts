// More rules of other programs, as found on nodes: network plugins, the hosts' own firewalls, and refusals of every kind.
import type { OtherRuleset, RandomValues } from './other-rulesets.ts';

/**
 * Returns several rulesets for each program. No rule stops replies, because kpc follows only the first packet of a connection, and the
 * harness only sees whether an answer comes back.
 */
export function listNodeRulesets({
  pick,
  port,
  host,
  network,
  pod,
  end,
  target,
}: RandomValues): readonly OtherRuleset[] {
  const nft = (name: string, text: string): OtherRuleset => ({ name, tool: 'nft', text });
  const save = (name: string, ...lines: readonly string[]): OtherRuleset => {
    return { name, tool: 'iptables-restore', text: `${lines.join('\n')}\n` };
  };
  const save6 = (name: string, ...lines: readonly string[]): OtherRuleset => {
    return { name, tool: 'ip6tables-restore', text: `${lines.join('\n')}\n` };
  };
  const host6 = () => pick('fd00:192::100', 'fd00:192::200', 'fd00:192::2', 'fd00:1:1::a', 'fd00:1:2::c');
  const refusal = () => pick('tcp-reset', 'icmp-port-unreachable', 'icmp-admin-prohibited', 'icmp-host-prohibited');
  return [
    save(
      'AWS VPC CNI',
      '*mangle',
      '-A PREROUTING -i eth0 -m comment --comment "AWS, primary ENI" -m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-xmark 0x80/0x80',
      '-A PREROUTING -i cni+ -m comment --comment "AWS, primary ENI" -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80',
      'COMMIT',
      '*nat',
      ':AWS-SNAT-CHAIN-0 - [0:0]',
      ':AWS-CONNMARK-CHAIN-0 - [0:0]',
      '-A PREROUTING -i cni+ -m comment --comment "AWS, outbound connections" -j AWS-CONNMARK-CHAIN-0',
      '-A PREROUTING -m comment --comment "AWS, CONNMARK" -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80',
      '-A POSTROUTING -m comment --comment "AWS SNAT CHAIN" -j AWS-SNAT-CHAIN-0',
      '-A AWS-CONNMARK-CHAIN-0 -d 10.1.0.0/16 -m comment --comment "AWS CONNMARK CHAIN, VPC CIDR" -j RETURN',
      '-A AWS-CONNMARK-CHAIN-0 -m comment --comment "AWS, CONNMARK" -j CONNMARK --set-xmark 0x80/0x80',
      '-A AWS-SNAT-CHAIN-0 -d 10.1.0.0/16 -m comment --comment "AWS SNAT CHAIN" -j RETURN',
      `-A AWS-SNAT-CHAIN-0 ! -o vlan+ -m comment --comment "AWS, SNAT" -m addrtype ! --dst-type LOCAL -j SNAT --to-source 192.168.0.1${pick('', ' --random-fully')}`,
      'COMMIT',
    ),
    save(
      'flannel, and policies of a firewall',
      '*filter',
      ':FLANNEL-FWD - [0:0]',
      `:FORWARD ${pick('ACCEPT', 'DROP')} [0:0]`,
      '-A FORWARD -m comment --comment "flanneld forward" -j FLANNEL-FWD',
      `-A FLANNEL-FWD -s ${pick('10.1.0.0/16', '10.1.1.0/24')} -m comment --comment "flanneld forward" -j ACCEPT`,
      `-A FLANNEL-FWD -d ${pick('10.1.0.0/16', '10.1.1.0/24')} -m comment --comment "flanneld forward" -j ACCEPT`,
      '-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      'COMMIT',
      '*nat',
      ':FLANNEL-POSTRTG - [0:0]',
      '-A POSTROUTING -m comment --comment "flanneld masq" -j FLANNEL-POSTRTG',
      '-A FLANNEL-POSTRTG -m mark --mark 0x4000/0x4000 -m comment --comment "flanneld masq" -j RETURN',
      '-A FLANNEL-POSTRTG -s 10.1.1.0/24 -d 10.1.0.0/16 -m comment --comment "flanneld masq" -j RETURN',
      '-A FLANNEL-POSTRTG -s 10.1.0.0/16 -d 10.1.1.0/24 -m comment --comment "flanneld masq" -j RETURN',
      '-A FLANNEL-POSTRTG ! -s 10.1.0.0/16 -d 10.1.1.0/24 -m comment --comment "flanneld masq" -j RETURN',
      '-A FLANNEL-POSTRTG -s 10.1.0.0/16 ! -d 224.0.0.0/4 -m comment --comment "flanneld masq" -j MASQUERADE --random-fully',
      'COMMIT',
    ),
    save(
      'refusals of iptables',
      '*filter',
      `-A INPUT -p tcp -m tcp --dport ${port()} -j REJECT --reject-with ${refusal()}`,
      `-A FORWARD -p tcp -s ${network()} -m tcp --dport 8080 -j REJECT --reject-with ${refusal()}`,
      `-A FORWARD -p tcp -d ${pod()} -m conntrack --ctstate NEW -j REJECT --reject-with tcp-reset`,
      `-A OUTPUT -p tcp -d ${pod()} -m conntrack --ctstate NEW -j REJECT --reject-with ${refusal()}`,
      'COMMIT',
    ),
    nft(
      'refusals of nftables',
      `table inet refuse {
  chain forward {
    type filter hook forward priority ${pick('filter', '-1', '10')}; policy accept;
    ct state established,related accept
    ip daddr ${pod()} reject with tcp reset
    ip6 daddr fd00:1:1::a reject with tcp reset
    ip saddr ${host()} reject with icmp ${pick('port-unreachable', 'admin-prohibited', 'host-unreachable')}
    meta l4proto tcp reject with icmpx ${pick('port-unreachable', 'admin-prohibited')}
  }
  chain output {
    type filter hook output priority filter; policy accept;
    ct state established,related accept
    ct direction original ip daddr ${pod()} tcp dport 8080 reject with tcp reset
  }
}
`,
    ),
    save(
      'fail2ban, libvirt and Tailscale',
      '*filter',
      ':f2b-web - [0:0]',
      ':LIBVIRT_FWI - [0:0]',
      ':ts-forward - [0:0]',
      ':ts-input - [0:0]',
      `-A INPUT -p tcp -m multiport --dports ${port()},${port()} -j f2b-web`,
      `-A f2b-web -s ${host()}/32 -j REJECT --reject-with icmp-port-unreachable`,
      '-A f2b-web -j RETURN',
      '-I INPUT 1 -j ts-input',
      '-A ts-input -s 100.64.0.1/32 -i lo -j ACCEPT',
      '-A ts-input -s 100.64.0.0/10 ! -i tailscale0 -j DROP',
      '-A ts-input -p udp -m udp --dport 41641 -j ACCEPT',
      '-A FORWARD -j ts-forward',
      '-A FORWARD -j LIBVIRT_FWI',
      '-A ts-forward -i tailscale0 -j MARK --set-xmark 0x40000/0xff0000',
      '-A ts-forward -m mark --mark 0x40000/0xff0000 -j ACCEPT',
      '-A ts-forward -s 100.64.0.0/10 -o tailscale0 -j DROP',
      '-A LIBVIRT_FWI -d 192.168.122.0/24 -o virbr0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      '-A LIBVIRT_FWI -o virbr0 -j REJECT --reject-with icmp-port-unreachable',
      'COMMIT',
      '*nat',
      ':ts-postrouting - [0:0]',
      '-A POSTROUTING -j ts-postrouting',
      '-A ts-postrouting -m mark --mark 0x40000/0xff0000 -j MASQUERADE',
      'COMMIT',
    ),
    save(
      'what only a kernel knows, and addresses that connections asked for',
      '*raw',
      '-A PREROUTING -m rpfilter --validmark --invert -j DROP',
      'COMMIT',
      '*mangle',
      `-A PREROUTING -p tcp -m tcp --dport ${port()} -j MARK --set-xmark 0x${pick('4000', '8000', '1')}/0xffffffff`,
      `-A FORWARD -m conntrack --ctorigdst ${pick('10.96.0.10', '10.96.0.11', '192.168.0.1')} -j ${pick('DROP', 'ACCEPT')}`,
      'COMMIT',
      '*filter',
      `-A FORWARD -m hashlimit --hashlimit-upto 10000/sec --hashlimit-mode srcip --hashlimit-name h -s ${host()} -m conntrack --ctstate NEW -j ${target()}`,
      `-A FORWARD -m connlimit --connlimit-above 1000 -s ${host()} -j DROP`,
      `-A FORWARD -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -s ${host()} -m conntrack --ctstate NEW -j ${target()}`,
      `-A FORWARD -m addrtype --src-type LOCAL -m conntrack --ctstate NEW -j ${target()}`,
      `-A FORWARD -m pkttype --pkt-type unicast -s ${network()} -m conntrack --ctstate NEW -j ${target()}`,
      `-A FORWARD -m conntrack --ctstate DNAT --ctdir ORIGINAL -d ${pod()} -j ${target()}`,
      `-A FORWARD -m conntrack ! --ctstate RELATED,ESTABLISHED -m statistic --mode random --probability 0.00000000000 -j DROP`,
      `-A INPUT -p tcp -m length --length 40:100 -m tcp --dport ${port()} -j ${target()}`,
      'COMMIT',
    ),
    save6(
      'ufw of IPv6',
      '*filter',
      ':ufw6-before-input - [0:0]',
      ':ufw6-before-forward - [0:0]',
      '-A INPUT -j ufw6-before-input',
      '-A FORWARD -j ufw6-before-forward',
      '-A ufw6-before-input -i lo -j ACCEPT',
      '-A ufw6-before-input -m rt --rt-type 0 -j DROP',
      '-A ufw6-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      '-A ufw6-before-input -p ipv6-icmp -j ACCEPT',
      `-A ufw6-before-input -s ${host6()} -p tcp -m tcp --dport ${port()} -j ${pick('DROP', 'ACCEPT', 'REJECT --reject-with icmp6-port-unreachable', 'REJECT --reject-with tcp-reset')}`,
      '-A ufw6-before-forward -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      `-A ufw6-before-forward -s ${host6()} -p tcp -j ${pick('DROP', 'ACCEPT', 'REJECT --reject-with tcp-reset', 'REJECT --reject-with icmp6-adm-prohibited')}`,
      `-A ufw6-before-forward ! -s fd00:1::/32 -p tcp -m tcp --dport 8080 -j ${pick('DROP', 'RETURN')}`,
      'COMMIT',
    ),
    nft(
      'maps, concatenations and addresses of the node',
      `table ip own {
  set pairs {
    type ipv4_addr . inet_service
    flags interval
    elements = { ${network()} . ${pick('80', '81', '8000-8100')}, 192.168.0.150-192.168.0.220 . 30080-30081 }
  }
  map ends {
    type ipv4_addr : verdict
    flags interval
    elements = { 192.168.0.100 : ${pick('accept', 'drop')}, 192.168.0.200-192.168.0.210 : jump far, 10.1.2.0/24 : ${pick('continue', 'drop', 'return')} }
  }
  map marks {
    type inet_service : mark
    elements = { ${pick(80, 8080)} : 0x00000010, 9999 : 0x00000020 }
  }
  chain far { tcp dport ${port()} ${end()}; fib saddr type local ${end()}; }
  chain pre {
    type filter hook prerouting priority mangle; policy accept;
    ip saddr . tcp dport @pairs counter ${end()}
    fib daddr type local tcp dport ${port()} ${pick('drop', 'accept')}
    ip protocol tcp meta mark set meta mark or 0x20
  }
  chain forward {
    type filter hook forward priority filter - 1; policy accept;
    ct state established accept
    ct original ip daddr 10.96.0.${pick(10, 11, 12)} ${end()}
    ip saddr vmap @ends
    meta mark and 0x20 == 0x20 ip daddr != 10.1.0.0/16 ${end()}
    iifname . oifname { "eth0" . "cni0", "cni0" . "cni0" } tcp dport ${port()} ${end()}
  }
  chain post {
    type nat hook postrouting priority srcnat ${pick('-', '+')} 5; policy accept;
    ip saddr ${network()} oifname "${pick('eth0', 'cni0')}" ${pick('masquerade', 'snat to 192.168.0.1', 'accept')}
  }
  chain input {
    type filter hook input priority filter; policy accept;
    ct state vmap { established : accept, related : accept, invalid : drop }
    meta l4proto . th dport { tcp . 9999, tcp . 30080-30085 } ip saddr ${host()} ${end()}
    ip protocol icmp icmp type echo-request ${pick('accept', 'drop')}
  }
}
`,
    ),
  ];
}
