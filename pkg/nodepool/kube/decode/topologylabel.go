package decode

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// CheckTopologyLabel returns an error that names what is not a label's name.
func CheckTopologyLabel(label sharing.TopologyLabel) error {
	for _, name := range []string{label.Node, label.Ray} {
		if len(validation.IsQualifiedName(name)) > 0 {
			return fmt.Errorf("%q is not a label's name (at most 63 of a to z, A to Z, 0 to 9, -, _ and ., after a "+
				"domain and / if it has one)", name)
		}
	}
	return nil
}
