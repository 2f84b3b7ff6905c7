package snapshotfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// namesWithoutEffect returns findings about promises, and about names in places and quotas that match nothing. A name
// with "/" in accepts may be of another RayCluster that has nothing on its way.
func namesWithoutEffect(doc *Document, file string) []raydemand.Finding {
	s := &doc.Snapshot
	if doc.RayCluster != nil && len(s.Promised) > 0 {
		return []raydemand.Finding{withoutEffect(file, "promised", fmt.Sprintf("%d promises", len(s.Promised)),
			"promises count on places, and a file with rayCluster has none of its own",
			"use groups and places, as a live snapshot has them, or remove promised")}
	}
	all := quotasWithoutEffect(doc, file)
	known, accepted := map[string]bool{}, map[string]bool{}
	for i := range s.Groups {
		known[s.Groups[i].Name] = true
	}
	for i := range s.Promised {
		known[s.Promised[i].Pod.Name] = true
	}
	all = append(all, placesOnce(s, file)...)
	for i := range s.Places {
		for k, name := range s.Places[i].Accepts {
			if !known[name] && !accepted[name] && !strings.Contains(name, "/") {
				all = append(all, withoutEffect(file, fmt.Sprintf("places[%d].accepts[%d]", i, k), name,
					"no group and no promised pod has this name",
					"use the name of a group, or the name of a promised pod"))
			}
			accepted[name] = true
		}
	}
	return append(all, promisesNowhere(s, file, accepted)...)
}

// promisesNowhere returns findings about promised pods that no place accepts, by the names that places accept. A live
// snapshot may have them: they fit on no node that is there.
func promisesNowhere(s *model.Snapshot, file string, accepted map[string]bool) (all []raydemand.Finding) {
	for i, p := range s.Promised {
		if name := p.Pod.Name; !accepted[name] && p.Pods > 0 {
			f := withoutEffect(file, fmt.Sprintf("promised[%d].pod.name", i), name,
				"no place accepts a pod of this name", "add the name to accepts of the places where the pods may run")
			f.Severity = raydemand.Info
			all = append(all, f)
		}
	}
	return all
}

// placesOnce keeps the first of the places of one existing node, and returns findings about the others: they would
// count what is free there again.
func placesOnce(s *model.Snapshot, file string) (all []raydemand.Finding) {
	first := map[string]int{}
	var kept []landing.Place
	for i, place := range s.Places {
		before, repeated := first[place.Node]
		switch {
		case place.Node == "" || place.New:
		case repeated:
			all = append(all, raydemand.Finding{
				Code: model.FindingNodeRepeated, Severity: raydemand.Warning, Object: file,
				Field: fmt.Sprintf("places[%d].node", i), Seen: place.Node,
				Why: fmt.Sprintf("places[%d] is the same node; the plan counts that one", before),
				Fix: "list each node once",
			})
			continue
		default:
			first[place.Node] = i
		}
		kept = append(kept, place)
	}
	if len(all) > 0 {
		s.Places = kept
	}
	return all
}

// quotasWithoutEffect returns findings about the names in quotas that no group of the RayCluster has. The snapshot of a
// live cluster has groups in its place, and may have what Kueue refused a group that is gone.
func quotasWithoutEffect(doc *Document, file string) (all []raydemand.Finding) {
	var cluster struct {
		Spec struct{ WorkerGroupSpecs []struct{ GroupName string } }
	}
	if json.Unmarshal(doc.RayCluster, &cluster) != nil {
		return nil // the file has groups, or the RayCluster has a fault that is reported elsewhere
	}
	groups := map[string]bool{}
	for _, g := range cluster.Spec.WorkerGroupSpecs {
		groups[g.GroupName] = true
	}
	for i := range doc.Quotas {
		for _, name := range slices.Sorted(maps.Keys(doc.Quotas[i].PodTakes)) {
			if !groups[name] {
				all = append(all, withoutEffect(file, fmt.Sprintf("quotas[%d].podTakes", i), name,
					"no group has this name", "use the name of a group"))
			}
		}
	}
	return all
}

func withoutEffect(file, field, seen, why, fix string) raydemand.Finding {
	return raydemand.Finding{
		Code: model.FindingWithoutEffect, Severity: raydemand.Warning, Object: file, Field: field, Seen: seen,
		Why: why + ", so it has no effect", Fix: fix,
	}
}
