package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
)

func TestABadNodeOrPoolInASnapshotIsNamed(t *testing.T) {
	const cluster = `"rayCluster": {"kind": "RayCluster", "spec": {"workerGroupSpecs": []}}`
	for text, want := range map[string]string{
		cluster + `, "kubeNodes": 7`:                                               `standard input: kubeNodes: `,
		cluster + `, "kubeNodes": [{"kind": "Pod"}]`:                               `standard input: kubeNodes[0]: kind is Pod: want Node objects`,
		cluster + `, "kubeNodes": [null]`:                                          `standard input: kubeNodes[0]: kind is null: want Node objects`,
		cluster + `, "kubeNodes": [{"status": {"allocatable": "nvidia.com/gpu"}}]`: `standard input: kubeNodes[0]: reading node: `,
		`"rayCluster": 3`:                                                          `standard input: rayCluster: 3: want the manifest of a RayCluster, an object`,
		cluster + `, "kubePods": "none"`:                                           `standard input: kubePods: `,
		cluster + `, "kubePods": {"pods": []}`:                                     `standard input: kubePods: an object without items: want Pod objects`,
		cluster + `, "kubeNodes": {"items": 5}`:                                    `standard input: kubeNodes.items: `,
		cluster + `, "kubePods": [{"kind": "Node"}]`:                               `standard input: kubePods[0]: kind is Node: want Pod objects`,
		cluster + `, "kubeNodes": {"item": []}`:                                    `standard input: kubeNodes: an object without items: want Node objects`,
		cluster + `, "kubePods": [{}, {"metadata": {"name": "p", "namespace": "n"}, "spec": {"nodeName": 5}}]`:                                                 `standard input: kubePods[1]: reading pod n/p: spec.nodeName is 5: want a string`,
		cluster + `, "kubePods": {"items": [{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "two"}}}]}}]}`: `standard input: kubePods[0]: reading pod /p: spec.containers[0].resources.requests.cpu is "two": want a Kubernetes quantity of 0 or more`,
		cluster + `, "kubePods": [{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "-64"}}}]}}]`:            `standard input: kubePods[0]: reading pod /p: spec.containers[0].resources.requests.cpu is "-64": want a Kubernetes quantity of 0 or more`,
		cluster + `, "kubeResourceSlices": [{"kind": "ResourceClaim"}]`:                                                                                        `standard input: kubeResourceSlices[0]: kind is ResourceClaim: want ResourceSlice objects`,
		cluster + `, "kubeResourceClaims": [{"apiVersion": "resource.k8s.io/v1beta1"}]`:                                                                        `standard input: kubeResourceClaims[0]: apiVersion is resource.k8s.io/v1beta1: want resource.k8s.io/v1`,
		cluster + `, "kubeResourceClaims": [{"metadata": {"name": "c"}, "status": 5}]`:                                                                         `standard input: kubeResourceClaims[0]: reading ResourceClaim c: `,
		`"groups": [], "kubeResourceClaims": []`:                                                                                                               `standard input: rayCluster: missing: want a RayCluster manifest beside kubeNodes, kubePods, pools`,
		`"groups": [], "kubePods": []`:                                                                                                                         `standard input: rayCluster: missing: want a RayCluster manifest beside kubeNodes, kubePods, pools`,
		cluster + `, "pools": [{"name": "a", "maxNodes": -1}]`:                                                                                                 `standard input: pools[0].maxNodes: -1: want a whole number from 0`,
		cluster + `, "pools": [{"name": "a", "shape": {"allocatable": {"cpu": "4 cores"}}}]`:                                                                   `standard input: pools[0].shape.allocatable.cpu: "4 cores": want a Kubernetes quantity`,
		cluster + `, "kubeNodes": [{"status": {"allocatable": {"nvidia.com/gpu": "eight"}}}]`:                                                                  `standard input: kubeNodes[0]: reading node: status.allocatable["nvidia.com/gpu"] is "eight": want a Kubernetes quantity of 0 or more`,
		cluster + `, "pools": 7`:                 `standard input: pools: 7: want a list`,
		`"groups": [], "kubeNodes": []`:          `standard input: rayCluster: missing: want a RayCluster manifest beside kubeNodes, kubePods, pools`,
		`"groups": [], "pools": [{"name": "a"}]`: `standard input: rayCluster: missing: want a RayCluster manifest beside kubeNodes, kubePods, pools`,
		cluster + `, "pendingRequests": [{"resources": {}, "count": 1, "slice": {"memory": "10GB"}}]`: `standard input: pendingRequests[0].slice.memory: "10GB": want a Kubernetes quantity`,
	} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), []string{"autoscaler", "plan", "--snapshot", "-"}, strings.NewReader("{"+text+"}"), &out, &errOut)
		if code != cli.ExitBadInput || !strings.Contains(errOut.String(), want) {
			t.Errorf("{%s}\nexit %d: %s\nwant … %s", text, code, errOut.String(), want)
		}
	}
}

