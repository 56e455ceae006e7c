//go:build !up_to_1_37 && !userspace

// The iptables of kube-proxy's packages: in 1.38 they left it to a module of its own.
package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	utiliptables "sigs.k8s.io/iptables-wrappers/pkg/iptables"
	iptablestest "sigs.k8s.io/iptables-wrappers/pkg/iptables/testing"
)

type fakeIPTables = iptablestest.Fake

func newFakeIPTables(family v1.IPFamily) *fakeIPTables {
	return iptablestest.NewFake(utiliptables.Protocol(family))
}

func tablesOf(iptables *fakeIPTables) (tables []table) {
	for name, chains := range iptables.Tables {
		t := table{name: string(name)}
		for chain, rules := range chains {
			t.chains = append(t.chains, chainRules{string(chain), rules})
		}
		tables = append(tables, t)
	}
	return tables
}

// quotingIPTables quotes the arguments of single rules, as the rules that kube-proxy restores have them.
type quotingIPTables struct{ *fakeIPTables }

func (q quotingIPTables) EnsureRule(ctx context.Context, at utiliptables.RulePosition, table utiliptables.Table, chain utiliptables.Chain, args ...string) (bool, error) {
	return q.fakeIPTables.EnsureRule(ctx, at, table, chain, quoted(args)...)
}
