//go:build !userspace

package known

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
)

// As init of cmd/kube-proxy/app does.
func init() {
	gates := utilfeature.DefaultMutableFeatureGate
	for _, err := range []error{metricsfeatures.AddFeatureGates(gates), logsapi.AddFeatureGates(gates)} {
		if err != nil {
			panic(err)
		}
	}
}
