//go:build !userspace

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	sysctltest "k8s.io/component-helpers/node/util/sysctl/testing"
	"k8s.io/kubernetes/pkg/proxy"
	"k8s.io/kubernetes/pkg/proxy/conntrack"
	"k8s.io/kubernetes/pkg/proxy/healthcheck"
	ipsettest "k8s.io/kubernetes/pkg/proxy/ipvs/ipset/testing"
	ipvstest "k8s.io/kubernetes/pkg/proxy/ipvs/testing"
	ipvsutiltest "k8s.io/kubernetes/pkg/proxy/ipvs/util/testing"
	proxyutiltest "k8s.io/kubernetes/pkg/proxy/util/testing"
	netutils "k8s.io/utils/net"
	"sigs.k8s.io/knftables"
)

// fakes stand for a node's kernel, one for each thing that a proxier programs. What both families share is the same value.
type fakes struct {
	iptables *fakeIPTables
	nftables *knftables.Fake
	ipset    *ipsettest.FakeIPSet
	ipvs     *timeoutRecorder
	netlink  *ipvstest.FakeNetlinkHandle
	sysctl   *sysctltest.Fake
	network  *proxyutiltest.FakeNetwork
}

// program runs the proxiers of both families in a mode, and returns what they leave in the kernel: see write.go.
func program(c *testCase, mode string) (string, error) {
	sysctl, before := newSysctl(c)
	ipvs := &timeoutRecorder{FakeIPVS: ipvsutiltest.NewFake()}
	state := newState()
	for _, family := range families {
		kernel := newFakes(c, family)
		kernel.sysctl, kernel.ipvs = sysctl, ipvs
		proxier, err := newProxier(c, mode, family, kernel)
		if err != nil {
			return "", err
		}
		sync(c, proxier)
		switch mode {
		case "nftables":
			state.addNftables(family, kernel.nftables)
			state.addListeners(listenersOf(proxier, family))
		case "ipvs":
			state.addIPSets(kernel.ipset)
			state.addAddresses(kernel.netlink)
			fallthrough
		default:
			state.addIPTables(mode, family, kernel.iptables)
		}
	}
	if mode == "ipvs" {
		state.addIPVS(ipvs)
	}
	for name, value := range sysctl.Settings {
		if value != before[name] {
			state.add("sysctl.conf", fmt.Sprintf("%s = %d", strings.ReplaceAll(name, "/", "."), value))
		}
	}
	return state.String(), nil
}

// sync gives the proxier what the informers would, which makes it write its rules.
func sync(c *testCase, proxier proxy.Provider) {
	for _, service := range c.watchedServices() {
		proxier.OnServiceAdd(service)
	}
	for _, slice := range c.watchedSlices() {
		proxier.OnEndpointSliceAdd(slice)
	}
	proxier.OnServiceCIDRsChanged(c.serviceCIDRs)
	setNode(proxier, c.node)
	proxier.OnServiceSynced()
	proxier.OnEndpointSlicesSynced()
}

func newProxier(c *testCase, mode string, family v1.IPFamily, kernel fakes) (proxy.Provider, error) {
	switch mode {
	case "iptables":
		proxier, err := newIPTables(c, family, kernel)
		if err != nil {
			return nil, err
		}
		setField(proxier, "networkInterfacer", kernel.network)
		setField(proxier, "serviceHealthServer", healthcheck.NewFakeServiceHealthServer())
		setField(proxier, "conntrack", conntrack.NewFake())
		clearField(proxier, "nfacct") // counters that depend on the machine's kernel
		return proxier, nil
	case "ipvs":
		proxier, err := newIPVS(c, family, kernel)
		if err != nil {
			return nil, err
		}
		setField(proxier, "netlinkHandle", kernel.netlink)
		setField(proxier, "networkInterfacer", kernel.network)
		setField(proxier, "serviceHealthServer", healthcheck.NewFakeServiceHealthServer())
		setField(proxier, "conntrack", conntrack.NewFake())
		return proxier, nil
	case "nftables":
		proxier, err := newNFTables(c, family)
		if err != nil {
			return nil, err
		}
		setField(proxier, "nftables", knftables.Interface(kernel.nftables))
		setField(proxier, "networkInterfacer", kernel.network)
		setField(proxier, "serviceHealthServer", healthcheck.NewFakeServiceHealthServer())
		setField(proxier, "conntrack", conntrack.NewFake())
		fakeListeners(proxier, c)
		return proxier, nil
	}
	return nil, fmt.Errorf("unknown mode %q", mode)
}

