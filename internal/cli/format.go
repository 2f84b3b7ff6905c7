package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// OutputUsage describes -o of every command that has one.
const OutputUsage = "table, wide, json or yaml"

// WriterOf is how an answer is written by -o: table for people, of which text is another name and wide has all columns
// (lookOf), json and yaml for programs.
func WriterOf[T any](output string, table func(io.Writer, T) error) (func(io.Writer, T) error, error) {
	switch output {
	case "table", "text", "wide":
		return table, nil
	case "json":
		return writeJSON[T], nil
	case "yaml":
		return writeYAML[T], nil
	}
	return nil, BadInput(fmt.Errorf("--output %q: want %s", output, OutputUsage))
}

// writeYAML writes the same keys as writeJSON.
func writeYAML[T any](out io.Writer, value T) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	_, err = out.Write(text)
	return err
}

func writeJSON[T any](out io.Writer, value T) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
