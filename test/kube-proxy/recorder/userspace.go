//go:build userspace

// Mode userspace, which kube-proxy had up to 1.25.
package main

import (
	"fmt"
	"net"
	"reflect"
	"sort"
	"strings"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/api/v1/endpoints"
	"k8s.io/kubernetes/pkg/proxy"
	"k8s.io/kubernetes/pkg/proxy/userspace"
	utiliptables "k8s.io/kubernetes/pkg/util/iptables"
	iptablestest "k8s.io/kubernetes/pkg/util/iptables/testing"
	utilexec "k8s.io/utils/exec"
	netutils "k8s.io/utils/net"
)

// createProxier is what NewProxier calls once it has raised the limit of open files, which only root may do.
//
//go:linkname createProxier k8s.io/kubernetes/pkg/proxy/userspace.createProxier
func createProxier(balancer userspace.LoadBalancer, listen net.IP, iptables utiliptables.Interface, exec utilexec.Interface,
	host net.IP, ports userspace.PortAllocator, syncPeriod, minSyncPeriod, udpIdleTimeout time.Duration,
	makeSocket userspace.ProxySocketFunc) (*userspace.Proxier, error)

// socket stands for what the proxier listens with. Its port is only a name.
type socket struct {
	address net.TCPAddr
	serves  func(name string)
}

func (s *socket) Addr() net.Addr  { return &s.address }
func (s *socket) Close() error    { return nil }
func (s *socket) ListenPort() int { return s.address.Port }
func (s *socket) ProxyLoop(service proxy.ServicePortName, _ *userspace.ServiceInfo, _ userspace.LoadBalancer) {
	s.serves(service.String())
}

// program runs the proxier, and returns the rules that it leaves, and what it would listen on. Ports that it chose have the name
// of the Service port in their place.
func program(c *testCase, mode string) (string, error) {
	if mode != "userspace" {
		return "", fmt.Errorf("unknown mode %q", mode)
	}
	listen := netutils.ParseIPSloppy(c.config.BindAddress)
	iptables := iptablestest.NewFake()
	balancer := userspace.NewLoadBalancerRR()
	names := make(chan string, 1)
	var ports []string // the Service port of each proxy port, from 1 on
	makeSocket := func(protocol v1.Protocol, ip net.IP, port int) (userspace.ProxySocket, error) {
		if protocol == v1.ProtocolSCTP { // as newProxySocket does
			return nil, fmt.Errorf("SCTP is not supported for user space proxy")
		}
		if port != 0 { // a node port, which the proxier only keeps others from taking
			return &socket{address: net.TCPAddr{IP: ip, Port: port}}, nil
		}
		ports = append(ports, "")
		return &socket{address: net.TCPAddr{IP: ip, Port: len(ports)}, serves: func(name string) { names <- name }}, nil
	}
	// Where the proxier listens on all addresses, the node's own one stands for that of the machine that records.
	proxier, err := createProxier(balancer, listen, quotingIPTables{iptables}, nil, c.nodeIPs()[v1.IPv4Protocol], nil, time.Hour,
		time.Second, c.config.UDPIdleTimeout.Duration, makeSocket)
	if err != nil {
		return "", err
	}
	for _, set := range c.endpoints() {
		proxier.OnEndpointsAdd(set)
	}
	var listeners []string
	services := c.watchedServices()
	sort.Slice(services, func(i, j int) bool {
		return services[i].Namespace+"/"+services[i].Name < services[j].Namespace+"/"+services[j].Name
	})
	// A Service at a time, and no sync beside: merging is what both a first sync and a later one do.
	for _, service := range services {
		before := len(ports)
		merge(proxier, service, iptables)
		for range ports[before:] {
			name := <-names
			ports[portOf(proxier, name)-1] = name
			listeners = append(listeners, describe(c, proxier, balancer, name))
		}
	}
	return write(iptables, ports, listeners), nil
}

// merge makes the proxier take a Service, as one sync does.
func merge(proxier *userspace.Proxier, service *v1.Service, iptables *iptablestest.FakeIPTables) {
	proxier.OnServiceAdd(service)
	field(proxier, "initialized").SetInt(1)
	runner := field(proxier, "syncRunner").Elem().Interface()
	field(runner, "fn").Call(nil)
}

func serviceInfo(proxier *userspace.Proxier, name string) reflect.Value {
	infos := field(proxier, "serviceMap")
	for _, key := range infos.MapKeys() {
		if key.Interface().(proxy.ServicePortName).String() == name {
			return infos.MapIndex(key)
		}
	}
	panic("no Service port " + name)
}

func portOf(proxier *userspace.Proxier, name string) int {
	return int(field(serviceInfo(proxier, name).Interface(), "proxyPort").Int())
}

// describe says what the proxier does at the port of a Service port: "default/web:http TCP 0.0.0.0 ClientIP 10.0.0.1:80".
func describe(c *testCase, proxier *userspace.Proxier, balancer *userspace.LoadBalancerRR, name string) string {
	info := serviceInfo(proxier, name).Interface().(*userspace.ServiceInfo)
	protocol := field(info, "protocol").String()
	words := []string{name, protocol, c.config.BindAddress}
	namespace, rest, _ := strings.Cut(name, "/")
	service, port, _ := strings.Cut(rest, ":")
	spn := proxy.ServicePortName{NamespacedName: types.NamespacedName{Namespace: namespace, Name: service}, Port: port}
	found := map[string]bool{}
	for client := 1; client <= 200; client++ { // each a new one, so that each endpoint has its turn
		address := &net.TCPAddr{IP: net.IPv4(192, 0, 2, byte(client)), Port: 1}
		if endpoint, err := balancer.NextEndpoint(spn, address, false); err == nil {
			found[endpoint] = true
		}
	}
	// Without an endpoint there is nothing to choose, and nothing to wait for.
	if affinity := field(info, "sessionAffinityType").String(); affinity == string(v1.ServiceAffinityClientIP) && len(found) > 0 {
		words = append(words, affinity)
	}
	if protocol == string(v1.ProtocolUDP) && len(found) > 0 {
		words = append(words, fmt.Sprintf("%dms", info.Timeout.Milliseconds()))
	}
	var endpoints []string
	for endpoint := range found {
		endpoints = append(endpoints, endpoint)
	}
	sort.Strings(endpoints)
	return strings.Join(append(words, endpoints...), " ")
}

