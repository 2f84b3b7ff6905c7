package nodes

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestServeSaysWhereThePodsOfAGroupCanRun asks for eight GPUs on one node of four, with what serve reads of pools.
func TestServeSaysWhereThePodsOfAGroupCanRun(t *testing.T) {
	inPool := func(change func(*corev1.Node)) []*corev1.Node {
		node := kubeNode("n1", "4", corev1.ConditionTrue)
		node.Labels = map[string]string{"agentpool": "gpu"}
		if change != nil {
			change(node)
		}
		return []*corev1.Node{node}
	}
	selects := func(key, value string) map[string]string { return map[string]string{key: value} }
	const karpenter = landing.FromKarpenter
	nodePool := func(requirements ...landing.Requirement) landing.Ceiling {
		return landing.Ceiling{Group: "np", Source: karpenter, Template: &landing.NodeTemplate{Requirements: requirements}}
	}
	limited := nodePool()
	limited.Limits = landing.Quantities{"nvidia.com/gpu": raydemand.Whole(4)}
	tainted := nodePool()
	tainted.Template.Taints = []sharing.Taint{{Key: "team", Value: "a", Effect: sharing.NoSchedule}}
	in := func(key string, values ...string) landing.Requirement {
		return landing.Requirement{Key: key, Operator: "In", Values: values}
	}
	notReadyWithEight := func(node *corev1.Node) {
		*node = *kubeNode("n1", "8", corev1.ConditionFalse)
		node.Labels = map[string]string{"agentpool": "gpu"}
	}
	for name, c := range map[string]struct {
		nodes    []*corev1.Node
		config   string
		ceilings []landing.Ceiling
		selector map[string]string
		want     landing.State
		why      string
	}{
		"no proof": {nodes: inPool(nil), want: landing.Trying, why: "node n1 has nvidia.com/gpu 4 where 8 is needed"},
		"the node is not ready, and no other may be added": {nodes: inPool(notReadyWithEight), ceilings: []landing.Ceiling{{Group: "gpu", MaxNodes: new(int64(1)), Source: landing.FromClusterAutoscaler}}, want: landing.Waiting, why: "node n1 is NotReady, and pool gpu may add no other"},
		"and another may be added":                         {nodes: inPool(notReadyWithEight), ceilings: []landing.Ceiling{{Group: "gpu", MaxNodes: new(int64(2)), Source: landing.FromClusterAutoscaler}}, want: landing.Fits},
		"and it is cordoned too":                           {nodes: inPool(func(n *corev1.Node) { notReadyWithEight(n); n.Spec.Unschedulable = true }), ceilings: []landing.Ceiling{{Group: "gpu", MaxNodes: new(int64(1)), Source: landing.FromClusterAutoscaler}}, want: landing.Trying, why: "node n1 is not ready and is cordoned"},
		"no node at all":                                   {want: landing.Trying, why: "there is no node"},
		"its pool is selected":                             {nodes: inPool(nil), selector: selects("agentpool", "gpu"), want: landing.Nowhere, why: "node n1 has nvidia.com/gpu 4"},
		"all pools are declared":                           {nodes: inPool(nil), config: "complete: true", want: landing.Nowhere, why: "; all pools are declared"},
		"a shape fits":                                     {nodes: inPool(nil), config: "pools: [{name: big, shape: {allocatable: {nvidia.com/gpu: 8}}}]", want: landing.Fits},
		"the autoscaler's pool is unknown":                 {nodes: inPool(nil), ceilings: []landing.Ceiling{{Group: "eks-big-00000000-0000-0000-0000-000000000000", MaxNodes: new(int64(3)), Source: landing.FromClusterAutoscaler}}, want: landing.Trying, why: "node n1"},
		"and may have no node":                             {nodes: inPool(nil), ceilings: []landing.Ceiling{{Group: "eks-big-00000000-0000-0000-0000-000000000000", MaxNodes: new(int64), Source: landing.FromClusterAutoscaler}}, selector: selects("eks.amazonaws.com/nodegroup", "big"), want: landing.Limited, why: "may have no node (maxNodes 0)"},
		"a NodePool may add such nodes":                    {nodes: inPool(nil), ceilings: []landing.Ceiling{nodePool()}, want: landing.Fits},
		"its limits allow fewer GPUs":                      {nodes: inPool(nil), ceilings: []landing.Ceiling{limited}, want: landing.Limited, why: "NodePool np has reached its limits"},
		"its taints keep the pods away":                    {nodes: inPool(nil), ceilings: []landing.Ceiling{tainted}, want: landing.Trying, why: "node n1"},
		"and it is selected":                               {nodes: inPool(nil), ceilings: []landing.Ceiling{tainted}, selector: selects("karpenter.sh/nodepool", "np"), want: landing.Nowhere, why: "NodePool np has taint team=a:NoSchedule which the group does not tolerate"},
		"one of its instance types is in no table":         {ceilings: []landing.Ceiling{nodePool(in("node.kubernetes.io/instance-type", "g6.xlarge", "novel.large"))}, selector: selects("karpenter.sh/nodepool", "np"), want: landing.Fits},
		"the NodePool is gone":                             {ceilings: []landing.Ceiling{nodePool()}, selector: selects("karpenter.sh/nodepool", "old"), want: landing.Limited, why: "NodePool old does not exist"},
		"the host that is named is too small":              {nodes: inPool(func(n *corev1.Node) { n.Labels[landing.HostnameLabel] = "n1" }), selector: selects(landing.HostnameLabel, "n1"), want: landing.Nowhere, why: "the group names node n1"},
		"the node is young and has no device":              {nodes: inPool(func(n *corev1.Node) { n.CreationTimestamp, n.Status.Allocatable = metav1.Now(), nil }), selector: selects("agentpool", "gpu"), want: landing.Trying, why: "no node announces it"},
		"the node is old and still has no device": {nodes: inPool(func(n *corev1.Node) {
			n.CreationTimestamp, n.Status.Allocatable = metav1.NewTime(time.Now().Add(-time.Hour)), nil
		}), selector: selects("agentpool", "gpu"), want: landing.Nowhere, why: "no node announces it"},
		"the only node that the pool may have is coming up": {nodes: inPool(func(n *corev1.Node) { n.CreationTimestamp, n.Status.Allocatable = metav1.Now(), nil }),
			config: "pools: [{name: gpu, maxNodes: 1, shape: {allocatable: {nvidia.com/gpu: 8}}}]", want: landing.Trying, why: "has its most nodes (maxNodes 1)"},
		"the only node that the pool may have is another": {nodes: inPool(func(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour)) }),
			config: "pools: [{name: gpu, maxNodes: 1, shape: {allocatable: {nvidia.com/gpu: 8}}}]", want: landing.Limited, why: "has its most nodes (maxNodes 1)"},
		"the right kind of node is cordoned": {nodes: inPool(func(n *corev1.Node) { n.Status.Allocatable, n.Spec.Unschedulable = amountsOf("8"), true }), want: landing.Fits},
		"and is of no pool": {nodes: inPool(func(n *corev1.Node) {
			n.Status.Allocatable, n.Spec.Unschedulable, n.Labels = amountsOf("8"), true, nil
		}), want: landing.Trying, why: "node n1 is cordoned"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := decode.ReadPools(strings.NewReader(c.config))
			if c.config != "" && err != nil {
				t.Fatal(err)
			}
			n := newNodes(&fakeNodes{}, slog.New(slog.DiscardHandler), func() {})
			n.configure(sharing.Reader{}, config)
			n.replace(c.nodes, "")
			n.setCeilings(c.ceilings, len(c.ceilings) > 0 && c.ceilings[0].Source == karpenter)
			n.view.Store(n.viewNow())
			cluster := nodepool.Cluster{Key: llm, UID: "u", Groups: []nodepool.WorkerGroup{{
				Name: "g", Max: 9, Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(8)}, Selector: c.selector},
			}}}
			n.addTo(&cluster)
			got := cluster.Groups[0].Landing
			if got == nil || got.State != c.want || !strings.Contains(got.Why, c.why) || (got.Why == "") != (c.why == "") {
				t.Fatalf("verdict %+v, want %s: … %s", got, c.want, c.why)
			}
			severity := map[landing.State]raydemand.Severity{landing.Trying: raydemand.Warning, landing.Waiting: raydemand.Warning, landing.Nowhere: raydemand.Error, landing.Limited: raydemand.Error}[c.want]
			at := slices.IndexFunc(cluster.Findings, func(f raydemand.Finding) bool { return f.Code == nodepool.GroupNoNode })
			if (at >= 0) != (severity != "") || at >= 0 && cluster.Findings[at].Severity != severity {
				t.Errorf("findings %+v, want group-no-node with severity %q", cluster.Findings, severity)
			}
		})
	}
}

