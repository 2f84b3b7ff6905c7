package api

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// rayNames are the resources that Ray itself defines; all others are custom resources.
var rayNames = []string{raydemand.CPU, raydemand.GPU, raydemand.Memory, "object_store_memory"}

// checkCase refuses bundles with a resource that no worker group, node or head of the cluster has, and whose name
// differs from a known one in case alone. To Ray, {"gpu": 1} requests a custom resource: nothing could ever serve it,
// and it would replace the request before it. A cluster without a decision or without groups accepts all names.
func (s *server) checkCase(key nodepool.ClusterKey, bundles []raydemand.Bundle) error {
	view, exists := s.Fleet.View(key)
	if !exists || view.CycleAt.IsZero() || len(view.Snapshot.Groups) == 0 {
		return nil
	}
	declared := resourcesIn(&view.Snapshot)
	known := slices.Concat(rayNames, declared)
	var faults []apiv1.FieldError
	for i, bundle := range bundles {
		for _, name := range bundle.Names() {
			meant := fieldpath.OtherCase(name, known)
			if meant == "" || slices.Contains(declared, name) || len(faults) == maxFields {
				continue
			}
			name = shorten(name)
			faults = append(faults, apiv1.FieldError{
				Field: fieldpath.NewPath("bundles").Index(i).String(), Value: strconv.Quote(name),
				Expected: fmt.Sprintf("%s; nothing in %s has a resource %s", meant, key, name),
			})
		}
	}
	if len(faults) > 0 {
		return invalidFields(faults)
	}
	return nil
}

// resourcesIn returns the resources of all worker groups, of the nodes and of the head.
func resourcesIn(snapshot *planner.Snapshot) []string {
	all := raydemand.Bundle{}
	for i := range snapshot.Groups {
		maps.Copy(all, snapshot.Groups[i].Resources)
	}
	for i := range snapshot.Nodes {
		maps.Copy(all, snapshot.Nodes[i].Total)
	}
	if snapshot.Head != nil {
		maps.Copy(all, snapshot.Head.Total)
	}
	return all.Names()
}
