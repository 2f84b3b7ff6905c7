package main

import (
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// outputUsage describes -o of every command that has one.
const outputUsage = "table, wide, json or yaml"

// writerOf is how an answer is written by -o: table for people, of which text is another name and wide has all columns (lookOf), json and yaml
// for programs.
func writerOf[T any](output string, table func(io.Writer, T) error) (func(io.Writer, T) error, error) {
	switch output {
	case "table", "text", "wide":
		return table, nil
	case "json":
		return writeJSON[T], nil
	case "yaml":
		return writeAsYAML[T], nil
	}
	return nil, badInput{fmt.Errorf("--output %q: want %s", output, outputUsage)}
}

// writeAsYAML writes the same keys as writeJSON.
func writeAsYAML[T any](out io.Writer, value T) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	_, err = out.Write(text)
	return err
}
