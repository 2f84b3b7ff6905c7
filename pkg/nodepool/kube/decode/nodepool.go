package decode

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// nodePool is the part of a Karpenter NodePool (karpenter.sh/v1) that Heliostat reads.
type nodePool struct {
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

// ReadNodePool reads spec.replicas, the size of a static NodePool, and spec.limits: the totals of all nodes of the
// pool, and under the name nodes their number. Without limits the pool has no ceiling, and neither has one with limits
// that cannot be read, which is returned with an error. The template describes every node that Karpenter adds to the
// pool; startupTaints, which disappear once a node has started, are no part of it.
func ReadNodePool(object map[string]any) (landing.Ceiling, error) {
	name, ceiling := nameIn(object), landing.Ceiling{Source: landing.FromKarpenter}
	ceiling.Group, _, _ = unstructured.NestedString(object, "metadata", "name")
	pool, err := fromJSON[nodePool](object)
	if err != nil {
		return ceiling, fmt.Errorf("reading NodePool %s: %w", name, err)
	}
	own := pool.Spec.Template
	made := &corev1.Node{Spec: corev1.NodeSpec{Taints: own.Spec.Taints}}
	ceiling.Template = &landing.NodeTemplate{Labels: own.Metadata.Labels, Requirements: own.Spec.Requirements,
		Taints: Taints(made)}
	limits, most := landing.Quantities{}, (*int64)(nil)
	for _, key := range slices.Sorted(maps.Keys(pool.Spec.Limits)) {
		quantity, err := resource.ParseQuantity(fmt.Sprint(pool.Spec.Limits[key]))
		if err != nil {
			return ceiling, fmt.Errorf("reading NodePool %s: spec.limits.%s %v: %w", name, key, pool.Spec.Limits[key],
				err)
		}
		if key == "nodes" {
			most = new(quantity.Value())
			continue
		}
		if limit := Amount(quantity); limit < raydemand.MaxAmount { // no sum of nodes can show that it is reached
			limits[key] = limit
		}
	}
	ceiling.Limits, ceiling.MaxNodes = limits, most
	if static := pool.Spec.Replicas; static != nil {
		ceiling.MinNodes, ceiling.MaxNodes, ceiling.Replicas = static, static, static
	}
	return ceiling, nil
}

// Conditions of a NodeClaim that show its progress.
const (
	claimLaunched    = "Launched"
	claimRegistered  = "Registered"
	claimInitialized = "Initialized"
)

// readyNode are the reasons of an Initialized condition that is not met although the node is ready
// (sigs.k8s.io/karpenter v1.14.1, pkg/controllers/nodeclaim/lifecycle/initialization.go).
var readyNode = map[string]bool{
	"StartupTaintsExist":         true,
	"KnownEphemeralTaintsExist":  true,
	"ResourceNotRegistered":      true,
	"DRADriverPoolsNotPublished": true,
}

// claimObject is the part of a NodeClaim (karpenter.sh/v1) that Heliostat reads.
type claimObject struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Requirements []landing.Requirement `json:"requirements"`
		Taints       []corev1.Taint        `json:"taints"`
		Resources    struct {
			Requests corev1.ResourceList `json:"requests"`
		} `json:"resources"`
		ExpireAfter            string `json:"expireAfter"`
		TerminationGracePeriod string `json:"terminationGracePeriod"`
	} `json:"spec"`
	Status struct {
		NodeName    string              `json:"nodeName"`
		Allocatable corev1.ResourceList `json:"allocatable"`
		Conditions  []metav1.Condition  `json:"conditions"`
	} `json:"status"`
}

