package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// podOn returns a pod that requests GPUs of a node, with more metadata.
func podOn(node, metadata, gpus string) string {
	return `{"metadata": {"name": "p"` + metadata + `}, "spec": {"nodeName": "` + node + `", "containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "` + gpus + `"}}}]}}`
}

func TestPodsOfASnapshotTakeTheirPartOfItsNodes(t *testing.T) {
	const labels = `, "namespace": "NS", "labels": {"ray.io/cluster": "CLUSTER", "ray.io/group": "g", "ray.io/node-type": "worker"}`
	worker := func(namespace, cluster, more string) string {
		return podOn("n1", strings.NewReplacer("NS", namespace, "CLUSTER", cluster).Replace(labels)+more, "2")
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
			placed, err := placesOf(nodegpu.Reader{}, doc)
			if err != nil {
				t.Fatal(err)
			}
			used := "unknown"
			if use := placed.nodes[0].Use; use != nil {
				used = fmt.Sprint(use.Requests["nvidia.com/gpu"])
			}
			cluster, err := clusterOf(nodegpu.Reader{}, doc)
			if err != nil {
				t.Fatal(err)
			}
			if bound := cluster.Groups[0].Bound; used != test.used || bound != test.bound {
				t.Errorf("used %s, bound %d; want %s, %d", used, bound, test.used, test.bound)
			}
		})
	}
}

// TestAPlanSaysOnceThatItCountsNodesAsEmpty checks the finding: only for nodes without pods on which a group fits.
func TestAPlanSaysOnceThatItCountsNodesAsEmpty(t *testing.T) {
	file := func(limits, more string) string {
		return oneGroup(limits, `{}`, `{"nvidia.com/gpu": "8", "pods": "110"}`, more)
	}
	const fits, fitsNot = `{"nvidia.com/gpu": "2"}`, `{"nvidia.com/gpu": "9"}`
	for name, test := range map[string]struct {
		file string
		want int
	}{
		"nodes without pods":         {file(fits, ""), 1},
		"nodes with pods":            {file(fits, `, "kubePods": []`), 0},
		"no node for the group":      {file(fitsNot, ""), 0},
		"a group that may not grow":  {strings.Replace(file(fits, ""), `"maxReplicas": 9`, `"maxReplicas": 0`, 1), 0},
		"a RayCluster without nodes": {strings.Replace(file(fits, ""), `"kubeNodes"`, `"note"`, 1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command(t, test.file, "autoscaler", "plan", "--snapshot", "-")
			var plan struct{ Findings []raydemand.Finding }
			if err := json.Unmarshal([]byte(out), &plan); err != nil || code != cli.ExitOK {
				t.Fatalf("exit %d, %v: %s%s", code, err, errOut, out)
			}
			count := 0
			for _, f := range plan.Findings {
				if f.Code == "pods-unknown" {
					count++
				}
			}
			if count != test.want {
				t.Errorf("%d findings pods-unknown, want %d: %s", count, test.want, out)
			}
		})
	}
}
