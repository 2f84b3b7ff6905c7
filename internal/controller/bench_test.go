package controller

import (
	"context"
	"fmt"
	"testing"

	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/simray"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
)

// BenchmarkCycleAtRest is the cost of one reading and decision over the true wire, on a cluster at rest.
func BenchmarkCycleAtRest(b *testing.B) {
	for _, workers := range []int{8, 50} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) { benchmarkCycleAtRest(b, workers) })
	}
}

func benchmarkCycleAtRest(b *testing.B, workers int) {
	w := newWorld(&testing.T{}, Config{}, gpuGroup("gpu", workers, workers, workers+4))
	simulated, err := simray.Start(simray.Options{Head: simray.Node{Instance: "llm-head", Group: "headgroup"}})
	if err != nil {
		b.Fatal(err)
	}
	defer simulated.Close()
	for _, p := range w.kube.cluster.Workers {
		simulated.AddNode(simray.Node{Instance: p.Pod, Group: p.Group, Resources: w.kube.cluster.Groups[0].Resources})
	}
	c := New(w.kube, func(context.Context, nodepool.Cluster) (head.Ray, error) {
		return gcs.Dial(gcs.Config{Address: simulated.Addr()})
	}, complete(Config{CyclesPerSecond: 1e6}))
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		c.Cycle(context.Background(), key)
	}
}
