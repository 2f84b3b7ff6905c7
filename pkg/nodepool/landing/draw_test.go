package landing_test

import (
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const gib = 1 << 30

// node returns a ready node with 8 CPUs and 32 GiB.
func node(name string, change ...func(*podfit.Node)) podfit.Node {
	n := podfit.Node{
		Name: name, Ready: true, Labels: map[string]string{},
		Allocatable: podfit.Quantities{"cpu": raydemand.Whole(8), "memory": raydemand.Whole(32 * gib)},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func announces(resource string, amount int64) func(*podfit.Node) {
	return func(n *podfit.Node) { n.Allocatable[resource] = raydemand.Whole(amount) }
}

func labelled(key, value string) func(*podfit.Node) {
	return func(n *podfit.Node) { n.Labels[key] = value }
}

func taintedBy(key, value, effect string) func(*podfit.Node) {
	return func(n *podfit.Node) {
		n.Taints = append(n.Taints, sharing.Taint{Key: key, Value: value, Effect: effect})
	}
}

func isCordoned(n *podfit.Node) {
	n.Unschedulable = true
	taintedBy("node.kubernetes.io/unschedulable", "", sharing.NoSchedule)(n)
}

func isNotReady(n *podfit.Node) {
	n.Ready = false
	taintedBy("node.kubernetes.io/unreachable", "", sharing.NoExecute)(n)
}

func asks(resource string, amount int64) podfit.PodShape {
	return podfit.PodShape{Requests: podfit.Quantities{resource: raydemand.Whole(amount)}}
}

func tolerating(shape podfit.PodShape, tolerations ...podfit.Toleration) podfit.PodShape {
	shape.Tolerations = tolerations
	return shape
}

// gpuNode returns a node that announces units, with labels as the function labels reads them.
func gpuNode(name string, units map[string]int64, marks string) podfit.Node {
	n := node(name, func(n *podfit.Node) { n.Labels = labels(marks) })
	for resource, amount := range units {
		announces(resource, amount)(&n)
	}
	return n
}

func asking(units map[string]int64) podfit.PodShape {
	shape := podfit.PodShape{Requests: podfit.Quantities{}}
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
