package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/internal/snapshotfile/manifests"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestTheExportOfAnOddRayClusterReadsBackAndPlansToTheSameBytes exports RayClusters that the API server accepts
// although their values make no sense. Users want to replay such clusters.
func TestTheExportOfAnOddRayClusterReadsBackAndPlansToTheSameBytes(t *testing.T) {
	for name, c := range map[string]struct{ settings, groups string }{
		"two groups of one name":          {`{}`, oddGroup("gpu", ``) + `,` + oddGroup("gpu", ``)},
		"a group without a name":          {`{}`, oddGroup("", ``) + `,` + oddGroup("gpu", ``)},
		"a replica of 200000 hosts":       {`{}`, oddGroup("gpu", `"numOfHosts": 200000`)},
		"no host at all":                  {`{}`, oddGroup("gpu", `"numOfHosts": -1`)},
		"a negative minimum":              {`{}`, oddGroup("gpu", `"minReplicas": -1`)},
		"a negative maximum":              {`{}`, oddGroup("gpu", `"maxReplicas": -2147483648`)},
		"negative replicas":               {`{}`, oddGroup("gpu", `"replicas": -3`)},
		"an immense minimum":              {`{}`, oddGroup("gpu", `"minReplicas": 2147483647`)},
		"a negative idle timeout":         {`{"idleTimeoutSeconds": -7}`, oddGroup("gpu", ``)},
		"an idle timeout of for ever":     {`{"idleTimeoutSeconds": 2147483647}`, oddGroup("gpu", ``)},
		"a group's negative idle timeout": {`{"version": "v2"}`, oddGroup("gpu", `"idleTimeoutSeconds": -7`)},
		"a group never idle":              {`{"version": "v2"}`, oddGroup("gpu", `"idleTimeoutSeconds": 2147483647`)},
		"more GPUs than there are":        {`{}`, oddGroup("gpu", `"resources": {"GPU": "900T"}`)},
		"more GPUs than can be counted":   {`{}`, oddGroup("gpu", `"resources": {"GPU": "900E"}`)},
		"fewer GPUs than none":            {`{}`, oddGroup("gpu", `"resources": {"GPU": "-1"}`)},
		"an unknown upscaling mode":       {`{"upscalingMode": "Turbo"}`, oddGroup("gpu", ``)},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _, err := decode.DecodeManifest(sharing.Reader{}, []byte(fmt.Sprintf(
				`{"kind": "RayCluster", "metadata": {"name": "odd", "namespace": "ml"}, "spec": {"autoscalerOptions": %s, "workerGroupSpecs": [%s]}}`, c.settings, c.groups)))
			if err != nil {
				t.Fatal(err)
			}
			snapshot := manifests.Fill(planner.Snapshot{Nodes: []planner.Node{}}, cluster)
			snapshot.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: 3}}
			exported, err := json.Marshal(snapshot)
			if err != nil {
				t.Fatal(err)
			}
			read, err := snapshotfile.ReadSnapshot(bytes.NewReader(exported), "exported")
			if err != nil {
				t.Fatalf("%v\n%s", err, exported)
			}
			if diff := cmp.Diff(planner.Compute(snapshot, planner.Policy{}), planner.Compute(read, planner.Policy{})); diff != "" {
				t.Errorf("plan (-exported +read):\n%s", diff)
			}
		})
	}
}

func oddGroup(name, more string) string {
	if more != "" {
		more = `, ` + more
	}
	return fmt.Sprintf(`{"groupName": %q, "template": {"spec": {"containers": [{"name": "ray-worker", "resources": {"limits": {"cpu": "4", "nvidia.com/gpu": "1"}}}]}}%s}`, name, more)
}
