package controller

import (
	"context"
	"fmt"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestARayClusterThatAnotherProcessDecidesAboutIsReleasedButNotGone(t *testing.T) {
	forgotten := 0
	w := newWorld(t, Config{Forgotten: func(nodepool.ClusterKey) { forgotten++ }}, gpuGroup("gpu", 2, 0, 9))
	w.cycle()
	w.kube.cluster.Groups[0].Replicas = 4
	for range 2 {
		w.c.Watch(context.Background(), key)
	}
	if _, known := w.c.Decision(key); known || w.ray.closed != 1 || forgotten != 1 {
		t.Errorf("known %v, %d lines closed, forgotten %d times", known, w.ray.closed, forgotten)
	}
	other := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "own"}}
	if before := w.c.promises.Before(&other, w.c.config.Now()); len(before) != 1 || before[0].RayCluster != key {
		t.Errorf("promised are %v, want the pods that it waits for", before)
	}
	w.cycle()
	w.kube.clusterErr = fmt.Errorf("getting: %w", nodepool.ErrGone)
	w.c.Watch(context.Background(), key)
	if forgotten != 2 {
		t.Errorf("forgotten %d times, want once more", forgotten)
	}
}
