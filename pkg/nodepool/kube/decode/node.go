package decode

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// mostMessage bounds in bytes what is kept of a condition's message.
const mostMessage = 200

// ForGPUs converts a node for package sharing, with everything it says about its GPUs.
func ForGPUs(node *corev1.Node) sharing.NodeObject {
	o := sharing.NodeObject{
		Name:          node.Name,
		Labels:        node.Labels,
		Annotations:   node.Annotations,
		Taints:        Taints(node),
		Unschedulable: node.Spec.Unschedulable,
		BootID:        node.Status.NodeInfo.BootID,
		Conditions:    make(map[string]string, len(node.Status.Conditions)),
	}
	var ofCapacity []string
	o.Capacity, ofCapacity = extendedResources("capacity", node.Status.Capacity)
	o.Allocatable, o.Unreadable = extendedResources("allocatable", node.Status.Allocatable)
	o.Unreadable = append(o.Unreadable, ofCapacity...)
	for _, c := range node.Status.Conditions {
		o.Conditions[string(c.Type)] = string(c.Status)
		if sharing.IsGPUCondition(string(c.Type)) && c.Message != "" {
			if o.Messages == nil {
				o.Messages = map[string]string{}
			}
			o.Messages[string(c.Type)] = strings.ToValidUTF8(c.Message[:min(len(c.Message), mostMessage)], "")
		}
	}
	return o
}

// Read reads a Node object as the API prints it, for sharing and for landing. The reader has configured names of
// resources, or a configured label for pools. The error names the field. A node without a condition Ready is an
// excerpt, and counts as ready.
func Read(reader sharing.Reader, object map[string]any) (sharing.NodeObject, landing.Node, error) {
	node := &corev1.Node{}
	if unreadable := Typed(object, node); len(unreadable) > 0 {
		return sharing.NodeObject{}, landing.Node{}, fmt.Errorf("reading node: %s", unreadable[0])
	}
	forGPUs, view := ForGPUs(node), ForPodFit(reader, node)
	if _, shown := forGPUs.Conditions[string(corev1.NodeReady)]; !shown {
		view.Ready = true
	}
	return forGPUs, view, nil
}

// nameIn returns the name of an object that cannot be decoded otherwise.
func nameIn(fields map[string]any) string {
	name, _, _ := unstructured.NestedString(fields, "metadata", "name")
	return cmp.Or(name, "without a name")
}

// ForPodFit converts a node for package landing. Names and labels repeat from node to node, so each text is stored
// once: otherwise the labels of thousands of nodes would take most of this process's memory.
func ForPodFit(reader sharing.Reader, node *corev1.Node) landing.Node {
	n := landing.Node{
		Name: node.Name, Unschedulable: node.Spec.Unschedulable, CreatedAt: node.CreationTimestamp.Time,
		Labels:      make(map[string]string, len(node.Labels)),
		Allocatable: make(landing.Quantities, len(node.Status.Allocatable)),
	}
	for key, value := range node.Labels {
		n.Labels[interned(key)] = interned(value)
	}
	object := ForGPUs(node)
	for name, quantity := range node.Status.Allocatable {
		if extended(string(name)) && !reader.CanAnnounce(object, string(name)) {
			continue
		}
		if amount := Amount(quantity); amount > 0 || name == corev1.ResourcePods {
			n.Allocatable[interned(string(name))] = amount
			if requested, isDAS := gpuinfo.DASName(string(name)); isDAS {
				n.Allocatable[interned(requested)] = amount
			}
		}
	}
	n.Taints = Taints(node)
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Ready = c.Status == corev1.ConditionTrue
		}
	}
	pool, _, _ := reader.PoolAndProvider(object)
	n.Pool, n.GPUs = interned(pool), GPUsOf(reader, object)
	if node.Labels[karpenterPool] != "" {
		n.Capacity = make(landing.Quantities, len(node.Status.Capacity))
		for name, quantity := range node.Status.Capacity {
			n.Capacity[interned(string(name))] = Amount(quantity)
		}
	}
	return n
}

// karpenterPool is the label of NodeClaims and of nodes that Karpenter made. Limits of NodePools count capacity.
const karpenterPool = "karpenter.sh/nodepool"

// Taints returns the taints of a node that keep pods away.
func Taints(node *corev1.Node) []sharing.Taint {
	var taints []sharing.Taint
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints,
				sharing.Taint{Key: interned(t.Key), Value: interned(t.Value), Effect: interned(string(t.Effect))})
		}
	}
	return taints
}

// GPUsOf returns what is known of a node's GPUs, or nil if it shows none. It drops how much memory processes use at the
// moment: no decision depends on it, and it would make every node change all the time.
func GPUsOf(reader sharing.Reader, node sharing.NodeObject) *sharing.GPUs {
	read := reader.Read(node)
	_, unsupplied := read.Unsupplied()
	if read.Kind == gpuinfo.UnknownKind && len(read.Units) == 0 && len(read.PerCard) == 0 && !unsupplied &&
		len(read.SharedCards) == 0 {
		return nil
	}
	for i := range read.PerCard {
		read.PerCard[i].UnusedMiB = nil
	}
	return &read
}

