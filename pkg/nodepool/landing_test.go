package nodepool_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const gib = 1 << 30

// node is a ready one with 8 CPUs and 32 GiB.
func node(name string, change ...func(*nodepool.Node)) nodepool.Node {
	n := nodepool.Node{
		Name: name, Ready: true, Labels: map[string]string{},
		Allocatable: nodepool.Quantities{"cpu": raydemand.Whole(8), "memory": raydemand.Whole(32 * gib)},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func announces(resource string, amount int64) func(*nodepool.Node) {
	return func(n *nodepool.Node) { n.Allocatable[resource] = raydemand.Whole(amount) }
}

func labelled(key, value string) func(*nodepool.Node) {
	return func(n *nodepool.Node) { n.Labels[key] = value }
}

func taintedBy(key, value, effect string) func(*nodepool.Node) {
	return func(n *nodepool.Node) {
		n.Taints = append(n.Taints, nodegpu.Taint{Key: key, Value: value, Effect: effect})
	}
}

func isCordoned(n *nodepool.Node) {
	n.Unschedulable = true
	taintedBy("node.kubernetes.io/unschedulable", "", nodegpu.NoSchedule)(n)
}

func isNotReady(n *nodepool.Node) {
	n.Ready = false
	taintedBy("node.kubernetes.io/unreachable", "", nodegpu.NoExecute)(n)
}

func asks(resource string, amount int64) nodepool.PodShape {
	return nodepool.PodShape{Requests: nodepool.Quantities{resource: raydemand.Whole(amount)}}
}

func tolerating(shape nodepool.PodShape, tolerations ...nodepool.Toleration) nodepool.PodShape {
	shape.Tolerations = tolerations
	return shape
}

func affine(terms ...nodepool.NodeTerm) nodepool.PodShape { return nodepool.PodShape{Affinity: terms} }

func expression(key, operator string, values ...string) nodepool.NodeTerm {
	return nodepool.NodeTerm{Labels: []nodepool.Requirement{{Key: key, Operator: operator, Values: values}}}
}

func TestLandTellsWhichNodesCouldHoldAPodOrTheNearestMiss(t *testing.T) {
	gpuTaint := taintedBy("nvidia.com/gpu", "present", nodegpu.NoSchedule)
	tests := []struct {
		name  string
		shape nodepool.PodShape
		nodes []nodepool.Node
		want  nodepool.Landing
	}{
		{name: "without nodes nothing lands", shape: asks("cpu", 1), want: nodepool.Landing{Why: "there is no node"}},
		{
			name: "every node that is large enough counts, whatever runs on it", shape: asks("cpu", 8),
			nodes: []nodepool.Node{node("a"), node("b"), node("c", announces("cpu", 7))}, want: nodepool.Landing{Nodes: 2},
		},
		{
			name: "an extended resource is matched by its exact name", shape: asks("nvidia.com/mig-1g.10gb", 1),
			nodes: []nodepool.Node{node("a", announces("nvidia.com/gpu", 8)), node("b", announces("nvidia.com/mig-1g.5gb", 7))},
			want:  nodepool.Landing{Why: "needs nvidia.com/mig-1g.10gb 1, no node announces it"},
		},
		{
			name: "a node of the right kind that is too small is nearer than one of another kind", shape: asks("nvidia.com/gpu", 8),
			nodes: []nodepool.Node{node("a"), node("gpu-0", announces("nvidia.com/gpu", 4))},
			want:  nodepool.Landing{Why: "the nearest of 2 nodes: node gpu-0 has nvidia.com/gpu 4 where 8 is needed"},
		},
		{
			name: "memory is told for people", shape: asks("memory", 64*gib), nodes: []nodepool.Node{node("a")},
			want: nodepool.Landing{Why: "node a has memory 32.0 GiB where 64.0 GiB is needed"},
		},
		{
			name: "a difference that rounding hides is told in bytes", shape: asks("memory", 32*gib+1), nodes: []nodepool.Node{node("a")},
			want: nodepool.Landing{Why: "node a has memory 34359738368 where 34359738369 is needed"},
		},
		{
			name: "what HAMi checks by itself needs no node that announces it", shape: asks("nvidia.com/gpumem", 3000),
			nodes: []nodepool.Node{node("a")}, want: nodepool.Landing{Nodes: 1},
		},
		{
			name: "a node that is not ready holds nothing", shape: asks("cpu", 1), nodes: []nodepool.Node{node("a", isNotReady)},
			want: nodepool.Landing{Why: "node a is not ready"},
		},
		{
			name: "a cordoned node holds nothing", shape: asks("cpu", 1), nodes: []nodepool.Node{node("a", isCordoned)},
			want: nodepool.Landing{Why: "node a is cordoned"},
		},
		{
			name:  "a cordon can be tolerated",
			shape: tolerating(asks("cpu", 1), nodepool.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: "Exists"}),
			nodes: []nodepool.Node{node("a", isCordoned)}, want: nodepool.Landing{Nodes: 1},
		},
		{
			name: "a taint keeps the group away", shape: asks("nvidia.com/gpu", 1),
			nodes: []nodepool.Node{node("gpu-0", announces("nvidia.com/gpu", 1), taintedBy("nvidia.com/gpu", "", nodegpu.NoSchedule))},
			want:  nodepool.Landing{Why: "node gpu-0 has taint nvidia.com/gpu:NoSchedule which the group does not tolerate"},
		},
		{
			name: "all that one node lacks is told", shape: asks("nvidia.com/gpu", 2),
			nodes: []nodepool.Node{node("gpu-0", announces("nvidia.com/gpu", 1), gpuTaint, isCordoned)},
			want: nodepool.Landing{Why: "node gpu-0 is cordoned and has taint nvidia.com/gpu=present:NoSchedule which the group does not tolerate" +
				" and has nvidia.com/gpu 1 where 2 is needed"},
		},
		{
			name: "on GKE the toleration comes with the request", shape: asks("nvidia.com/gpu", 1),
			nodes: []nodepool.Node{node("a", announces("nvidia.com/gpu", 1), gpuTaint, labelled("cloud.google.com/gke-nodepool", "p"))},
			want:  nodepool.Landing{Nodes: 1},
		},
		{
			name: "on GKE a pod without GPU gets no toleration", shape: asks("cpu", 1),
			nodes: []nodepool.Node{node("a", gpuTaint, labelled("cloud.google.com/gke-nodepool", "p"))},
			want:  nodepool.Landing{Why: "node a has taint nvidia.com/gpu=present:NoSchedule which the group does not tolerate"},
		},
		{
			name: "nodeSelector wants the value", shape: nodepool.PodShape{Selector: map[string]string{"pool": "gpu"}},
			nodes: []nodepool.Node{node("a", labelled("pool", "cpu"))},
			want:  nodepool.Landing{Why: "node a has label pool=cpu where nodeSelector wants gpu"},
		},
		{
			name: "nodeSelector wants the label", shape: nodepool.PodShape{Selector: map[string]string{"pool": "gpu"}},
			nodes: []nodepool.Node{node("a")}, want: nodepool.Landing{Why: "node a lacks label pool=gpu that nodeSelector wants"},
		},
		{
			name: "required affinity keeps the group away", shape: affine(expression("zone", "In", "a", "b")),
			nodes: []nodepool.Node{node("a", labelled("zone", "c"))}, want: nodepool.Landing{Why: "node a does not match the required node affinity"},
		},
		{
			name: "a pod bound to a node meets neither cordon nor NoSchedule", shape: nodepool.PodShape{NodeName: "a"},
			nodes: []nodepool.Node{node("a", isCordoned, gpuTaint), node("b")}, want: nodepool.Landing{Nodes: 1},
		},
		{
			name: "a pod bound to a node that is not there lands nowhere", shape: nodepool.PodShape{NodeName: "z"},
			nodes: []nodepool.Node{node("a")}, want: nodepool.Landing{Why: "is bound to node z, which is not there"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.shape.Land(test.nodes)); diff != "" {
				t.Errorf("landing (-want +got):\n%s", diff)
			}
		})
	}
}

// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
func TestTolerationsAreReadAsKubernetesReadsThem(t *testing.T) {
	tests := []struct {
		name       string
		toleration nodepool.Toleration
		want       bool
	}{
		{"equal key, value and effect", nodepool.Toleration{Key: "team", Operator: "Equal", Value: "ml", Effect: nodegpu.NoExecute}, true},
		{"Equal is the default", nodepool.Toleration{Key: "team", Value: "ml"}, true},
		{"no effect means every effect", nodepool.Toleration{Key: "team", Operator: "Exists"}, true},
		{"no key with Exists means every taint", nodepool.Toleration{Operator: "Exists"}, true},
		{"no key with Exists and another effect", nodepool.Toleration{Operator: "Exists", Effect: nodegpu.NoSchedule}, false},
		{"another value", nodepool.Toleration{Key: "team", Value: "web"}, false},
		{"another key", nodepool.Toleration{Key: "tean", Operator: "Exists"}, false},
		{"another effect", nodepool.Toleration{Key: "team", Value: "ml", Effect: nodegpu.NoSchedule}, false},
		{"no key with Equal", nodepool.Toleration{Value: "ml"}, false},
		{"an unknown operator", nodepool.Toleration{Key: "team", Operator: "Like", Value: "ml"}, false},
	}
	nodes := []nodepool.Node{node("a", taintedBy("team", "ml", nodegpu.NoExecute))}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			shape := tolerating(asks("cpu", 1), test.toleration)
			if got := shape.Land(nodes).Nodes == 1; got != test.want {
				t.Errorf("lands: %v, want %v", got, test.want)
			}
		})
	}
}

