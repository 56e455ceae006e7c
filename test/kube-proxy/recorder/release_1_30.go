//go:build up_to_1_30 && !userspace

package main

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/proxy/iptables"
	"k8s.io/kubernetes/pkg/proxy/ipvs"
	"k8s.io/kubernetes/pkg/proxy/nftables"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util/iptables"
)

func newIPTables(c *testCase, family v1.IPFamily, kernel fakes) (*iptables.Proxier, error) {
	settings := c.config.IPTables
	return iptables.NewProxier(family, quotingIPTables{kernel.iptables}, kernel.sysctl, nil, time.Hour, time.Second,
		settings.MasqueradeAll, c.localhostNodePorts(family), int(*settings.MasqueradeBit), localDetector(c, family), c.node.Name,
		c.nodeIPs()[family], &events.FakeRecorder{}, nil, c.nodePortAddresses("iptables"), false)
}

func newIPVS(c *testCase, family v1.IPFamily, kernel fakes) (*ipvs.Proxier, error) {
	settings := c.config.IPVS
	return ipvs.NewProxier(family, quotingIPTables{kernel.iptables}, kernel.ipvs, kernel.ipset, kernel.sysctl, nil, time.Hour,
		time.Second, c.excludeCIDRs(family), settings.StrictARP, settings.TCPTimeout.Duration, settings.TCPFinTimeout.Duration,
		settings.UDPTimeout.Duration, c.config.IPTables.MasqueradeAll, int(*c.config.IPTables.MasqueradeBit),
		localDetector(c, family), c.node.Name, c.nodeIPs()[family], &events.FakeRecorder{}, nil, settings.Scheduler,
		c.nodePortAddresses("ipvs"), false)
}

func newNFTables(c *testCase, family v1.IPFamily) (*nftables.Proxier, error) {
	settings := c.config.NFTables
	return nftables.NewProxier(family, nil, time.Hour, time.Second, settings.MasqueradeAll, int(*settings.MasqueradeBit),
		localDetector(c, family), c.node.Name, c.nodeIPs()[family], &events.FakeRecorder{}, nil, c.nodePortAddresses("nftables"), false)
}

func localDetector(c *testCase, family v1.IPFamily) proxyutil.LocalTrafficDetector {
	detector, err := proxyutil.NewNoOpLocalDetector(), error(nil)
	switch c.config.DetectLocalMode {
	case "BridgeInterface":
		detector, err = proxyutil.NewDetectLocalByBridgeInterface(c.config.DetectLocal.BridgeInterface)
	case "InterfaceNamePrefix":
		detector, err = proxyutil.NewDetectLocalByInterfaceNamePrefix(c.config.DetectLocal.InterfaceNamePrefix)
	default:
		if cidr := c.localCIDR(family); cidr != "" {
			detector, err = proxyutil.NewDetectLocalByCIDR(cidr)
		}
	}
	must(err)
	return detector
}

// Up to 1.30 kube-proxy panics at a port without a number, which means all ports. An API server takes one.
func withoutPanic(ports []discovery.EndpointPort) []discovery.EndpointPort {
	return slices.DeleteFunc(ports, func(port discovery.EndpointPort) bool { return port.Port == nil })
}
