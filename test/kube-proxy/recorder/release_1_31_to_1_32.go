//go:build up_to_1_32 && !up_to_1_30 && !userspace

package main

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/proxy/iptables"
	"k8s.io/kubernetes/pkg/proxy/ipvs"
	"k8s.io/kubernetes/pkg/proxy/nftables"
)

func newIPTables(c *testCase, family v1.IPFamily, kernel fakes) (*iptables.Proxier, error) {
	settings := c.config.IPTables
	return iptables.NewProxier(context.Background(), family, quotingIPTables{kernel.iptables}, kernel.sysctl, nil, time.Hour,
		time.Second, settings.MasqueradeAll, c.localhostNodePorts(family), int(*settings.MasqueradeBit), localDetector(c, family),
		c.node.Name, c.nodeIPs()[family], &events.FakeRecorder{}, nil, c.nodePortAddresses("iptables"), false)
}

func newIPVS(c *testCase, family v1.IPFamily, kernel fakes) (*ipvs.Proxier, error) {
	settings := c.config.IPVS
	return ipvs.NewProxier(context.Background(), family, quotingIPTables{kernel.iptables}, kernel.ipvs, kernel.ipset, kernel.sysctl,
		nil, time.Hour, time.Second, c.excludeCIDRs(family), settings.StrictARP, settings.TCPTimeout.Duration,
		settings.TCPFinTimeout.Duration, settings.UDPTimeout.Duration, c.config.IPTables.MasqueradeAll,
		int(*c.config.IPTables.MasqueradeBit), localDetector(c, family), c.node.Name, c.nodeIPs()[family], &events.FakeRecorder{},
		nil, settings.Scheduler, c.nodePortAddresses("ipvs"), false)
}

func newNFTables(c *testCase, family v1.IPFamily) (*nftables.Proxier, error) {
	settings := c.config.NFTables
	return nftables.NewProxier(context.Background(), family, time.Hour, time.Second, settings.MasqueradeAll,
		int(*settings.MasqueradeBit), localDetector(c, family), c.node.Name, c.nodeIPs()[family], &events.FakeRecorder{}, nil,
		c.nodePortAddresses("nftables"), false)
}
