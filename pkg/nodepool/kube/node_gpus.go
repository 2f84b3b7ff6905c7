package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

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

// ListNodeObjects asks the API server for all nodes.
func ListNodeObjects(ctx context.Context, config *rest.Config) ([]nodepool.NodeObject, error) {
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to list nodes: %w", err)
	}
	var objects []nodepool.NodeObject
	// Pages keep the answer small on clusters with thousands of nodes.
	options := metav1.ListOptions{Limit: 500}
	for {
		list, err := client.Nodes().List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		}
		for i := range list.Items {
			objects = append(objects, nodeObjectOf(&list.Items[i]))
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return objects, nil
		}
	}
}

// ReadNodeObjects reads nodes as `kubectl get -o yaml` or `-o json` prints them: documents of kind Node, or lists of objects. Objects of other kinds
// are passed over; a document that is no object, or a Node that cannot be read, is an error that says which one.
func ReadNodeObjects(in io.Reader) ([]nodepool.NodeObject, error) {
	var objects []nodepool.NodeObject
	decoder := utilyaml.NewYAMLOrJSONDecoder(in, 4096)
	for number := 1; ; number++ {
		var document json.RawMessage
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("reading document %d: %w", number, err)
		}
		if len(document) == 0 || bytes.Equal(document, []byte("null")) {
			continue
		}
		found, err := nodesIn(document)
		if err != nil {
			return nil, fmt.Errorf("reading document %d: %w", number, err)
		}
		objects = append(objects, found...)
	}
}

// nodesIn reads one object, or the items of a list.
func nodesIn(document json.RawMessage) ([]nodepool.NodeObject, error) {
	var head struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, fmt.Errorf("want a Kubernetes object: %w", err)
	}
	switch {
	case head.Kind == "Node":
		var node corev1.Node
		if err := json.Unmarshal(document, &node); err != nil {
			return nil, fmt.Errorf("node %s: %w", nameIn(document), err)
		}
		return []nodepool.NodeObject{nodeObjectOf(&node)}, nil
	case strings.HasSuffix(head.Kind, "List"):
		var objects []nodepool.NodeObject
		for i, item := range head.Items {
			found, err := nodesIn(item)
			if err != nil {
				return nil, fmt.Errorf("items[%d]: %w", i, err)
			}
			objects = append(objects, found...)
		}
		return objects, nil
	case head.Kind == "":
		return nil, errors.New("kind is missing: want a Kubernetes object")
	}
	return nil, nil
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
