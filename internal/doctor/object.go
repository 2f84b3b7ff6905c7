package doctor

import (
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Object is a Kubernetes object as the API server returns it.
type Object struct {
	Kind, Namespace, Name string
	// Generated says that the API server names the object when it is created (metadata.generateName). Name is then the
	// beginning of the name, and *.
	Generated bool
	Fields    map[string]any
	// Cluster is what Heliostat reads in the spec of a RayCluster. The keys in Spec lead to it: {"spec"} in a
	// RayCluster, {"spec", "rayClusterSpec"} in a RayJob. Nil for other kinds.
	Cluster *nodepool.Cluster
	Spec    []string
	// Head is what Heliostat reads in the head group, as in a worker group; nil if Cluster is.
	Head *nodepool.WorkerGroup
	// Node is set for nodes.
	Node *nodeViews
	// Policy is what Heliostat reads in a CapacityPolicy, and PolicyFault why it cannot; nil for other kinds.
	Policy      *capacity.Object
	PolicyFault *raydemand.Finding
	// RayCluster names the RayCluster that a CapacityPolicy or a ResourceRequest is for; empty for other kinds.
	RayCluster string
	// Place is where the object is, such as "document 2 of llm.yaml"; empty for an object of an API server.
	Place string
	// Unreadable says what cannot be read in the object, with field and value if these are known.
	Unreadable []string
}

// nodeViews are two views of a node: what it says of its GPUs, and what decides which pods fit.
type nodeViews struct {
	GPUs sharing.NodeObject
	Fit  landing.Node
}

// String returns Kind/namespace/name, without empty parts.
func (o *Object) String() string {
	parts := []string{o.Kind}
	for _, part := range []string{o.Namespace, o.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// Root returns the fields of the object.
func (o *Object) Root() fieldpath.Value { return fieldpath.Of(o.Fields, nil) }

// container returns the container of a Deployment whose image has the given name in it.
func (o *Object) container(image string) (container fieldpath.Value, ok bool) {
	for _, c := range o.Root().Items("spec", "template", "spec", "containers") {
		if strings.Contains(c.Text("image"), image) {
			return c, true
		}
	}
	return container, false
}

// arguments returns the words of that container's command line.
func (o *Object) arguments(image string) []string {
	c, _ := o.container(image)
	var words []string
	for _, field := range []string{"command", "args"} {
		for _, word := range c.Items(field) {
			words = append(words, word.Text())
		}
	}
	return words
}
