package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// Policy is the capacity policy of a cluster, and what becomes of it.
type Policy struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	apiv1.CapacityPolicyState
}

// WritePolicy writes where the policy is, what it says, and what becomes of each entry.
func WritePolicy(out io.Writer, p Policy) error {
	var text strings.Builder
	if p.Source == "" {
		fmt.Fprintf(&text, "%s/%s has no capacity policy\n", p.Namespace, p.Name)
	} else {
		written, err := json.Marshal(p.Policy)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s/%s: %s\n  %s\n", p.Namespace, p.Name, p.Source, written)
	}
	line := func(format string, arguments ...any) {
		fmt.Fprintln(&text, "  "+Printable(fmt.Sprintf(format, arguments...)))
	}
	if p.Fault != "" {
		line("cannot be read, so it wants nothing: %s", p.Fault)
	}
	for i := range p.Warm {
		w := &p.Warm[i]
		line("%s: %s: %s", w.Name, w.Reason.Code, w.Reason.Message)
	}
	for _, n := range p.WarmNodes {
		line("%s: %s: %s", n.Name, n.Code, n.Message)
	}
	if p.Idle != "" {
		line("idle: %s", p.Idle)
	}
	if p.NotScaled != "" {
		line("%s", p.NotScaled)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
