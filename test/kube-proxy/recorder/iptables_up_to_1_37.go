//go:build up_to_1_37 && !userspace

// The iptables of kube-proxy's packages up to 1.37.
package main

import (
	v1 "k8s.io/api/core/v1"
	utiliptables "k8s.io/kubernetes/pkg/util/iptables"
	iptablestest "k8s.io/kubernetes/pkg/util/iptables/testing"
)

type fakeIPTables = iptablestest.FakeIPTables

func newFakeIPTables(family v1.IPFamily) *fakeIPTables {
	if family == v1.IPv6Protocol {
		return iptablestest.NewIPv6Fake()
	}
	return iptablestest.NewFake()
}

func tablesOf(iptables *fakeIPTables) (tables []table) {
	for _, known := range iptables.Dump.Tables {
		t := table{name: string(known.Name)}
		for _, chain := range known.Chains {
			var rules []string
			for _, rule := range chain.Rules {
				rules = append(rules, rule.Raw)
			}
			t.chains = append(t.chains, chainRules{string(chain.Name), rules})
		}
		tables = append(tables, t)
	}
	return tables
}

// quotingIPTables quotes the arguments of single rules, as the rules that kube-proxy restores have them.
type quotingIPTables struct{ *fakeIPTables }

func (q quotingIPTables) EnsureRule(position utiliptables.RulePosition, table utiliptables.Table, chain utiliptables.Chain, args ...string) (bool, error) {
	return q.fakeIPTables.EnsureRule(position, table, chain, quoted(args)...)
}