// TestWithoutTheRightToReadNodesOnlyPoolsProve judges a group as a plan does without kubeNodes: what pools prove counts,
// and otherwise any node may be there.
// TestWhatALimitRangeAddsCountsAtOnce: the LimitRanges of a namespace may be read after the nodes, and may change. Then
// neither the RayCluster nor a node changes.
func TestWhatALimitRangeAddsCountsAtOnce(t *testing.T) {
	n := newNodes(&fakeNodes{}, slog.New(slog.DiscardHandler), func() {})
	n.configure(sharing.Reader{}, landing.Config{})
	n.replace([]*corev1.Node{kubeNode("n1", "8", corev1.ConditionTrue)}, "")
	n.view.Store(n.viewNow())
	for _, each := range []int64{2, 4, 2} {
		cluster := nodepool.Cluster{Key: llm, UID: "u", Generation: 1, Groups: []nodepool.WorkerGroup{{
			Name: "g", Max: 9, Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(each)}},
		}}}
		n.addTo(&cluster)
		if got := cluster.Groups[0].Kind.Requests["nvidia.com/gpu"]; got != raydemand.Whole(each) {
			t.Errorf("a pod counts as %v GPUs, want %d", got, each)
		}
		if pods := cluster.Groups[0].PoolPods; len(pods) != 1 || pods[0].Holds != 8/each {
			t.Errorf("with %d GPUs a pod: %+v", each, pods)
		}
	}
}

