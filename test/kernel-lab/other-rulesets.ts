// Rules of other programs, as found on nodes, with random values, for the network of network.ts.

/** Rules, the tool that loads them, and the commands that remove them. */
export interface OtherRuleset {
  readonly name: string;
  readonly tool: 'nft' | 'iptables-restore' | 'ip6tables-restore';
  readonly text: string;
}

type Pick = <T>(...items: readonly T[]) => T;

/** Returns values for rules: ports and addresses of the packets in packet-matrix.ts, and some others. */
export function valuesOf(random: () => number) {
  const pick: Pick = (...items) => items[Math.floor(random() * items.length)] as (typeof items)[number];
  return {
    pick,
    port: () => pick(80, 81, 8080, 9999, 30080, 30081, 30999),
    host: () => pick('192.168.0.100', '192.168.0.200', '192.168.0.2', '10.1.1.10', '10.1.2.10'),
    network: () => pick('192.168.0.0/25', '192.168.0.128/25', '10.1.1.0/24', '10.1.2.0/24', '10.1.0.0/16'),
    pod: () => pick('10.1.1.10', '10.1.1.11', '10.1.2.10'),
    end: () => pick('accept', 'drop', 'reject', 'counter drop', 'return'),
    target: () => pick('ACCEPT', 'DROP', 'REJECT --reject-with icmp-port-unreachable', 'RETURN'),
  };
}

export type RandomValues = ReturnType<typeof valuesOf>;

