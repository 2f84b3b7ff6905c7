package binpack

import (
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// Constrain fills in the constraints of pods from what their templates say about pods beside them: every term names the
// kinds of pods that it selects. beside has the entry of each kind, in the same order. others are pods on nodes that
// are of none of these kinds. The result has for each of them the name of its kind, for Place.Holds: empty if no term
// selects it and it keeps none of the kinds away, by a term or by a port of the node. These names have a slash, which
// names of worker groups cannot have.
func Constrain(pods []Pod, beside, others []*podfit.Neighbors) (names []string) {
	kinds := make([]named, len(pods), len(pods)+1)
	for i := range pods {
		kinds[i] = named{pods[i].Name, beside[i]}
	}
	names = make([]string, len(others))
	known := map[string]string{}
	for i, other := range others {
		text, matters := relation(beside, other)
		if !matters {
			continue
		}
		if known[text] == "" {
			known[text] = other.Namespace + "/" + strconv.Itoa(len(known))
			kinds = append(kinds, named{known[text], other})
		}
		names[i] = known[text]
	}
	for i := range pods {
		constrain(&pods[i], beside[i], kinds)
		for _, other := range kinds[len(pods):] {
			pods[i].Apart = append(pods[i].Apart, repelledBy(beside[i], other)...)
		}
	}
	return names
}

// named is a kind of pods with what its template or object says about pods beside it.
type named struct {
	name string
	*podfit.Neighbors
}

// constrain fills in the constraints that are the pod's own.
func constrain(pod *Pod, own *podfit.Neighbors, kinds []named) {
	selected := func(selects func(other *podfit.Neighbors) bool) []string {
		names := []string{}
		for _, kind := range kinds {
			if selects(kind.Neighbors) {
				names = append(names, kind.name)
			}
		}
		return names
	}
	pod.Apart, pod.Together, pod.Spread = nil, nil, nil
	for _, t := range own.Apart {
		pod.Apart = append(pod.Apart, Affinity{t.TopologyKey,
			selected(func(other *podfit.Neighbors) bool { return own.MayRepel(t, other) })})
	}
	if takers := selected(own.SharesPort); len(takers) > 0 {
		pod.Apart = append(pod.Apart, Affinity{Hostname, takers})
	}
	for _, t := range own.Together {
		pod.Together = append(pod.Together, Affinity{t.TopologyKey,
			selected(func(other *podfit.Neighbors) bool { return own.Attracts(t, other) })})
	}
	for _, t := range own.Spread {
		pod.Spread = append(pod.Spread, Spread{t.TopologyKey, t.MaxSkew, t.MinDomains,
			selected(func(other *podfit.Neighbors) bool { return own.Counts(t, other) })})
	}
}

// repelledBy returns the terms by which a pod on a node keeps pods of a kind away, as terms of that kind: anti-affinity
// holds in both directions.
func repelledBy(own *podfit.Neighbors, other named) (terms []Affinity) {
	for _, t := range other.Apart {
		if other.MayRepel(t, own) {
			terms = append(terms, Affinity{t.TopologyKey, []string{other.name}})
		}
	}
	return terms
}

// relation returns which terms of the kinds select a pod, which of them its own anti-affinity keeps away, and which
// take a port of the node that it takes; false if there are none.
func relation(own []*podfit.Neighbors, other *podfit.Neighbors) (string, bool) {
	var text strings.Builder
	matters := false
	add := func(holds bool) {
		matters = matters || holds
		text.WriteString(strconv.FormatBool(holds))
	}
	for _, n := range own {
		add(n.SharesPort(other))
		for _, t := range n.Apart {
			add(n.MayRepel(t, other))
		}
		for _, t := range n.Together {
			add(n.Attracts(t, other))
		}
		for _, t := range n.Spread {
			add(n.Counts(t, other))
		}
		for _, t := range other.Apart {
			text.WriteString(t.TopologyKey)
			add(other.MayRepel(t, n))
		}
	}
	return text.String(), matters
}
