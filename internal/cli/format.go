package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Outputs are the formats of most commands.
var Outputs = []string{"table", "wide", "json", "yaml"}

// Output adds -o, of which the first format is the default; text is another name of table.
func Output(flags *pflag.FlagSet, value *string, formats ...string) {
	flags.StringVarP(value, "output", "o", formats[0], oneOf(formats))
	f := flags.Lookup("output")
	f.Value = &validated{f.Value, oneOf(formats),
		func() bool { return *value == "text" || slices.Contains(formats, *value) }, formats}
}

// WriterOf returns the function that writes an answer in the format of -o: table for people (wide
// shows all columns), json and yaml for programs.
func WriterOf[T any](output string, table func(io.Writer, T) error) func(io.Writer, T) error {
	switch output {
	case "json":
		return writeJSON[T]
	case "yaml":
		return writeYAML[T]
	}
	return table
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
