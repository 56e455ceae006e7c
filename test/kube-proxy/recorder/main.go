// Command recorder runs kube-proxy's own proxiers on cases, and writes what they program as text.
//
//	recorder [-modes MODE,…] [-runs N] OUT CASE…
//
// A case is a folder with cluster.yaml (Services, EndpointSlices, ServiceCIDRs), node.yaml, config.yaml (a
// KubeProxyConfiguration) and ip-addr.json (what "ip -j addr" prints on the node). Its state goes to OUT/CASE/MODE.txt, for
// the mode that the configuration names, or if it names none, for each of -modes.
//
// Where kube-proxy walks through a map, its result can differ from run to run. A case is recorded only if all runs agree;
// otherwise the recorder prints "unstable: CASE MODE" and writes nothing.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/klog/v2"
)

func main() {
	modes := flag.String("modes", "iptables,ipvs,nftables", "modes to record")
	runs := flag.Int("runs", 30, "how often each case is run")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: recorder [-modes MODE,…] [-runs N] OUT CASE…")
		os.Exit(2)
	}
	silenceLogs()
	stubNft()
	out := flag.Arg(0)
	for _, folder := range flag.Args()[1:] {
		c, err := loadCase(folder)
		if err == nil {
			err = record(c, filepath.Join(out, filepath.Base(folder)), strings.Split(*modes, ","), *runs)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", folder, err)
			os.Exit(1)
		}
	}
}

// record writes the state of a case in each of its modes.
func record(c *testCase, out string, modes []string, runs int) error {
	must(os.MkdirAll(out, 0o755))
	for _, mode := range modes {
		if c.config.Mode != "" && mode != string(c.config.Mode) {
			continue
		}
		state, err := program(c, mode)
		if err != nil {
			return err
		}
		if !isStable(c, mode, state, runs-1) {
			fmt.Printf("unstable: %s %s\n", filepath.Base(out), mode)
			continue
		}
		must(os.WriteFile(filepath.Join(out, mode+".txt"), []byte(state), 0o644))
	}
	return nil
}

// isStable says whether further runs leave the same state.
func isStable(c *testCase, mode, state string, runs int) bool {
	for range runs {
		if again, err := program(c, mode); err != nil || again != state {
			return false
		}
	}
	return true
}

// silenceLogs drops what kube-proxy logs of the cases: it warns of much of what they are about.
func silenceLogs() {
	flags := flag.NewFlagSet("klog", flag.ExitOnError)
	klog.InitFlags(flags)
	must(flags.Parse([]string{"-logtostderr=false", "-alsologtostderr=false", "-stderrthreshold=FATAL"}))
	klog.SetOutput(io.Discard)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
