package landing

import (
	"fmt"
	"time"
	"unique"
)

// NodeClaim is one machine that Karpenter requested from its provider (karpenter.sh/v1), with what shows which pods its
// node will hold. It is immutable.
type NodeClaim struct {
	Name string
	// Pool is the NodePool of the claim, empty for a claim that was created by hand.
	Pool string
	// Template describes the future node: the claim's labels, its requirements, and its permanent taints.
	Template NodeTemplate
	// Requests is the total that the pods request for which Karpenter created the claim.
	Requests Quantities
	// Allocatable is what the node will have for pods; nil until the provider reports it, at the launch.
	Allocatable Quantities
	// Launched: the provider has started the machine; before that, it may fail to. Registered: the Node object exists.
	// NodeReady: the kubelet is ready too, and Lacks says what the node still lacks, for example a device. Initialized:
	// the node is complete, with all its devices.
	Launched, Registered, NodeReady, Initialized bool
	Lacks                                        string
	Deleting                                     bool
	// Node is the name of the Node object after the node has registered.
	Node string
	// CreatedAt is when Karpenter created the claim, LaunchedAt when the provider had the machine, RegisteredAt when
	// the node registered, and NodeReadyAt when its kubelet was first seen ready; zero if unknown.
	CreatedAt, LaunchedAt, RegisteredAt, NodeReadyAt time.Time
	// class is the claim's class; zero if it is not computed yet (Classed).
	class claimClass
}

// Karpenter deletes a NodeClaim that is not launched, or not registered, after this time
// (docs/reference/facts.md#karpenter-nodeclaims). An older one proves nothing: Karpenter is not running.
const (
	launchTimeout       = 5 * time.Minute
	registrationTimeout = 15 * time.Minute
)

// Progress is how far a NodeClaim has come.
type Progress int

// NotComing claims bring no further capacity: their node is complete, or will never come. Requested ones may still
// fail. Those further on have a machine: Launched ones no node yet, Registered ones a node that is not ready, and
// NodeReady ones a node that lacks a device or still has a startup taint.
const (
	NotComing Progress = iota
	Requested
	Launched
	Registered
	NodeReady
)

// hasMachine reports whether the provider has started the machine.
func (p Progress) hasMachine() bool { return p >= Launched }

// progress returns what to expect of the claim at a moment.
func (c *NodeClaim) progress(now time.Time) Progress {
	switch {
	case c.Deleting || c.Initialized:
		return NotComing
	case !c.Launched && now.Sub(c.CreatedAt) < launchTimeout:
		return Requested
	case !c.Launched || now.Sub(c.LaunchedAt) >= registrationTimeout:
		return NotComing
	case c.NodeReady:
		return NodeReady
	case c.Registered:
		return Registered
	}
	return Launched
}

// since returns when the claim made that progress; zero if unknown.
func (c *NodeClaim) since(progress Progress) time.Time {
	switch progress {
	case Launched:
		return c.LaunchedAt
	case Registered:
		return c.RegisteredAt
	case NodeReady:
		return c.NodeReadyAt
	}
	return c.CreatedAt
}

// claimClass is equal for claims that do not differ in anything a pod depends on. Thousands of claims have a few dozen
// classes, by NodePool and instance type.
type claimClass struct {
	node         nodeClass
	requirements unique.Handle[string]
}

// Classed returns the claim with its class, which PlaceOnClaims needs.
func (c NodeClaim) Classed() NodeClaim {
	node := classOf(&Node{Name: c.Name, Pool: c.Pool, Labels: c.Template.Labels, Taints: c.Template.Taints})
	c.class = claimClass{node, unique.Make(fmt.Sprint(c.Template.Requirements))}
	return c
}

// room returns what pods can use of the claim's node, less what pods already bound to it use. Before the launch, it is
// what the claim was created for.
func (c *NodeClaim) room(bound Quantities) Quantities {
	whole := c.Allocatable
	if whole == nil {
		whole = c.Requests
	}
	left := make(Quantities, len(whole))
	for name, amount := range whole {
		left[name] = max(amount-bound[name], 0)
	}
	return left
}
