package httpapi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/typo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// rayNames are the resources that Ray itself knows; all others are what somebody declares.
var rayNames = []string{raydemand.CPU, raydemand.GPU, raydemand.Memory, "object_store_memory"}

// checkSpelling refuses bundles that ask for a resource which nothing of the cluster has, no worker group, no node and not the head, and which is
// another's name in other case: {"gpu": 1} is a custom resource to Ray, so it could never be served, and would take the place of the request before it.
// A cluster about which nothing was decided yet, or of which no group is known, may have it.
func (s *server) checkSpelling(key nodepool.ClusterKey, bundles []raydemand.Bundle) error {
	view, known := s.Fleet.View(key)
	if !known || view.CycleAt.IsZero() || len(view.Snapshot.Groups) == 0 {
		return nil
	}
	declared := declaredIn(&view.Snapshot)
	var faults []apiv1.FieldError
	for i, bundle := range bundles {
		for _, name := range bundle.Names() {
			meant := typo.OtherCase(name, slices.Concat(rayNames, declared))
			if meant == "" || slices.Contains(declared, name) || len(faults) == maxFieldErrors {
				continue
			}
			faults = append(faults, apiv1.FieldError{Field: "bundles[" + strconv.Itoa(i) + "]", Value: strconv.Quote(shorten(name)),
				Expected: fmt.Sprintf("%s; nothing of %s has a resource %s", meant, key, shorten(name))})
		}
	}
	if len(faults) > 0 {
		return invalid(faults)
	}
	return nil
}

// declaredIn are the resources of all worker groups, of the nodes that are there, and of the head.
func declaredIn(snapshot *planner.Snapshot) []string {
	has := raydemand.Bundle{}
	for i := range snapshot.Groups {
		maps.Copy(has, snapshot.Groups[i].Resources)
	}
	for i := range snapshot.Nodes {
		maps.Copy(has, snapshot.Nodes[i].Total)
	}
	if snapshot.Head != nil {
		maps.Copy(has, snapshot.Head.Total)
	}
	return has.Names()
}