func newFakes(c *testCase, family v1.IPFamily) fakes {
	isIPv6 := family == v1.IPv6Protocol
	kernel := fakes{
		iptables: newFakeIPTables(family),
		nftables: knftables.NewFake(knftables.IPv4Family, "kube-proxy"),
		ipset:    ipsettest.NewFake("7.17"),
		netlink:  ipvstest.NewFakeNetlinkHandle(isIPv6),
		network:  proxyutiltest.NewFakeNetwork(),
	}
	if isIPv6 {
		kernel.nftables = knftables.NewFake(knftables.IPv6Family, "kube-proxy")
	}
	withRandomFully(kernel.iptables)
	for i, link := range c.links {
		var local []string
		var addresses []net.Addr
		for _, address := range link.Addresses {
			ip := netutils.ParseIPSloppy(address.Local)
			bits := 128
			if netutils.IsIPv4(ip) {
				bits = 32
			}
			local = append(local, address.Local)
			addresses = append(addresses, &net.IPNet{IP: ip, Mask: net.CIDRMask(address.PrefixLen, bits)})
		}
		kernel.network.AddInterfaceAddr(&net.Interface{Index: i + 1, Name: link.Name}, addresses)
		must(kernel.netlink.SetLocalAddresses(link.Name, local...))
	}
	return kernel
}

// newSysctl gives sysctls that are all 0, and a copy of them, so that what kube-proxy sets can be seen. Liberal TCP tracking
// is set before the proxier is made: kube-proxy's command does that, and the proxier looks at it.
func newSysctl(c *testCase) (*sysctltest.Fake, map[string]int) {
	sysctl := sysctltest.NewFake()
	before := map[string]int{}
	for _, name := range []string{
		"net/ipv4/ip_forward", "net/ipv4/conf/all/arp_ignore", "net/ipv4/conf/all/arp_announce",
		"net/ipv4/conf/all/route_localnet", "net/ipv4/vs/conntrack", "net/ipv4/vs/conn_reuse_mode",
		"net/ipv4/vs/expire_nodest_conn", "net/ipv4/vs/expire_quiescent_template",
		"net/netfilter/nf_conntrack_tcp_be_liberal",
	} {
		sysctl.Settings[name] = 0
		before[name] = 0
	}
	if c.config.Conntrack.TCPBeLiberal {
		sysctl.Settings["net/netfilter/nf_conntrack_tcp_be_liberal"] = 1
		before["net/netfilter/nf_conntrack_tcp_be_liberal"] = 1
	}
	return sysctl, before
}

// stubNft puts an nft first in PATH that does nothing: the constructor of mode nftables asks for its version, and for a dry
// run. The rules go to knftables' Fake.
func stubNft() {
	folder, err := os.MkdirTemp("", "recorder")
	must(err)
	must(os.WriteFile(filepath.Join(folder, "nft"), []byte("#!/bin/sh\necho 'nftables v1.0.9 (stub)'\n"), 0o755))
	must(os.Setenv("PATH", folder+":"+os.Getenv("PATH")))
	must(os.Setenv("KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK", "1"))
}

// quoted puts quotes around arguments with blanks.
func quoted(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = arg
		if strings.Contains(arg, " ") {
			out[i] = `"` + arg + `"`
		}
	}
	return out
}

// timeoutRecorder keeps the timeouts that kube-proxy sets, which the fake drops.
type timeoutRecorder struct {
	*ipvsutiltest.FakeIPVS
	timeouts []int // of TCP, of TCP after FIN, of UDP, in seconds
}

func (r *timeoutRecorder) ConfigureTimeouts(tcp, tcpFin, udp time.Duration) error {
	r.timeouts = []int{int(tcp.Seconds()), int(tcpFin.Seconds()), int(udp.Seconds())}
	return nil
}

// setField sets a field of the proxier that its package does not export; a test inside that package would do the same.
func setField(proxier any, name string, value any) { field(proxier, name).Set(reflect.ValueOf(value)) }

// clearField does so with nothing, if this release has the field.
func clearField(proxier any, name string) {
	if reflect.ValueOf(proxier).Elem().FieldByName(name).IsValid() {
		field(proxier, name).SetZero()
	}
}

func field(object any, name string) reflect.Value {
	found := reflect.ValueOf(object).Elem().FieldByName(name)
	return reflect.NewAt(found.Type(), unsafe.Pointer(found.UnsafeAddr())).Elem()
}
