//go:build up_to_1_36 && !userspace

// What kube-proxy did not do before 1.37, and what its constructors took instead of its configuration.
package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/proxy/nftables"
	netutils "k8s.io/utils/net"
	"sigs.k8s.io/knftables"
)

func withRandomFully(iptables *fakeIPTables) { iptables.SetHasRandomFully(true) }

func countersOf(*knftables.FakeTable) map[string]string { return nil }

func fakeListeners(*nftables.Proxier, *testCase) {}

func listenersOf(any, v1.IPFamily) []string { return nil }

func (c *testCase) localhostNodePorts(family v1.IPFamily) bool {
	return family == v1.IPv4Protocol && *c.config.IPTables.LocalhostNodePorts
}

func (c *testCase) excludeCIDRs(family v1.IPFamily) (cidrs []string) {
	for _, cidr := range c.config.IPVS.ExcludeCIDRs {
		if netutils.IsIPv6CIDRString(cidr) == (family == v1.IPv6Protocol) {
			cidrs = append(cidrs, cidr)
		}
	}
	return cidrs
}
