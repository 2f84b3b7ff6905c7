package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// cpuGroup has two CPUs per worker.
func cpuGroup(name string, replicas, least, most int) nodepool.WorkerGroup {
	return nodepool.WorkerGroup{Name: name, Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(2)}, Replicas: replicas, Min: least, Max: most}
}

// configs returns the cluster configs that Ray was given since the last call.
func (w *world) configs() []raydemand.ClusterConfig {
	given := w.ray.configs
	w.ray.configs = nil
	return given
}

// given fails unless Ray was given n cluster configs since the last call.
func (w *world) given(n int, why string) {
	w.t.Helper()
	if got := w.configs(); len(got) != n {
		w.t.Errorf("%s: Ray was given %d cluster configs, want %d", why, len(got), n)
	}
}

func TestRayLearnsWhichNodesTheClusterCouldHave(t *testing.T) {
	multi := cpuGroup("multi", 0, 1, 3)
	multi.NumOfHosts = 4
	broken, suspended := cpuGroup("broken", 0, 2, 1), cpuGroup("suspended", 0, 0, 4)
	broken.Broken, suspended.Suspended = true, true
	w := newWorld(t, Config{}, cpuGroup("cpu", 1, 1, nodepool.NoMaximum), gpuGroup("gpu", 0, 0, 2), multi, broken, suspended, cpuGroup("none", 0, 0, 0))
	got := w.configs()
	if len(got) != 1 {
		t.Fatalf("Ray was given %d cluster configs at the start, want 1", len(got))
	}
	for i, g := range got[0].Groups {
		if g.Name == "gpu" {
			if g.Resources["accelerator_type:A100"] != raydemand.One {
				t.Error("a group whose GPUs are of an unknown type has no accelerator_type:A100; Ray Train would refuse to wait for it")
			}
			got[0].Groups[i].Resources = raydemand.Bundle{raydemand.CPU: g.Resources[raydemand.CPU], raydemand.GPU: g.Resources[raydemand.GPU]}
		}
	}
	want := raydemand.ClusterConfig{Groups: []raydemand.NodeGroup{
		{Name: "headgroup", Resources: raydemand.Bundle{}, Min: 1, Max: 1},
		{Name: "cpu", Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(2)}, Min: 1, Max: raydemand.Unlimited},
		{Name: "gpu", Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(4), raydemand.GPU: raydemand.One}, Max: 2},
		{Name: "multi", Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(2)}, Min: 4, Max: 12},
	}}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("cluster config (-want +given):\n%s", diff)
	}
}

func TestTheClusterConfigIsReportedAgainWhenItMayBeAnother(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 2))
	w.given(1, "at the start")
	w.seconds(20)
	w.given(0, "nothing changed")

	w.group("gpu").Max = 5
	w.after(time.Second)
	if got := w.configs(); len(got) != 1 || got[0].Groups[1].Max != 5 {
		t.Errorf("after a change of the spec Ray was given %+v, want one config with 5 nodes", got)
	}
	w.ray.session = "session-2"
	w.after(time.Second)
	w.given(1, "after a restart of the head")
	w.ray.version = 0 // with fault tolerance the session keeps its name
	w.after(time.Second)
	w.given(1, "after a restart of the GCS")
	w.restart(Config{})
	w.after(time.Second)
	w.given(1, "after a restart of Heliostat")
}

func TestNoClusterConfigIsReportedWhereNothingMayBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		forbid, allow func(*world)
		config        Config
	}{
		"shadow":    {forbid: func(w *world) { w.kube.cluster.Mode = nodepool.Shadow }, allow: func(w *world) { w.kube.cluster.Mode = nodepool.Managed }},
		"off":       {forbid: func(w *world) { w.kube.cluster.Mode = nodepool.Off }, allow: func(w *world) { w.kube.cluster.Mode = nodepool.Managed }},
		"frozen":    {forbid: func(w *world) { w.kube.cluster.Freeze = true }, allow: func(w *world) { w.kube.cluster.Freeze = false }},
		"suspended": {forbid: func(w *world) { w.kube.cluster.Suspended = true }, allow: func(w *world) { w.kube.cluster.Suspended = false }},
		"deposed":   {forbid: func(w *world) { w.kube.deposed = true }, allow: func(w *world) { w.kube.deposed = false }},
		"read-only": {config: Config{ReadOnly: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 2))
			w.configs()
			if c.forbid != nil {
				c.forbid(w)
			}
			w.restart(c.config)
			w.after(time.Second)
			w.group("gpu").Max = 7
			w.after(time.Second)
			w.given(0, name)
			if c.allow != nil {
				c.allow(w)
				w.after(time.Second)
				w.given(1, "no longer "+name)
			}
		})
	}
}

