package doctor

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
)

// flavorNotSelected reports groups of queued RayClusters that may get one of several flavors, because their node
// selector does not say which. A group that Kueue has admitted has the labels of its flavor in its template.
func flavorNotSelected(x *inventory.Inventory, o *inventory.Object, report reporter) {
	queue := o.Cluster.Queue
	if !queue.Queued() || o.Kind != "RayCluster" || queue.Parent.Kind != "" {
		return
	}
	for i, v := range o.RaySpec().Items("workerGroupSpecs") {
		if i >= len(o.Cluster.Groups) {
			return
		}
		group := &o.Cluster.Groups[i]
		for _, flavors := range x.FlavorsOf(o, group) {
			selector := v.Get("template", "spec", "nodeSelector")
			if open := x.SuitableFlavors(flavors, selector.Texts()); len(open) > 1 {
				report(occurrence{
					Object: o,
					Path:   selector.Path(),
					Seen:   fmt.Sprintf("group %s may have flavors %s", group.Name, strings.Join(open, ", ")),
					Fix: fix.Edit(o,
						"make one group for each flavor, with the nodeLabels of its ResourceFlavor as nodeSelector"),
				})
				break
			}
		}
	}
}
