//go:build !userspace

// Command start says why kube-proxy does not start with the configuration on its standard input; nothing if it does. It does
// what kube-proxy's command does until it makes its proxiers (loadConfig, platformApplyDefaults, Complete, Validate and
// the command itself, of cmd/kube-proxy/app). Feature gates stay set, so it takes one configuration.
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	kubeproxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"
	configscheme "k8s.io/kubernetes/pkg/proxy/apis/config/scheme"
	configv1alpha1 "k8s.io/kubernetes/pkg/proxy/apis/config/v1alpha1"
	"k8s.io/kubernetes/pkg/proxy/apis/config/validation"
	"kpc.invalid/recorder/known"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	must(err)
	if err := start(text); err != nil {
		fmt.Println(err)
	}
}

func start(text []byte) error {
	config, err := load(text)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	if config.Mode == "" {
		config.Mode = kubeproxyconfig.ProxyModeIPTables
	}
	if config.DetectLocalMode == "" {
		config.DetectLocalMode = kubeproxyconfig.LocalModeClusterCIDR
	}
	if err := known.Gates.SetFromMap(config.FeatureGates); err != nil {
		return fmt.Errorf("gates: %w", err)
	}
	if err := logsapi.ValidateAndApplyAsField(&config.Logging, utilfeature.DefaultFeatureGate, field.NewPath("logging")); err != nil {
		return fmt.Errorf("logging: %w", err)
	}
	return validation.Validate(config).ToAggregate()
}

// load decodes strictly, and leniently what is wrong only strictly: unknown fields, and fields that are there twice.
func load(text []byte) (*kubeproxyconfig.KubeProxyConfiguration, error) {
	object, _, err := configscheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil && runtime.IsStrictDecodingError(err) {
		scheme := runtime.NewScheme()
		must(kubeproxyconfig.AddToScheme(scheme))
		must(configv1alpha1.AddToScheme(scheme))
		codecs := serializer.NewCodecFactory(scheme, serializer.DisableStrict)
		object, _, err = codecs.UniversalDecoder().Decode(text, nil, nil)
	}
	if err != nil {
		return nil, err
	}
	config, ok := object.(*kubeproxyconfig.KubeProxyConfiguration)
	if !ok {
		return nil, fmt.Errorf("unexpected type %T", object)
	}
	return config, nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
