package decode

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// ForGPUs converts a node for package sharing, with everything it says about its GPUs.
func ForGPUs(node *corev1.Node) sharing.NodeObject {
	o := sharing.NodeObject{
		Name:          node.Name,
		Labels:        node.Labels,
		Annotations:   node.Annotations,
		Taints:        Taints(node),
		Unschedulable: node.Spec.Unschedulable,
		BootID:        node.Status.NodeInfo.BootID,
		Conditions:    make(map[string]string, len(node.Status.Conditions)),
	}
	var ofCapacity []string
	o.Capacity, ofCapacity = extendedResources("capacity", node.Status.Capacity)
	o.Allocatable, o.Unreadable = extendedResources("allocatable", node.Status.Allocatable)
	o.Unreadable = append(o.Unreadable, ofCapacity...)
	for _, c := range node.Status.Conditions {
		o.Conditions[string(c.Type)] = string(c.Status)
	}
	return o
}

// Read reads a Node object as the API prints it, for sharing and for landing. An amount that cannot be read is left out
// and returned as a problem; for any other fault the error names the field.
func Read(object map[string]any) (sharing.NodeObject, landing.Node, error) {
	return ReadWith(sharing.Reader{}, object)
}

// ReadWith is Read with configured names of resources, or a configured label for pools. A node without a condition
// Ready is an excerpt, and counts as ready.
func ReadWith(reader sharing.Reader, object map[string]any) (sharing.NodeObject, landing.Node, error) {
	node, unreadable, err := nodeIn(object)
	if err != nil {
		return sharing.NodeObject{}, landing.Node{}, fmt.Errorf("reading node: %w", err)
	}
	forGPUs := ForGPUs(node)
	forGPUs.Unreadable = append(forGPUs.Unreadable, unreadable...)
	view := ForPodFit(reader, node)
	if len(unreadable) > 0 {
		view.GPUs = GPUsOf(reader, forGPUs)
	}
	if _, shown := forGPUs.Conditions[string(corev1.NodeReady)]; !shown {
		view.Ready = true
	}
	return forGPUs, view, nil
}

func nodeIn(object map[string]any) (node *corev1.Node, unreadable []string, err error) {
	node = &corev1.Node{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(object, node)
	if err == nil && !negative(node.Status.Capacity, node.Status.Allocatable) {
		return node, nil, nil
	}
	readable, unreadable := withoutUnreadable(object)
	if len(unreadable) > 0 {
		node = &corev1.Node{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(readable, node)
	}
	if err != nil {
		return nil, nil, withField(readable, &corev1.Node{}, err)
	}
	return node, unreadable, nil
}

// nameIn returns the name of an object that cannot be decoded otherwise.
func nameIn(fields map[string]any) string {
	name, _, _ := unstructured.NestedString(fields, "metadata", "name")
	return cmp.Or(name, "without a name")
}
