package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// AgentNode is the Node that an agent annotates. It needs get and patch on nodes and nothing else.
type AgentNode struct {
	name  string
	nodes corev1client.NodeInterface
}

// NewAgentNode prepares to annotate the node of that name. It does not call the API server.
func NewAgentNode(config *rest.Config, name string) (*AgentNode, error) {
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to annotate node %s: %w", name, err)
	}
	return &AgentNode{name: name, nodes: client.Nodes()}, nil
}

// Publish sets the annotation heliostat.dev/gpus with one patch, and reports whether a patch was needed. The patch
// succeeds only for the node and the value that were read. If the node was recreated, or another program wrote the
// annotation, Publish writes nothing and returns an error.
func (a *AgentNode) Publish(ctx context.Context, value string) (bool, error) {
	node, err := a.nodes.Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading node %s: %w", a.name, err)
	}
	if stored, set := node.Annotations[sharing.AgentAnnotation]; set && stored == value {
		return false, nil
	}
	patch, err := json.Marshal(nodeAnnotationPatch(node, sharing.AgentAnnotation, value))
	if err != nil {
		return false, fmt.Errorf("writing the patch of node %s: %w", a.name, err)
	}
	_, err = a.nodes.Patch(ctx, a.name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: "heliostat-agent"})
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsConflict(err):
		return false, fmt.Errorf("annotating node %s: it changed since it was read: %w", a.name, err)
	case err != nil:
		return false, fmt.Errorf("annotating node %s: %w", a.name, err)
	}
	return true, nil
}

// nodeAnnotationPatch sets one annotation of the node as it was read:
//
//	test /metadata/uid
//	test /metadata/annotations/KEY        its value, or null for absence
//	add  /metadata/annotations/KEY        or /metadata/annotations if there is none at all
func nodeAnnotationPatch(node *corev1.Node, key, value string) []operation {
	patch := []operation{{"test", "/metadata/uid", string(node.UID)}}
	if len(node.Annotations) == 0 {
		return append(patch,
			operation{"test", "/metadata/annotations", nil},
			operation{"add", "/metadata/annotations", map[string]string{key: value}})
	}
	path := "/metadata/annotations/" + escape(key)
	var stored any
	if text, set := node.Annotations[key]; set {
		stored = text
	}
	return append(patch, operation{"test", path, stored}, operation{"add", path, value})
}
