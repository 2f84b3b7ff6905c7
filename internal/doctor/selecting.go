package doctor

import (
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// selected returns the heads and worker groups in the namespace of an object whose pods a label selector of the object
// matches, by the labels that the operator gives them. An empty selector matches all, and without one there is none.
func (x *inventory) selected(by *Object, selector fieldpath.Value) (groups []rayGroup) {
	matches, err := readSelector(selector)
	if err != nil {
		return nil
	}
	for _, g := range x.Groups {
		if g.Of.Namespace == by.Namespace && matches.Matches(g.podLabels()) {
			groups = append(groups, g)
		}
	}
	return groups
}

// podLabels returns the labels of the group's pods. What the operator makes of the RayCluster's name is unknown while
// it generates that name.
func (g rayGroup) podLabels() labels.Set {
	set := labels.Set{}
	maps.Copy(set, g.Pods.Pod.Neighbors.Labels)
	if g.Of.Kind != "RayCluster" || g.Of.Generated {
		delete(set, "ray.io/cluster")
		delete(set, "ray.io/identifier")
	}
	return set
}

// readSelector reads a label selector. An absent one selects nothing.
func readSelector(v fieldpath.Value) (labels.Selector, error) {
	text, err := json.Marshal(v.Raw())
	if err != nil {
		return nil, err
	}
	var selector *metav1.LabelSelector
	if err := json.Unmarshal(text, &selector); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(selector)
}