func TestANodeTakesNoMorePodsThanItSays(t *testing.T) {
	const node = `{"metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "2", "cpu": "8", "memory": "64Gi", "pods": "PODS"}}}`
	file := `{"rayCluster": {"kind": "RayCluster", "metadata": {"name": "c"}, "spec": {"workerGroupSpecs": [{"groupName": "g", "maxReplicas": 9,
		"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray", "resources": {"limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}}}]}}}]}},
		"kubeNodes": [` + node + `], "kubePods": [], "complete": true, "pools": [], "pendingRequests": [{"resources": {"GPU": 1}, "count": 9}]}`
	for pods, want := range map[string]int{"110": 2, "2": 1, "0": 0} { // one pod is the head
		plan := planOf(t, strings.ReplaceAll(file, "PODS", pods))
		if plan.Launch["g"] != want {
			t.Errorf("allocatable pods %s: launches %v, want %d", pods, plan.Launch, want)
		}
		if why := plan.InfeasibleRequests[0].Reason.Message; want == 0 && !strings.Contains(why, "node a takes no pods (allocatable pods 0)") {
			t.Errorf("not served because of %q", why)
		}
	}
}

// oneGroup returns a snapshot of a RayCluster with one group and one node. The arguments are the limits of the group's
// template, and the node's labels and allocatable resources.
func oneGroup(limits, labels, allocatable, more string) string {
	return `{"rayCluster": {"kind": "RayCluster", "metadata": {"name": "c", "namespace": "n"}, "spec": {
		"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray"}]}}},
		"workerGroupSpecs": [{"groupName": "g", "replicas": 0, "minReplicas": 0, "maxReplicas": 9, "rayStartParams": {"num-gpus": "1"}, "template": {"spec": {"containers": [{"name": "ray", "resources": {"limits": ` + limits + `}}]}}}]}},
		"kubeNodes": [{"metadata": {"name": "n1", "labels": ` + labels + `}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": ` + allocatable + `}}]` +
		more + `}`
}

func TestAPlanReadsResourcesAndPoolsAsItIsTold(t *testing.T) {
	const two = `, "pendingRequests": [{"resources": {"GPU": 1}, "count": 9}]`
	renamed := oneGroup(`{"cpu": "1", "memory": "1Gi", "acme.com/gpu": "1"}`, `{}`, `{"cpu": "64", "memory": "64Gi", "pods": "110", "acme.com/gpu": "8"}`, two)
	memory := oneGroup(`{"cpu": "1", "memory": "1Gi", "acme.com/gpu-vram": "10"}`, `{"nvidia.com/gpu.count": "4", "team/pool": "p"}`, `{"cpu": "64", "memory": "64Gi", "pods": "110", "acme.com/gpu-vram": "60"}`,
		`, "pools": [{"name": "p", "maxNodes": 1}], "pendingRequests": [{"resources": {}, "slice": {"memory": "2Gi", "isolation": "any"}, "count": 9}]`)
	pooled := oneGroup(`{"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}`, `{"team/pool": "p"}`, `{"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "2"}`,
		`, "pools": [{"name": "p", "maxNodes": 1}]`+two)
	for name, c := range map[string]struct {
		file     string
		flags    []string
		has, not string
	}{
		"a name that stands in no table":                {renamed, nil, `"code": "gpu-resource-unknown"`, `"reported": 1`},
		"and that it is told":                           {renamed, []string{"--resource", "acme.com/gpu=whole"}, `"reported": 1`, `"code": "gpu-resource-unknown"`},
		"units of memory that nobody knows":             {memory, nil, `"code": "gpu-resource-unknown"`, `"desired": 4`},
		"units of 256 MiB, ten of a pod and 15 of card": {memory, []string{"--resource", "acme.com/gpu-vram=gpu-mem:256", "--pool-label", "team/pool"}, `"desired": 4`, `"code": "gpu-resource-unknown"`},
		"a pool that no cloud labels":                   {pooled, nil, `"code": "pool-without-nodes"`, `"desired": 2`},
		"by the label that is told, and its ceiling":    {pooled, []string{"--pool-label", "team/pool"}, `"desired": 2`, `"code": "pool-without-nodes"`},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command(t, c.file, append([]string{"autoscaler", "plan", "--snapshot", "-"}, c.flags...)...)
			if code != cli.ExitOK || !strings.Contains(out, c.has) || strings.Contains(out, c.not) {
				t.Errorf("exit %d, want %s and no %s: %s\n%s", code, c.has, c.not, errOut, out)
			}
		})
	}
}