// ReadNodeClaim converts a NodeClaim as the API server writes it.
func ReadNodeClaim(object *unstructured.Unstructured) (landing.NodeClaim, error) {
	read, err := fromJSON[claimObject](object.Object)
	if err != nil {
		return landing.NodeClaim{}, fmt.Errorf("reading NodeClaim %s: %w", object.GetName(), err)
	}
	claim := landing.NodeClaim{
		Name: read.Metadata.Name, Pool: read.Metadata.Labels[karpenterPool], Node: read.Status.NodeName,
		Deleting: read.Metadata.DeletionTimestamp != nil, CreatedAt: read.Metadata.CreationTimestamp.Time,
		Requests: quantitiesOf(read.Spec.Resources.Requests),
		Template: landing.NodeTemplate{
			Labels: maps.Clone(read.Metadata.Labels), Requirements: read.Spec.Requirements,
			Taints: Taints(&corev1.Node{Spec: corev1.NodeSpec{Taints: read.Spec.Taints}}),
		},
	}
	for _, condition := range read.Status.Conditions {
		met := condition.Status == metav1.ConditionTrue
		switch condition.Type {
		case claimLaunched:
			if claim.Launched = met; met {
				claim.LaunchedAt = condition.LastTransitionTime.Time
			}
		case claimRegistered:
			if claim.Registered = met; met {
				claim.RegisteredAt = condition.LastTransitionTime.Time
			}
		case claimInitialized:
			claim.Initialized = met
			if claim.NodeReady = met || readyNode[condition.Reason]; !met && claim.NodeReady {
				claim.Lacks = condition.Message
			}
		}
	}
	if claim.Launched && len(read.Status.Allocatable) > 0 {
		claim.Allocatable = quantitiesOf(read.Status.Allocatable)
	}
	return claim.Classed(), nil
}

func quantitiesOf(list corev1.ResourceList) landing.Quantities {
	amounts := make(landing.Quantities, len(list))
	for name, quantity := range list {
		amounts[string(name)] = Amount(quantity)
	}
	return amounts
}

// StatusConfigMap is where the Cluster Autoscaler writes its status, in its own namespace, usually kube-system.
const StatusConfigMap = "cluster-autoscaler-status"

// autoscalerStatus is the part of the Cluster Autoscaler's status, since release 1.30, that Heliostat reads.
type autoscalerStatus struct {
	NodeGroups []struct {
		Name   string `json:"name"`
		Health struct {
			MinSize *int64 `json:"minSize"`
			MaxSize *int64 `json:"maxSize"`
		} `json:"health"`
	} `json:"nodeGroups"`
}

// AutoscalerCeilings reads the sizes of node groups from the Cluster Autoscaler's status. It ignores a maximum below
// the minimum: some providers report no maximum, which appears as 0.
func AutoscalerCeilings(status string) ([]landing.Ceiling, error) {
	var read autoscalerStatus
	if err := yaml.Unmarshal([]byte(status), &read); err != nil {
		return nil, fmt.Errorf("reading the Cluster Autoscaler's status, which is not the YAML of release 1.30 and "+
			"later: %w", err)
	}
	var ceilings []landing.Ceiling
	for _, group := range read.NodeGroups {
		least, most := group.Health.MinSize, group.Health.MaxSize
		if least != nil && most != nil && *most < *least {
			most = nil
		}
		ceilings = append(ceilings, landing.Ceiling{Group: group.Name, MinNodes: least, MaxNodes: most,
			Source: landing.FromClusterAutoscaler})
	}
	return ceilings, nil
}

// StatusUpdated is the annotation that says when the status was written, in the layout statusFormat
// (docs/reference/facts.md#status-of-the-cluster-autoscaler).
const (
	StatusUpdated = "cluster-autoscaler.kubernetes.io/last-updated"
	statusFormat  = "2006-01-02 15:04:05.999999999 -0700 MST"
)

// StatusTime returns when the Cluster Autoscaler wrote its status.
func StatusTime(config *corev1.ConfigMap) (time.Time, error) {
	written, err := time.Parse(statusFormat, config.Annotations[StatusUpdated])
	if err != nil {
		return time.Time{}, fmt.Errorf("annotation %s: %w", StatusUpdated, err)
	}
	return written, nil
}

// NodeClaimResource are Karpenter's NodeClaims, which have no namespace.
var NodeClaimResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}

// NodePoolResource are Karpenter's NodePools, which have no namespace.
var NodePoolResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
