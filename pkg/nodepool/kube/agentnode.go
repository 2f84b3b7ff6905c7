package kube

import (
	"context"
	"encoding/json"
	"fmt"

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
// succeeds only for the version of the node that was read. If the node has changed since, Publish writes nothing and
// returns an error.
func (a *AgentNode) Publish(ctx context.Context, value string) (bool, error) {
	node, err := a.nodes.Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading node %s: %w", a.name, err)
	}
	if stored, set := node.Annotations[sharing.AgentAnnotation]; set && stored == value {
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": node.UID, "resourceVersion": node.ResourceVersion,
		"annotations": map[string]string{sharing.AgentAnnotation: value},
	}})
	if err != nil {
		return false, fmt.Errorf("writing the patch of node %s: %w", a.name, err)
	}
	_, err = a.nodes.Patch(ctx, a.name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "heliostat-agent"})
	switch {
	case apierrors.IsConflict(err):
		return false, fmt.Errorf("annotating node %s: it changed since it was read: %w", a.name, err)
	case err != nil:
		return false, fmt.Errorf("annotating node %s: %w", a.name, err)
	}
	return true, nil
}
