package nodes

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAWorkerWhoseNodeIsDeletedIsLostAtOnce(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*kubeNode("a", "1", corev1.ConditionTrue), *kubeNode("b", "1", corev1.ConditionTrue)}}
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		gone := func(node string) bool {
			cluster := nodepool.Cluster{Key: llm, UID: "u", Workers: []nodepool.Worker{{Pod: "w", Node: node, Running: true}}}
			n.addTo(&cluster)
			return cluster.Workers[0].NodeGone
		}
		if gone("a") {
			t.Error("a node that is there is gone")
		}
		client.stream.Delete(kubeNode("a", "1", corev1.ConditionTrue))
		elapse(nodesPause)
		if !gone("a") {
			t.Error("a node that was deleted is there")
		}
		client.stream.Add(kubeNode("a", "1", corev1.ConditionTrue))
		elapse(2 * nodesPause)
		if gone("a") {
			t.Error("a node that came back is gone")
		}
	})
}

// newNodeGone reports whether the node of a worker on node new is gone.
func newNodeGone(n *nodes) bool {
	cluster := nodepool.Cluster{Key: llm, UID: "u", Workers: []nodepool.Worker{{Pod: "w", Node: "new", Running: true}}}
	n.addTo(&cluster)
	return cluster.Workers[0].NodeGone
}

func TestANodeThatWasNeverSeenIsGoneOnlyAfterAWhile(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*kubeNode("a", "1", corev1.ConditionTrue)}}
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		if newNodeGone(n) {
			t.Error("a pod bound a moment ago has no node")
		}
		time.Sleep(missingNodeGrace)
		if !newNodeGone(n) {
			t.Errorf("a node that is missing for %v is there", missingNodeGrace)
		}
		client.stream.Add(kubeNode("new", "1", corev1.ConditionTrue))
		synctest.Wait()
		if newNodeGone(n) {
			t.Error("a node that has come is gone")
		}
	})
}

func TestWhileNodesCannotBeReadNoneIsMissing(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*kubeNode("a", "1", corev1.ConditionTrue)}}
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		if newNodeGone(n) {
			t.Fatal("a pod bound a moment ago has no node")
		}
		client.failing.Store(true)
		client.stream.Stop()
		elapse(10 * missingNodeGrace)
		if newNodeGone(n) {
			t.Error("a node is gone, but no node can be read")
		}
		client.stream = watch.NewFakeWithChanSize(100, false)
		client.failing.Store(false)
		elapse(time.Minute)
		client.stream.Modify(kubeNode("a", "2", corev1.ConditionTrue))
		synctest.Wait()
		if newNodeGone(n) {
			t.Error("the node is gone as soon as nodes are read again")
		}
		time.Sleep(missingNodeGrace)
		if !newNodeGone(n) {
			t.Error("nodes are read again, and the node is still not missing")
		}
	})
}

func TestWithoutTheRightToReadNodesNoneIsGone(t *testing.T) {
	client := &fakeNodes{}
	client.forbidden.Store(true)
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		cluster := nodepool.Cluster{Key: llm, UID: "u", Workers: []nodepool.Worker{{Pod: "w", Node: "a", Running: true}}}
		n.addTo(&cluster)
		time.Sleep(2 * missingNodeGrace)
		if n.addTo(&cluster); cluster.Workers[0].NodeGone {
			t.Error("a node that may not be read is gone")
		}
	})
}

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
				events: newAutoscalerEvents(nil, nil, quiet),
			}
			o.nodes.view.Store(viewOf(nil))
			rayCluster, err := decode.ReadManifest([]byte(oneGPUGroup))
			must(t, err)
			cluster := decode.Join(decode.Decode(sharing.Reader{}, rayCluster), nil)
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
