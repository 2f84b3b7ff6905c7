package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Outputs are the formats of most commands.
var Outputs = []string{"table", "wide", "json", "yaml"}

// Output adds -o, of which the first format is the default; text is another name of table.
func Output(flags *pflag.FlagSet, value *string, formats ...string) {
	flags.StringVarP(value, "output", "o", formats[0], strings.Replace(oneOf(formats), "table", "table (or text)", 1))
	validate(flags, "output", oneOf(formats),
		func() bool { return *value == "text" || slices.Contains(formats, *value) })
}
