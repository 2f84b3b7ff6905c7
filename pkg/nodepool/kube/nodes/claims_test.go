package nodes

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fakeClaims is an API server's NodeClaims: a list, and a stream of what changes. err is what it answers instead.
type fakeClaims struct {
	err    atomic.Pointer[error]
	list   []unstructured.Unstructured
	stream *watch.FakeWatcher
}

func (f *fakeClaims) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if err := f.err.Load(); err != nil {
		return nil, *err
	}
	list := &unstructured.UnstructuredList{Items: f.list}
	list.SetResourceVersion("1")
	return list, nil
}

func (f *fakeClaims) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	switch err := f.err.Load(); {
	case err != nil:
		return nil, *err
	case options.SendInitialEvents != nil:
		return nil, errNoStreams
	}
	return f.stream, nil
}

// nodeClaimOf is a NodeClaim of pool g1 with one GPU, as Karpenter v1.14.1 writes it, with the conditions that are met.
func nodeClaimOf(name string, met ...string) *unstructured.Unstructured {
	conditions := []any{}
	for _, each := range met {
		conditions = append(conditions, map[string]any{"type": each, "status": "True", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)})
	}
	status := map[string]any{"conditions": conditions}
	if len(met) > 0 {
		status["allocatable"] = map[string]any{"cpu": "15900m", "nvidia.com/gpu": "1", "pods": "110"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": map[string]any{"name": name, "resourceVersion": "1", "creationTimestamp": time.Now().UTC().Format(time.RFC3339),
			"labels": map[string]any{"karpenter.sh/nodepool": "g1"}},
		"spec": map[string]any{
			"requirements": []any{map[string]any{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": []any{"l4x1"}}},
			"resources":    map[string]any{"requests": map[string]any{"cpu": "1", "nvidia.com/gpu": "1", "pods": "1"}},
		},
		"status": status,
	}}
}

// quiet is a Karpenter of which nothing is heard; only is one that says that it failed to launch a claim.
func quiet(string) bool { return false }

func only(failed string) func(string) bool { return func(claim string) bool { return claim == failed } }

// noNode is what the scheduler says of a pod.
const noNode = "0/3 nodes are available"

// waitingCluster has so many pods of group gpu that wait for a node, and those that are bound to nodes.
func waitingCluster(name string, waiting int, nodes ...string) nodepool.Cluster {
	shape := landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}}
	cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: name}, Groups: []nodepool.WorkerGroup{{Name: "gpu", Pod: shape}}}
	for i := range waiting {
		cluster.Workers = append(cluster.Workers, nodepool.Worker{Pod: fmt.Sprint(name, i), Group: "gpu", Unschedulable: noNode, CreatedAt: time.Now()})
	}
	for _, node := range nodes {
		cluster.Workers = append(cluster.Workers, nodepool.Worker{Pod: name + node, Group: "gpu", Node: node})
	}
	return cluster
}

// besideClaims runs test beside the reading of NodeClaims, in synctest's time.
func besideClaims(t *testing.T, client *fakeClaims, served *bool, test func(t *testing.T, c *claimWatch)) {
	synctest.Test(t, func(t *testing.T) {
		client.stream = watch.NewFakeWithChanSize(100, false)
		c := newClaimWatch(client, func(context.Context) *bool { return served }, slog.New(slog.NewTextHandler(io.Discard, nil)))
		beside(t, func() { test(t, c) }, c.Start)
	})
}

func comingOf(c *claimWatch, cluster nodepool.Cluster, events func(string) bool) landing.Incoming {
	c.addTo(&cluster, events)
	return cluster.Groups[0].Incoming
}

