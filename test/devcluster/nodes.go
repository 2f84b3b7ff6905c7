package devcluster

import (
	"context"
	"embed"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

//go:embed nodes.yaml
var nodesFile embed.FS

// kwokAnnotation marks the nodes that kwok simulates. Its value is kwokFake, as at the nodes that Karpenter's provider
// creates, or kwokOnly if the node agent adopts those. kwokProvider begins their spec.providerID (kwokProviderPrefix in
// kwok/cloudprovider/const.go of Karpenter).
const (
	kwokAnnotation = "kwok.x-k8s.io/node"
	kwokFake       = "fake"
	kwokOnly       = "simulated"
	kwokProvider   = "kwok://"
)

// simulated is the value of kwokAnnotation at the nodes that kwok simulates.
func (o Options) simulated() string {
	if o.AdoptNodes {
		return kwokOnly
	}
	return kwokFake
}

// DefaultNodes returns the nodes of nodes.yaml: one without GPUs, and one or two for each way to announce GPUs that
// Heliostat distinguishes.
func DefaultNodes() ([]nodeagent.NodeSpec, error) {
	file, err := nodesFile.Open("nodes.yaml")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return nodeagent.LoadNodes(file)
}

// startNodes starts the node agent and waits until its nodes are ready.
func (c *Cluster) startNodes(ctx context.Context) error {
	if !c.options.processes() {
		return nil
	}
	log := c.options.Log
	if log == nil {
		var err error
		path := filepath.Join(c.Logs(), "nodeagent.log")
		if c.logs, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
			return fmt.Errorf("starting the nodes: %w", err)
		}
		log = slog.New(slog.NewTextHandler(c.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	defer c.Awaiting("the nodes to be ready")()
	adopt := ""
	if c.options.AdoptNodes {
		adopt = kwokProvider
	}
	agent, err := nodeagent.Start(ctx, nodeagent.Config{
		REST: c.RESTConfig(), Kubeconfig: c.Kubeconfig(), Nodes: c.options.Nodes, Images: c.options.images(c.kit),
		Dir: c.Dir(), PodCIDR: c.claim.block.podCIDR(),
		APIServer: c.APIServer(), CAFile: c.plane.pki.path("ca.crt"), ClientCAFile: c.plane.pki.path("ca.crt"),
		AdoptProvider: adopt, MaxGracePeriod: killGrace, RayStart: enterRayStart, Log: log,
	})
	if err != nil {
		return fmt.Errorf("starting the nodes: %w", err)
	}
	c.agent = agent
	return nil
}

// stopNodes ends all pods and the node agent.
func (c *Cluster) stopNodes(ctx context.Context) error {
	var err error
	if c.agent != nil {
		err = c.agent.Stop(ctx)
	}
	if c.logs != nil {
		c.logs.Close()
	}
	return err
}

// AddKwokNodes creates nodes that kwok simulates: their pods run nothing. It needs Options.Kwok.
func (c *Cluster) AddKwokNodes(ctx context.Context, specs ...nodeagent.NodeSpec) error {
	for _, spec := range specs {
		if err := spec.Validate(); err != nil {
			return fmt.Errorf("adding a kwok node: %w", err)
		}
		if _, err := c.client.CoreV1().
			Nodes().
			Create(ctx, c.options.kwokNode(spec), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("adding kwok node %s: %w", spec.Name, err)
		}
	}
	return nil
}

// kwokNode returns the Node object for a valid spec.
func (o Options) kwokNode(spec nodeagent.NodeSpec) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   spec.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	maps.Copy(labels, spec.Labels)
	annotations := map[string]string{kwokAnnotation: o.simulated()}
	maps.Copy(annotations, spec.Annotations)
	capacity := resources(map[string]string{"pods": "110"}, spec.Capacity)
	allocatable := maps.Clone(capacity)
	maps.Copy(allocatable, resources(spec.Allocatable))
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: spec.Name, Labels: labels, Annotations: annotations},
		Spec:       corev1.NodeSpec{Taints: spec.Taints},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: allocatable},
	}
}

// resources merges validated quantities. Later ones win.
func resources(lists ...map[string]string) corev1.ResourceList {
	merged := corev1.ResourceList{}
	for _, list := range lists {
		for name, quantity := range list {
			merged[corev1.ResourceName(name)] = resource.MustParse(quantity)
		}
	}
	return merged
}
