package landing_test

import (
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const gib = 1 << 30

// node returns a ready node with 8 CPUs and 32 GiB.
func node(name string, change ...func(*landing.Node)) landing.Node {
	n := landing.Node{
		Name: name, Ready: true, Labels: map[string]string{},
		Allocatable: landing.Quantities{"cpu": raydemand.Whole(8), "memory": raydemand.Whole(32 * gib)},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func announces(resource string, amount int64) func(*landing.Node) {
	return func(n *landing.Node) { n.Allocatable[resource] = raydemand.Whole(amount) }
}

// unsupplied is a node whose labels show a GPU that no resource offers.
var unsupplied = sharing.Reader{}.Read(sharing.NodeObject{
	Labels: map[string]string{"karpenter.k8s.aws/instance-gpu-count": "1"}, Allocatable: map[string]int64{},
})

func hasGPUs(gpus sharing.GPUs) func(*landing.Node) { return func(n *landing.Node) { n.GPUs = &gpus } }

func labelled(key, value string) func(*landing.Node) {
	return func(n *landing.Node) { n.Labels[key] = value }
}

func taintedBy(key, value, effect string) func(*landing.Node) {
	return func(n *landing.Node) {
		n.Taints = append(n.Taints, sharing.Taint{Key: key, Value: value, Effect: effect})
	}
}

func isCordoned(n *landing.Node) {
	n.Unschedulable = true
	taintedBy("node.kubernetes.io/unschedulable", "", sharing.NoSchedule)(n)
}

func isNotReady(n *landing.Node) {
	n.Ready = false
	taintedBy("node.kubernetes.io/unreachable", "", sharing.NoExecute)(n)
}

func asks(resource string, amount int64) landing.PodShape {
	return landing.PodShape{Requests: landing.Quantities{resource: raydemand.Whole(amount)}}
}

func tolerating(shape landing.PodShape, tolerations ...landing.Toleration) landing.PodShape {
	shape.Tolerations = tolerations
	return shape
}

// gpuNode returns a node that announces units, with labels as the function labels reads them.
func gpuNode(name string, units map[string]int64, marks string) landing.Node {
	n := node(name, func(n *landing.Node) { n.Labels = labels(marks) })
	for resource, amount := range units {
		announces(resource, amount)(&n)
	}
	return n
}

func asking(units map[string]int64) landing.PodShape {
	shape := landing.PodShape{Requests: landing.Quantities{}}
	for resource, amount := range units {
		shape.Requests[resource] = raydemand.Whole(amount)
	}
	return shape
}

func quantities(pairs ...any) map[string]int64 {
	found := map[string]int64{}
	for i := 0; i < len(pairs); i += 2 {
		found[pairs[i].(string)] = int64(pairs[i+1].(int))
	}
	return found
}

// labels reads "key=value key=value"; nvidia.com/ is written n/.
func labels(text string) map[string]string {
	found := map[string]string{}
	for _, pair := range strings.Fields(text) {
		key, value, _ := strings.Cut(pair, "=")
		found[strings.Replace(key, "n/", "nvidia.com/", 1)] = value
	}
	return found
}
