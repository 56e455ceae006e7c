// Package known registers the feature gates that a kube-proxy knows.
package known

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/kubernetes/pkg/features"
)

// Gates are those of kube-proxy's packages, and those that its command adds.
var Gates featuregate.MutableFeatureGate = utilfeature.DefaultMutableFeatureGate