func interned(text string) string { return unique.Make(text).Value() }

// wantQuantity is what an amount of a node, or of a container, has to be.
const wantQuantity = "a Kubernetes quantity of 0 or more"

// isQuantity reports whether a value is a quantity of 0 or more, the only ones that the API server accepts here. Null
// counts as one, and is read as 0.
func isQuantity(value any) bool {
	if value == nil {
		return true
	}
	switch value.(type) {
	case string, int64, float64:
		quantity, err := resource.ParseQuantity(fmt.Sprint(value))
		return err == nil && quantity.Sign() >= 0
	}
	return false
}

// extendedResources returns the resources with a domain, which come in whole units; nil stays nil. It returns amounts
// that do not fit into 64 bits as unreadable.
func extendedResources(field string, list corev1.ResourceList) (found map[string]int64, unreadable []string) {
	if list == nil {
		return nil, nil
	}
	found = map[string]int64{}
	for name, quantity := range list {
		if !extended(string(name)) {
			continue
		}
		n := quantity.Value()
		if quantity.Cmp(*resource.NewQuantity(n, resource.DecimalSI)) != 0 {
			unreadable = append(unreadable, Short(fmt.Sprintf("status.%s[%q] is %s", field, name, quantity.String()))+
				": want a whole number of units; it is ignored")
			continue
		}
		found[string(name)] = n
	}
	slices.Sort(unreadable)
	return found, unreadable
}

// Strip keeps of a node what ForPodFit and Departure read. A node with its list of images is 10 to 30 KB; less than 5
// KB remain.
func Strip(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil // a tombstone
	}
	stripped := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			CreationTimestamp: node.CreationTimestamp, DeletionTimestamp: node.DeletionTimestamp,
		},
		Spec: corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status: corev1.NodeStatus{
			Allocatable: node.Status.Allocatable,
			NodeInfo:    corev1.NodeSystemInfo{BootID: node.Status.NodeInfo.BootID},
		},
	}
	for name, quantity := range node.Status.Capacity {
		if extended(string(name)) || node.Labels[karpenterPool] != "" {
			if stripped.Status.Capacity == nil {
				stripped.Status.Capacity = corev1.ResourceList{}
			}
			stripped.Status.Capacity[name] = quantity
		}
	}
	if node.Annotations != nil {
		stripped.Annotations = map[string]string{} // that some are shown says that the others are not there
	}
	for key, value := range node.Annotations {
		if sharing.ReadsAnnotation(key) {
			metav1.SetMetaDataAnnotation(&stripped.ObjectMeta, key, value)
		}
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		kept := corev1.NodeCondition{Type: c.Type, Status: c.Status}
		switch {
		case departure.OfCondition(string(c.Type), c.Status == corev1.ConditionTrue, c.Reason, c.Message) != nil:
			kept.Reason, kept.Message, kept.LastTransitionTime = c.Reason, c.Message, c.LastTransitionTime
		case sharing.IsGPUCondition(string(c.Type)):
			kept.Message = c.Message
		case c.Type != corev1.NodeReady:
			continue
		}
		stripped.Status.Conditions = append(stripped.Status.Conditions, kept)
	}
	return stripped, nil
}

// Departure returns what a Node says about its end, or nil: its deletion, its taints and conditions, and a cordon.
// reclaimed is when it was first seen that the cloud takes the machine back, for a taint that does not say it.
func Departure(node *corev1.Node, reclaimed time.Time) *departure.Notice {
	var found *departure.Notice
	if at := node.DeletionTimestamp; at != nil {
		found = departure.Of(departure.NodeDeleting, "the Node is being deleted")
		found.Since = at.UTC()
	}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		notice := departure.OfTaint(taint.Key, taint.Value)
		if notice != nil && notice.Sign == departure.AWSSpot {
			if taint.TimeAdded != nil {
				reclaimed, notice.Since = taint.TimeAdded.UTC(), taint.TimeAdded.UTC()
			}
			notice.Deadline = reclaimed.Add(departure.SpotNotice).UTC()
		}
		found = departure.Earlier(found, notice)
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
	read, err := fromJSON[claimObject](object.Object)
	if err != nil || read.Metadata.DeletionTimestamp == nil || read.Status.NodeName == "" {
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
	if c := meta.FindStatusCondition(conditions, claimDisruption); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

// CheckTopologyLabel returns an error that names what is not a label's name.
func CheckTopologyLabel(label sharing.TopologyLabel) error {
	for _, name := range []string{label.Node, label.Ray} {
		if len(validation.IsQualifiedName(name)) > 0 {
			return fmt.Errorf("%q is not a label's name (at most 63 of a to z, A to Z, 0 to 9, -, _ and ., after a "+
				"domain and / if it has one)", name)
		}
	}
	return nil
}