// Users of RayServices and RayJobs have no manifest of a RayCluster, and `kubectl get raycluster -o json` prints a list.
func TestPlanTakesTheRayClusterOfAnotherObject(t *testing.T) {
	const spec = `{"workerGroupSpecs": [{"groupName": "g", "maxReplicas": 2, "template": {"spec": {"containers": [{"name": "w", "resources": {"limits": {"cpu": 1, "nvidia.com/gpu": 1}}}]}}}]}`
	for _, object := range []string{
		`{"kind": "RayService", "metadata": {"name": "s"}, "spec": {"rayClusterConfig": ` + spec + `}}`,
		`{"kind": "RayJob", "metadata": {"name": "s"}, "spec": {"rayClusterSpec": ` + spec + `}}`,
		`{"kind": "List", "items": [{"kind": "RayCluster", "metadata": {"name": "s"}, "spec": ` + spec + `}]}`,
	} {
		code, out, errOut := command(t, `{"rayCluster": `+object+`, "pendingRequests": [{"resources": {"GPU": 1}, "count": 1}]}`,
			"autoscaler", "plan", "--snapshot", "-", "-o", "json")
		if code != cli.ExitOK || !strings.Contains(out, `"launching": 1`) {
			t.Errorf("%s: exit %d, %s%s", object, code, out, errOut)
		}
	}
}

