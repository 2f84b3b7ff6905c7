package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// OutputUsage is the usage of -o in every command that has it.
const OutputUsage = "table, wide, json or yaml"

// WriterOf returns the function that writes an answer in the format of -o: table for people (text is an alias, and wide
// shows all columns), json and yaml for programs.
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
