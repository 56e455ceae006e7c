//go:build up_to_1_33 && !userspace

// Up to 1.33 proxiers took the Node itself.
package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/proxy"
)

func setNode(proxier proxy.Provider, node *v1.Node) { proxier.OnNodeAdd(node) }
