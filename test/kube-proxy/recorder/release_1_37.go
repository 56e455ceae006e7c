//go:build !up_to_1_36 && !userspace

// What differs between releases of kube-proxy's packages: 1.37 and later.
package main

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	kpconfig "k8s.io/kube-proxy/config/v1alpha1"
	kubeproxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"
	configscheme "k8s.io/kubernetes/pkg/proxy/apis/config/scheme"
	"k8s.io/kubernetes/pkg/proxy/iptables"
	"k8s.io/kubernetes/pkg/proxy/ipvs"
	"k8s.io/kubernetes/pkg/proxy/nftables"
	"sigs.k8s.io/knftables"
)

// internalConfig is the configuration as the constructors take it, converted as kube-proxy's command does.
func internalConfig(c *testCase, mode string) *kubeproxyconfig.KubeProxyConfiguration {
	external := c.config.DeepCopy()
	external.Mode = kpconfig.ProxyMode(mode)
	internal := &kubeproxyconfig.KubeProxyConfiguration{}
	must(configscheme.Scheme.Convert(external, internal, nil))
	internal.NodePortAddresses = c.nodePortAddresses(mode)
	return internal
}

func newIPTables(c *testCase, family v1.IPFamily, kernel fakes) (*iptables.Proxier, error) {
	return iptables.NewProxier(background(), internalConfig(c, "iptables"), family, quotingIPTables{kernel.iptables}, kernel.sysctl,
		localDetector(c, family), c.node.Name, c.nodeIPs()[family], nil, nil, false)
}

func newIPVS(c *testCase, family v1.IPFamily, kernel fakes) (*ipvs.Proxier, error) {
	return ipvs.NewProxier(background(), internalConfig(c, "ipvs"), family, quotingIPTables{kernel.iptables}, kernel.ipvs, kernel.ipset,
		kernel.sysctl, localDetector(c, family), c.node.Name, c.nodeIPs()[family], nil, nil, false)
}

func newNFTables(c *testCase, family v1.IPFamily) (*nftables.Proxier, error) {
	gates := byDefault.DeepCopy()
	must(gates.SetFromMap(c.config.FeatureGates))
	must(utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{localhostGate: gates.Enabled(localhostGate)}))
	return nftables.NewProxier(background(), internalConfig(c, "nftables"), family, localDetector(c, family), c.node.Name,
		c.nodeIPs()[family], nil, nil, false)
}

// The logger drops what it is given.
func background() context.Context { return klog.NewContext(context.Background(), klog.Logger{}) }

// Since 1.37 kube-proxy takes it that iptables has --random-fully.
func withRandomFully(*fakeIPTables) {}

func countersOf(table *knftables.FakeTable) map[string]*knftables.FakeCounter { return table.Counters }

// byDefault are the gates before a case sets some: a set one stays set.
var byDefault = utilfeature.DefaultMutableFeatureGate.DeepCopy()

const localhostGate = "KubeProxyNFTablesLocalhostNodePorts"

// noListener is a listener on nothing.
type noListener struct{ net.Listener }

func (noListener) Close() error { return nil }

// fakeListeners keeps kube-proxy from listening for node ports on localhost: it finds that it listens there already.
func fakeListeners(proxier *nftables.Proxier, c *testCase) {
	listeners := listenersField(proxier)
	if !listeners.IsValid() {
		return
	}
	for _, service := range c.services {
		for _, port := range service.Spec.Ports {
			listener := reflect.New(listeners.Type().Elem().Elem())
			setField(listener.Interface(), "listener", net.Listener(noListener{}))
			setField(listener.Interface(), "cancel", context.CancelFunc(func() {}))
			listeners.SetMapIndex(reflect.ValueOf(fmt.Sprintf("%s/%d", port.Protocol, port.NodePort)), listener)
		}
	}
}

// listenersOf says where kube-proxy itself listens, and to which endpoints it passes connections on.
func listenersOf(proxier any, family v1.IPFamily) (lines []string) {
	listeners := listenersField(proxier.(*nftables.Proxier))
	if !listeners.IsValid() {
		return nil
	}
	loopback := map[v1.IPFamily]string{v1.IPv4Protocol: "127.0.0.1", v1.IPv6Protocol: "::1"}[family]
	for _, key := range listeners.MapKeys() {
		listener := listeners.MapIndex(key).Elem()
		protocol, port, _ := strings.Cut(key.String(), "/")
		var endpoints []string
		for i := range listener.FieldByName("endpoints").Len() {
			endpoints = append(endpoints, listener.FieldByName("endpoints").Index(i).String())
		}
		sort.Strings(endpoints)
		lines = append(lines, fmt.Sprintf("%s %s to %s", strings.ToLower(protocol), net.JoinHostPort(loopback, port), strings.Join(endpoints, " ")))
	}
	return lines
}

// listenersField is the map of listeners, invalid without the feature gate.
func listenersField(proxier *nftables.Proxier) reflect.Value {
	localhost := field(proxier, "localhostNodePortProxy")
	if localhost.IsNil() {
		return reflect.Value{}
	}
	return field(localhost.Interface(), "active")
}
