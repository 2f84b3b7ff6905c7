package lostdata

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/internal/simray"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

const namespace, name, headIP = "ml", "llm", "127.77.200.1"

// patience bounds each wait, of which none takes 15 s on a quiet machine.
const patience = 2 * time.Minute

// lab is a control plane on which one RayCluster stands whose head is simulated.
type lab struct {
	*testing.T
	*rig.Rig
}

func TestWhatIsMadeAnewAfterTheStorageWasLostIsSeenAnew(t *testing.T) {
	l := start(t)
	head, err := simray.Start(simray.Options{Address: headIP + ":6379", Head: simray.Node{Instance: name + "-head", IP: headIP}})
	l.must(err)
	defer head.Close()
	ask := func(cpus int64) {
		head.RequestResources([]raydemand.Request{{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.Whole(1)}, Count: cpus}})
	}
	l.age()
	l.make()
	heliostat, err := l.Serve(t.Context())
	l.must(err)
	defer func() { heliostat.Kill() }()
	ask(1)
	l.until("the first RayCluster to be scaled", func() bool { return l.replicas() == 1 })

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l.must(l.Cluster.LoseData(ctx))
	l.make()
	ask(3) // it is wanted of the RayCluster that is gone, too
	select {
	case <-heliostat.Ended():
	case <-ctx.Done():
		t.Fatal("it goes on from what is no more")
	}
	if said := heliostat.LastLines(20); !strings.Contains(said, "went back from version") || strings.Contains(said, "panic") {
		t.Errorf("it ends without a word of the cause:\n%s", said)
	}
	if got := l.cluster(); got.GetGeneration() != 1 {
		t.Errorf("the new RayCluster was written by who had not seen it: %v", got.Object["spec"])
	}
	heliostat, err = l.Serve(ctx) // as its kubelet would
	l.must(err)
	l.until("the new RayCluster to be scaled", func() bool { return l.replicas() == 3 })
}

func start(t *testing.T) *lab {
	rig.Quiet()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Nodes: []nodeagent.NodeSpec{}, NoOperator: true, Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	program, err := rig.Build(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	return &lab{T: t, Rig: &rig.Rig{Cluster: cluster, Kube: cluster.Client(), Dynamic: cluster.Dynamic(), Program: program, Dir: dir}}
}

// age lets the storage be further than a new one comes in this test.
func (l *lab) age() {
	configMaps := l.Kube.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	for i := range 1000 {
		_, err := configMaps.Create(l.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}}, metav1.CreateOptions{})
		l.must(err)
	}
}

// make makes the RayCluster and its head.
func (l *lab) make() {
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	l.must(l.Create(ctx, rig.Cluster{Namespace: namespace, Name: name, Groups: []rig.Group{{Name: "cpu", Max: 9}}}.Manifest()))
	l.must(rig.StandInHead(ctx, l.Kube, l.cluster(), headIP))
}

func (l *lab) cluster() *unstructured.Unstructured {
	l.Helper()
	object, err := l.Dynamic.Resource(rig.RayClusters).Namespace(namespace).Get(l.Context(), name, metav1.GetOptions{})
	l.must(err)
	return object
}

func (l *lab) replicas() int64 {
	groups, _, err := unstructured.NestedSlice(l.cluster().Object, "spec", "workerGroupSpecs")
	l.must(err)
	replicas, _, err := unstructured.NestedInt64(groups[0].(map[string]any), "replicas")
	l.must(err)
	return replicas
}

func (l *lab) until(what string, happened func() bool) {
	l.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			l.Fatalf("waiting for %s: it did not happen", what)
		}
	}
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}