// https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
func TestRequiredAffinityIsReadAsKubernetesReadsIt(t *testing.T) {
	both := nodepool.NodeTerm{Labels: []nodepool.Requirement{{Key: "zone", Operator: "In", Values: []string{"a"}}, {Key: "gpus", Operator: "Exists"}}}
	byName := func(operator string, name string) nodepool.NodeTerm {
		return nodepool.NodeTerm{Fields: []nodepool.Requirement{{Key: "metadata.name", Operator: operator, Values: []string{name}}}}
	}
	tests := []struct {
		name  string
		terms []nodepool.NodeTerm
		want  bool
	}{
		{"In with the value", []nodepool.NodeTerm{expression("zone", "In", "b", "a")}, true},
		{"In with another value", []nodepool.NodeTerm{expression("zone", "In", "b")}, false},
		{"In without the label", []nodepool.NodeTerm{expression("rack", "In", "")}, false},
		{"NotIn with the value", []nodepool.NodeTerm{expression("zone", "NotIn", "a")}, false},
		{"NotIn without the label", []nodepool.NodeTerm{expression("rack", "NotIn", "a")}, true},
		{"Exists", []nodepool.NodeTerm{expression("zone", "Exists")}, true},
		{"Exists without the label", []nodepool.NodeTerm{expression("rack", "Exists")}, false},
		{"DoesNotExist", []nodepool.NodeTerm{expression("rack", "DoesNotExist")}, true},
		{"DoesNotExist with the label", []nodepool.NodeTerm{expression("zone", "DoesNotExist")}, false},
		{"Gt a smaller number", []nodepool.NodeTerm{expression("gpus", "Gt", "7")}, true},
		{"Gt compares numbers, not texts", []nodepool.NodeTerm{expression("gpus", "Gt", "10")}, false},
		{"Gt the same number", []nodepool.NodeTerm{expression("gpus", "Gt", "8")}, false},
		{"Lt a larger number", []nodepool.NodeTerm{expression("gpus", "Lt", "10")}, true},
		{"Lt the same number", []nodepool.NodeTerm{expression("gpus", "Lt", "8")}, false},
		{"Gt a label that is no number", []nodepool.NodeTerm{expression("zone", "Gt", "1")}, false},
		{"Gt something that is no number", []nodepool.NodeTerm{expression("gpus", "Gt", "x")}, false},
		{"Gt without a bound", []nodepool.NodeTerm{expression("gpus", "Gt")}, false},
		{"an unknown operator", []nodepool.NodeTerm{expression("zone", "Like", "a")}, false},
		{"all requirements of a term", []nodepool.NodeTerm{both}, true},
		{"one of two terms", []nodepool.NodeTerm{expression("zone", "In", "b"), both}, true},
		{"an empty term matches nothing", []nodepool.NodeTerm{{}}, false},
		{"a field: the name", []nodepool.NodeTerm{byName("In", "gpu-0")}, true},
		{"a field: another name", []nodepool.NodeTerm{byName("NotIn", "gpu-0")}, false},
	}
	nodes := []nodepool.Node{node("gpu-0", labelled("zone", "a"), labelled("gpus", "8"))}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			shape := affine(test.terms...)
			if got := shape.Land(nodes).Nodes == 1; got != test.want {
				t.Errorf("lands: %v, want %v", got, test.want)
			}
		})
	}
}

func TestNodesAreEqualOnlyWhenNothingThatMattersDiffers(t *testing.T) {
	plain := node("a", labelled("zone", "a"))
	if !plain.Equal(node("a", labelled("zone", "a"))) {
		t.Error("equal nodes differ")
	}
	for name, other := range map[string]nodepool.Node{
		"name": node("b", labelled("zone", "a")), "label": node("a", labelled("zone", "b")),
		"readiness": node("a", labelled("zone", "a"), func(n *nodepool.Node) { n.Ready = false }),
		"cordon":    node("a", labelled("zone", "a"), func(n *nodepool.Node) { n.Unschedulable = true }),
		"taint":     node("a", labelled("zone", "a"), taintedBy("x", "", nodegpu.NoSchedule)),
		"resource":  node("a", labelled("zone", "a"), announces("nvidia.com/gpu", 1)),
	} {
		if plain.Equal(other) {
			t.Errorf("a change of %s is not seen", name)
		}
	}
}
