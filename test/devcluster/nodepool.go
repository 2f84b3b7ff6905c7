package devcluster

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resources of Karpenter and of its kwok provider.
var (
	NodePools   = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	NodeClaims  = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	nodeClasses = schema.GroupVersionResource{
		Group: "karpenter.kwok.sh", Version: "v1alpha1", Resource: "kwoknodeclasses",
	}
)

// NodePool describes a NodePool of Karpenter. By default its nodes stay for ever, also without pods.
type NodePool struct {
	Name string
	// Class is the name of a node class, see AddNodeClass.
	Class string
	// Types are the names of its instance types. CapacityTypes are spot and on-demand, by default only on-demand. No
	// Zones mean all.
	Types, CapacityTypes, Zones []string
	// Labels, Annotations and Taints are those of the nodes.
	Labels, Annotations map[string]string
	Taints              []corev1.Taint
	// ConsolidateAfter is the time, such as 10s, after which Karpenter removes a node, in any number at once. Policy is
	// when: WhenEmptyOrUnderutilized, the default, or WhenEmpty.
	ConsolidateAfter, Policy string
	// ExpireAfter is the longest life of a node, and TerminationGracePeriod the longest time of its drain. Empty means
	// for ever.
	ExpireAfter, TerminationGracePeriod string
	// Limits are the most resources of all nodes.
	Limits map[string]string
	// Weight decides which of the pools that fit launches, the highest first.
	Weight int64
	// Replicas, if not 0, is the number of nodes of a static pool, which Karpenter starts without pods and never
	// consolidates.
	Replicas int64
}

// AddNodeClass creates a class of machines whose Node is created this long after the launch.
func (c *Cluster) AddNodeClass(ctx context.Context, name, registrationDelay string) error {
	return c.createForKarpenter(ctx, nodeClasses, map[string]any{
		"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"nodeRegistrationDelay": registrationDelay},
	})
}

// AddNodePool creates a NodePool.
func (c *Cluster) AddNodePool(ctx context.Context, pool NodePool) error {
	return c.createForKarpenter(ctx, NodePools, pool.manifest())
}

func (c *Cluster) createForKarpenter(
	ctx context.Context, resource schema.GroupVersionResource, manifest map[string]any,
) error {
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
	if _, err := c.dynamic.Resource(resource).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// manifest returns the NodePool as Kubernetes stores it.
func (p NodePool) manifest() map[string]any {
	spec := map[string]any{"template": map[string]any{
		"metadata": map[string]any{"labels": anyMap(p.Labels), "annotations": anyMap(p.Annotations)},
		"spec":     p.template(),
	}}
	if len(p.Limits) > 0 {
		spec["limits"] = anyMap(p.Limits)
	}
	if p.Weight > 0 {
		spec["weight"] = p.Weight
	}
	if p.Replicas > 0 {
		spec["replicas"] = p.Replicas
	} else {
		spec["disruption"] = p.disruption()
	}
	return map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
		"metadata": map[string]any{"name": p.Name}, "spec": spec}
}

// template returns the spec of the pool's NodeClaims.
func (p NodePool) template() map[string]any {
	capacityTypes := p.CapacityTypes
	if len(capacityTypes) == 0 {
		capacityTypes = []string{"on-demand"}
	}
	requirements := []any{anyOf(capacityTypeLabel, capacityTypes), anyOf(instanceTypeLabel, p.Types)}
	if len(p.Zones) > 0 {
		requirements = append(requirements, anyOf(zoneLabel, p.Zones))
	}
	spec := map[string]any{
		"nodeClassRef": map[string]any{"group": nodeClasses.Group, "kind": "KWOKNodeClass", "name": p.Class},
		"expireAfter":  cmp.Or(p.ExpireAfter, "Never"),
		"requirements": requirements,
	}
	if p.TerminationGracePeriod != "" {
		spec["terminationGracePeriod"] = p.TerminationGracePeriod
	}
	var taints []any
	for _, taint := range p.Taints {
		object := map[string]any{"key": taint.Key, "effect": string(taint.Effect)}
		if taint.Value != "" {
			object["value"] = taint.Value
		}
		taints = append(taints, object)
	}
	if len(taints) > 0 {
		spec["taints"] = taints
	}
	return spec
}

func (p NodePool) disruption() map[string]any {
	if p.ConsolidateAfter == "" {
		return map[string]any{"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
	}
	return map[string]any{
		"consolidationPolicy": cmp.Or(p.Policy, "WhenEmptyOrUnderutilized"), "consolidateAfter": p.ConsolidateAfter,
		"budgets": []any{map[string]any{"nodes": "100%"}},
	}
}

// anyOf returns the requirement that a label has one of these values.
func anyOf(key string, values []string) map[string]any {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return map[string]any{"key": key, "operator": "In", "values": list}
}

func anyMap(values map[string]string) map[string]any {
	converted := map[string]any{}
	for key, value := range values {
		converted[key] = value
	}
	return converted
}
