// Package iptables stands in for sigs.k8s.io/iptables-wrappers/pkg/iptables, which the module proxy does not have: kube-proxy's
// packages of 1.38 import it. It declares the names that they use, and runs nothing.
package iptables

import (
	"bytes"
	"context"
	"errors"
	"time"

	"k8s.io/utils/set"
)

type Table string

const (
	TableNAT    Table = "nat"
	TableFilter Table = "filter"
	TableMangle Table = "mangle"
)

type Chain string

const (
	ChainPrerouting  Chain = "PREROUTING"
	ChainInput       Chain = "INPUT"
	ChainForward     Chain = "FORWARD"
	ChainOutput      Chain = "OUTPUT"
	ChainPostrouting Chain = "POSTROUTING"
)

type Protocol string

const (
	ProtocolIPv4 Protocol = "IPv4"
	ProtocolIPv6 Protocol = "IPv6"
)

type RulePosition string

const (
	Prepend RulePosition = "-I"
	Append  RulePosition = "-A"
)

// Mode says which iptables of a host is meant.
type Mode int

const DetectHostMode Mode = 0

type Interface interface {
	Protocol() Protocol
	IsIPv6() bool
	EnsureChain(ctx context.Context, table Table, chain Chain) (existed bool, err error)
	FlushChain(ctx context.Context, table Table, chain Chain) error
	DeleteChain(ctx context.Context, table Table, chain Chain) error
	EnsureRule(ctx context.Context, at RulePosition, table Table, chain Chain, args ...string) (existed bool, err error)
	DeleteRule(ctx context.Context, table Table, chain Chain, args ...string) error
	SaveInto(ctx context.Context, table Table, into *bytes.Buffer) error
	Restore(ctx context.Context, data []byte) error
	Monitor(ctx context.Context, canary Chain, tables []Table, reload func(), interval time.Duration)
}

var errNoHost = errors.New("this package runs no iptables")

func New(context.Context, Protocol, Mode) (Interface, error) { return nil, errNoHost }

func NewBestEffort(context.Context, Mode) map[Protocol]Interface { return nil }

func IsNotFoundError(error) bool { return false }

// ParseError is never made here: a restore is read by testing.Fake.
type ParseError interface {
	error
	Line() int
}

type LineData struct {
	Line int
	Data string
}

func ExtractLines([]byte, int, int) []LineData { return nil }

func MakeChainLine(chain Chain) string { return ":" + string(chain) + " - [0:0]" }

// GetChainsFromTable are the chains of a table as SaveInto wrote it.
func GetChainsFromTable(saved []byte) set.Set[Chain] {
	chains := set.New[Chain]()
	for line := range bytes.Lines(saved) {
		if words := bytes.Fields(line); len(words) > 0 && words[0][0] == ':' {
			chains.Insert(Chain(words[0][1:]))
		}
	}
	return chains
}
