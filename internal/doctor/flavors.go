package doctor

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
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
		for _, flavors := range flavorsOf(x, o, group) {
			selector := v.Get("template", "spec", "nodeSelector")
			if open := suitableFlavors(x, flavors, selector.Texts()); len(open) > 1 {
				report(occurrence{
					object: o,
					path:   selector.Path(),
					seen:   fmt.Sprintf("group %s may have flavors %s", group.Name, strings.Join(open, ", ")),
					fix: fix.Edit(
						o,
						"make one group for each flavor, with the nodeLabels of its ResourceFlavor as nodeSelector",
					),
				})
				break
			}
		}
	}
}

// flavorsOf returns the flavors of each resource group that covers a resource of the group's pods, in the ClusterQueue
// of the RayCluster.
func flavorsOf(x *inventory.Inventory, o *inventory.Object, group *nodepool.WorkerGroup) (lists [][]string) {
	local, known := named(x, "LocalQueue", o.Namespace, o.Cluster.Queue.Name)
	if !known {
		return nil
	}
	queue, known := named(x, "ClusterQueue", "", local.Text("spec", "clusterQueue"))
	if !known {
		return nil
	}
	for _, resources := range queue.Items("spec", "resourceGroups") {
		covers := false
		for _, name := range resources.TextList("coveredResources") {
			covers = covers || group.Pod.Requests[name] > 0
		}
		var flavors []string
		for _, flavor := range resources.Items("flavors") {
			flavors = append(flavors, flavor.Text("name"))
		}
		if covers {
			lists = append(lists, flavors)
		}
	}
	return lists
}

// suitableFlavors returns the flavors with labels that a node selector allows. Kueue compares only labels that some of
// the flavors have.
func suitableFlavors(x *inventory.Inventory, flavors []string, selector map[string]string) (suitable []string) {
	labels, keys := map[string]map[string]string{}, map[string]bool{}
	for _, name := range flavors {
		flavor, _ := named(x, "ResourceFlavor", "", name)
		labels[name] = flavor.Texts("spec", "nodeLabels")
		for key := range labels[name] {
			keys[key] = true
		}
	}
	for _, name := range flavors {
		allowed := true
		for key, value := range selector {
			allowed = allowed && (!keys[key] || labels[name][key] == value)
		}
		if allowed && len(keys) > 0 {
			suitable = append(suitable, name)
		}
	}
	return suitable
}

// named returns an object by its kind and name.
func named(x *inventory.Inventory, kind, namespace, name string) (object fieldpath.Value, known bool) {
	for _, o := range x.ByKind[kind] {
		if o.Namespace == namespace && o.Name == name {
			return o.Root(), true
		}
	}
	return fieldpath.Of(nil, nil), false
}
