package printer

import (
	"fmt"
	"io"
)

// Frozen is the answer of freeze and unfreeze.
type Frozen struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Frozen    bool   `json:"frozen"`
}

// WriteFrozen says whether a cluster is frozen.
func WriteFrozen(out io.Writer, f Frozen) error {
	state := "frozen: nothing is written to it"
	if !f.Frozen {
		state = "not frozen"
	}
	_, err := fmt.Fprintf(out, "%s/%s is %s\n", f.Namespace, f.Name, state)
	return err
}
