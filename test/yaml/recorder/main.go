// Says what kubectl reads of texts: each line of the standard input is a text as a JSON string, each line of the output
// its answer, {"text", "values"} or {"text", "error"}. test/yaml/record.mjs runs it.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

type answer struct {
	Text   string             `json:"text"`
	Values *[]json.RawMessage `json:"values,omitempty"`
	Error  string             `json:"error,omitempty"`
}

// ask reads a text as kubectl's StreamVisitor does (k8s.io/cli-runtime/pkg/resource/visitor.go), which passes over null.
func ask(text string) answer {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	values := []json.RawMessage{}
	for {
		ext := runtime.RawExtension{}
		if err := decoder.Decode(&ext); err != nil {
			if errors.Is(err, io.EOF) {
				return answer{Text: text, Values: &values}
			}
			return answer{Text: text, Error: err.Error()}
		}
		raw := bytes.TrimSpace(ext.Raw)
		if len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
			values = append(values, raw)
		}
	}
}

func run() error {
	in := bufio.NewReader(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && err == io.EOF {
			return out.Flush()
		}
		if err != nil && err != io.EOF {
			return err
		}
		var text string
		if err := json.Unmarshal(line, &text); err != nil {
			return fmt.Errorf("a line that is no JSON string: %w", err)
		}
		if err := encoder.Encode(ask(text)); err != nil {
			return err
		}
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
