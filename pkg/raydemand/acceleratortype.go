package raydemand

import "strings"

// AcceleratorTypePrefix is the prefix of the resource that a node with accelerators has one unit of, such as
// accelerator_type:A100.
const AcceleratorTypePrefix = "accelerator_type:"

// AcceleratorType returns the accelerator type in the resources of a node, or "" if they have none.
func (b Bundle) AcceleratorType() string {
	for _, name := range b.Names() {
		if value, is := strings.CutPrefix(name, AcceleratorTypePrefix); is && b[name] > 0 {
			return value
		}
	}
	return ""
}
