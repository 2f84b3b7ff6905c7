package kueue

import (
	"log/slog"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
)

func newTestWatch(changed func(nodepool.ClusterKey), namespaces ...string) *Watch {
	return NewWatch(attached.Config{Namespaces: namespaces, Changed: changed, Logger: slog.New(slog.DiscardHandler)})
}

const owned = `
metadata:
  name: w
  namespace: ml
  annotations: {kueue.x-k8s.io/elastic-job: "true"}
  ownerReferences: [{apiVersion: ray.io/v1, kind: RayCluster, name: llm, uid: llm-uid, controller: true}]
` + refusal

func TestWorkloadsOfARayClusterAreKeptAndOthersAreNot(t *testing.T) {
	var changes []nodepool.ClusterKey
	w := newTestWatch(func(key nodepool.ClusterKey) { changes = append(changes, key) })
	c := cluster()
	if w.AddTo(c); !strings.Contains(c.Queue.Quota.Unread, "not been read yet") || c.Queue.Scalable() {
		t.Errorf("before the first list: %+v", c.Queue.Quota)
	}
	job := strings.Replace(owned, "apiVersion: ray.io/v1, kind: RayCluster", "apiVersion: batch/v1, kind: Job", 1)
	w.workloads.Store("").ReplaceAll([]*unstructured.Unstructured{object(t, job)}, "")
	if w.AddTo(c); c.Queue.Quota.Present() || len(w.workloads.Clusters()) > 0 {
		t.Errorf("a job's Workload: %+v", c.Queue.Quota)
	}
	w.workloads.Store("").Put(object(t, owned))
	if w.AddTo(c); c.Queue.Quota.Pending == nil || !c.Queue.Scalable() || len(changes) != 1 || changes[0] != c.Key {
		t.Errorf("changes %v, %+v", changes, c.Queue.Quota)
	}
	c.UID = "another"
	if w.AddTo(c); c.Queue.Quota.Present() {
		t.Error("a Workload of an earlier RayCluster of the name counts")
	}
	w.workloads.Store("").Remove(object(t, owned))
	if len(w.workloads.Clusters()) > 0 || len(changes) != 2 {
		t.Errorf("Workloads of %v, changes %v", w.workloads.Clusters(), changes)
	}
}

func TestARayClusterOutsideOfTheQueuesIsLeftAlone(t *testing.T) {
	c := cluster()
	c.Queue = nodepool.Queue{}
	if newTestWatch(nil).AddTo(c); c.Queue.Quota != nil {
		t.Errorf("%+v", c.Queue.Quota)
	}
	var none *Watch
	none.AddTo(cluster())
}

func TestForbiddenWorkloadsSayWhy(t *testing.T) {
	w := newTestWatch(nil, "ml", "other")
	w.workloads.Store("other").ReplaceAll(nil, "")
	w.workloads.Unread("ml", "forbidden")
	c := cluster()
	if w.AddTo(c); c.Queue.Quota.Unread != "forbidden" || !strings.Contains(c.Queue.Refusal(), "forbidden") {
		t.Errorf("%+v", c.Queue.Quota)
	}
	c.Key.Namespace = "third"
	if w.AddTo(c); c.Queue.Quota.Unread == "" {
		t.Errorf("%+v", c.Queue.Quota)
	}
}

func TestAChangedHeadroomStartsACycleOfTheRayClustersInTheQueue(t *testing.T) {
	var changes int
	w := newTestWatch(func(nodepool.ClusterKey) { changes++ })
	reserved := strings.Replace(owned, refusal, admission("1", "0"), 1)
	w.workloads.Store("").ReplaceAll([]*unstructured.Unstructured{object(t, reserved)}, "")
	w.AddTo(cluster())
	changes = 0
	queue := func(total string) *unstructured.Unstructured {
		return object(t, `
metadata: {name: q}
status: {flavorsReservation: [{name: ondemand, resources: [{name: nvidia.com/gpu, total: "`+total+`"}]}]}
`)
	}
	for i, step := range []struct {
		total string
		want  int
	}{{"1", 1}, {"1", 1}, {"2", 2}} {
		if w.queues.put(queue(step.total)); changes != step.want {
			t.Errorf("step %d: %d changes, want %d", i, changes, step.want)
		}
	}
}

func TestWorkloadsOfARayJobAreThoseOfItsRayCluster(t *testing.T) {
	var changes []nodepool.ClusterKey
	w := newTestWatch(func(key nodepool.ClusterKey) { changes = append(changes, key) })
	c := cluster()
	c.Queue.Parent, c.Queue.Followed = nodepool.Owner{Kind: "RayJob", Name: "train", UID: "job-uid"}, true
	job := strings.Replace(owned, "kind: RayCluster, name: llm, uid: llm-uid", "kind: RayJob, name: train, uid: job-uid", 1)
	w.workloads.Store("").ReplaceAll([]*unstructured.Unstructured{object(t, job)}, "")
	if w.AddTo(c); c.Queue.Quota.Pending == nil || !c.Queue.Scalable() || len(changes) != 0 {
		t.Errorf("changes %v, %+v", changes, c.Queue.Quota)
	}
	if w.workloads.Store("").Put(object(t, job)); len(changes) != 1 || changes[0] != c.Key {
		t.Errorf("changes %v after AddTo, want the RayCluster", changes)
	}
	c.Queue.Parent.UID = "another"
	if w.AddTo(c); c.Queue.Quota.Present() {
		t.Error("a Workload of an earlier RayJob of the name counts")
	}
	w.workloads.Store("").Remove(object(t, job))
	if len(w.workloads.Clusters()) > 0 || len(changes) != 2 {
		t.Errorf("Workloads of %v, changes %v", w.workloads.Clusters(), changes)
	}
	if w.Forget(c.Key); len(w.jobs) > 0 {
		t.Errorf("%d jobs of a RayCluster that is gone are kept", len(w.jobs))
	}
}

// A fleet runs thousands of RayJobs a day, and Kueue follows the replicas of few.
func TestAJobWhoseReplicasKueueDoesNotFollowIsForgottenWithItsRayCluster(t *testing.T) {
	w := newTestWatch(func(nodepool.ClusterKey) {})
	c := cluster()
	c.Queue.Parent = nodepool.Owner{Kind: "RayJob", Name: "train", UID: "job-uid"}
	job := object(t, strings.Replace(owned, "kind: RayCluster, name: llm, uid: llm-uid",
		"kind: RayJob, name: train, uid: job-uid", 1))
	w.workloads.Store("").ReplaceAll([]*unstructured.Unstructured{job}, "")
	w.AddTo(c)
	w.workloads.Store("").Remove(job)
	if w.Forget(c.Key); len(w.jobs) > 0 {
		t.Errorf("%d jobs of a RayCluster that is gone are kept", len(w.jobs))
	}
}
