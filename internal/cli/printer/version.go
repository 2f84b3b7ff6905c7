package printer

import (
	"fmt"
	"io"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// Versions are the versions of client and server. Server is nil if none answered.
type Versions struct {
	Client apiv1.Build  `json:"client"`
	Server *apiv1.Build `json:"server,omitempty"`
}

// WriteVersions writes a line for client and server each.
func WriteVersions(out io.Writer, both Versions) error {
	if _, err := fmt.Fprintln(out, "client: "+BuildLine(both.Client)); err != nil || both.Server == nil {
		return err
	}
	_, err := fmt.Fprintln(out, "server: "+BuildLine(*both.Server))
	return err
}

// BuildLine writes "heliostat VERSION, revision REVISION (modified), go RELEASE".
func BuildLine(b apiv1.Build) string {
	line := "heliostat"
	if b.Version != "" {
		line += " " + b.Version
	}
	if b.Revision != "" {
		line += ", revision " + b.Revision
	}
	if b.Modified {
		line += " (modified)"
	}
	return line + ", " + b.Go
}
