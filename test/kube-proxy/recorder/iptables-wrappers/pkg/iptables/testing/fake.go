// Package testing has an iptables that keeps its rules as text.
package testing

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/iptables-wrappers/pkg/iptables"
)

// Chains are the rules of a table by chain, each as "-A CHAIN …".
type Chains map[iptables.Chain][]string

// Fake has the tables that kube-proxy writes to.
type Fake struct {
	Tables map[iptables.Table]Chains
	family iptables.Protocol
}

var _ iptables.Interface = &Fake{}

func NewFake(family iptables.Protocol) *Fake {
	return &Fake{family: family, Tables: map[iptables.Table]Chains{
		iptables.TableNAT:    {"PREROUTING": nil, "INPUT": nil, "OUTPUT": nil, "POSTROUTING": nil},
		iptables.TableFilter: {"INPUT": nil, "FORWARD": nil, "OUTPUT": nil},
		iptables.TableMangle: {},
	}}
}

func (f *Fake) Protocol() iptables.Protocol { return f.family }
func (f *Fake) IsIPv6() bool                { return f.family == iptables.ProtocolIPv6 }

func (f *Fake) EnsureChain(_ context.Context, table iptables.Table, chain iptables.Chain) (bool, error) {
	rules, existed := f.Tables[table][chain]
	f.Tables[table][chain] = rules
	return existed, nil
}

func (f *Fake) FlushChain(_ context.Context, table iptables.Table, chain iptables.Chain) error {
	f.Tables[table][chain] = nil
	return nil
}

func (f *Fake) DeleteChain(_ context.Context, table iptables.Table, chain iptables.Chain) error {
	delete(f.Tables[table], chain)
	return nil
}

func ruleOf(chain iptables.Chain, args []string) string {
	return fmt.Sprintf("-A %s %s", chain, strings.Join(args, " "))
}

func (f *Fake) EnsureRule(_ context.Context, at iptables.RulePosition, table iptables.Table, chain iptables.Chain, args ...string) (bool, error) {
	rule, rules := ruleOf(chain, args), f.Tables[table][chain]
	if slices.Contains(rules, rule) {
		return true, nil
	}
	position := len(rules)
	if at == iptables.Prepend {
		position = 0
	}
	f.Tables[table][chain] = slices.Insert(rules, position, rule)
	return false, nil
}

func (f *Fake) DeleteRule(_ context.Context, table iptables.Table, chain iptables.Chain, args ...string) error {
	rule := ruleOf(chain, args)
	f.Tables[table][chain] = slices.DeleteFunc(f.Tables[table][chain], func(each string) bool { return each == rule })
	return nil
}

func (f *Fake) SaveInto(_ context.Context, table iptables.Table, into *bytes.Buffer) error {
	chains := slices.Sorted(maps.Keys(f.Tables[table]))
	fmt.Fprintf(into, "*%s\n", table)
	for _, chain := range chains {
		fmt.Fprintln(into, iptables.MakeChainLine(chain))
	}
	for _, chain := range chains {
		for _, rule := range f.Tables[table][chain] {
			fmt.Fprintln(into, rule)
		}
	}
	fmt.Fprintln(into, "COMMIT")
	return nil
}

// Restore does what iptables-restore --noflush does: a table changes at its COMMIT, as a whole or not at all.
func (f *Fake) Restore(_ context.Context, data []byte) error {
	var table iptables.Table
	var chains Chains
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		chain := iptables.Chain(strings.TrimPrefix(word, ":"))
		switch {
		case word == "" || word[0] == '#':
		case word[0] == '*':
			table = iptables.Table(word[1:])
			chains = maps.Clone(f.Tables[table])
		case word[0] == ':':
			chains[chain] = nil
		case word == "-X":
			delete(chains, iptables.Chain(rest))
		case word == "-A":
			name, _, _ := strings.Cut(rest, " ")
			chains[iptables.Chain(name)] = append(slices.Clone(chains[iptables.Chain(name)]), line)
		case word == "COMMIT":
			if err := checkJumps(chains); err != nil {
				return fmt.Errorf("table %s: %w", table, err)
			}
			f.Tables[table] = chains
		default:
			return fmt.Errorf("line %q", line)
		}
	}
	return nil
}

// checkJumps refuses a jump to a chain of kube-proxy's that is not there.
func checkJumps(chains Chains) error {
	for _, rules := range chains {
		for _, rule := range rules {
			words := strings.Fields(rule)
			at := slices.Index(words, "-j")
			if at < 0 || at == len(words)-1 || !strings.HasPrefix(words[at+1], "KUBE-") {
				continue
			}
			if _, ok := chains[iptables.Chain(words[at+1])]; !ok {
				return fmt.Errorf("no chain %s", words[at+1])
			}
		}
	}
	return nil
}

func (f *Fake) Monitor(context.Context, iptables.Chain, []iptables.Table, func(), time.Duration) {}
