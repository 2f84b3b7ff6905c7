package place

import (
	"maps"
	"slices"
	"strconv"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Of the hosts of a TPU slice, the first has worker ID 0 and the resource by which programs reserve the slice
// (docs/reference/facts.md#tpu-slices). A replica of a group is one slice.

// addShapes sets what new pods of a group are.
func (r *Fleet) addShapes(g *Group, i int) {
	shape := func(first bool) *Shape {
		resources, labels := g.withAnnounced(g.Resources, g.Labels)
		resources, labels = g.onHost(first, resources, g.withOpen(labels))
		total := r.vectorOf(resources)
		return &Shape{
			group: i, Total: total, Labels: r.labelSet(labels, g.Slice), Accelerated: r.accelerated(total),
		}
	}
	g.Shape = shape(true)
	if g.Hosts == 1 {
		return
	}
	if others := shape(false); others.Labels != g.Shape.Labels || !slices.Equal(others.Total, g.Shape.Total) {
		g.others = others
	}
}

// onHost returns the resources and labels of the first host of a replica, or of another one.
func (g *Group) onHost(
	first bool, resources raydemand.Bundle, labels map[string]string,
) (raydemand.Bundle, map[string]string) {
	podType := labels[landing.TPUPodType]
	if podType == "" || isOpen(podType) {
		podType = ""
		for _, name := range resources.Names() {
			if landing.IsTPUHead(name) {
				podType = landing.PodTypeOfTPUHead(name)
			}
		}
	}
	if podType == "" {
		return resources, labels
	}
	resources, labels = resources.Clone(), maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	_, declared := labels[landing.TPUWorkerID]
	switch {
	case first:
		resources[landing.TPUHead(podType)] = max(resources[landing.TPUHead(podType)], raydemand.One)
		if !declared {
			labels[landing.TPUWorkerID] = "0"
		}
	default:
		maps.DeleteFunc(resources, func(name string, _ raydemand.Amount) bool { return landing.IsTPUHead(name) })
		if !declared {
			var others []string
			for id := int64(1); id < g.Hosts; id++ {
				others = append(others, strconv.FormatInt(id, 10))
			}
			labels[landing.TPUWorkerID] = openValue(others, true)
		}
	}
	return resources, labels
}

// firstHosts returns the pods on their way that count as the first hosts of their replicas. Nobody knows them before
// they join, so they are the first ones by name, unless a host that has joined is the first of its replica.
func (r *Fleet) firstHosts(s *model.Snapshot, byName map[string]int) map[string]bool {
	type replica struct {
		group, name string
	}
	coming, hosts, heads := map[replica][]string{}, map[replica]int64{}, map[replica]int64{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		g, known := byName[n.Group]
		if !known || r.Groups[g].others == nil {
			continue
		}
		of := replica{n.Group, n.Replica}
		hosts[of]++
		switch {
		case n.Labels[landing.TPUWorkerID] == "0" || slices.ContainsFunc(n.Total.Names(), landing.IsTPUHead):
			heads[of]++
		case n.State == model.Pending || n.Total == nil:
			coming[of] = append(coming[of], n.Pod)
		}
	}
	first := map[string]bool{}
	for of, pods := range coming {
		slices.Sort(pods)
		replica := r.Groups[byName[of.group]].Hosts
		short := RoundUp(hosts[of], replica)/replica - heads[of]
		for _, pod := range pods[:min(max(short, 0), int64(len(pods)))] {
			first[pod] = true
		}
	}
	return first
}
