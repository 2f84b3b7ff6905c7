package kube

import (
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
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
	waits := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "gpu-0", Namespace: "ml", UID: "uid-1", CreationTimestamp: metav1.Unix(1_700_000_000, 0),
			Labels: map[string]string{"ray.io/cluster": "llm", "ray.io/node-type": "worker", "ray.io/group": "gpu"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no node",
		}}},
	}
	lacks := func(list ...unstructured.Unstructured) (lacks bool, coming pools.Incoming) {
		besideClaims(t, &fakeClaims{list: list}, nil, func(t *testing.T, claims *claimWatch) {
			quiet := slog.New(slog.DiscardHandler)
			m := &Manager{
				memo: newMemo(nodegpu.Reader{}), panics: newPanics(nil), parents: newParents(nil, nil, quiet, nil), claims: claims,
				nodes: newNodes(&fakeNodes{}, quiet, func() {}), ceilings: newCeilings(nil, nil, quiet, nil),
				provisioners: newProvisioners(nil, nil, nil, quiet), namespaces: newNamespaces(nil, nil, quiet, nil),
			}
			m.nodes.view.Store(viewOf(nil))
			cluster := m.describe(&unstructured.Unstructured{Object: rayClusterOf(t, oneGPUGroup, "1")}, []*corev1.Pod{waits})
			for _, finding := range cluster.Findings {
				lacks = lacks || finding.Code == GroupNoNode && finding.Severity == raydemand.Info
			}
			coming = cluster.Groups[0].Incoming
		})
		return lacks, coming
	}
	if lacks, _ := lacks(); !lacks {
		t.Error("without a node and a claim, nothing is found: nothing is tested")
	}
	if lacks, coming := lacks(*nodeClaimOf("g1-a", "Launched")); lacks || coming.Launched != 1 {
		t.Errorf("%s is found: %v, while a claim holds %d pods; want not found, and 1", GroupNoNode, lacks, coming.Launched)
	}
}
