package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/planner"
)

// labelCase is a RayCluster with one group per name at zero, each of whose pods takes one GPU.
type labelCase struct {
	// groups are the groups' further keys, by name; templates those of their pod's spec; env is that of each container.
	groups, templates map[string]string
	version, env      string
	// nodes are the labels of Kubernetes nodes with one GPU, by name; shapes those of a new node of a pool.
	nodes, shapes map[string]string
	// workers are the group a's workers in use, with further keys.
	workers []string
	// pools adds pools without a shape.
	pools  string
	demand string
	args   []string
}

func (c labelCase) snapshot() string {
	var groups, nodes, pools []string
	for _, name := range []string{"a", "b"} {
		template, used := c.templates[name]
		if !used {
			continue
		}
		groups = append(groups, fmt.Sprintf(`{"groupName": %q, "minReplicas": 0, "maxReplicas": 9, "rayStartParams": {} %s, "template":
			{"spec": {%s "containers": [{"name": "ray", "image": "ray", "env": [%s], "resources": {"limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}}}]}}}`,
			name, c.groups[name], template, c.env))
	}
	const allocatable = `{"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "1"}`
	for name, labels := range c.nodes {
		nodes = append(nodes, fmt.Sprintf(`{"kind": "Node", "metadata": {"name": %q, "labels": {%s}}, "status": {"allocatable": %s,
			"conditions": [{"type": "Ready", "status": "True"}]}}`, name, labels, allocatable))
	}
	for name, labels := range c.shapes {
		pools = append(pools, fmt.Sprintf(`{"name": %q, "maxNodes": 9, "shape": {"labels": {%s}, "allocatable": %s}}`, name, labels, allocatable))
	}
	if c.pools != "" {
		pools = append(pools, c.pools)
	}
	text := fmt.Sprintf(`{"rayCluster": {"kind": "RayCluster", "metadata": {"name": "c", "namespace": "n"}, "spec": {"rayVersion": %q,
		"enableInTreeAutoscaling": true, "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}},
		"workerGroupSpecs": [%s]}}, %s`, c.version, strings.Join(groups, ","), c.demand)
	for i, worker := range c.workers {
		c.workers[i] = fmt.Sprintf(`{"pod": "w%d", "group": "a", "state": "RUNNING", "available": {}, %s}`, i, worker)
	}
	if c.workers != nil {
		text += `, "nodes": [` + strings.Join(c.workers, ",") + `]`
	}
	if nodes != nil {
		text += `, "kubeNodes": [` + strings.Join(nodes, ",") + `]`
	}
	if pools != nil {
		text += `, "pools": [` + strings.Join(pools, ",") + `]`
	}
	return text + "}"
}

const (
	h100       = `"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"`
	t4         = `"nvidia.com/gpu.product": "Tesla-T4"`
	onH100     = `"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},`
	wantH100   = `"pendingRequests": [{"resources": {"GPU": 1, "accelerator_type:H100": 0.001}, "count": 3}]`
	perReplica = `{"name": "REPLICA", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['ray.io/worker-group-replica-name']"}}},
		{"name": "RAY_OVERRIDE_LABELS", "value": "{\"ray.io/gpu-domain\": \"$(REPLICA)\"}"}`
	fieldRef = `{"name": "RAY_NODE_ZONE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['topology.kubernetes.io/zone']"}}}`
)

func want(resources, selector string, count int) string {
	return fmt.Sprintf(`"pendingRequests": [{"resources": %s, "count": %d, "labelSelectors": [%s]}]`, resources, count, selector)
}

func gangOn(label string, bundles int) string {
	return fmt.Sprintf(`"pendingGangRequests": [{"strategy": "PACK", "topologyLabel": %q, "bundles": [%s]}]`, label,
		strings.TrimSuffix(strings.Repeat(`{"GPU": 1},`, bundles), ","))
}

