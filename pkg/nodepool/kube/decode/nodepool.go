package decode

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// NodePool is the part of a Karpenter NodePool (karpenter.sh/v1) that Heliostat reads.
type NodePool struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int64         `json:"replicas"`
		Limits   map[string]any `json:"limits"`
		Template struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				Requirements []landing.Requirement `json:"requirements"`
				Taints       []corev1.Taint        `json:"taints"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// Template describes every node that Karpenter adds to the pool. It ignores startupTaints, which disappear once a node
// has started.
func (p NodePool) Template() *landing.NodeTemplate {
	own := p.Spec.Template
	made := &corev1.Node{Spec: corev1.NodeSpec{Taints: own.Spec.Taints}}
	return &landing.NodeTemplate{Labels: own.Metadata.Labels, Requirements: own.Spec.Requirements, Taints: Taints(made)}
}

// CeilingOf reads spec.replicas, the size of a static NodePool, and spec.limits: the totals of all nodes of the pool,
// and under the name nodes their number. Without limits the pool has no ceiling.
func CeilingOf(pool NodePool) (ceiling landing.Ceiling, err error) {
	ceiling = landing.Ceiling{Group: pool.Metadata.Name, Limits: landing.Quantities{}, Source: landing.FromKarpenter}
	for _, name := range slices.Sorted(maps.Keys(pool.Spec.Limits)) {
		quantity, err := resource.ParseQuantity(fmt.Sprint(pool.Spec.Limits[name]))
		if err != nil {
			return ceiling, fmt.Errorf("reading NodePool %s: spec.limits.%s %v: %w", pool.Metadata.Name, name,
				pool.Spec.Limits[name], err)
		}
		if name == "nodes" {
			most := quantity.Value()
			ceiling.MaxNodes = &most
			continue
		}
		ceiling.Limits[name] = Amount(quantity)
	}
	if static := pool.Spec.Replicas; static != nil {
		ceiling.MinNodes, ceiling.MaxNodes, ceiling.Replicas = static, static, static
	}
	return ceiling, nil
}
