package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kpconfig "k8s.io/kube-proxy/config/v1alpha1"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	discoverydefaults "k8s.io/kubernetes/pkg/apis/discovery/v1"
	configscheme "k8s.io/kubernetes/pkg/proxy/apis/config/scheme"
	utilnode "k8s.io/kubernetes/pkg/util/node"
	netutils "k8s.io/utils/net"
	"sigs.k8s.io/yaml"
)

// testCase is the input of kube-proxy on one node.
type testCase struct {
	config       *kpconfig.KubeProxyConfiguration
	node         *v1.Node
	links        []link
	services     []*v1.Service
	slices       []*discovery.EndpointSlice
	serviceCIDRs []string // sorted; kube-proxy keeps them in a set
}

// link is an interface of the node, as "ip -j addr" prints it.
type link struct {
	Name      string `json:"ifname"`
	Addresses []struct {
		Local     string `json:"local"`
		PrefixLen int    `json:"prefixlen"`
	} `json:"addr_info"`
}

var families = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}

// loadCase reads a case's folder.
func loadCase(folder string) (*testCase, error) {
	c := &testCase{config: &kpconfig.KubeProxyConfiguration{}, node: &v1.Node{}}
	for name, into := range map[string]any{"config.yaml": c.config, "node.yaml": c.node, "ip-addr.json": &c.links} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil {
			return nil, err
		}
	}
	// Defaulting sets no mode on Linux in the releases so far: an empty one stays.
	configscheme.Scheme.Default(c.config)
	cluster, err := os.ReadFile(filepath.Join(folder, "cluster.yaml"))
	if err != nil {
		return nil, err
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(cluster)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			slices.Sort(c.serviceCIDRs)
			c.serviceCIDRs = slices.Compact(c.serviceCIDRs)
			return c, nil
		}
		if err == nil {
			document, err = yaml.YAMLToJSON(document)
		}
		if err == nil {
			err = c.add(document)
		}
		if err != nil {
			return nil, err
		}
	}
}

// add takes an object, or each object of a List, with the defaults that an API server sets.
func (c *testCase) add(document []byte) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return err
	}
	switch head.Kind {
	case "Service":
		service := &v1.Service{}
		if err := json.Unmarshal(document, service); err != nil {
			return err
		}
		if service.Namespace == "" {
			service.Namespace = metav1.NamespaceDefault
		}
		corev1defaults.SetObjectDefaults_Service(service)
		c.services = append(c.services, service)
	case "EndpointSlice":
		slice := &discovery.EndpointSlice{}
		if err := json.Unmarshal(document, slice); err != nil {
			return err
		}
		if slice.Namespace == "" {
			slice.Namespace = metav1.NamespaceDefault
		}
		discoverydefaults.SetObjectDefaults_EndpointSlice(slice)
		slice.Ports = withoutPanic(slice.Ports)
		c.slices = append(c.slices, slice)
	case "ServiceCIDR": // read by hand: networking/v1 has had the type only since 1.33
		var object struct{ Spec struct{ CIDRs []string } }
		if err := json.Unmarshal(document, &object); err != nil {
			return err
		}
		c.serviceCIDRs = append(c.serviceCIDRs, object.Spec.CIDRs...)
	default:
		for _, item := range head.Items {
			if err := c.add(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// watchedServices are the Services that kube-proxy's informer hands on.
func (c *testCase) watchedServices() (watched []*v1.Service) {
	for _, service := range c.services {
		if service.Spec.ClusterIP != v1.ClusterIPNone && watchesService(service.Labels) {
			watched = append(watched, service)
		}
	}
	return watched
}

// watchedSlices are the EndpointSlices that kube-proxy's informer hands on.
func (c *testCase) watchedSlices() (watched []*discovery.EndpointSlice) {
	for _, slice := range c.slices {
		if watchesSlice(slice.Labels) {
			watched = append(watched, slice)
		}
	}
	return watched
}

// nodeIPs are the node's own addresses, as in detectNodeIPs of kube-proxy's command: bindAddress, else the Node's, else
// loopback.
func (c *testCase) nodeIPs() map[v1.IPFamily]net.IP {
	found := map[v1.IPFamily]net.IP{v1.IPv4Protocol: net.IPv4(127, 0, 0, 1), v1.IPv6Protocol: net.IPv6loopback}
	addresses, _ := utilnode.GetNodeHostIPs(c.node)
	if bind := netutils.ParseIPSloppy(c.config.BindAddress); bind != nil && !bind.IsUnspecified() {
		addresses = append(addresses, bind)
	}
	for _, ip := range addresses {
		if netutils.IsIPv4(ip) {
			found[v1.IPv4Protocol] = ip
		} else {
			found[v1.IPv6Protocol] = ip
		}
	}
	return found
}

// nodePortAddresses are the CIDRs that kube-proxy's command makes of nodePortAddresses: the default of mode nftables is
// primary, and the words become CIDRs. A family of which the node has no address of its own gets none for primary.
func (c *testCase) nodePortAddresses(mode string) (cidrs []string) {
	words := c.config.NodePortAddresses
	if mode == "nftables" && len(words) == 0 {
		words = []string{"primary"}
	}
	for _, word := range words {
		switch word {
		case "primary":
			for _, family := range families {
				if ip := c.nodeIPs()[family]; !ip.IsLoopback() {
					cidrs = append(cidrs, fmt.Sprintf("%s/%d", ip, bitsOf(family)))
				}
			}
		case "localhost":
			cidrs = append(cidrs, "127.0.0.0/8", "::1/128")
		case "all":
			cidrs = append(cidrs, "0.0.0.0/0", "::/0")
		default:
			cidrs = append(cidrs, word)
		}
	}
	return cidrs
}

// localCIDR is the network of a family whose traffic is local, as in getLocalDetectors of kube-proxy's command: the first
// of clusterCIDR or of the Node's podCIDRs.
func (c *testCase) localCIDR(family v1.IPFamily) string {
	cidrs := strings.Split(c.config.ClusterCIDR, ",")
	if c.config.DetectLocalMode == "NodeCIDR" {
		cidrs = c.node.Spec.PodCIDRs
	}
	for _, text := range cidrs {
		if _, cidr, err := netutils.ParseCIDRSloppy(text); err == nil && netutils.IsIPv6CIDR(cidr) == (family == v1.IPv6Protocol) {
			return cidr.String()
		}
	}
	return ""
}

func bitsOf(family v1.IPFamily) int {
	if family == v1.IPv6Protocol {
		return 128
	}
	return 32
}
