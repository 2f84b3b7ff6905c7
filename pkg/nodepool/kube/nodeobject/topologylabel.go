package nodeobject

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

// CheckTopologyLabel returns an error that names what is not a label's name.
func CheckTopologyLabel(label nodegpu.TopologyLabel) error {
	for _, name := range []string{label.Node, label.Ray} {
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			return fmt.Errorf("%q is not a label's name (%s)", name, problems[0])
		}
	}
	return nil
}
