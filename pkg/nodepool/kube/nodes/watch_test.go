package nodes

import (
	"log/slog"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const oneGPUGroup = `
metadata: {uid: u-1}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: ray-head}]}}}
  workerGroupSpecs:
  - groupName: gpu
    replicas: 1
    maxReplicas: 4
    template: {spec: {containers: [{name: ray-worker, resources: {limits: {cpu: 1, nvidia.com/gpu: 1}}}]}}
`

// NodePools are read every 15 s. A claim of one that is newer proves as well that a node can be had.
func TestNoGroupLacksANodeWhileAClaimHoldsItsPods(t *testing.T) {
	lacks := func(list ...unstructured.Unstructured) (lacks bool, coming landing.Incoming) {
		besideClaims(t, &fakeClaims{list: list}, nil, func(t *testing.T, claims *claimWatch) {
			quiet := slog.New(slog.DiscardHandler)
			o := &Watch{
				claims: claims, nodes: newNodes(&fakeNodes{}, quiet, func() {}), ceilings: newCeilingWatch(nil, nil, quiet, nil),
				events: newAutoscalerEvents(nil, nil, nil, quiet), nodeEvents: newNodeEvents(nil, quiet),
			}
			o.nodes.view.Store(viewOf(nil))
			cluster, _, err := decode.DecodeManifest(sharing.Reader{}, []byte(oneGPUGroup))
			if err != nil {
				t.Fatal(err)
			}
			cluster.Workers = []nodepool.Worker{{
				Pod: "gpu-0", UID: "uid-1", Group: "gpu", CreatedAt: time.Unix(1_700_000_000, 0), Unschedulable: "no node",
			}}
			o.AddTo(&cluster)
			for _, finding := range cluster.Findings {
				lacks = lacks || finding.Code == nodepool.GroupNoNode && finding.Severity == raydemand.Warning
			}
			coming = cluster.Groups[0].Incoming
		})
		return lacks, coming
	}
	if lacks, _ := lacks(); !lacks {
		t.Error("without a node and a claim, nothing is found: nothing is tested")
	}
	if lacks, coming := lacks(*nodeClaimOf("g1-a", "Launched")); lacks || coming.Launched != 1 {
		t.Errorf("%s is found: %v, while a claim holds %d pods; want not found, and 1", nodepool.GroupNoNode, lacks, coming.Launched)
	}
}

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
