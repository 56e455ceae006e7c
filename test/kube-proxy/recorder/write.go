//go:build !userspace

package main

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	ipsettest "k8s.io/kubernetes/pkg/proxy/ipvs/ipset/testing"
	ipvstest "k8s.io/kubernetes/pkg/proxy/ipvs/testing"
	utilipvs "k8s.io/kubernetes/pkg/proxy/ipvs/util"
	"sigs.k8s.io/knftables"
)

// state is a recording: for each tool the file that it would read, in the layout of kpc's bundles. What has no order in a
// kernel is sorted, and so are the rules of the chains that kube-proxy fills in the order of a map.
type state map[string][]string

// The files, in the order in which a recording shows them.
var fileNames = []string{"sysctl.conf", "ipset.restore", "iptables.restore", "ip6tables.restore", "ipvsadm.restore", "ip.batch", "nftables.nft", "listeners"}

func newState() state { return state{} }

func (s state) add(file string, lines ...string) { s[file] = append(s[file], lines...) }

func (s state) String() string {
	var text strings.Builder
	for _, file := range fileNames {
		lines := s[file]
		if file == "sysctl.conf" || file == "ip.batch" || file == "listeners" {
			sort.Strings(lines)
		}
		if len(lines) > 0 {
			fmt.Fprintf(&text, "==> %s <==\n%s\n\n", file, strings.Join(lines, "\n"))
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func (s state) addIPTables(mode string, family v1.IPFamily, iptables *fakeIPTables) {
	file := "iptables.restore"
	if family == v1.IPv6Protocol {
		file = "ip6tables.restore"
	}
	tables := tablesOf(iptables)
	sort.Slice(tables, func(i, j int) bool { return tables[i].name < tables[j].name })
	for _, table := range tables {
		var chains, rules []string
		sort.Slice(table.chains, func(i, j int) bool { return table.chains[i].name < table.chains[j].name })
		for _, chain := range table.chains {
			if strings.HasPrefix(chain.name, "KUBE-") {
				chains = append(chains, ":"+chain.name+" - [0:0]")
			}
			rules = append(rules, inOneOrder(mode, table.name, chain.name, chain.rules)...)
		}
		if len(chains) > 0 {
			s.add(file, "*"+table.name)
			s.add(file, chains...)
			s.add(file, rules...)
			s.add(file, "COMMIT")
		}
	}
}

// table is what a table of iptables holds.
type table struct {
	name   string
	chains []chainRules
}

// chainRules are a chain and its rules, each as "-A CHAIN …".
type chainRules struct {
	name  string
	rules []string
}

var destination = regexp.MustCompile(`(?:-d|--vaddr) (\S+)`)
var port = regexp.MustCompile(`(?:--dport|--vport) (\S+)`)
var protocol = regexp.MustCompile(`(?:-p|--vproto) (\S+)`)

// inOneOrder sorts the rules of a chain that kube-proxy fills Service by Service, in the order of a map. Rules for the same
// destination keep their order, and the last rule of KUBE-SERVICES, for node ports, stays the last.
func inOneOrder(mode, table, chain string, rules []string) []string {
	switch {
	case chain == "KUBE-IPVS-OUT-FILTER":
	case mode == "ipvs":
		return rules
	case chain == "KUBE-NODEPORTS" && table == "filter":
		sort.Strings(rules)
		return rules
	case slices.Contains([]string{"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL"}, chain):
	default:
		return rules
	}
	key := func(rule string) string {
		if strings.Contains(rule, "this must be the last rule") {
			return "~"
		}
		part := func(pattern *regexp.Regexp) string {
			if match := pattern.FindStringSubmatch(rule); match != nil {
				return match[1]
			}
			return ""
		}
		to := part(destination)
		if chain == "KUBE-NODEPORTS" { // -d here is a condition of one rule of the node port
			to = ""
		}
		return to + " " + part(protocol) + " " + part(port)
	}
	sort.SliceStable(rules, func(i, j int) bool { return key(rules[i]) < key(rules[j]) })
	return rules
}

func (s state) addIPSets(ipset *ipsettest.FakeIPSet) {
	for _, name := range sortedKeys(ipset.Sets) {
		set := ipset.Sets[name]
		options := "family " + set.HashFamily
		if set.SetType == "bitmap:port" {
			options = "range 0-65535" // filled in below kube-proxy's interface of ipset
		}
		s.add("ipset.restore", fmt.Sprintf("create %s %s %s", name, set.SetType, options))
		for _, entry := range sortedKeys(ipset.Entries[name]) {
			s.add("ipset.restore", fmt.Sprintf("add %s %s", name, entry))
		}
	}
}

func (s state) addAddresses(netlink *ipvstest.FakeNetlinkHandle) {
	addresses, err := netlink.ListBindAddress("kube-ipvs0")
	must(err)
	for _, address := range addresses {
		bits := 32
		if strings.Contains(address, ":") {
			bits = 128
		}
		s.add("ip.batch", fmt.Sprintf("addr add %s/%d dev kube-ipvs0", address, bits))
	}
}

// addIPVS spells virtual and real servers as "ipvsadm -Sn" does.
func (s state) addIPVS(ipvs *timeoutRecorder) {
	flags := map[string]string{"TCP": "-t", "UDP": "-u", "SCTP": "--sctp-service"}
	var servers [][]string
	for key, server := range ipvs.Services {
		at := flags[server.Protocol] + " " + net.JoinHostPort(server.Address.String(), strconv.Itoa(int(server.Port)))
		line := "-A " + at + " -s " + server.Scheduler
		if server.Flags&utilipvs.FlagPersistent != 0 {
			line += " -p " + strconv.Itoa(int(server.Timeout))
		}
		if server.Flags&utilipvs.FlagSourceHash != 0 {
			line += " -b flag-2"
		}
		var backends []string
		for _, backend := range ipvs.Destinations[key] {
			to := net.JoinHostPort(backend.Address.String(), strconv.Itoa(int(backend.Port)))
			backends = append(backends, fmt.Sprintf("-a %s -r %s -m -w %d", at, to, backend.Weight))
		}
		sort.Strings(backends)
		servers = append(servers, append([]string{line}, backends...))
	}
	sort.Slice(servers, func(i, j int) bool { return servers[i][0] < servers[j][0] })
	for _, lines := range servers {
		s.add("ipvsadm.restore", lines...)
	}
	if t := ipvs.timeouts; t != nil {
		s.add("ipvsadm.restore", fmt.Sprintf("--set %d %d %d", t[0], t[1], t[2]))
	}
}

// addNftables writes a family's table as "nft list table" would, with the words that kube-proxy gives to nft.
func (s state) addNftables(family v1.IPFamily, nft *knftables.Fake) {
	table := nft.Table
	if table == nil {
		return
	}
	keyword := map[v1.IPFamily]string{v1.IPv4Protocol: "ip", v1.IPv6Protocol: "ip6"}[family]
	s.add("nftables.nft", "table "+keyword+" kube-proxy {")
	s.add("nftables.nft", comment("\t", table.Comment)...)
	block := func(head string, lines []string) {
		s.add("nftables.nft", "", "\t"+head+" {")
		s.add("nftables.nft", lines...)
		s.add("nftables.nft", "\t}")
	}
	for _, name := range sortedKeys(countersOf(table)) {
		block("counter "+name, nil)
	}
	for _, name := range sortedKeys(table.Sets) {
		set := table.Sets[name]
		lines := []string{"\t\ttype " + set.Type}
		if len(set.Flags) > 0 {
			var flags []string
			for _, flag := range set.Flags {
				flags = append(flags, string(flag))
			}
			lines = append(lines, "\t\tflags "+strings.Join(flags, ", "))
		}
		if set.Timeout != nil {
			lines = append(lines, fmt.Sprintf("\t\ttimeout %ds", int(set.Timeout.Seconds())))
		}
		lines = append(lines, comment("\t\t", set.Comment)...)
		block("set "+name, append(lines, elements(set.Elements)...))
	}
	for _, name := range sortedKeys(table.Maps) {
		m := table.Maps[name]
		lines := append([]string{"\t\ttype " + m.Type}, comment("\t\t", m.Comment)...)
		block("map "+name, append(lines, elements(m.Elements)...))
	}
	for _, name := range sortedKeys(table.Chains) {
		chain := table.Chains[name]
		var lines []string
		if chain.Type != nil {
			priority, err := knftables.ParsePriority(knftables.IPv4Family, string(*chain.Priority))
			must(err)
			lines = append(lines, fmt.Sprintf("\t\ttype %s hook %s priority %d; policy accept;", *chain.Type, *chain.Hook, priority))
		}
		lines = append(lines, comment("\t\t", chain.Comment)...)
		for _, rule := range chain.Rules {
			lines = append(lines, "\t\t"+rule.Rule+inlineComment(rule.Comment))
		}
		block("chain "+name, lines)
	}
	s.add("nftables.nft", "}")
}

func comment(indent string, text *string) []string {
	if text == nil {
		return nil
	}
	return []string{indent + "comment " + strconv.Quote(*text)}
}

func inlineComment(text *string) string {
	if text == nil {
		return ""
	}
	return " comment " + strconv.Quote(*text)
}

func elements(all []*knftables.Element) []string {
	if len(all) == 0 {
		return nil
	}
	var lines []string
	for _, element := range all {
		line := "\t\t\t" + strings.Join(element.Key, " . ") + inlineComment(element.Comment)
		if len(element.Value) > 0 {
			line += " : " + strings.Join(element.Value, " . ")
		}
		lines = append(lines, line+",")
	}
	sort.Strings(lines)
	return append(append([]string{"\t\telements = {"}, lines...), "\t\t}")
}

// addListeners writes what kube-proxy itself listens on, which no rule can stand for.
func (s state) addListeners(lines []string) { s.add("listeners", lines...) }

func sortedKeys[V any, M ~map[string]V](all M) []string {
	var keys []string
	for key := range all {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
