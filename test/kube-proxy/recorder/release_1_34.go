//go:build !up_to_1_33 && !userspace

// What is the same since 1.34.
package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/proxy"
)

func setNode(proxier proxy.Provider, node *v1.Node) {
	labels := map[string]string{}
	if zone, has := node.Labels[v1.LabelTopologyZone]; has {
		labels[v1.LabelTopologyZone] = zone
	}
	proxier.OnTopologyChange(labels)
}