/** Returns several rulesets for each program. */
export function listRulesets({ pick, port, host, network, pod, end, target }: RandomValues): readonly OtherRuleset[] {
  const nft = (name: string, text: string): OtherRuleset => ({ name, tool: 'nft', text });
  const save = (name: string, ...lines: readonly string[]): OtherRuleset => {
    return { name, tool: 'iptables-restore', text: `${lines.join('\n')}\n` };
  };
  return [
    nft(
      'a hand-written nftables.conf',
      `table inet filter {
  set blocked {
    type ipv4_addr
    flags interval
    elements = { ${network()}, 203.0.113.128/25 }
  }
  set ports {
    type inet_service
    flags interval
    auto-merge
    elements = { ${port()}, 30000-${pick(30080, 30100, 30900)} }
  }
  map services {
    type inet_proto . inet_service : verdict
    flags interval
    elements = { tcp . ${port()} : drop, udp . 50-60 : accept, tcp . 9990-9998 : jump reject_it }
  }
  chain reject_it { reject; }
  chain input {
    type filter hook input priority filter; policy ${pick('accept', 'drop')};
    ct state vmap { established : accept, related : accept, invalid : drop }
    iifname "lo" accept
    icmp type { echo-request, destination-unreachable } limit rate ${pick(10000, 20000)}/second accept
    meta l4proto ipv6-icmp accept
    meta l4proto . th dport vmap @services
    tcp dport @ports ip saddr @blocked ${end()}
    tcp flags & (fin | syn | rst | ack) == syn ip saddr ${host()} ${pick('drop', 'reject with tcp reset')}
    log prefix "in: " level info
    ip saddr . tcp dport { ${host()} . ${port()}, ${host()} . 9990-9998 } ${end()}
    tcp dport 9999 accept
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
    ct status dnat counter ${pick('accept', 'continue')}
    ip saddr @blocked tcp dport ${port()} ${end()}
    meta mark & 0x4000 == 0x4000 counter ${pick('accept', 'return', 'continue')}
    iifname "eth0" ip daddr { 10.1.1.10-10.1.1.${pick(10, 11)}, 10.1.2.10 } tcp dport { 8000-8100 } ${end()}
  }
}
`,
    ),
    nft(
      'chains of one hook and priority',
      `table ip first {
  chain pre { type nat hook prerouting priority ${pick('dstnat', '-110', '-90')}; tcp dport ${port()} dnat to ${pod()}:8080; }
  chain forwarding { type filter hook forward priority ${pick('filter', '-5', '5')}; ct state established accept; ip saddr ${host()} ${end()}; }
}
table ip second {
  chain pre { type nat hook prerouting priority dstnat; tcp dport ${port()} dnat to ${pod()}:8080; }
  chain forwarding { type filter hook forward priority filter; ct state established accept; ip saddr ${host()} ${end()}; tcp dport < ${pick(81, 9000)} ${end()}; }
  chain pre2 { type nat hook prerouting priority dstnat; tcp dport ${pick(80, 81, 30080, 30999)} redirect to :9998; }
}
`,
    ),
    nft(
      'marks of connections, and statements without effect',
      `table ip marks {
  chain pre {
    type filter hook prerouting priority mangle; policy accept;
    iifname "${pick('eth0', 'cni0')}" ct mark set 0x${pick('80', 'c0', '1')}
    tcp dport ${port()} ct mark set ct mark or 0x100
    meta mark set ct mark and 0x${pick('80', 'ff', '4000')}
    ip dscp set cs1
  }
  chain raw { type filter hook prerouting priority raw; tcp dport ${pick(30999, 81)} notrack; }
  chain forwarding {
    type filter hook forward priority filter - 5; policy accept;
    ct state established accept
    ct mark & 0x100 != 0 ${end()}
    meta mark 0x80-0xff ip saddr ${network()} ${end()}
  }
}
`,
    ),
    save(
      'ufw',
      '*filter',
      ':ufw-before-input - [0:0]',
      ':ufw-user-input - [0:0]',
      ':ufw-not-local - [0:0]',
      ':ufw-user-limit - [0:0]',
      '-A INPUT -j ufw-before-input',
      '-A INPUT -j ufw-user-input',
      '-A ufw-before-input -i lo -j ACCEPT',
      '-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      '-A ufw-before-input -m conntrack --ctstate INVALID -j DROP',
      '-A ufw-before-input -p icmp -m icmp --icmp-type 8 -j ACCEPT',
      '-A ufw-before-input -j ufw-not-local',
      '-A ufw-not-local -m addrtype --dst-type LOCAL -j RETURN',
      '-A ufw-not-local -m addrtype --dst-type MULTICAST -j RETURN',
      '-A ufw-not-local -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW] "',
      '-A ufw-not-local -j DROP',
      `-A ufw-user-input -p tcp -m tcp --dport ${port()} -s ${network()} -j ${target()}`,
      `-A ufw-user-input -p tcp -m multiport --dports 22,${port()},9990:9999 -j ${target()}`,
      `-A ufw-user-input -p tcp -m tcp --dport ${port()} -j DROP`,
      'COMMIT',
    ),
    nft(
      'firewalld',
      `table inet firewalld {
  chain mangle_PREROUTING { type filter hook prerouting priority mangle + 10; jump mangle_POLICIES; }
  chain mangle_POLICIES { iifname "eth0" jump mangle_PRE_public; }
  chain mangle_PRE_public { tcp dport ${port()} counter; }
  chain filter_INPUT {
    type filter hook input priority filter + 10; policy accept;
    ct state { established, related } accept
    ct status dnat accept
    iifname "lo" accept
    ct state invalid drop
    jump filter_IN_policies
    reject with icmpx admin-prohibited
  }
  chain filter_IN_policies { iifname vmap { "eth0" : goto filter_IN_public, "cni0" : accept }; }
  chain filter_IN_public {
    meta l4proto { icmp, ipv6-icmp } accept
    tcp dport { ${port()}, 22, 9999 } accept
    ip saddr ${network()} tcp dport ${port()} drop
  }
  chain filter_FORWARD {
    type filter hook forward priority filter + 10; policy accept;
    ct state { established, related } accept
    ct status dnat ${pick('accept', 'return')}
    iifname "lo" accept
    ip6 daddr { ::/96, 2002::/24 } reject with icmpv6 addr-unreachable
    iifname "cni0" accept
    oifname "cni0" ${pick('accept', 'drop')}
  }
}
`,
    ),
    save(
      'Docker',
      '*nat',
      ':DOCKER - [0:0]',
      '-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER',
      '-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER',
      '-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE',
      '-A DOCKER -i docker0 -j RETURN',
      `-A DOCKER ! -i docker0 -p tcp -m tcp --dport ${pick(30999, 81, 9999)} -j DNAT --to-destination ${pod()}:8080`,
      'COMMIT',
      '*filter',
      ':DOCKER-USER - [0:0]',
      '-A FORWARD -j DOCKER-USER',
      '-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      '-A FORWARD -i docker0 ! -o docker0 -j ACCEPT',
      `-A DOCKER-USER -s ${host()}/32 -p tcp -m tcp --dport ${port()} -j ${target()}`,
      `-A DOCKER-USER -m conntrack --ctorigdstport ${port()} --ctdir ORIGINAL -p tcp -j ${target()}`,
      '-A DOCKER-USER -j RETURN',
      'COMMIT',
    ),
    save(
      'portmap',
      '*nat',
      ':CNI-HOSTPORT-DNAT - [0:0]',
      ':CNI-HOSTPORT-SETMARK - [0:0]',
      ':CNI-HOSTPORT-MASQ - [0:0]',
      ':CNI-DN-aaaa - [0:0]',
      '-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
      '-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT',
      '-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ',
      '-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE',
      '-A CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000',
      `-A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports ${pick(30999, 81, 9999)} -j CNI-DN-aaaa`,
      `-A CNI-DN-aaaa -s ${pick('10.1.1.0/24', '10.1.0.0/16')} -p tcp -j CNI-HOSTPORT-SETMARK`,
      '-A CNI-DN-aaaa -s 127.0.0.1/32 -p tcp -j CNI-HOSTPORT-SETMARK',
      `-A CNI-DN-aaaa -p tcp -j DNAT --to-destination ${pod()}:8080`,
      'COMMIT',
    ),
    save(
      'NodeLocal DNS',
      '*raw',
      `-A PREROUTING -d 10.96.0.10/32 -p udp -m udp --dport 53 -j ${pick('CT --notrack', 'NOTRACK')}`,
      `-A PREROUTING -d 10.96.0.10/32 -p tcp -m tcp --dport ${pick(80, 53)} -j CT --notrack`,
      `-A OUTPUT -d 10.96.0.10/32 -p tcp -m tcp --dport ${pick(80, 53)} -j CT --notrack`,
      'COMMIT',
      '*filter',
      '-A INPUT -d 10.96.0.10/32 -p udp -m udp --dport 53 -j ACCEPT',
      '-A OUTPUT -s 10.96.0.10/32 -p udp -m udp --sport 53 -j ACCEPT',
      `-A FORWARD -m conntrack --ctstate UNTRACKED -j ${target()}`,
      'COMMIT',
    ),
    save(
      'kube-router',
      '*filter',
      ':KUBE-ROUTER-FORWARD - [0:0]',
      ':KUBE-POD-FW-AAAA - [0:0]',
      ':KUBE-NWPLCY-AAAA - [0:0]',
      '-A FORWARD -j KUBE-ROUTER-FORWARD',
      `-A KUBE-ROUTER-FORWARD -d ${pod()}/32 -j KUBE-POD-FW-AAAA`,
      '-A KUBE-POD-FW-AAAA -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      `-A KUBE-POD-FW-AAAA -m addrtype --src-type LOCAL -d ${pod()}/32 -j ACCEPT`,
      '-A KUBE-POD-FW-AAAA -j KUBE-NWPLCY-AAAA',
      `-A KUBE-NWPLCY-AAAA -s ${network()} -p tcp -m tcp --dport 8080 -j MARK --set-xmark 0x10000/0x10000`,
      '-A KUBE-NWPLCY-AAAA -m mark --mark 0x10000/0x10000 -j RETURN',
      `-A KUBE-POD-FW-AAAA -m mark ! --mark 0x10000/0x10000 -j ${pick('REJECT --reject-with icmp-port-unreachable', 'DROP')}`,
      '-A KUBE-POD-FW-AAAA -j MARK --set-xmark 0x0/0x10000',
      'COMMIT',
    ),
    save(
      'Calico',
      '*filter',
      ':cali-FORWARD - [0:0]',
      ':cali-from-wl-dispatch - [0:0]',
      ':cali-tw - [0:0]',
      '-I FORWARD 1 -j cali-FORWARD',
      '-A cali-FORWARD -j MARK --set-xmark 0x0/0xe0000',
      '-A cali-FORWARD -i cali+ -j cali-from-wl-dispatch',
      '-A cali-FORWARD -i cni+ -j cali-from-wl-dispatch',
      '-A cali-FORWARD -o cni+ -j cali-tw',
      '-A cali-from-wl-dispatch -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      `-A cali-from-wl-dispatch -s ${host()}/32 -g cali-tw`,
      '-A cali-from-wl-dispatch -m conntrack --ctstate INVALID -j DROP',
      `-A cali-tw -p tcp -m multiport --dports 8080,${port()} -s ${network()} -j MARK --set-xmark 0x10000/0x10000`,
      '-A cali-tw -m mark --mark 0x10000/0x10000 -j RETURN',
      `-A cali-tw -p tcp -m tcp --dport 8080 -m iprange --src-range 192.168.0.${pick(100, 150)}-192.168.0.200 -j ${target()}`,
      'COMMIT',
    ),
    save(
      'Istio',
      '*nat',
      ':ISTIO_INBOUND - [0:0]',
      ':ISTIO_IN_REDIRECT - [0:0]',
      ':ISTIO_OUTPUT - [0:0]',
      '-A PREROUTING -p tcp -j ISTIO_INBOUND',
      '-A OUTPUT -p tcp -j ISTIO_OUTPUT',
      '-A ISTIO_INBOUND -p tcp -m tcp --dport 9999 -j RETURN',
      `-A ISTIO_INBOUND -p tcp -m tcp --dport ${pick(30999, 81)} -j ISTIO_IN_REDIRECT`,
      '-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 9998',
      '-A ISTIO_OUTPUT -s 127.0.0.6/32 -o lo -j RETURN',
      '-A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT',
      '-A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN',
      `-A ISTIO_OUTPUT -d ${pick('127.0.0.1', '10.96.0.10')}/32 -j RETURN`,
      'COMMIT',
    ),
  ];
}
