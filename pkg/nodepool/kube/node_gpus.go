package kube

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// nodeObjectOf converts a node with all that it tells of its GPUs, where nodeOf takes what decides over landing.
func nodeObjectOf(node *corev1.Node) nodepool.NodeObject {
	o := nodepool.NodeObject{
		Name: node.Name, Labels: node.Labels, Annotations: node.Annotations, Taints: taintsOf(node),
		Unschedulable: node.Spec.Unschedulable, Capacity: extendedResources(node.Status.Capacity), Allocatable: extendedResources(node.Status.Allocatable),
		Conditions: make(map[string]string, len(node.Status.Conditions)),
	}
	for _, c := range node.Status.Conditions {
		o.Conditions[string(c.Type)] = string(c.Status)
	}
	return o
}

// extendedResources leaves the resources of a domain, which come in whole units; nil stays nil.
func extendedResources(list corev1.ResourceList) map[string]int64 {
	if list == nil {
		return nil
	}
	found := map[string]int64{}
	for name, quantity := range list {
		if strings.Contains(string(name), "/") {
			found[string(name)] = quantity.Value()
		}
	}
	return found
}

// ReadNode reads a Node object as the API prints it, in both views: what it tells of its GPUs, and what decides over landing. The error names
// the field that cannot be read.
func ReadNode(object map[string]any) (nodepool.NodeObject, nodepool.Node, error) {
	var node corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &node); err != nil {
		return nodepool.NodeObject{}, nodepool.Node{}, fmt.Errorf("reading node: %w", err)
	}
	return nodeObjectOf(&node), nodeOf(&node), nil
}

// nameIn is the name of an object that does not decode otherwise.
func nameIn(document json.RawMessage) string {
	var head struct {
		Metadata struct{ Name string } `json:"metadata"`
	}
	if json.Unmarshal(document, &head) != nil || head.Metadata.Name == "" {
		return "without a name"
	}
	return head.Metadata.Name
}
