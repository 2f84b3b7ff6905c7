package pools

import (
	"fmt"
	"time"
	"unique"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// NodeClaim is one machine that Karpenter asked its provider for (karpenter.sh/v1), as far as it tells which pods its
// node will hold. It is never changed once it is made.
type NodeClaim struct {
	Name string
	// Pool is the NodePool that it belongs to, empty for a claim that somebody made by hand.
	Pool string
	// Template is what the node will be: the claim's labels, its requirements, and the taints that stay.
	Template NodeTemplate
	// Requests is what the pods take together that Karpenter made it for.
	Requests podfit.Quantities
	// Allocatable is what the node will announce for pods; nil until the provider says so, at the launch.
	Allocatable podfit.Quantities
	// Launched: the provider has the machine. Until then it may have none. Initialized: the node is ready, with all its
	// devices.
	Launched, Initialized bool
	Deleting              bool
	// Node is the name of the Node object once it has registered.
	Node string
	// CreatedAt is when Karpenter made the claim, LaunchedAt when the provider had the machine; zero where that is not
	// known.
	CreatedAt, LaunchedAt time.Time
	// Class is equal for claims that every pod takes for the same (ClaimClassOf).
	Class ClaimClass
}

// Karpenter deletes a NodeClaim that is not launched, or has not registered, for so long
// (docs/reference/facts.md#karpenter-nodeclaims). One that is older tells nothing: Karpenter does not run.
const (
	launchTimeout       = 5 * time.Minute
	registrationTimeout = 15 * time.Minute
)

// Progress is how far a NodeClaim has come.
type Progress int

// NotComing claims bring no further capacity: their node is complete, or never comes. Requested ones may still fail.
// The provider has the machine of those OnItsWay, and its node is not complete yet.
const (
	NotComing Progress = iota
	Requested
	OnItsWay
)

// Progress is what can be expected of the claim at a moment.
func (c *NodeClaim) Progress(now time.Time) Progress {
	switch {
	case c.Deleting || c.Initialized:
		return NotComing
	case !c.Launched && now.Sub(c.CreatedAt) < launchTimeout:
		return Requested
	case c.Launched && now.Sub(c.LaunchedAt) < registrationTimeout:
		return OnItsWay
	}
	return NotComing
}

// ClaimClass is equal for claims that differ in nothing that a pod asks about.
type ClaimClass struct {
	node         podfit.NodeClass
	requirements unique.Handle[string]
}

// ClaimClassOf returns the class of a claim. Thousands of claims have some dozens of classes, by NodePool and instance
// type.
func ClaimClassOf(c *NodeClaim) ClaimClass {
	node := podfit.ClassOf(&podfit.Node{Name: c.Name, Pool: c.Pool, Labels: c.Template.Labels,
		Taints: c.Template.Taints})
	return ClaimClass{node, unique.Make(fmt.Sprint(c.Template.Requirements))}
}

// room is what pods can take of the claim's node, less what is bound to it already. Before the launch it is what the
// claim was made for.
func (c *NodeClaim) room(bound podfit.Quantities) podfit.Quantities {
	whole := c.Allocatable
	if whole == nil {
		whole = c.Requests
	}
	left := make(podfit.Quantities, len(whole))
	for name, amount := range whole {
		left[name] = max(amount-bound[name], 0)
	}
	return left
}
