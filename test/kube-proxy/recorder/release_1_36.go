//go:build !up_to_1_35 && !userspace

// What is the same since 1.36.
package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/proxy/apis"
)

func watchesService(labels map[string]string) bool {
	_, isOthers := labels[apis.LabelServiceProxyName]
	return !isOthers
}

func watchesSlice(labels map[string]string) bool {
	_, isHeadless := labels[v1.IsHeadlessService]
	return !isHeadless
}
