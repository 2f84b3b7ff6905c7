package printer

import (
	"fmt"
	"io"
)

// Resumed says whether a cluster is suspended after it was resumed.
type Resumed struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Suspended bool   `json:"suspended"`
}

// WriteResumed says whether a cluster is suspended.
func WriteResumed(out io.Writer, r Resumed) error {
	state := "not suspended: the operator starts its head"
	if r.Suspended {
		state = "suspended"
	}
	_, err := fmt.Fprintf(out, "%s/%s is %s\n", r.Namespace, r.Name, state)
	return err
}
