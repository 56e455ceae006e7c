/** The words of nft's scanner, of 1.0.6 up to 1.1.6, that the name of an interface can be: most are no name to it without quotes. */
const scannerWords: ReadonlySet<string> = new Set(
  `
    a-rwnd abort accept ackseq add addr ah alert all and arp asconf asconf-ack audit auto-merge avgpkt bridge
    broute burst bypass bytes cfi cgroup cgroupv2 chain chains check checksum chunk class classid comment comp
    constant continue cookie-ack cookie-echo count counter counters cpi cpu create crit csumcov ct cum-tsn-ack cwr
    daddr data day dccp debug define dei delete describe destroy device devices direction dnat doff dport drop
    dscp dst dup dynamic echo ecn ecne egress element elements emerg eol eq err error erspan esp ether event
    exists expectation expiration expires export exthdr fanout fastopen fib filter flags flow flowlabel flowtable
    flowtables flush forward-tsn frag frag-off fully-random fwd gateway gbp gc-interval ge geneve get goto gre
    gretap group gt handle hbh hdrlength heartbeat heartbeat-ack helper helpers hlen hook hooks hoplimit hour
    htype ibrhwaddr ibriport ibrname ibrpvid ibrvproto icmp icmpv6 icmpx id igmp iif iifgroup iifkind iifname
    iiftype import in inc include index inet info ingress init init-ack init-tag initial-tsn insert interval ip
    ip6 ipsec jhash json jump kbytes l3proto l4proto label last last-entry le left length level limit limits list
    ll log loose lowest-tsn lshift lsrr lt map maps mark masquerade max-delay maxseg mbytes md5sig memory meta
    meter meters mh minute missing mod monitor more-fragments mptcp mrt mss mtu name nat ne netdev never new
    new-cum-tsn nexthdr nexthop nfproto nftrace nh noop nop not notice notrack num num-dup-tsns numgen obriport
    obrname offload offset oif oifgroup oifkind oifname oiftype operation opt-type option options or original osf
    out over packets param-problem path pcp performance persistent pkttype plen policy port position ppid prefix
    priority proto-dst proto-src protocol ptr ptype queue queue-threshold quota quotas ra random rate redefine
    redirect reject rename replace reply reqid reserved reserved2 reset return right route rr rshift rt rt0 rt2
    rtclassid rule rules ruleset sack sack-perm sack-permitted sack0 sack1 sack2 sack3 saddr sctp sdif sdifname
    secmark secmarks second secpath seed seg-left seqno sequence set sets shutdown shutdown-ack sid size skgid
    skip skuid snaplen snat socket spi spnum sport srh ssn ssrr state status stream subtype symhash synproxy
    synproxys table tables taddr tag tcp th time timeout timestamp to tos tproxy trace transparent tsecr tsn tsval
    ttl tunnel tunnels type typeof udp udplite undefine until update urgptr used value version vlan vm vmap vni
    vtag vxlan warn week wildcard window with wscale xml xor xt zone
  `
    .trim()
    .split(/\s+/),
);

/** A name, perhaps with `*` at its end. What begins with a digit is a number to nft, or a syntax error. */
const plainName = /^[A-Za-z_][\w.-]*\*?$/;

/**
 * Whether nft reads the text as the name of an interface without quotes, as kube-proxy writes it: `iifname define` is a
 * syntax error, and `iifname 0x10` means the interface 16.
 */
export function isBareInterfaceName(text: string): boolean {
  return plainName.test(text) && !scannerWords.has(text);
}
