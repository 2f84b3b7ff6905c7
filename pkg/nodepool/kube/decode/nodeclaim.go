package decode

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// The label of a NodeClaim that names its pool, and the conditions that show its progress.
const (
	nodePoolLabel    = "karpenter.sh/nodepool"
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
	} `json:"spec"`
	Status struct {
		NodeName    string              `json:"nodeName"`
		Allocatable corev1.ResourceList `json:"allocatable"`
		Conditions  []metav1.Condition  `json:"conditions"`
	} `json:"status"`
}

// ReadNodeClaim converts a NodeClaim as the API server writes it.
func ReadNodeClaim(object *unstructured.Unstructured) (landing.NodeClaim, error) {
	var read claimObject
	text, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		return landing.NodeClaim{}, fmt.Errorf("reading NodeClaim %s: %w", object.GetName(), err)
	}
	return read.claim(), nil
}

func (c *claimObject) claim() landing.NodeClaim {
	claim := landing.NodeClaim{
		Name: c.Metadata.Name, Pool: c.Metadata.Labels[nodePoolLabel], Node: c.Status.NodeName,
		Deleting: c.Metadata.DeletionTimestamp != nil, CreatedAt: c.Metadata.CreationTimestamp.Time,
		Requests: quantitiesOf(c.Spec.Resources.Requests),
		Template: landing.NodeTemplate{
			Labels: maps.Clone(c.Metadata.Labels), Requirements: c.Spec.Requirements,
			Taints: Taints(&corev1.Node{Spec: corev1.NodeSpec{Taints: c.Spec.Taints}}),
		},
	}
	for _, condition := range c.Status.Conditions {
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
	if claim.Launched && len(c.Status.Allocatable) > 0 {
		claim.Allocatable = quantitiesOf(c.Status.Allocatable)
	}
	return claim.Classed()
}

func quantitiesOf(list corev1.ResourceList) landing.Quantities {
	amounts := make(landing.Quantities, len(list))
	for name, quantity := range list {
		amounts[string(name)] = Amount(quantity)
	}
	return amounts
}
