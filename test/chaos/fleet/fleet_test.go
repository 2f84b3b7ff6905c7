package fleet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/chaos/verdict"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

// lab is a kubelet on a fake API server, with one RayCluster.
type lab struct {
	*testing.T
	kube   *fake.Clientset
	member *Member
	fleet  *Fleet

	mu    sync.Mutex // guards facts
	facts []verdict.Fact
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{T: t, kube: fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "machine-0"}})}
	see := func(f verdict.Fact) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.facts = append(l.facts, f)
	}
	m, err := newMember("a", "127.66.250.1", false, see)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Head.Close)
	l.member = m
	ctx, stop := context.WithCancel(t.Context())
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{rig.RayClusters: "RayClusterList"})
	l.fleet = &Fleet{Namespace: "ml", Members: []*Member{m}, kube: l.kube, objects: objects, see: see, stop: stop}
	l.fleet.watch(ctx)
	t.Cleanup(func() { stop(); l.fleet.tasks.Wait() })
	return l
}

// pod makes a pod of the group cpu, as the operator and the scheduler do.
func (l *lab) pod(name string) *corev1.Pod {
	l.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml", UID: types.UID(name), Labels: map[string]string{
			"ray.io/cluster": "a", "ray.io/node-type": "worker", "ray.io/group": CPUGroup}},
		Spec:   corev1.PodSpec{NodeName: "machine-0", Containers: []corev1.Container{{Name: "ray-worker"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	made, err := l.kube.CoreV1().Pods("ml").Create(l.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return made
}

// await waits until there is a fact of a kind that is as it should be.
func await[F verdict.Fact](l *lab, what string, want func(F) bool) {
	l.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		l.mu.Lock()
		facts := slices.Clone(l.facts)
		l.mu.Unlock()
		for _, fact := range facts {
			if f, ok := fact.(F); ok && want(f) {
				return
			}
		}
	}
	l.Fatalf("waiting for %s: it did not happen", what)
}

// joined waits until a worker is in the state of the head.
func (l *lab) joined(pod string, busy bool) {
	l.Helper()
	await(l, pod+" to join", func(s verdict.State) bool {
		w, there := s.Workers[pod]
		return there && w == verdict.Worker{Group: CPUGroup, Busy: busy}
	})
}

func TestAPodRunsJoinsAndEndsWithItsWork(t *testing.T) {
	l := newLab(t)
	pod := l.pod("w")
	l.joined("w", false)
	l.member.Head.Submit(simray.Task{Bundle: bundles[CPUGroup], Runs: time.Hour})
	l.joined("w", true)
	now := metav1.Now()
	pod.DeletionTimestamp, pod.Finalizers = &now, []string{"test/keeps"}
	if _, err := l.kube.CoreV1().Pods("ml").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(l, "its end", func(e verdict.End) bool {
		return e == verdict.End{At: e.At, Cluster: "a", Group: CPUGroup, Pod: "w", Cause: verdict.Deleted, Busy: true}
	})
	if lost := l.member.Head.Counts().Lost; lost != 1 {
		t.Errorf("the head lost %d tasks, want 1", lost)
	}
	judge := verdict.New(verdict.Bounds{Manager: "heliostat", Lag: time.Second, Memory: 1 << 30})
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fact := range l.facts {
		judge.See(fact)
	}
	if got := judge.Violations(); len(got) != 1 || got[0].Rule != verdict.BusyRemoved {
		t.Errorf("a judge of these facts finds %v", got)
	}
}

func TestARayNodeThatEndedStartsAgainInItsPod(t *testing.T) {
	l := newLab(t)
	l.pod("w")
	l.joined("w", false)
	l.member.Head.KillNode(raydemand.NodeID(l.member.Head.State().GetNodeStates()[1].GetNodeId()))
	await(l, "that it is of no use", func(s verdict.State) bool { return s.Spent[CPUGroup] == 1 && len(s.Workers) == 0 })
	l.mu.Lock()
	l.facts = nil
	l.mu.Unlock()
	l.joined("w", false)
}

func TestPodsEndWithTheirMachineAndWithOlderStorage(t *testing.T) {
	l := newLab(t)
	l.pod("forgotten")
	l.joined("forgotten", false)
	l.fleet.Restored()
	zero := int64(0)
	if err := l.kube.CoreV1().Pods("ml").Delete(t.Context(), "forgotten", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	if err := l.fleet.Rejoin(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(l, "the end of the forgotten pod", func(e verdict.End) bool { return e.Pod == "forgotten" && e.Cause == verdict.Storage })
	l.pod("w")
	l.joined("w", false)
	if err := l.fleet.RemoveMachine(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	await(l, "the end of the pod", func(e verdict.End) bool { return e.Pod == "w" && e.Cause == verdict.Machine && !e.Busy })
}

// TestAfterOlderStorageEverythingIsReadAnew says that nobody continues a watch from a version of the future, which would
// be silent, and that no fact of the time before is reported.
func TestAfterOlderStorageEverythingIsReadAnew(t *testing.T) {
	l := newLab(t)
	l.pod("w")
	l.joined("w", false)
	era, end := context.WithCancel(t.Context())
	end()
	l.fleet.seeIn(era, verdict.Spec{Cluster: "of the time before"})
	l.fleet.Restored()
	if _, err := l.fleet.kubelet.list(labels.Everything()); !errors.Is(err, errUnread) {
		t.Errorf("while the API server is down, the pods are read: %v", err)
	}
	l.kube.ClearActions()
	if err := l.kube.CoreV1().Nodes().Delete(t.Context(), machine(3), metav1.DeleteOptions{}); err == nil {
		t.Error("machine 3 was there before the machines joined")
	}
	if err := l.fleet.Rejoin(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); l.fleet.kubelet.cache.Load() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the kubelet does not read its pods again")
		}
	}
	listed := slices.ContainsFunc(l.kube.Actions(), func(a kubetesting.Action) bool { return a.Matches("list", "pods") })
	node, err := l.kube.CoreV1().Nodes().Get(t.Context(), machine(3), metav1.GetOptions{})
	if err != nil || !listed || node.Status.Allocatable.Pods().Value() == 0 {
		t.Errorf("pods listed: %t, machine 3: %v, %v", listed, node.Status.Allocatable, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.facts {
		if s, ok := f.(verdict.Spec); ok && s.Cluster == "of the time before" {
			t.Error("a fact of the time before is reported")
		}
	}
}

// TestAMachineWithoutRoomGetsIt lets an API server end between the two calls that add a machine.
func TestAMachineWithoutRoomGetsIt(t *testing.T) {
	l := newLab(t) // its machine-0 has no room
	if err := l.fleet.AddMachine(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	node, err := l.kube.CoreV1().Nodes().Get(t.Context(), machine(0), metav1.GetOptions{})
	if err != nil || node.Status.Allocatable.Pods().Value() == 0 {
		t.Errorf("room %v, %v", node.Status.Allocatable, err)
	}
}

func TestWorkIsOutstandingUntilTheDriverSaysItsEnd(t *testing.T) {
	events := []rig.Event{{ID: "a", Event: "submitted"}, {ID: "b", Event: "running"}, {ID: "b", Event: "done"},
		{ID: "c", Event: "lost"}, {ID: "d", Event: "answered"}, {ID: "d", Event: "released"}}
	if got := outstanding(6, events); got != 3 {
		t.Errorf("of 6 pieces of work, %d are outstanding, want 3", got)
	}
}

func TestAFleetStopsWithItsPods(t *testing.T) {
	l := newLab(t)
	l.pod("w")
	l.joined("w", false)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := l.fleet.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if l.member.Head.Alive() {
		t.Error("the head still runs")
	}
}

func TestAnswersAreReportedAsTheyAreSent(t *testing.T) {
	for name, lie := range map[string]func(*State){"partial": Partial, "duplicate": Duplicate, "negative": Negative,
		"enormous": Enormous, "old": Old()} {
		state := &State{}
		lie(state) // of a head without workers and work
		if got := answer("a", state).Demand[CPUGroup]; (name == "enormous") != (got > 1<<20) {
			t.Errorf("%s: a demand of %d", name, got)
		}
	}
}

func TestTheWriterIsTheOwnerOfTheGroups(t *testing.T) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(`{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "a",
		"managedFields": [
			{"manager": "operator", "subresource": "status", "fieldsV1": {"f:status": {}}},
			{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:rayVersion": {}}}},
			{"manager": "heliostat", "fieldsV1": {"f:spec": {"f:workerGroupSpecs": {}}}}]},
		"spec": {"workerGroupSpecs": [{"groupName": "cpu", "replicas": 2, "minReplicas": 1, "maxReplicas": 3,
			"scaleStrategy": {"workersToDelete": ["w"]}}]}}`)); err != nil {
		t.Fatal(err)
	}
	got := specOf(object)
	if got.Writer != "heliostat" || len(got.Groups) != 1 {
		t.Fatalf("%+v", got)
	}
	if g := got.Groups[0]; g.Name != "cpu" || g.Replicas != 2 || g.Min != 1 || g.Max != 3 || !slices.Equal(g.Delete, []string{"w"}) {
		t.Errorf("%+v", g)
	}
}