// TestGroupsAtZeroArePlannedByWhatTheirPodsWillAnnounce plans labels and accelerator types of pods that do not exist
// yet. Each case names how many pods of group a and b are launched, and the code of unmet demand.
func TestGroupsAtZeroArePlannedByWhatTheirPodsWillAnnounce(t *testing.T) {
	accelerator := func(value string) string { return want(`{"GPU": 1}`, `{"ray.io/accelerator-type": "`+value+`"}`, 3) }
	market := want(`{"GPU": 1}`, `{"ray.io/market-type": "spot"}`, 3)
	zone := want(`{"GPU": 1}`, `{"ray.io/availability-zone": "z1"}`, 3)
	one := map[string]string{"a": ""}
	for name, test := range map[string]struct {
		labelCase
		a, b  int
		unmet string
	}{
		"the selector names the product": {labelCase{templates: map[string]string{"a": onH100}, demand: wantH100}, 3, 0, ""},
		"the label of the type":          {labelCase{templates: map[string]string{"a": onH100}, demand: accelerator("H100")}, 3, 0, ""},
		"the product is another":         {labelCase{templates: map[string]string{"a": onH100}, demand: accelerator("A100")}, 0, 0, "impossible"},
		"not the type":                   {labelCase{templates: map[string]string{"a": onH100}, demand: accelerator("!H100")}, 0, 0, "impossible"},
		"GKE's label": {labelCase{templates: map[string]string{"a": `"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"},`},
			demand: wantH100}, 3, 0, ""},
		"Karpenter's label": {labelCase{templates: map[string]string{"a": `"nodeSelector": {"karpenter.k8s.aws/instance-gpu-name": "h100"},`},
			demand: wantH100}, 3, 0, ""},
		"all nodes have the product":    {labelCase{templates: one, nodes: map[string]string{"n1": h100, "n2": h100, "n3": h100}, demand: wantH100}, 3, 0, ""},
		"the declared shape has it":     {labelCase{templates: one, shapes: map[string]string{"p": h100}, demand: wantH100}, 3, 0, ""},
		"two products among the nodes":  {labelCase{templates: one, nodes: map[string]string{"n1": h100, "n2": t4, "n3": h100}, demand: wantH100}, 1, 0, "trying"},
		"both products will do":         {labelCase{templates: one, nodes: map[string]string{"n1": h100, "n2": t4, "n3": h100}, demand: accelerator("in(H100,T4)")}, 3, 0, ""},
		"neither is excluded":           {labelCase{templates: one, nodes: map[string]string{"n1": h100, "n2": t4, "n3": h100}, demand: accelerator("!A100")}, 3, 0, ""},
		"one is excluded":               {labelCase{templates: one, nodes: map[string]string{"n1": h100, "n2": t4, "n3": h100}, demand: accelerator("!T4")}, 1, 0, "trying"},
		"nothing is known of the nodes": {labelCase{templates: one, demand: wantH100}, 1, 0, "trying"},
		"the known group comes first": {labelCase{templates: map[string]string{"a": "", "b": onH100}, groups: map[string]string{"b": `, "priority": -5`},
			demand: wantH100}, 0, 3, ""},
		"A100-40G is never announced": {labelCase{templates: map[string]string{"a": `"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"},`},
			demand: accelerator("A100-40G")}, 0, 0, "impossible"},
		"MIG announces the card": {labelCase{templates: map[string]string{"a": `"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},`},
			demand: accelerator("A100")}, 3, 0, ""},
		"an RTX card of Ray 2.60": {labelCase{version: "2.60.0", templates: map[string]string{"a": `"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-RTX-A6000"},`},
			demand: accelerator("RTX-A6000")}, 3, 0, ""},
		"an RTX card of an unknown release": {labelCase{templates: map[string]string{"a": `"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-RTX-A6000"},`},
			demand: accelerator("RTX-A6000")}, 1, 0, "trying"},

		"the market type of the environment": {labelCase{templates: one, env: `{"name": "RAY_NODE_MARKET_TYPE", "value": "spot"}`, demand: market}, 3, 0, ""},
		"the override of all labels": {labelCase{templates: one, env: `{"name": "RAY_OVERRIDE_LABELS", "value": "{\"ray.io/market-type\": \"spot\"}"}`,
			demand: market}, 3, 0, ""},
		"another market type": {labelCase{templates: one, env: `{"name": "RAY_NODE_MARKET_TYPE", "value": "on-demand"}`, demand: market}, 0, 0, "impossible"},
		"a ConfigMap sets the market type": {labelCase{templates: one, env: `{"name": "RAY_NODE_MARKET_TYPE", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}`,
			demand: market}, 1, 0, "trying"},
		"only the nodes are spot":   {labelCase{templates: map[string]string{"a": `"nodeSelector": {"karpenter.sh/capacity-type": "spot"},`}, demand: market}, 1, 0, "trying"},
		"nothing says spot":         {labelCase{templates: one, demand: market}, 0, 0, "impossible"},
		"the nodes are on demand":   {labelCase{templates: map[string]string{"a": `"nodeSelector": {"eks.amazonaws.com/capacityType": "ON_DEMAND"},`}, demand: market}, 0, 0, "impossible"},
		"the group sets the label":  {labelCase{templates: one, groups: map[string]string{"a": `, "labels": {"ray.io/market-type": "spot"}`}, demand: market}, 3, 0, ""},
		"the zone of the pod":       {labelCase{templates: map[string]string{"a": `"nodeSelector": {"topology.kubernetes.io/zone": "z1"},`}, env: fieldRef, demand: zone}, 3, 0, ""},
		"the zone of all nodes":     {labelCase{templates: one, env: fieldRef, nodes: map[string]string{"n1": `"topology.kubernetes.io/zone": "z1"`, "n2": `"topology.kubernetes.io/zone": "z1"`, "n3": `"topology.kubernetes.io/zone": "z1"`}, demand: zone}, 3, 0, ""},
		"the zone of another place": {labelCase{templates: one, env: fieldRef, nodes: map[string]string{"n1": `"topology.kubernetes.io/zone": "z2"`}, demand: zone}, 0, 0, "impossible"},
		"zones that differ":         {labelCase{templates: one, env: fieldRef, nodes: map[string]string{"n1": `"topology.kubernetes.io/zone": "z1"`, "n2": `"topology.kubernetes.io/zone": "z2"`}, demand: zone}, 1, 0, "trying"},
		"a zone that nothing sets":  {labelCase{templates: one, nodes: map[string]string{"n1": `"topology.kubernetes.io/zone": "z1"`}, demand: zone}, 1, 0, "trying"},

		"a worker shows the market type": {labelCase{templates: one, workers: []string{`"total": {"CPU": 1, "GPU": 1}, "labels": {"ray.io/node-id": "1", "ray.io/market-type": "spot"}`},
			demand: market}, 3, 0, ""},
		"workers differ in the zone": {labelCase{templates: one, workers: []string{`"total": {"CPU": 1, "GPU": 1}, "labels": {"ray.io/availability-zone": "z1"}`,
			`"total": {"CPU": 1, "GPU": 1}, "labels": {"ray.io/availability-zone": "z2"}`}, demand: zone}, 1, 0, "trying"},
		"a worker shows the domain": {labelCase{templates: one, workers: []string{`"total": {"CPU": 1, "GPU": 1}, "labels": {"ray.io/node-id": "1", "ray.io/gpu-domain": "d1"}`},
			demand: gangOn("ray.io/gpu-domain", 2)}, 2, 0, ""},
		"a worker shows the type": {labelCase{templates: one, workers: []string{`"total": {"CPU": 1, "GPU": 1, "accelerator_type:H100": 1}`}, demand: wantH100}, 3, 0, ""},
		"a worker's own label is of one node": {labelCase{templates: one, workers: []string{`"total": {"CPU": 1, "GPU": 1}, "labels": {"ray.io/node-id": "1"}`},
			demand: gangOn("ray.io/node-id", 2)}, 0, 0, "capped"},
		"a domain of the setting": {labelCase{templates: one, nodes: map[string]string{"n1": `"clique": "d1"`, "n2": `"clique": "d1"`}, demand: gangOn("ray.io/gpu-domain", 2),
			args: []string{"--topology-label", "clique=ray.io/gpu-domain"}}, 2, 0, ""},
		"a domain of the file": {labelCase{templates: one, nodes: map[string]string{"n1": `"clique": "d1"`, "n2": `"clique": "d1"`},
			demand: `"topologyLabels": {"clique": "ray.io/gpu-domain"}, ` + gangOn("ray.io/gpu-domain", 2)}, 2, 0, ""},
		"a domain of a declared shape": {labelCase{templates: one, shapes: map[string]string{"p": `"ray.io/gpu-domain": "d1"`}, demand: gangOn("ray.io/gpu-domain", 3)}, 3, 0, ""},
		"two domains and no pin": {labelCase{templates: one, nodes: map[string]string{"n1": `"clique": "d1"`, "n2": `"clique": "d2"`}, demand: gangOn("ray.io/gpu-domain", 2),
			args: []string{"--topology-label", "clique=ray.io/gpu-domain"}}, 0, 0, "capped"},
		"two domains with a group each": {labelCase{templates: map[string]string{"a": `"nodeSelector": {"clique": "d1"},`, "b": `"nodeSelector": {"clique": "d2"},`},
			nodes: map[string]string{"n1": `"pool": "p", "clique": "d1"`, "n2": `"pool": "p", "clique": "d2"`, "n3": `"pool": "p", "clique": "d2"`}, pools: `{"name": "p", "maxNodes": 3}`,
			demand: gangOn("ray.io/gpu-domain", 2), args: []string{"--topology-label", "clique=ray.io/gpu-domain", "--pool-label", "pool"}}, 0, 2, ""},
		"a pool whose domain is unknown": {labelCase{templates: one, pools: `{"name": "p", "maxNodes": 3}`, demand: gangOn("ray.io/gpu-domain", 2),
			args: []string{"--topology-label", "clique=ray.io/gpu-domain"}}, 1, 0, "trying"},
		"each replica is a domain":  {labelCase{templates: one, groups: map[string]string{"a": `, "numOfHosts": 2`}, env: perReplica, demand: gangOn("ray.io/gpu-domain", 2)}, 2, 0, "trying"},
		"no replica holds the gang": {labelCase{templates: one, groups: map[string]string{"a": `, "numOfHosts": 2`}, env: perReplica, demand: gangOn("ray.io/gpu-domain", 3)}, 0, 0, "capped"},
		"the zone is the domain": {labelCase{templates: map[string]string{"a": `"nodeSelector": {"topology.kubernetes.io/zone": "z1"},`}, env: `{"name": "Z", "valueFrom": {"fieldRef":
			{"fieldPath": "metadata.labels['topology.kubernetes.io/zone']"}}}, {"name": "RAY_OVERRIDE_LABELS", "value": "{\"ray.io/gpu-domain\": \"$(Z)\"}"}`,
			demand: gangOn("ray.io/gpu-domain", 2)}, 2, 0, ""},
		"a label that no node has": {labelCase{templates: one, nodes: map[string]string{"n1": ``}, demand: gangOn("ray.io/gpu-domain", 1)}, 0, 0, "impossible"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"autoscaler", "plan", "--snapshot", "-"}, test.args...)
			code, out, errOut := command(t, test.snapshot(), args...)
			if code != cli.ExitOK {
				t.Fatalf("exit %d: %s\n%s", code, errOut, test.snapshot())
			}
			var plan planner.Plan
			if err := json.Unmarshal([]byte(out), &plan); err != nil {
				t.Fatal(err)
			}
			unmet := ""
			for _, u := range plan.InfeasibleRequests {
				unmet = u.Reason.Code
			}
			for _, u := range plan.InfeasibleGangRequests {
				unmet = u.Reason.Code
			}
			if plan.Launch["a"] != test.a || plan.Launch["b"] != test.b || unmet != test.unmet {
				t.Errorf("launches %v, unmet %q; want a %d, b %d, %q\n%v\n%v\n%v", plan.Launch, unmet, test.a, test.b, test.unmet, plan.Groups, plan.InfeasibleRequests, plan.InfeasibleGangRequests)
			}
		})
	}
}
