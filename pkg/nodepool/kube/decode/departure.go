package decode

import (
	"cmp"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool/departure"
)

// Departure returns what a Node says about its end, or nil: its deletion, its taints and conditions, and a cordon.
func Departure(node *corev1.Node) *departure.Notice {
	var found *departure.Notice
	if at := node.DeletionTimestamp; at != nil {
		found = departure.Of(departure.NodeDeleting, "the Node is being deleted")
		found.Since = at.UTC()
	}
	for i := range node.Spec.Taints {
		found = departure.Earlier(found, departure.OfTaint(node.Spec.Taints[i].Key, node.Spec.Taints[i].Value))
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		notice := departure.OfCondition(string(c.Type), c.Status == corev1.ConditionTrue, c.Reason, c.Message)
		if notice != nil {
			notice.Since = c.LastTransitionTime.UTC()
		}
		found = departure.Earlier(found, notice)
	}
	if node.Spec.Unschedulable {
		found = departure.Earlier(found, departure.Of(departure.Cordoned, "cordoned"))
	}
	return found
}

// What a NodeClaim says about its end (karpenter pkg/apis/v1: labels.go, nodeclaim_status.go).
const (
	claimTermination  = "karpenter.sh/nodeclaim-termination-timestamp"
	claimDisruption   = "DisruptionReason"
	claimCapacityType = "karpenter.sh/capacity-type"
	claimSpot         = "spot"
)

// ClaimDeparture returns the node of a NodeClaim that is being deleted, and what that says about the node; nil if it
// is not being deleted or has no node. The deletion of a spot machine without a reason of Karpenter's own comes from
// the cloud: providers delete the NodeClaim when they receive an interruption.
func ClaimDeparture(object *unstructured.Unstructured) (node string, notice *departure.Notice) {
	var read struct {
		claimObject
		Spec struct {
			ExpireAfter            string `json:"expireAfter"`
			TerminationGracePeriod string `json:"terminationGracePeriod"`
		} `json:"spec"`
	}
	text, err := json.Marshal(object.Object)
	if err != nil || json.Unmarshal(text, &read) != nil ||
		read.Metadata.DeletionTimestamp == nil || read.Status.NodeName == "" {
		return "", nil
	}
	claim := &read.Metadata
	deleted := claim.DeletionTimestamp.UTC()
	notice = departure.Of(departure.NodeClaimDeleting, "NodeClaim "+claim.Name+" is being deleted")
	notice.Since = deleted
	if at, err := time.Parse(time.RFC3339, claim.Annotations[claimTermination]); err == nil {
		notice.Deadline = at.UTC()
	} else if grace, err := time.ParseDuration(read.Spec.TerminationGracePeriod); err == nil {
		// Karpenter adds the annotation milliseconds after the deletion
		// (controllers/nodeclaim/lifecycle/controller.go).
		notice.Deadline = deleted.Add(grace)
	}
	reason := disruptionOf(read.Status.Conditions)
	if reason != "" {
		notice.Message += " (" + reason + ")"
	}
	age, err := time.ParseDuration(cmp.Or(read.Spec.ExpireAfter, "Never"))
	expired := err == nil && deleted.Sub(claim.CreationTimestamp.Time) >= age
	notice.Reclaimed = reason == "" && !expired && claim.Labels[claimCapacityType] == claimSpot
	return read.Status.NodeName, notice
}

// disruptionOf returns why Karpenter itself ends a machine: Underutilized, Empty, Drifted; empty if it does not.
func disruptionOf(conditions []metav1.Condition) string {
	for i := range conditions {
		if c := &conditions[i]; c.Type == claimDisruption && c.Status == metav1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}
