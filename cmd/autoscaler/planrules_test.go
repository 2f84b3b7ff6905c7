package main

import (
	"fmt"
	"strings"
	"testing"
)

// onNode returns a Pod that is on a node and takes nothing but its place.
func onNode(name, node, labels, spec string) string {
	return fmt.Sprintf(`{"metadata": {"name": %q, "namespace": "n", "labels": {%s}}, "spec": {"nodeName": %q, %s "containers": [{"name": "c"}]},
		"status": {"phase": "Running"}}`, name, labels, node, spec)
}

// TestRulesBetweenPodsLimitLaunches checks how many pods are launched under anti-affinity over nodes, among the
// groups of a RayCluster and with pods of others that are on the nodes. Rules beyond a node are tried, one pod at a time.
func TestRulesBetweenPodsLimitLaunches(t *testing.T) {
	const host, zone, cluster = "kubernetes.io/hostname", "topology.kubernetes.io/zone", `{"matchLabels": {"ray.io/cluster": "c"}}`
	rule := func(kind, key, selector string) string {
		return fmt.Sprintf(`"affinity": {%q: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": %q, "labelSelector": %s}]}},`, kind, key, selector)
	}
	spread := func(key string, skew int, more string) string {
		return fmt.Sprintf(`"topologySpreadConstraints": [{"topologyKey": %q, "maxSkew": %d, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": %s%s}],`,
			key, skew, cluster, more)
	}
	group := func(name, spec string) jointGroup {
		return jointGroup{name: name, limits: "nvidia.com/gpu=1", spec: spec}
	}
	node := func(name, zone string, gpus int, more ...string) string {
		return jointNode(name, "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB topology.kubernetes.io/zone="+zone, fmt.Sprintf("nvidia.com/gpu=%d", gpus), more...)
	}
	const hostNetwork = `"hostNetwork": true,` // with the port 8080 that the operator adds
	port := func(number int) string {
		return fmt.Sprintf(`"initContainers": [{"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": %d, "hostPort": %[1]d, "protocol": "TCP"}]}],`, number)
	}
	const own = `"ray.io/cluster": "c", "ray.io/group": "a", "ray.io/node-type": "worker"`
	two := []string{node("n1", "x", 4), node("n2", "y", 4)}
	tests := []struct {
		name   string
		groups []jointGroup
		nodes  []string
		pods   []string
		want   int
	}{
		{"one pod on each node", []jointGroup{group("a", rule("podAntiAffinity", host, cluster)), group("b", "")}, two, nil, 2},
		{"one pod in each zone", []jointGroup{group("a", rule("podAntiAffinity", zone, cluster))}, append(two, node("n3", "y", 4)), nil, 1},
		{"a worker is on one of the nodes", []jointGroup{group("a", rule("podAntiAffinity", host, cluster))}, two, []string{onNode("w", "n1", own, "")}, 1},
		{"a worker of another RayCluster is none of these", []jointGroup{group("a", rule("podAntiAffinity", host, cluster))}, two,
			[]string{onNode("w", "n1", `"ray.io/cluster": "other"`, "")}, 2},
		{"beside a pod of another owner", []jointGroup{group("a", rule("podAffinity", host, `{"matchLabels": {"app": "cache"}}`))}, two,
			[]string{onNode("cache-0", "n2", `"app": "cache"`, "")}, 1},
		{"beside a pod that is nowhere", []jointGroup{group("a", rule("podAffinity", host, `{"matchLabels": {"app": "cache"}}`))}, two, []string{}, 1},
		{"a pod of another owner keeps them away", []jointGroup{group("a", ""), group("b", "")}, two,
			[]string{onNode("guard", "n1", `"app": "x"`, rule("podAntiAffinity", host, `{"matchLabels": {"ray.io/group": "a"}}`)),
				onNode("guard-2", "n2", `"app": "x"`, rule("podAntiAffinity", host, cluster))}, 4},
		{"spread over zones", []jointGroup{group("a", spread(zone, 1, ""))}, []string{node("n1", "x", 8), node("n2", "y", 2)}, nil, 1},
		{"spread over nodes", []jointGroup{group("a", spread(host, 2, ""))}, []string{node("n1", "x", 8), node("n2", "x", 1)}, nil, 1},
		{"a port of the node", []jointGroup{group("a", hostNetwork), group("b", hostNetwork)}, two, nil, 2},
		{"a port that a pod on the node takes", []jointGroup{group("a", hostNetwork)}, two, []string{onNode("exporter", "n1", "", port(8080))}, 1},
		{"another port", []jointGroup{group("a", hostNetwork)}, two, []string{onNode("exporter", "n1", "", port(9100))}, 2},
		{"preferences do not count", []jointGroup{group("a", strings.Replace(spread(zone, 1, ""), "DoNotSchedule", "ScheduleAnyway", 1))},
			[]string{node("n1", "x", 8), node("n2", "y", 2)}, nil, 10},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			snapshot := jointSnapshot(test.groups, strings.Join(test.nodes, ", "), onlyP)
			if test.pods != nil {
				snapshot = strings.Replace(snapshot, `"kubeNodes":`, `"kubePods": [`+strings.Join(test.pods, ", ")+`], "kubeNodes":`, 1)
			}
			plan, sum := planOf(t, snapshot), 0
			for _, n := range plan.Launch {
				sum += n
			}
			if sum != test.want {
				t.Errorf("launches %v, %d together; want %d\n%+v", plan.Launch, sum, test.want, plan.InfeasibleRequests)
			}
		})
	}
}
