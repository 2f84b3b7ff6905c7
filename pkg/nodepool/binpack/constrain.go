package binpack

import (
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// Constrain fills in the constraints of pods from what their templates and objects say about pods beside them: every
// term names the kinds of pods that it selects. beside has the entry of each pod, in the same order.
func Constrain(pods []Pod, beside []*podfit.Neighbors) {
	selected := func(selects func(other *podfit.Neighbors) bool) []string {
		names := []string{}
		for i, other := range beside {
			if selects(other) {
				names = append(names, pods[i].Name)
			}
		}
		return names
	}
	for i, own := range beside {
		pods[i].Apart, pods[i].Together, pods[i].Spread = nil, nil, nil
		for _, t := range own.Apart {
			pods[i].Apart = append(pods[i].Apart, Affinity{t.TopologyKey,
				selected(func(other *podfit.Neighbors) bool { return own.MayRepel(t, other) })})
		}
		for _, t := range own.Together {
			pods[i].Together = append(pods[i].Together, Affinity{t.TopologyKey,
				selected(func(other *podfit.Neighbors) bool { return own.Attracts(t, other) })})
		}
		for _, t := range own.Spread {
			pods[i].Spread = append(pods[i].Spread, Spread{t.TopologyKey, t.MaxSkew, t.MinDomains,
				selected(func(other *podfit.Neighbors) bool { return own.Counts(t, other) })})
		}
	}
}

// Bystanders sorts pods that are on nodes, and that are not of the given kinds, into kinds of their own. kinds and
// beside are for Constrain, together with the given ones. of is the kind of each pod, -1 for one that no term selects
// and that keeps none of the given kinds away. Names of kinds have a slash, which names of worker groups cannot have.
func Bystanders(own, others []*podfit.Neighbors) (kinds []Pod, beside []*podfit.Neighbors, of []int) {
	known := map[string]int{}
	of = make([]int, len(others))
	for i, other := range others {
		text, matters := relation(own, other)
		if of[i] = -1; !matters {
			continue
		}
		kind, found := known[text]
		if !found {
			kind = len(kinds)
			known[text] = kind
			kinds = append(kinds, Pod{Name: other.Namespace + "/" + strconv.Itoa(kind)})
			beside = append(beside, other)
		}
		of[i] = kind
	}
	return kinds, beside, of
}

// relation returns which terms of the kinds select a pod, and which of them its own anti-affinity keeps away. It
// returns false if there are none.
func relation(own []*podfit.Neighbors, other *podfit.Neighbors) (string, bool) {
	var text strings.Builder
	matters := false
	add := func(holds bool) {
		matters = matters || holds
		text.WriteString(strconv.FormatBool(holds))
	}
	for _, n := range own {
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
