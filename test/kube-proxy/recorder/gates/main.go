// Command gates prints the feature gates that a kube-proxy knows, as JSON:
//
//	{ "Gate": { "stage": "BETA", "default": true, "locked": false, "needs": ["Other"] } }
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/component-base/featuregate"
	"kpc.invalid/recorder/known"
)

// gate is what a release says of a feature gate.
type gate struct {
	Stage   string   `json:"stage"` // ALPHA, BETA, DEPRECATED, or nothing for one that is generally available
	Default bool     `json:"default"`
	Locked  bool     `json:"locked"`
	Needs   []string `json:"needs"` // gates without which it cannot be on
}

// dependent is what gates have been since 1.35.
type dependent interface {
	Dependencies() map[featuregate.Feature][]featuregate.Feature
}

func main() {
	gates := map[featuregate.Feature]*gate{}
	for name, spec := range known.Gates.GetAll() {
		gates[name] = &gate{string(spec.PreRelease), spec.Default, spec.LockToDefault, []string{}}
	}
	if with, ok := known.Gates.(dependent); ok {
		for name, needs := range with.Dependencies() {
			for _, need := range needs {
				gates[name].Needs = append(gates[name].Needs, string(need))
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(gates); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