func TestHugePagesAreWrittenInBytesWithAUnit(t *testing.T) {
	code, out, errOut := command(t, `{"complete": true, "rayCluster": {"kind": "RayCluster", "metadata": {"name": "a", "namespace": "ml"}, "spec": {"workerGroupSpecs": [
		{"groupName": "g", "maxReplicas": 4, "template": {"spec": {"containers": [{"name": "w", "image": "i", "resources": {"limits": {"cpu": 1, "hugepages-2Mi": "5Gi"}}}]}}}]}},
		"kubeNodes": [{"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "32", "pods": "110", "hugepages-2Mi": "16Gi"}}}],
		"pendingRequests": [{"resources": {"CPU": 1}, "count": 4}], "kubePods": []}`, "autoscaler", "plan", "--snapshot", "-")
	if code != cli.ExitOK || !strings.Contains(out, "15 GiB of 16 GiB hugepages-2Mi are taken") {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
}

// promisedSnapshot returns a snapshot of one group on a node of 8 GPUs, with these promises to other RayClusters.
func promisedSnapshot(gpus, bound int, promised string) string {
	return fmt.Sprintf(`{"groups": [{"name": "a", "resources": {"CPU": 1, "GPU": 1}, "minReplicas": 0, "maxReplicas": 20, "bound": %d,
			"pod": {"requests": {"nvidia.com/gpu": %d}}}], "nodes": [],
		"places": [{"pool": "p", "node": "n1", "nodes": 1, "free": {"nvidia.com/gpu": 8}, "accepts": ["a", "ml/b/gpu"]},
			{"pool": "q", "node": "n2", "nodes": 1, "free": {"nvidia.com/gpu": 8}, "accepts": ["ml/c/gpu"]}],
		"promised": [%s], "pendingRequests": [{"resources": {"GPU": 1}, "count": 20}]}`, bound, gpus, promised)
}

func TestAPromiseNeedsTheNameByWhichPlacesAcceptIt(t *testing.T) {
	for promised, want := range map[string]string{
		`{"rayCluster": "ml/b", "pods": 1}`:                       `promised[0].pod`,
		`{"rayCluster": "ml/b", "pods": 1, "pod": {}}`:            `promised[0].pod.name`,
		`{"pods": 1, "pod": {"name": "x"}}`:                       `promised[0].rayCluster`,
		`{"rayCluster": "b", "pods": -1, "pod": {"name": "b/a"}}`: `promised[0].pods`,
	} {
		_, _, errOut := command(t, promisedSnapshot(1, 0, promised), "autoscaler", "plan", "--snapshot", "-")
		if !strings.Contains(errOut, want) {
			t.Errorf("%s: error %q, want %s", promised, errOut, want)
		}
	}
}

// A ResourceQuota of the namespace bounds groups, as for `serve`.
func TestAPlanTakesResourceQuotasIntoAccount(t *testing.T) {
	for _, c := range []struct{ namespace, quota, want string }{
		{"n", `"spec": {"hard": {"requests.nvidia.com/gpu": "5"}}, "status": {"used": {"requests.nvidia.com/gpu": "3"}}`, "launch 2 × g"},
		{"n", `"spec": {"hard": {"requests.nvidia.com/gpu": "5"}}, "status": {"used": {"requests.nvidia.com/gpu": "3"}}}], "nodes": [{"pod": "w", "group": "g", "state": "RUNNING", "total": {"GPU": 1}, "available": {}`, "launch 2 × g"},
		{"other", `"spec": {"hard": {"requests.nvidia.com/gpu": "5"}}`, "launch 8 × g"},
		{"n", `"spec": {"hard": {"pods": "4"}}`, "launch 3 × g"}, // the head comes first
		{"n", `"spec": {"hard": {"pods": "4"}}, "status": {"used": {"pods": "2"}}}], "nodes": [{"pod": "w", "group": "g", "state": "RUNNING", "total": {"GPU": 1}, "available": {}`, "launch 2 × g"},
		{"n", `"spec": {"hard": {"limits.cpu": "5"}}`, "the API server refuses them: set limits.cpu of"},
		{"n", `"spec": {"hard": {"pods": "many"}}`, `kubeResourceQuotas[0]: spec.hard.pods is "many": want a Kubernetes quantity of 0 or more`},
	} {
		more := `, "complete": true, "pendingRequests": [{"resources": {"GPU": 1}, "count": 9}], "kubeResourceQuotas": [{"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "` + c.namespace + `"}, ` + c.quota + `}]`
		_, out, errOut := command(t, oneGroup(`{"nvidia.com/gpu": "1"}`, `{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960"}`,
			`{"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}`, more), "autoscaler", "plan", "--snapshot", "-", "-o", "table")
		if !strings.Contains(strings.Join(strings.Fields(out+errOut), " "), c.want) {
			t.Errorf("%s of namespace %s: want %q in\n%s%s", c.quota, c.namespace, c.want, out, errOut)
		}
	}
}

// A LimitRange of the namespace gives pods requests, or refuses them, as for `serve`.
func TestAPlanTakesLimitRangesIntoAccount(t *testing.T) {
	const snapshot = `, "complete": true, "pendingRequests": [{"resources": {"GPU": 1}, "count": 9}], "kubeLimitRanges": [{"kind": "LimitRange", "metadata": {"name": "l", "namespace": "NS"}, "spec": {"limits": [{"type": "Container", ITEM}]}}]`
	plan := func(namespace, item string) string {
		more := strings.NewReplacer("NS", namespace, "ITEM", item).Replace(snapshot)
		code, out, errOut := command(t, oneGroup(`{"nvidia.com/gpu": "1"}`, `{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960"}`,
			`{"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}`, more), "autoscaler", "plan", "--snapshot", "-", "-o", "table")
		if code != cli.ExitOK {
			return errOut
		}
		return out
	}
	for _, c := range []struct{ namespace, item, want string }{
		{"n", `"defaultRequest": {"cpu": "3"}`, "launch 2 × g"},
		{"other", `"defaultRequest": {"cpu": "3"}`, "launch 8 × g"},
		{"n", `"min": {"memory": "512Mi"}`, "LimitRange l refuses every pod of the group: unless the operator"},
		{"n", `"min": {"memory": "lots"}`, `kubeLimitRanges[0]: spec.limits[0].min.memory is "lots": want a Kubernetes quantity of 0 or more`},
		{"n", `"max": [1]`, "kubeLimitRanges[0]: spec.limits[0].max is [1]: want an object"},
		{"n", `"min": {"memory": "-1"}`, `kubeLimitRanges[0]: spec.limits[0].min.memory is "-1"`},
		{"n", `"max": {"cpu": "9"}}, {"type": "container"`, `kubeLimitRanges[0]: spec.limits[1].type is "container"`},
	} {
		if got := plan(c.namespace, c.item); !strings.Contains(strings.Join(strings.Fields(got), " "), c.want) {
			t.Errorf("%s of namespace %s: want %q in\n%s", c.item, c.namespace, c.want, got)
		}
	}
	code, _, errOut := command(t, `{"groups": [], "kubeLimitRanges": []}`, "autoscaler", "plan", "--snapshot", "-")
	if code != cli.ExitBadInput || !strings.Contains(errOut, "kubeLimitRanges") {
		t.Errorf("without a RayCluster: exit %d, %s", code, errOut)
	}
}
