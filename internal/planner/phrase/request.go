package phrase

import (
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Describe formats a request: {CPU 1, memory 2 GiB} where zone=a, else zone=b; a slice requirement as {GPU 1} of 10
// GiB, hardware; work that needs another place as {GPU 1} of work on nodes that go. It leaves out amounts of zero.
func Describe(r raydemand.Request) string {
	var s strings.Builder
	s.WriteByte('{')
	for _, name := range r.Bundle.Names() {
		if r.Bundle[name] == 0 {
			continue
		}
		if s.Len() > 1 {
			s.WriteString(", ")
		}
		s.WriteString(name + " " + quantity(name, r.Bundle[name]))
	}
	s.WriteByte('}')
	if r.Slice != nil {
		s.WriteString(" of " + r.Slice.String())
	}
	for i, selector := range r.Selectors {
		switch {
		case len(selector) == 0:
			continue
		case i == 0:
			s.WriteString(" where ")
		default:
			s.WriteString(", else ")
		}
		s.WriteString(selector.String())
	}
	if r.Moving {
		s.WriteString(" of work on nodes that go")
	}
	return s.String()
}
