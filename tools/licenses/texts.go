package licenses

import (
	"bytes"
	"fmt"
	"strings"
)

// Texts returns the text that must be distributed with a program: the licenses and notices of its linked modules. If
// several modules have the same text, it appears once, below the names of all of them.
func (c *Checker) Texts(modules []Module) []byte {
	var order []string
	names := map[string][]string{}
	for _, m := range modules {
		for _, f := range m.Files {
			text := string(bytes.TrimSpace(f.Text))
			if names[text] == nil {
				order = append(order, text)
			}
			names[text] = append(names[text], fmt.Sprintf("%s %s: %s", m.Path, m.Version, f.Name))
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out,
		"Heliostat is linked from the Go standard library and %d modules. These are their licenses and notices.\n",
		len(modules)-1)
	for _, text := range order {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(names[text], "\n"), text)
	}
	return out.Bytes()
}
