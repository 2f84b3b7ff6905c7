package doctor

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
)

// Input is all that is looked at. Objects that are missing make checks silent, never wrong.
type Input struct {
	Objects []Object
	// Forbidden is what the reader was not allowed to list.
	Forbidden []Forbidden
	// Reader says what resources mean that are not built in, and which label names a node's pool.
	Reader nodegpu.Reader
	// Ceilings are how far pools of nodes may grow, by the Cluster Autoscaler's status and Karpenter's NodePools.
	Ceilings []pools.Ceiling
	// Pools are what somebody configured about pools of nodes; a group can land on what a pool without nodes would have.
	Pools pools.Config
	// Annotations are the annotations of a RayCluster that Heliostat reads, with the prefix heliostat.dev/.
	Annotations []string
}

// Object is a Kubernetes object as the API prints it.
type Object struct {
	Kind, Namespace, Name string
	Fields                map[string]any
	// Cluster is what Heliostat reads in the spec of a RayCluster, which stands at Spec: {"spec"} in a RayCluster, {"spec",
	// "rayClusterSpec"} in a RayJob. Nil for other kinds.
	Cluster *nodepool.Cluster
	Spec    []string
	// Node is set for nodes.
	Node *Node
	// Unreadable says what of the object cannot be read, with field and value where these are known.
	Unreadable []string
}

// Kinds are the kinds of objects that checks look at.
func Kinds() []string {
	return []string{"RayCluster", "RayJob", "RayService", "Node", "Pod", "Deployment", "HorizontalPodAutoscaler", "ScaledObject", "ResourceClaim",
		"ResourceClaimTemplate", "NodePool"}
}

// Examined reports whether checks look at objects of this kind. The Cluster Autoscaler's status is a ConfigMap of one name.
func (o Object) Examined() bool {
	return slices.Contains(Kinds(), o.Kind) || o.Kind == "ConfigMap" && o.Name == "cluster-autoscaler-status"
}

// String writes Kind/namespace/name, without the parts that are empty.
func (o *Object) String() string {
	parts := []string{o.Kind}
	for _, part := range []string{o.Namespace, o.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

func (o *Object) root() value { return value{raw: o.Fields} }

// spec is the RayCluster's spec inside the object.
func (o *Object) spec() value { return o.root().get(o.Spec...) }

// Node is a node in two views: what it tells of its GPUs, and what decides over landing.
type Node struct {
	GPUs    nodegpu.NodeObject
	Landing podfit.Node
}

// Forbidden is a kind that could not be listed. Namespace is empty where all were asked for.
type Forbidden struct {
	// Group and Resource are as in a Role: ray.io and rayclusters, and an empty group for nodes.
	Group, Resource, Namespace string
	// Message is the API server's.
	Message string
}