func TestTheStagesOfNodeClaimsAreFollowed(t *testing.T) {
	client := &fakeClaims{}
	initialized := func(claim *unstructured.Unstructured, reason, message string) *unstructured.Unstructured {
		status := claim.Object["status"].(map[string]any)
		status["conditions"] = append(status["conditions"].([]any), map[string]any{"type": "Initialized", "status": "Unknown", "reason": reason, "message": message})
		return claim
	}
	besideClaims(t, client, new(true), func(t *testing.T, c *claimWatch) {
		begun := time.Now().UTC()
		asked := func(claim *unstructured.Unstructured) *unstructured.Unstructured {
			claim.SetCreationTimestamp(metav1.NewTime(begun))
			return claim
		}
		const missing = `Resource "nvidia.com/gpu" was requested but not registered`
		for _, step := range []struct {
			claim *unstructured.Unstructured
			want  landing.Coming
			same  bool // the stage began before
		}{
			{nodeClaimOf("a"), landing.Coming{Progress: landing.Requested}, false},
			{nodeClaimOf("a", "Launched"), landing.Coming{Progress: landing.Launched}, false},
			{initialized(nodeClaimOf("a", "Launched", "Registered"), "NodeNotReady", "Node status is NotReady"), landing.Coming{Progress: landing.Registered}, false},
			{initialized(nodeClaimOf("a", "Launched", "Registered"), "StartupTaintsExist", "StartupTaint"), landing.Coming{Progress: landing.NodeReady, Lacks: "StartupTaint"}, false},
			{initialized(nodeClaimOf("a", "Launched", "Registered"), "ResourceNotRegistered", missing), landing.Coming{Progress: landing.NodeReady, Lacks: missing}, true},
		} {
			since := time.Now()
			for _, each := range step.claim.Object["status"].(map[string]any)["conditions"].([]any) {
				each.(map[string]any)["lastTransitionTime"] = since.UTC().Format(time.RFC3339)
			}
			client.stream.Modify(asked(step.claim))
			elapse(placingPause)
			got := comingOf(c, waitingCluster("llm", 1), quiet).Places
			if len(got) != 1 || got[0].Progress != step.want.Progress || got[0].Lacks != step.want.Lacks || got[0].Pods != 1 {
				t.Errorf("places %+v, want one of %+v since %v", got, step.want, begun)
				continue
			}
			if old := got[0].Since.Before(since.Truncate(time.Second)); step.want.Progress != landing.Requested && old != step.same {
				t.Errorf("%+v began at %v, now it is %v", step.want, got[0].Since, since)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

func TestTheMomentOfAReadyNodeOutlivesARelist(t *testing.T) {
	besideClaims(t, &fakeClaims{}, new(true), func(t *testing.T, c *claimWatch) {
		claim := nodeClaimOf("a", "Launched", "Registered")
		status := claim.Object["status"].(map[string]any)
		status["conditions"] = append(status["conditions"].([]any), map[string]any{"type": "Initialized", "status": "Unknown", "reason": "StartupTaintsExist", "message": "StartupTaint"})
		since := time.Now()
		c.replace([]*unstructured.Unstructured{claim}, "1")
		time.Sleep(time.Minute)
		c.replace([]*unstructured.Unstructured{claim}, "2")
		got := comingOf(c, waitingCluster("llm", 1), quiet).Places
		if len(got) != 1 || got[0].Progress != landing.NodeReady || !got[0].Since.Equal(since) {
			t.Errorf("places %+v, want one on a node that is ready since %v", got, since)
		}
	})
}

func TestRayClustersShareTheRoomOfNodeClaims(t *testing.T) {
	client := &fakeClaims{}
	for _, name := range []string{"a", "b", "c"} {
		client.list = append(client.list, *nodeClaimOf(name, "Launched"))
	}
	besideClaims(t, client, new(true), func(t *testing.T, c *claimWatch) {
		first, second := waitingCluster("first", 2), waitingCluster("second", 2)
		for range 2 {
			if got := comingOf(c, first, quiet); got.Launched != 2 {
				t.Errorf("%d of the first's pods have a node coming, want 2", got.Launched)
			}
			comingOf(c, second, quiet)
		}
		if got := comingOf(c, second, quiet); got.Launched != 1 {
			t.Errorf("%d of the second's pods have a node coming, want what the first leaves, 1", got.Launched)
		}
		c.forget(first.Key)
		time.Sleep(placingPause)
		if got := comingOf(c, second, quiet); got.Launched != 2 {
			t.Errorf("%d of the second's pods have a node coming once the first is gone, want 2", got.Launched)
		}
	})
}

func TestARegisteredNodeHasNoRoomForWhatIsBoundToIt(t *testing.T) {
	registered := nodeClaimOf("a", "Launched", "Registered")
	must(t, unstructured.SetNestedField(registered.Object, "node-a", "status", "nodeName"))
	besideClaims(t, &fakeClaims{list: []unstructured.Unstructured{*registered}}, new(true), func(t *testing.T, c *claimWatch) {
		if got := comingOf(c, waitingCluster("llm", 1), quiet); got.Launched != 1 {
			t.Errorf("%d pods have a node coming that has registered, want 1", got.Launched)
		}
		if got := comingOf(c, waitingCluster("llm", 1, "node-a"), quiet); got.Launched != 0 {
			t.Errorf("%d further pods have a node coming that another pod has taken, want none", got.Launched)
		}
	})
}

func TestAClaimWhoseLaunchFailedHoldsNothing(t *testing.T) {
	besideClaims(t, &fakeClaims{list: []unstructured.Unstructured{*nodeClaimOf("a")}}, new(true), func(t *testing.T, c *claimWatch) {
		if got := comingOf(c, waitingCluster("llm", 1), only("a")); got.Pods() != 0 {
			t.Errorf("%d pods are held by a claim whose machine cannot be had", got.Pods())
		}
	})
}

func TestWhatIsKnownOfNodeClaims(t *testing.T) {
	forbidden := error(apierrors.NewForbidden(decode.NodeClaimResource.GroupResource(), "", nil))
	absent := error(apierrors.NewNotFound(decode.NodeClaimResource.GroupResource(), ""))
	for name, c := range map[string]struct {
		err    error
		served *bool
		want   nodepool.NodeClaimsState
	}{
		"read":                                 {nil, new(true), nodepool.NodeClaimsRead},
		"forbidden":                            {forbidden, new(true), nodepool.NodeClaimsForbidden},
		"forbidden, and there is no Karpenter": {forbidden, new(false), nodepool.NoNodeClaims},
		"forbidden, and the API server is silent": {forbidden, nil, nodepool.NodeClaimsForbidden},
		"absent": {absent, new(false), nodepool.NoNodeClaims},
	} {
		t.Run(name, func(t *testing.T) {
			besideClaims(t, failing(c.err), c.served, func(t *testing.T, w *claimWatch) {
				cluster := waitingCluster("llm", 1)
				w.addTo(&cluster, quiet)
				if cluster.NodeClaims != c.want {
					t.Errorf("state = %q, want %q", cluster.NodeClaims, c.want)
				}
				reported := len(cluster.Findings) == 1 && cluster.Findings[0].Code == NodeClaimsForbidden
				if reported != (c.want == nodepool.NodeClaimsForbidden) {
					t.Errorf("findings = %+v", cluster.Findings)
				}
			})
		})
	}
}

func TestANodeClaimThatCannotBeReadAnyMoreIsNoLongerCounted(t *testing.T) {
	for name, broken := range map[string]any{
		"a quantity that is none":  map[string]any{"allocatable": map[string]any{"cpu": "many"}},
		"a status of another type": "lost",
		"a date that is none": map[string]any{"conditions": []any{
			map[string]any{"type": "Launched", "status": "True", "lastTransitionTime": "yesterday"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClaimWatch(&fakeClaims{}, nil, slog.New(slog.DiscardHandler))
			claim := nodeClaimOf("c-1", "Launched")
			if err := c.store().Add(claim); err != nil || len(c.coming) != 1 {
				t.Fatalf("%v; %d claims are kept, want 1", err, len(c.coming))
			}
			claim = claim.DeepCopy()
			claim.Object["status"] = broken
			if err := c.store().Update(claim); err != nil || len(c.coming) != 0 {
				t.Errorf("%v; %d claims are kept, want none", err, len(c.coming))
			}
		})
	}
}
