package doctor

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// flavorNotSelected reports groups of queued RayClusters that may get one of several flavors, because their node
// selector does not say which. A group that Kueue has admitted has the labels of its flavor in its template.
func flavorNotSelected(x *inventory, o *Object, report reporter) {
	queue := o.Cluster.Queue
	if !queue.Queued() || o.Kind != "RayCluster" || queue.Parent.Kind != "" {
		return
	}
	for i, v := range o.raySpec().Items("workerGroupSpecs") {
		if i >= len(o.Cluster.Groups) {
			return
		}
		group := &o.Cluster.Groups[i]
		for _, flavors := range x.flavorsOf(o, group) {
			selector := v.Get("template", "spec", "nodeSelector")
			if open := x.suitableFlavors(flavors, selector.Texts()); len(open) > 1 {
				report(occurrence{
					Object: o,
					Path:   selector.Path(),
					Seen:   fmt.Sprintf("group %s may have flavors %s", group.Name, strings.Join(open, ", ")),
					Fix: edit(o,
						"make one group for each flavor, with the nodeLabels of its ResourceFlavor as nodeSelector"),
				})
				break
			}
		}
	}
}

// flavorsOf returns the flavors of each resource group that covers a resource of the group's pods, in the ClusterQueue
// of the RayCluster.
func (x *inventory) flavorsOf(o *Object, group *nodepool.WorkerGroup) (lists [][]string) {
	local := x.find("LocalQueue", o.Namespace, o.Cluster.Queue.Name)
	if local == nil {
		return nil
	}
	queue := x.find("ClusterQueue", "", local.Root().Text("spec", "clusterQueue"))
	if queue == nil {
		return nil
	}
	for _, resources := range queue.Root().Items("spec", "resourceGroups") {
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
func (x *inventory) suitableFlavors(flavors []string, selector map[string]string) (suitable []string) {
	labels, keys := map[string]map[string]string{}, map[string]bool{}
	for _, name := range flavors {
		if flavor := x.find("ResourceFlavor", "", name); flavor != nil {
			labels[name] = flavor.Root().Texts("spec", "nodeLabels")
		}
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

// hasQueuedParent reports whether the RayJob or RayService that Kueue queues is among the objects.
func (x *inventory) hasQueuedParent(o *Object) bool {
	parent := o.Cluster.Queue.Parent
	return x.find(parent.Kind, o.Namespace, parent.Name) != nil
}

// hasController reports whether another object controls this one. Kueue may queue that object.
func (o *Object) hasController() bool {
	for _, reference := range o.Root().Items("metadata", "ownerReferences") {
		if reference.Flag("controller") {
			return true
		}
	}
	return false
}

// elasticGates returns Kueue's scheduling gates in the pod templates.
func (o *Object) elasticGates() []fieldpath.Value {
	templates := []fieldpath.Value{o.raySpec().Get("headGroupSpec", "template", "spec")}
	for _, group := range o.raySpec().Items("workerGroupSpecs") {
		templates = append(templates, group.Get("template", "spec"))
	}
	var found []fieldpath.Value
	for _, template := range templates {
		for _, gate := range template.Items("schedulingGates") {
			if gate.Text("name") == nodepool.ElasticGate {
				found = append(found, gate)
			}
		}
	}
	return found
}
