package landing

import (
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// PodShape is the part of a worker group's pod template that decides on which nodes its pods fit. All copies of a group
// share it; it is immutable.
type PodShape struct {
	// NodeName binds the pods to one node without the scheduler; almost always empty.
	NodeName string
	// Requests is what one pod takes from a node: all containers, init containers and overhead. Elsewhere are those
	// of its resources that the configuration says nodes do not bound.
	Requests  Quantities
	Elsewhere map[string]bool
	// Limits are those of the pod, which ResourceQuotas can bound; nil if it has none.
	Limits Quantities
	// Parts are the requests of each container, if several ask HAMi or Volcano for memory of cards: those schedulers
	// give each container cards of its own, and two of them may have parts of one card (HAMi, fitInDevices in
	// pkg/scheduler/score.go).
	Parts []Quantities
	// Own is what the Ray container requests, if other containers of the pod request devices too; nil otherwise. Ray
	// sees what its own container gets.
	Own Quantities
	// Selector is the template's nodeSelector.
	Selector map[string]string
	// Affinity are the terms of the required node affinity, one of which must match; an empty list requires nothing.
	Affinity    []NodeTerm
	Tolerations []Toleration
	// CardsAsked is the number of cards over which ACK spreads the GPU memory, by the pod label aliyun.com/gpu-count; 0
	// means one card.
	CardsAsked int64
	// Share is the part of cards that the KAI scheduler gives the pod by annotations; nil without them.
	Share *sharing.CardShare
	// Choice is which cards of HAMi or Volcano the pod wants; nil if it may have any.
	Choice sharing.CardChoice
	// HidesGPUs says that the Ray container's environment hides GPUs that it did not request. Claims says that a
	// container has DRA claims.
	HidesGPUs, Claims bool
	// ClaimTemplates are the names of the ResourceClaimTemplates of its claims, empty for a claim that exists already.
	ClaimTemplates []string
	// AbsentClasses are the DeviceClasses that do not exist, by the resource in Requests whose claims request them.
	AbsentClasses map[string]string
	// Neighbors is what decides beside which other pods they may run.
	Neighbors Neighbors
}

// AtLeast raises the pod's requests and limits to these.
func (p *PodShape) AtLeast(requests, limits Quantities) {
	for name, amount := range requests {
		p.Requests[name] = max(p.Requests[name], amount)
	}
	if p.Limits == nil {
		p.Limits = Quantities{}
	}
	for name, amount := range limits {
		p.Limits[name] = max(p.Limits[name], amount)
	}
}

// counts reports whether the pod requests a resource that nodes bound.
func (p *PodShape) counts(name string) bool {
	return p.Requests[name] > 0 && !sharing.ByExtender(name) && !p.Elsewhere[name]
}

// NodeTerm is one nodeSelectorTerm: all requirements must match. An empty one matches no node.
type NodeTerm struct {
	// Labels are its matchExpressions. Fields are its matchFields, of which Kubernetes supports only metadata.name.
	Labels, Fields []Requirement
}

// Requirement is one expression on a label or field.
type Requirement struct {
	Key string
	// Operator is In, NotIn, Exists, DoesNotExist, Gt or Lt; any other matches nothing.
	Operator string
	Values   []string
}

// Toleration allows a pod on nodes with matching taints.
type Toleration struct {
	// Operator is Exists, Gt, Lt, or Equal if empty. An empty Key with Exists tolerates every key, an empty Effect
	// every effect.
	Key, Operator, Value, Effect string
}

func (t Toleration) tolerates(taint sharing.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != taint.Key && t.Key != "" {
		return false
	}
	switch t.Operator {
	case "Exists":
		return true
	case "", "Equal":
		return t.Key != "" && t.Value == taint.Value
	}
	// Than the toleration's value (Kubernetes 1.35, k8s.io/api/core/v1, compareNumericValues).
	return compares(t.Operator, taint.Value, t.Value)
}

// Tolerates reports whether a pod may be scheduled on the node in spite of the taint. GKE adds a toleration for each
// extended resource that a pod requests, nvidia.com/gpu and google.com/tpu, so templates rarely have it
// (docs/reference/facts.md#gke-toleration).
func (p *PodShape) Tolerates(node *Node, taint sharing.Taint) bool {
	return slices.ContainsFunc(p.Tolerations, func(t Toleration) bool { return t.tolerates(taint) }) ||
		taint.Effect == sharing.NoSchedule && strings.Contains(taint.Key, "/") && p.Requests[taint.Key] > 0 &&
			onGKE(node)
}

// onGKE reports whether the node is of GKE.
func onGKE(node *Node) bool {
	for label := range node.Labels {
		if strings.HasPrefix(label, "cloud.google.com/gke-") {
			return true
		}
	}
	return false
}

// suits reports whether the required node affinity allows the node.
func (p *PodShape) suits(node *Node) bool {
	return len(p.Affinity) == 0 || slices.ContainsFunc(p.Affinity, func(t NodeTerm) bool { return t.matches(node) })
}

func (t NodeTerm) matches(node *Node) bool {
	for _, r := range t.Labels {
		if value, set := node.label(r.Key); !r.matches(value, set) {
			return false
		}
	}
	for _, r := range t.Fields {
		if r.Key != nameField || !r.matches(node.Name, true) {
			return false
		}
	}
	return len(t.Labels)+len(t.Fields) > 0
}

func (r Requirement) matches(value string, set bool) bool {
	switch r.Operator {
	case "In":
		return set && slices.Contains(r.Values, value)
	case "NotIn":
		return !set || !slices.Contains(r.Values, value)
	case "Exists":
		return set
	case "DoesNotExist":
		return !set
	case "Gt", "Lt":
		return set && len(r.Values) == 1 && compares(r.Operator, value, r.Values[0])
	}
	return false
}

// compares reports whether a value is greater (Gt) or less (Lt) than a bound. It compares both as whole numbers, as
// Kubernetes does; other values and operators do not match.
func compares(operator, value, bound string) bool {
	have, err := strconv.ParseInt(value, 10, 64)
	limit, invalid := strconv.ParseInt(bound, 10, 64)
	return err == nil && invalid == nil && (operator == "Gt" && have > limit || operator == "Lt" && have < limit)
}

// labelAlternatives returns the alternatives of what the pod requires of a node's labels, one of which must match.
func (p *PodShape) labelAlternatives() [][]Requirement {
	var always []Requirement
	for key, value := range p.Selector {
		always = append(always, Requirement{Key: key, Operator: "In", Values: []string{value}})
	}
	if len(p.Affinity) == 0 {
		return [][]Requirement{always}
	}
	var all [][]Requirement
	for _, term := range p.Affinity {
		// An empty term matches nothing.
		if len(term.Labels)+len(term.Fields) > 0 {
			all = append(all, slices.Concat(always, term.Labels))
		}
	}
	return all
}

// required returns the values that the pod's selector and required affinity allow for a label, or the field of the
// name, that is wanted; false if an alternative does not list any.
func (p *PodShape) required(wanted func(key string) bool) (values []string, limited bool) {
	for key, value := range p.Selector {
		if wanted(key) {
			return []string{value}, true
		}
	}
	for _, term := range p.Affinity {
		all := slices.Concat(term.Labels, term.Fields)
		at := slices.IndexFunc(all, func(r Requirement) bool { return r.Operator == "In" && wanted(r.Key) })
		switch {
		case at >= 0:
			values = append(values, all[at].Values...)
		case len(all) > 0: // An empty term matches nothing.
			return nil, false
		}
	}
	return values, len(values) > 0
}

// nameField is the field of a node's name, the only field that a node affinity can match.
const nameField = "metadata.name"
