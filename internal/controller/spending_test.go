package controller

import (
	"math"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/addon/costs"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestTheCyclesOfAScaleUpAndItsEndAddUpToAllPods runs whole cycles: a worker waits, demand launches two more, all work,
// all become idle, and two leave. What the decisions add up to is what pods existed, second by second.
func TestTheCyclesOfAScaleUpAndItsEndAddUpToAllPods(t *testing.T) {
	const hourly = 6.0
	group := gpuGroup("gpu", 1, 1, 4)
	price := hourly
	group.Price = &price
	var l *ledger.Ledger
	w := newWorld(t, Config{Published: func(d *addon.Decision) {
		if l != nil {
			l.Observe(ledger.Observation{At: d.At, Cluster: d.Cluster, Pods: costs.Of(nil, d, nil)})
		}
	}}, group)
	l = ledger.New(ledger.Limits{})
	podSeconds, gpuSeconds := 0, 0
	w.kube.cluster.Head.Node = "m"
	second := func(do func()) {
		for i := range w.kube.cluster.Workers { // each has a node at once
			if p := &w.kube.cluster.Workers[i]; p.Node == "" {
				p.Node, p.ScheduledAt = "n", p.CreatedAt
			}
		}
		podSeconds += len(w.kube.cluster.Workers) + 1 // the head
		gpuSeconds += len(w.kube.cluster.Workers)
		w.pass(time.Second)
		do()
		w.cycle()
	}
	for range 10 {
		second(func() {})
	}
	w.want(3, gpu(1))
	for i := range 10 {
		second(func() {
			w.operate()
			if i == 9 {
				w.joinAll()
			}
		})
	}
	w.want(0, nil)
	for range 60 {
		second(func() {
			for i := range w.kube.cluster.Workers {
				w.busy(w.pod(i))
			}
		})
	}
	for i := range 120 {
		second(func() {
			for j := range w.kube.cluster.Workers {
				if n := w.node(w.pod(j)); i == 0 {
					n.Status, n.Available, n.Activity = raydemand.Idle, n.Total.Clone(), nil
				} else if n.Status == raydemand.Draining {
					n.Status = raydemand.Dead
				}
			}
			w.operate()
		})
	}
	if got := len(w.kube.cluster.Workers); got != 1 {
		t.Fatalf("%d workers are left, want the minimum", got)
	}
	by := map[ledger.Cause]ledger.Amount{}
	var sum ledger.Amount
	for _, r := range l.Rows(w.now) {
		by[r.Cause] = by[r.Cause].Plus(r.Amount)
		sum = sum.Plus(r.Amount)
	}
	for what, c := range map[string][2]float64{"pod-seconds": {sum.PodSeconds, float64(podSeconds)}, "GPU-seconds": {sum.GPUSeconds, float64(gpuSeconds)},
		"money": {sum.Money / hourly * 3600, float64(gpuSeconds)}} {
		if got, want := c[0], c[1]; math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: the causes add up to %v, the pods to %v: %+v", what, got, want, by)
		}
	}
	if head := by[ledger.Head]; math.Abs(head.PodSeconds-200) > 2 || head.Money != 0 || head.UnpricedPodSeconds != head.PodSeconds {
		t.Errorf("the head, on a node without a price, has %+v", head)
	}
	for cause, least := range map[ledger.Cause]float64{ledger.Used: 170, ledger.Starting: 15, ledger.Idle: 150} {
		if by[cause].PodSeconds < least {
			t.Errorf("%s has %v pod-seconds, want %v or more", cause, by[cause].PodSeconds, least)
		}
	}
	if by[ledger.Unobserved].PodSeconds+by[ledger.Lost].PodSeconds+by[ledger.Unknown].PodSeconds > 0 {
		t.Errorf("nothing was unobserved, lost or unknown, but %+v", by)
	}
}
