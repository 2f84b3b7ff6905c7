package controller

import (
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// otherID makes a pod's node carry an instance id that is not the pod's name.
func (w *world) otherID(pod, id, ip string) {
	n := w.node(pod)
	n.Instance, n.IP = id, ip
}

func TestABusyNodeIsFoundByAddressWhenItsInstanceIDIsNotThePods(t *testing.T) {
	for name, id := range map[string]string{"no id": "", "another id": "i-0123"} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 5))
		w.kube.cluster.Workers[0].IP = "10.1.1.1"
		w.busy(w.pod(0))
		w.otherID(w.pod(0), id, "10.1.1.1")
		d := w.cycle()
		if state := d.Snapshot.Nodes[0].State; state != "RUNNING" {
			t.Errorf("%s: the pod is %s, want RUNNING", name, state)
		}
		for range 65 {
			d = w.after(time.Second)
		}
		w.nothingWritten(name)
		if hasFinding(d, observe.FindingOrphanNode) {
			t.Errorf("%s: findings = %+v, want none: the node was found", name, d.Findings)
		}
	}
}

func TestNoPodWithoutANodeGoesWhileALivingNodeIsFoundInNoPod(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 5))
	w.busy(w.pod(0))
	w.otherID(w.pod(0), "i-0123", "192.168.7.7")
	var d *addon.Decision
	for range 65 {
		d = w.after(time.Second)
	}
	w.nothingWritten("the busy node may run in this very pod")
	if !hasFinding(d, observe.FindingOrphanNode) {
		t.Errorf("findings = %+v, want the node without a pod", d.Findings)
	}
	w.ray.nodes = w.ray.nodes[:1]
	w.after(time.Second)
	if got := w.lastChange(); got.Replicas != 0 {
		t.Errorf("target = %+v, want the pod gone once no such node lives", got)
	}
}

func hasFinding(d *addon.Decision, code string) bool {
	return slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == code })
}
