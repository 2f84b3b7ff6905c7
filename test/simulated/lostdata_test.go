package simulated

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
)

// TestARayClusterCreatedAfterDataLossIsScaledAsNew removes what the control plane has stored while Heliostat runs, and
// creates a RayCluster of the same name. Heliostat must end without writing to it, and scale it after a restart.
func TestARayClusterCreatedAfterDataLossIsScaledAsNew(t *testing.T) {
	t.Parallel()
	l := start(t, "llm", "127.77.200.1")
	group := rig.Group{Name: "cpu", Max: 9}
	ask := func(cpus int64) {
		bundle := raydemand.Bundle{raydemand.CPU: raydemand.Whole(1)}
		l.head.RequestResources([]raydemand.Request{{Bundle: bundle, Count: cpus}})
	}
	l.age()
	l.create(0, group)
	var err error
	l.heliostat, err = l.Serve(t.Context())
	l.must(err)
	ask(1)
	l.await("the first RayCluster to be scaled", func() bool { return l.replicas() == 1 })

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l.must(l.Cluster.LoseData(ctx))
	l.create(0, group)
	ask(3) // a process that still believed in the old RayCluster would write this to the new one
	select {
	case <-l.heliostat.Ended():
	case <-ctx.Done():
		t.Fatal("Heliostat still runs, although the stored data went back")
	}
	if log := l.heliostat.LastLines(20); !strings.Contains(log, "went back from version") || strings.Contains(log, "panic") {
		t.Errorf("the log does not name the cause of the end:\n%s", log)
	}
	if got := l.cluster(); got.GetGeneration() != 1 {
		t.Errorf("the old process wrote to the new RayCluster: %v", got.Object["spec"])
	}
	l.heliostat, err = l.Serve(ctx) // as the kubelet restarts it
	l.must(err)
	l.await("the new RayCluster to be scaled", func() bool { return l.replicas() == 3 })
}

// age raises the resource version above all that empty storage reaches in this test.
func (l *lab) age() {
	l.Helper()
	configMaps := l.Kube.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	for i := range 1000 {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}}
		_, err := configMaps.Create(l.Context(), configMap, metav1.CreateOptions{})
		l.must(err)
	}
}

// await waits until something has happened.
func (l *lab) await(what string, happened func() bool) {
	l.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			l.Fatalf("waiting for %s: it did not happen", what)
		}
	}
}