func TestAFreezeDuringTheCycleStopsTheClusterConfig(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 2))
	w.configs()
	w.group("gpu").Max = 5
	w.ray.reading = func() { w.kube.cluster.Freeze = true }
	w.after(time.Second)
	w.given(0, "frozen while Ray was read")
}

func TestAClusterConfigThatFailsWithholdsNothingAndIsTriedAgain(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 2))
	w.configs()
	w.group("gpu").Max = 5
	w.ray.configErr = errors.New("the head is busy")
	w.want(1, gpu(1))
	d := w.after(time.Second)
	if change := w.lastChange(); change.Replicas != 1 {
		t.Errorf("patched %+v, want 1 replica", change)
	}
	failed := func(a addon.Action) bool {
		return a.Kind == addon.ActionClusterConfig && a.Result == addon.ResultError && a.Message == "the head is busy"
	}
	if !slices.ContainsFunc(d.Actions, failed) || d.Err != "" {
		t.Errorf("actions %+v and error %q, want the failed report among the actions alone", d.Actions, d.Err)
	}
	w.cycles(600, 100*time.Millisecond)
	if tries := len(w.configs()); tries < 5 || tries > 9 {
		t.Errorf("%d tries in a minute, want pauses that grow from 0.5 s to 30 s", tries)
	}
	w.ray.configErr = nil
	w.after(30 * time.Second)
	w.given(1, "the head takes it again")
	w.after(time.Second)
	w.given(0, "it was taken")
	if len(d.Recent) > 1 {
		t.Errorf("latest changes %+v, want the patch alone", d.Recent)
	}
}

func TestAnOldHeadIsAskedOnceInASession(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 2))
	w.configs()
	w.ray.configErr = raydemand.ErrUnsupported
	w.restart(Config{})
	for range 30 {
		if d := w.after(time.Second); len(d.Actions) > 0 {
			t.Fatalf("actions %+v, want none: an old head is no error", d.Actions)
		}
	}
	w.group("gpu").Max = 5
	w.after(time.Second)
	w.given(1, "Ray before 2.41")
	w.ray.session, w.ray.configErr = "session-2", nil
	w.after(time.Second)
	w.given(1, "another session, of a newer Ray perhaps")
}

// TestAnUnknownShapeMakesTheClusterConfigEmpty because Ray Train adds the groups up and refuses what is beyond the sum.
func TestAnUnknownShapeMakesTheClusterConfigEmpty(t *testing.T) {
	unknown := gpuGroup("auto", 0, 0, 2)
	unknown.Resources = raydemand.Bundle{raydemand.GPU: raydemand.One}
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 2), unknown)
	if got := w.configs(); len(got) != 1 || len(got[0].Groups) != 0 {
		t.Errorf("Ray was given %+v, want one empty config", got)
	}
	w.group("auto").Replicas = 1
	w.operate()
	w.joinAll()
	total := raydemand.Bundle{raydemand.CPU: raydemand.Whole(16), raydemand.GPU: raydemand.One, "accelerator_type:T4": raydemand.One}
	node := w.node(w.pod(0))
	node.Total, node.Available = total, total.Clone()
	w.after(time.Second)
	got := w.configs()
	if len(got) != 1 || len(got[0].Groups) != 3 {
		t.Fatalf("once a node of the group has joined Ray was given %+v, want one config with all groups", got)
	}
	if diff := cmp.Diff(total, got[0].Groups[2].Resources); diff != "" {
		t.Errorf("the group's node (-joined +given):\n%s", diff)
	}
}
