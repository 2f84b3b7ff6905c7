package manifests

import (
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// podOn returns a pod that requests GPUs of a node, with more metadata.
func podOn(node, metadata, gpus string) string {
	return `{"metadata": {"name": "p"` + metadata + `}, "spec": {"nodeName": "` + node + `", "containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "` + gpus + `"}}}]}}`
}

func TestPodsOfASnapshotTakeTheirPartOfItsNodes(t *testing.T) {
	const labels = `, "namespace": "NS", "labels": {"ray.io/cluster": "CLUSTER", "ray.io/group": "g", "ray.io/node-type": "worker"}`
	worker := func(namespace, cluster, more string) string {
		pod := podOn("n1", strings.NewReplacer("NS", namespace, "CLUSTER", cluster).Replace(labels)+more, "2")
		return strings.Replace(pod, `"name": "p"`, `"name": "`+cluster+`-g"`, 1)
	}
	for name, test := range map[string]struct {
		pods, used string
		bound      int64
	}{
		"no key":                                 {"", "unknown", 0},
		"no pods":                                {`[]`, "0", 0},
		"a pod of something else":                {`[` + podOn("n1", "", "3") + `]`, "3", 0},
		"one on a node that is not in the file":  {`[` + podOn("n2", "", "3") + `]`, "0", 0},
		"one that has ended":                     {`[` + strings.Replace(podOn("n1", "", "3"), `{"metadata"`, `{"status": {"phase": "Succeeded"}, "metadata"`, 1) + `]`, "0", 0},
		"one that waits for a node":              {`[` + podOn("", "", "3") + `]`, "0", 0},
		"a worker of the group, and as kubectl":  {`{"kind": "List", "items": [` + worker("n", "c", "") + `]}`, "2", 1},
		"one of a RayCluster of the same name":   {`[` + worker("other", "c", "") + `]`, "2", 0},
		"one of another RayCluster":              {`[` + worker("n", "other", "") + `, ` + worker("n", "c", "") + `]`, "4", 1},
		"pods without a name":                    {`[` + strings.Replace(podOn("n1", "", "3"), `"name": "p"`, "", 1) + `, ` + strings.Replace(podOn("n1", "", "3"), `"name": "p"`, "", 1) + `]`, "6", 0},
		"a worker that is being deleted is used": {`[` + worker("n", "c", `, "deletionTimestamp": "2026-01-01T00:00:00Z"`) + `]`, "2", 0},
	} {
		t.Run(name, func(t *testing.T) {
			more := ""
			if test.pods != "" {
				more = `, "kubePods": ` + test.pods
			}
			file := oneGroup(`{"nvidia.com/gpu": "2"}`, `{}`, `{"nvidia.com/gpu": "8", "pods": "110"}`, more)
			doc, err := snapshotfile.ReadDocument(strings.NewReader(file), "file")
			if err != nil {
				t.Fatal(err)
			}
			placed, err := placesOf(sharing.Reader{}, doc)
			if err != nil {
				t.Fatal(err)
			}
			used := "unknown"
			if use := placed.nodes[0].Use; use != nil {
				used = fmt.Sprint(use.Requests["nvidia.com/gpu"])
			}
			cluster, err := Cluster(sharing.Reader{}, doc)
			if err != nil {
				t.Fatal(err)
			}
			if bound := cluster.Groups[0].Bound; used != test.used || bound != test.bound {
				t.Errorf("used %s, bound %d; want %s, %d", used, bound, test.used, test.bound)
			}
		})
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

// A pod that claims to give something back would make room for another that does not fit.
func TestANegativeAmountOfAPodIsRefused(t *testing.T) {
	for spec, want := range map[string]string{
		`"overhead": {"nvidia.com/gpu": "-8"}`:                   `kubePods[0]: reading pod ns/p: spec.overhead["nvidia.com/gpu"] is "-8": want a Kubernetes quantity of 0 or more`,
		`"resources": {"requests": {"cpu": "-4"}}`:               `spec.resources.requests.cpu is "-4"`,
		`"containers": [{"resources": {"limits": {"cpu": -1}}}]`: `spec.containers[0].resources.limits.cpu is -1`,
	} {
		file := oneGroup(`{"nvidia.com/gpu": "2"}`, `{}`, `{"nvidia.com/gpu": "8", "pods": "110"}`,
			`, "kubePods": [{"metadata": {"name": "p", "namespace": "ns"}, "spec": {"nodeName": "n1", `+spec+`}}]`)
		doc, err := snapshotfile.ReadDocument(strings.NewReader(file), "file")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = placesOf(sharing.Reader{}, doc); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", spec, err, want)
		}
	}
}