// endpoints makes the Endpoints that the controller makes beside the EndpointSlices: this mode reads them.
func (c *testCase) endpoints() (sets []*v1.Endpoints) {
	byService := map[string]*v1.Endpoints{}
	for _, slice := range c.watchedSlices() {
		if slice.AddressType != discovery.AddressTypeIPv4 {
			continue
		}
		key := slice.Namespace + "/" + slice.Labels[discovery.LabelServiceName]
		set := byService[key]
		if set == nil {
			set = &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: slice.Namespace, Name: slice.Labels[discovery.LabelServiceName]}}
			byService[key] = set
			sets = append(sets, set)
		}
		var ports []v1.EndpointPort
		for _, port := range slice.Ports {
			if port.Port != nil {
				ports = append(ports, v1.EndpointPort{Name: *port.Name, Port: *port.Port, Protocol: *port.Protocol})
			}
		}
		subset := v1.EndpointSubset{Ports: ports}
		for _, endpoint := range slice.Endpoints {
			address := v1.EndpointAddress{IP: endpoint.Addresses[0]}
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				subset.Addresses = append(subset.Addresses, address)
			} else {
				subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
			}
		}
		set.Subsets = append(set.Subsets, subset)
	}
	for _, set := range sets {
		set.Subsets = endpoints.RepackSubsets(set.Subsets)
	}
	return sets
}

// write gives the recording: the rules of a chain in the order of the Service ports' names, which in kube-proxy is that of a map.
func write(iptables *iptablestest.FakeIPTables, ports, listeners []string) string {
	lines := []string{"==> iptables.restore <=="}
	for _, table := range []string{"filter", "nat"} {
		var chains, rules []string
		found, err := iptables.Dump.GetTable(utiliptables.Table(table))
		must(err)
		sort.Slice(found.Chains, func(i, j int) bool { return found.Chains[i].Name < found.Chains[j].Name })
		for _, chain := range found.Chains {
			if strings.HasPrefix(string(chain.Name), "KUBE-") {
				chains = append(chains, ":"+string(chain.Name)+" - [0:0]")
				sort.SliceStable(chain.Rules, func(i, j int) bool { return nameIn(chain.Rules[i].Raw) < nameIn(chain.Rules[j].Raw) })
			}
			for _, rule := range chain.Rules {
				rules = append(rules, namePort(rule.Raw, string(chain.Name), ports))
			}
		}
		lines = append(append(append(append(lines, "*"+table), chains...), rules...), "COMMIT")
	}
	sort.Strings(listeners)
	text := strings.Join(lines, "\n") + "\n"
	if len(listeners) > 0 {
		text += "\n==> balancer <==\n" + strings.Join(listeners, "\n") + "\n"
	}
	return text
}

func nameIn(rule string) string {
	_, after, _ := strings.Cut(rule, "--comment ")
	name, _, _ := strings.Cut(after, " ")
	return name
}

// namePort replaces the proxy port of a rule.
func namePort(rule, chain string, ports []string) string {
	words := strings.Split(rule, " ")
	for i, word := range words {
		before, port, isAt := "", word, false
		switch {
		case i > 0 && words[i-1] == "--to-ports", i > 0 && words[i-1] == "--dport" && chain == "KUBE-NODEPORT-NON-LOCAL":
			isAt = true
		case i > 0 && words[i-1] == "--to-destination":
			before, port, isAt = strings.Cut(word, ":")
			before += ":"
		}
		if isAt {
			var number int
			_, err := fmt.Sscan(port, &number)
			must(err)
			words[i] = before + "<" + ports[number-1] + ">"
		}
	}
	return strings.Join(words, " ")
}

// quotingIPTables quotes the arguments of single rules that hold blanks, and refuses addresses of IPv6 as iptables does.
type quotingIPTables struct{ *iptablestest.FakeIPTables }

func (q quotingIPTables) EnsureRule(position utiliptables.RulePosition, table utiliptables.Table, chain utiliptables.Chain, args ...string) (bool, error) {
	quoted := make([]string, len(args))
	for i, arg := range args {
		if netutils.IsIPv6String(arg) {
			return false, fmt.Errorf("host/network `%s' not found", arg)
		}
		quoted[i] = arg
		if strings.Contains(arg, " ") {
			quoted[i] = `"` + arg + `"`
		}
	}
	return q.FakeIPTables.EnsureRule(position, table, chain, quoted...)
}

func stubNft() {}

func withoutPanic(ports []discovery.EndpointPort) []discovery.EndpointPort { return ports }

func field(object any, name string) reflect.Value {
	found := reflect.ValueOf(object).Elem().FieldByName(name)
	return reflect.NewAt(found.Type(), unsafe.Pointer(found.UnsafeAddr())).Elem()
}
