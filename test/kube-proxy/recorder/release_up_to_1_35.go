//go:build up_to_1_35

// Before 1.36 kube-proxy chose Services and EndpointSlices by the same labels.
package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/proxy/apis"
)

func watchesService(labels map[string]string) bool {
	_, isOthers := labels[apis.LabelServiceProxyName]
	_, isHeadless := labels[v1.IsHeadlessService]
	return !isOthers && !isHeadless
}

func watchesSlice(labels map[string]string) bool { return watchesService(labels) }
