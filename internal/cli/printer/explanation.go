package printer

import (
	"io"

	"heliostat.dev/heliostat/internal/planner"
)

// WriteExplanation writes an explanation, with a line for each detail.
func WriteExplanation(out io.Writer, e planner.Explanation) error {
	var p Page
	p.Line("", e.About+": "+codeAndMessage(e.Code, e.Message))
	for _, d := range e.Details {
		p.Line("  ", d.About+": "+codeAndMessage(d.Code, d.Message))
	}
	_, err := io.WriteString(out, p.String())
	return err
}
