//go:build !up_to_1_30 && !userspace

// What is the same since 1.31.
package main

import (
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"
)

func localDetector(c *testCase, family v1.IPFamily) proxyutil.LocalTrafficDetector {
	switch c.config.DetectLocalMode {
	case "BridgeInterface":
		return proxyutil.NewDetectLocalByBridgeInterface(c.config.DetectLocal.BridgeInterface)
	case "InterfaceNamePrefix":
		return proxyutil.NewDetectLocalByInterfaceNamePrefix(c.config.DetectLocal.InterfaceNamePrefix)
	}
	if cidr := c.localCIDR(family); cidr != "" {
		return proxyutil.NewDetectLocalByCIDR(cidr)
	}
	return proxyutil.NewNoOpLocalDetector()
}

func withoutPanic(ports []discovery.EndpointPort) []discovery.EndpointPort { return ports }