func TestWithoutTheRightToReadNodesOnlyPoolsProve(t *testing.T) {
	const big, small = "shape: {allocatable: {nvidia.com/gpu: 8}}", "shape: {allocatable: {nvidia.com/gpu: 4}}"
	none := []landing.Ceiling{{Group: "gpu", MaxNodes: new(int64), Source: landing.FromClusterAutoscaler}}
	for name, c := range map[string]struct {
		config   string
		ceilings []landing.Ceiling
		selector map[string]string
		want     landing.State
	}{
		"nothing is known of pools":             {},
		"a pool that may have no node":          {config: "pools: [{name: gpu, maxNodes: 0, " + big + "}]", want: landing.Limited},
		"the node autoscaler says so":           {ceilings: none, selector: map[string]string{"agentpool": "gpu"}, want: landing.Limited},
		"a pool that may have three":            {config: "pools: [{name: gpu, maxNodes: 3, " + big + "}]"},
		"small nodes, others may be there":      {config: "pools: [{name: gpu, maxNodes: 3, " + small + "}]"},
		"small nodes, and these are all":        {config: "complete: true\npools: [{name: gpu, maxNodes: 3, " + small + "}]", want: landing.Nowhere},
		"all pools, of which one is unknown":    {config: "complete: true\npools: [{name: gpu, maxNodes: 3}]"},
		"it names a node, which may be there":   {config: "complete: true\npools: [{name: gpu, maxNodes: 3, " + small + "}]", selector: map[string]string{landing.HostnameLabel: "n1"}},
		"it names a node, and nothing is known": {selector: map[string]string{landing.HostnameLabel: "n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := decode.ReadPools(strings.NewReader(c.config))
			if c.config != "" && err != nil {
				t.Fatal(err)
			}
			n := newNodes(&fakeNodes{}, slog.New(slog.DiscardHandler), func() {})
			n.configure(sharing.Reader{}, config)
			n.forbid(errors.New("nodes is forbidden"))
			n.setCeilings(c.ceilings, false)
			n.view.Store(n.viewNow())
			cluster := nodepool.Cluster{Key: llm, Groups: []nodepool.WorkerGroup{{
				Name: "g", Max: 9, Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(8)}, Selector: c.selector},
			}}}
			n.addTo(&cluster)
			got, found := cluster.Groups[0].Landing, 0
			for _, f := range cluster.Findings {
				if f.Code == nodepool.GroupNoNode && f.Severity == raydemand.Error {
					found++
				}
			}
			if (got == nil) != (c.want == "") || got != nil && (got.State != c.want || got.Why == "") || (found == 1) != (c.want != "") {
				t.Errorf("verdict %+v, want %q; findings %+v", got, c.want, cluster.Findings)
			}
		})
	}
}
