package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestAModeThatTheNamespaceTakesBackStopsThePatch(t *testing.T) {
	for name, take := range map[string]func(*nodepool.Cluster){
		"it says shadow":     func(c *nodepool.Cluster) { c.NamespaceMode = nodepool.Shadow },
		"it says nothing":    func(c *nodepool.Cluster) { c.NamespaceMode = "" },
		"it cannot be read":  hiddenNamespace,
		"the cluster is off": func(c *nodepool.Cluster) { c.Mode = nodepool.Off },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{DefaultMode: nodepool.Shadow}, gpuGroup("gpu", 0, 0, 9))
			w.kube.cluster.NamespaceMode = nodepool.Managed
			w.want(2, gpu(1))
			reads := 0
			w.kube.reading = func() {
				if reads++; reads == 2 {
					take(&w.kube.cluster)
				}
			}
			if d := w.cycle(); d.Mode != nodepool.Managed || reads < 2 {
				t.Fatalf("mode %s after %d reads, want a managed cycle with a second look", d.Mode, reads)
			}
			w.nothingWritten("the mode was taken back before the patch")
			if d := w.cycle(); d.Mode == nodepool.Managed {
				t.Errorf("mode %s in the next cycle", d.Mode)
			}
		})
	}
}

func TestNothingIsWrittenWhileWhatTheNamespaceSaysIsUnknown(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 9))
	hiddenNamespace(&w.kube.cluster)
	w.want(2, gpu(1))
	w.seconds(10)
	w.nothingWritten("it is not known whether the namespace says off")
}

func TestEveryModeButManagedWritesNothingAtAll(t *testing.T) {
	for name, change := range map[string]func(*nodepool.Cluster){
		"shadow":            func(c *nodepool.Cluster) { c.Mode = nodepool.Shadow },
		"off":               func(c *nodepool.Cluster) { c.Mode = nodepool.Off },
		"frozen":            func(c *nodepool.Cluster) { c.Freeze = true },
		"suspended":         func(c *nodepool.Cluster) { c.Suspended = true },
		"deleting":          func(c *nodepool.Cluster) { c.Deleting = true },
		"managed elsewhere": func(c *nodepool.Cluster) { c.ManagedElsewhere = true },
		"python sidecar":    func(c *nodepool.Cluster) { c.Head.Sidecar = nodepool.RaySidecar },
		"queued by Kueue":   func(c *nodepool.Cluster) { c.Queue.Mark = "label" },
		"elastic in Kueue":  func(c *nodepool.Cluster) { c.Queue.Mark, c.Queue.Elastic = "label", true },
		"in Kueue, with an elastic Workload and no gates": func(c *nodepool.Cluster) {
			c.Queue = nodepool.Queue{Mark: "label", Quota: &nodepool.Quota{Elastic: true, Admitted: true}}
		},
		"elastic in Kueue, and Workloads are unknown": func(c *nodepool.Cluster) {
			c.Queue = nodepool.Queue{Mark: "label", Elastic: true, Quota: &nodepool.Quota{Unread: "forbidden"}}
		},
		"elastic in Kueue, and its Workload is not": func(c *nodepool.Cluster) {
			c.Queue = nodepool.Queue{Mark: "label", Elastic: true, Quota: &nodepool.Quota{Admitted: true}}
		},
		"the child of an elastic RayJob in Kueue": func(c *nodepool.Cluster) {
			c.Queue = nodepool.Queue{Mark: "label", Elastic: true, Parent: nodepool.Owner{Kind: "RayJob", Name: "train"},
				Quota: &nodepool.Quota{Elastic: true, Admitted: true}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 9), gpuGroup("full", 0, 0, 9))
			change(&w.kube.cluster)
			w.want(9, gpu(1))
			w.after(2 * time.Minute)
			w.want(0, nil)
			w.cycles(5, time.Minute)
			w.nothingWritten(name)
			if len(w.ray.reports) > 0 {
				t.Errorf("reported %+v", w.ray.reports)
			}
		})
	}
}

func TestAClusterThatIsGoneIsForgotten(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 9))
	w.cycle()
	w.kube.clusterErr = fmt.Errorf("getting: %w", nodepool.ErrGone)
	if next := w.c.Cycle(context.Background(), key); next != 0 {
		t.Errorf("next = %v, want none", next)
	}
	if _, known := w.c.Decision(key); known || len(w.c.Decisions()) != 0 {
		t.Error("the decision is still there")
	}
	if w.ray.closed != 1 {
		t.Errorf("closed %d lines, want 1", w.ray.closed)
	}
}

func TestAnErrorFromTheAPIServerKeepsTheLastDecision(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 9))
	w.cycle()
	w.kube.clusterErr = errors.New("connection refused")
	var published *addon.Decision
	w.c.config.Published = func(d *addon.Decision) { published = d }
	d := w.after(time.Minute)
	if d.Err == "" || len(d.Snapshot.Nodes) != 1 {
		t.Errorf("decision = %+v, want the error beside the last snapshot", d)
	}
	if published != d {
		t.Errorf("published %+v, want this decision: metrics count its failure", published)
	}
	w.nothingWritten("nobody could look")
}

func TestARecreatedClusterStartsWithAnEmptyMemory(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 9))
	w.ray.refuse[w.pod(0)], w.ray.refuse[w.pod(1)] = true, true
	w.after(61 * time.Second)
	r := w.c.records[key]
	if len(r.memory.drains) == 0 {
		t.Fatal("no drain is remembered")
	}
	w.want(3, gpu(1))
	w.kube.applyErr = errors.New("refused by a policy")
	w.seconds(60)
	if !r.memory.Patches.rest.Resting(w.now.Add(2 * time.Second)) {
		t.Fatal("nothing waits for the next try of a patch")
	}
	w.kube.applyErr = nil
	w.kube.cluster.UID, w.kube.cluster.Head.PodUID = "uid-2", "head-uid-2"
	w.kube.cluster.Workers, w.kube.cluster.Groups[0].Replicas = nil, 0
	w.ray.nodes, w.ray.session = w.ray.nodes[:1], "session-2"
	d := w.after(time.Second)
	if len(r.memory.drains) != 0 || r.memory.guard.Doubts() || d.UID != "uid-2" || w.dials != 2 {
		t.Errorf("drains %v, doubts %v, uid %v, dials %d; want a fresh start on a new line", r.memory.drains, r.memory.guard.Doubts(), d.UID, w.dials)
	}
	w.patchedTo(3, "the workers at once")
	if slices.ContainsFunc(d.Recent, func(a addon.Action) bool { return a.Result == addon.ResultError }) {
		t.Errorf("%+v is reported for a RayCluster that it did not happen to", d.Recent)
	}
}

func TestANewRaySessionVoidsWhatWasObserved(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 9))
	w.ray.refuse[w.pod(0)], w.ray.refuse[w.pod(1)] = true, true
	w.after(61 * time.Second)
	w.ray.session = "session-2"
	w.after(time.Second)
	if got := len(w.ray.drains); got != 2 {
		t.Errorf("%d drains asked, want no more: the new session was first seen just now", got)
	}
	w.after(3 * time.Second)
	if got := len(w.ray.drains); got != 4 {
		t.Errorf("%d drains asked, want each node asked again: the refusals came from another Ray", got)
	}
}

func TestANewHeadPodGetsANewLine(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 9))
	w.cycle()
	for _, change := range []func(*nodepool.Head){
		func(h *nodepool.Head) { h.PodUID = "another" },
		func(h *nodepool.Head) { h.Restarts++ },
		func(h *nodepool.Head) { h.IP = "10.0.0.2" },
	} {
		before := w.dials
		change(&w.kube.cluster.Head)
		w.after(time.Second)
		if w.dials != before+1 {
			t.Errorf("dials %d → %d after %+v, want one more", before, w.dials, w.kube.cluster.Head)
		}
	}
	if w.ray.closed != 3 {
		t.Errorf("closed %d old lines, want 3", w.ray.closed)
	}
}

func TestReportsShowPendingWorkersAndAreNotSentTooOften(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.want(2, gpu(1))
	w.cycle()
	w.cycles(9, 100*time.Millisecond)
	if len(w.ray.reports) != 1 {
		t.Errorf("%d reports within a second, want 1", len(w.ray.reports))
	}
	w.after(200 * time.Millisecond)
	last := w.ray.reports[len(w.ray.reports)-1]
	if len(w.ray.reports) != 2 || len(last.Launching) != 1 || last.Launching[0].Count != 2 {
		t.Errorf("reports = %+v, want the two launches reported", w.ray.reports)
	}
	w.operate()
	w.after(2 * time.Second)
	last = w.ray.reports[len(w.ray.reports)-1]
	if len(last.Starting) != 2 || len(last.Launching) != 0 {
		t.Errorf("report = %+v, want two pods starting", last)
	}
	before := len(w.ray.reports)
	w.cycles(40, 100*time.Millisecond)
	if len(w.ray.reports) != before {
		t.Errorf("%d reports of the same within 4 s", len(w.ray.reports)-before)
	}
	w.ray.reportErr = errors.New("no answer")
	w.want(4, gpu(1))
	if d := w.after(2 * time.Second); w.group("gpu").Replicas != 4 || !slices.ContainsFunc(d.Actions,
		func(a addon.Action) bool { return a.Kind == addon.ActionReport && a.Message == "no answer" }) {
		t.Errorf("%d replicas, actions %+v; want 4, and the report that failed", w.group("gpu").Replicas, d.Actions)
	}
}

// Where Heliostat manages it names the pods that go, so nobody needs the warning.
func TestRandomDeletesAreReportedWhereHeliostatDoesNotScale(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.kube.cluster.InTreeAutoscaling = false
	if d := w.cycle(); d.Mode != nodepool.Managed || hasFinding(d, observe.FindingRandomDeletes) {
		t.Errorf("mode %s: findings = %+v", d.Mode, d.Findings)
	}
	w.kube.cluster.Mode = nodepool.Shadow
	if d := w.cycle(); !hasFinding(d, observe.FindingRandomDeletes) {
		t.Errorf("mode %s: findings = %+v, want %s", d.Mode, d.Findings, observe.FindingRandomDeletes)
	}
	w.kube.cluster.InTreeAutoscaling = true
	if d := w.cycle(); hasFinding(d, observe.FindingRandomDeletes) {
		t.Errorf("with in-tree autoscaling: findings = %+v", d.Findings)
	}
}

func hiddenNamespace(c *nodepool.Cluster) {
	c.NamespaceUnknown = "this process may not read Namespace ml"
}

func TestEffectiveMode(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*nodepool.Cluster)
		form     Form
		fallback nodepool.Mode
		readOnly bool
		// noFallback leaves out --mode.
		noFallback bool
		want       nodepool.Mode
		why, says  string
	}{
		"the default counts without an annotation":   {fallback: nodepool.Managed, want: nodepool.Managed, why: addon.AsAsked},
		"a default of shadow writes nothing":         {fallback: nodepool.Shadow, want: nodepool.Shadow, why: addon.NotAsked},
		"the annotation overrides the default":       {change: func(c *nodepool.Cluster) { c.Mode = nodepool.Managed }, fallback: nodepool.Off, want: nodepool.Managed, why: addon.AsAsked},
		"read-only goes before an annotation":        {change: func(c *nodepool.Cluster) { c.Mode = nodepool.Managed }, readOnly: true, want: nodepool.Shadow, why: addon.ReadOnly},
		"read-only looks at nothing that is off":     {change: func(c *nodepool.Cluster) { c.Mode = nodepool.Off }, readOnly: true, want: nodepool.Off, why: addon.AsAsked},
		"off is off":                                 {change: func(c *nodepool.Cluster) { c.Mode = nodepool.Off }, want: nodepool.Off, why: addon.AsAsked},
		"a live Python sidecar is never fought":      {change: func(c *nodepool.Cluster) { c.Head.Sidecar = nodepool.RaySidecar }, want: nodepool.Shadow, why: addon.SidecarAlive},
		"not even when management was asked for":     {change: func(c *nodepool.Cluster) { c.Mode, c.Head.Sidecar = nodepool.Managed, nodepool.RaySidecar }, want: nodepool.Shadow, why: addon.SidecarAlive},
		"nor what may be one":                        {change: func(c *nodepool.Cluster) { c.Mode, c.Head.Sidecar = nodepool.Managed, nodepool.UnknownSidecar }, want: nodepool.Shadow, why: addon.SidecarAlive},
		"freeze stops writes":                        {change: func(c *nodepool.Cluster) { c.Freeze = true }, want: nodepool.Shadow, why: addon.Frozen},
		"a suspended cluster is left alone":          {change: func(c *nodepool.Cluster) { c.Suspended = true }, want: nodepool.Shadow, why: addon.Suspended},
		"a cluster being deleted is not even read":   {change: func(c *nodepool.Cluster) { c.Deleting = true }, want: nodepool.Off, why: addon.BeingDeleted},
		"another controller's cluster is left alone": {change: func(c *nodepool.Cluster) { c.ManagedElsewhere = true }, want: nodepool.Shadow, why: addon.ManagedElsewhere},
		"an unreadable cluster is not written to":    {change: func(c *nodepool.Cluster) { c.Unreadable = true }, want: nodepool.Shadow, why: addon.Unreadable},
		"a cluster owned by a RayJob is managed":     {change: func(c *nodepool.Cluster) { c.Owner = nodepool.Owner{Kind: "RayJob", Name: "j"} }, want: nodepool.Managed, why: addon.AsAsked},
		"the fleet leaves a cluster to our sidecar":  {change: func(c *nodepool.Cluster) { c.Head.Sidecar = nodepool.OurSidecar }, want: nodepool.Shadow, why: addon.SidecarManages},
		"until the annotation hands it to the fleet": {change: func(c *nodepool.Cluster) { c.Mode, c.Head.Sidecar = nodepool.Managed, nodepool.OurSidecar }, want: nodepool.Managed, why: addon.AsAsked},
		"a queued cluster is only looked at":         {change: func(c *nodepool.Cluster) { c.Queue.Mark = "label" }, want: nodepool.Shadow, why: addon.QueuedByKueue},
		"an elastic one has a code of its own":       {change: func(c *nodepool.Cluster) { c.Queue.Mark, c.Queue.Elastic = "label", true }, want: nodepool.Shadow, why: addon.ElasticQueuedByKueue},
		"not even an annotation has it scaled":       {change: func(c *nodepool.Cluster) { c.Mode, c.Queue.Mark = nodepool.Managed, "label" }, want: nodepool.Shadow, why: addon.QueuedByKueue},
		"shadow as asked names the queue":            {change: func(c *nodepool.Cluster) { c.Mode, c.Queue.Mark = nodepool.Shadow, "label" }, want: nodepool.Shadow, why: addon.QueuedByKueue},
		"a queue that holds it back is named":        {change: func(c *nodepool.Cluster) { c.Suspended, c.Queue.Mark = true, "label" }, want: nodepool.Shadow, why: addon.QueuedByKueue},
		"Kueue holds an elastic one back": {change: func(c *nodepool.Cluster) {
			c.Suspended = true
			c.Queue = nodepool.Queue{Name: "research", Mark: "label", Elastic: true, Quota: &nodepool.Quota{
				Elastic: true, Admitted: true, Pending: &nodepool.PendingWorkload{Message: "no quota"}}}
		}, want: nodepool.Shadow, why: addon.Suspended, says: "Kueue holds it back (queue research, spec.suspend is true): no quota"},
		"an owner that is not read may be queued":      {change: func(c *nodepool.Cluster) { c.Queue.Unknown = "?" }, want: nodepool.Shadow, why: addon.QueueUnknown},
		"off is off in a queue too":                    {change: func(c *nodepool.Cluster) { c.Mode, c.Queue.Mark = nodepool.Off, "label" }, want: nodepool.Off, why: addon.AsAsked},
		"a sidecar leaves a queued cluster alone":      {change: func(c *nodepool.Cluster) { c.Head.Sidecar, c.Queue.Mark = nodepool.OurSidecar, "label" }, form: Sidecar, want: nodepool.Shadow, why: addon.QueuedByKueue},
		"gates without a queue mean nothing":           {change: func(c *nodepool.Cluster) { c.Queue.Elastic = true }, want: nodepool.Managed, why: addon.AsAsked},
		"our sidecar manages without an annotation":    {change: func(c *nodepool.Cluster) { c.Head.Sidecar = nodepool.OurSidecar }, form: Sidecar, want: nodepool.Managed, why: addon.AsAsked},
		"a fleet scales nothing that nobody asked for": {noFallback: true, want: nodepool.Shadow, why: addon.NotAsked},
		"the namespace asks for its clusters":          {change: func(c *nodepool.Cluster) { c.NamespaceMode = nodepool.Managed }, noFallback: true, want: nodepool.Managed, why: addon.AsAsked},
		"the namespace goes before --mode":             {change: func(c *nodepool.Cluster) { c.NamespaceMode = nodepool.Off }, want: nodepool.Off, why: addon.AsAsked},
		"its own annotation before the namespace's":    {change: func(c *nodepool.Cluster) { c.Mode, c.NamespaceMode = nodepool.Shadow, nodepool.Managed }, want: nodepool.Shadow, why: addon.AsAsked},
		"what the namespace says is not known":         {change: hiddenNamespace, want: nodepool.Shadow, why: addon.NamespaceUnknown},
		"and need not be":                              {change: func(c *nodepool.Cluster) { hiddenNamespace(c); c.Mode = nodepool.Managed }, want: nodepool.Managed, why: addon.AsAsked},
		"a sidecar manages unless asked otherwise":     {form: Sidecar, noFallback: true, want: nodepool.Managed, why: addon.AsAsked},
		"a namespace does not speak to a sidecar":      {change: func(c *nodepool.Cluster) { c.NamespaceMode = nodepool.Off }, form: Sidecar, noFallback: true, want: nodepool.Managed, why: addon.AsAsked},
		"our sidecar manages what nobody else asked":   {change: func(c *nodepool.Cluster) { c.Head.Sidecar = nodepool.OurSidecar }, noFallback: true, want: nodepool.Shadow, why: addon.SidecarManages},
		"even in a managed namespace":                  {change: func(c *nodepool.Cluster) { c.NamespaceMode, c.Head.Sidecar = nodepool.Managed, nodepool.OurSidecar }, noFallback: true, want: nodepool.Shadow, why: addon.SidecarManages},
		"and parks when the annotation says the fleet": {change: func(c *nodepool.Cluster) { c.Mode, c.Head.Sidecar = nodepool.Managed, nodepool.OurSidecar }, form: Sidecar, want: nodepool.Shadow, why: addon.Parked},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := nodepool.Cluster{Key: llm}
			if c.change != nil {
				c.change(&cluster)
			}
			if c.form == "" {
				c.form = Fleet
			}
			if c.fallback == "" && !c.noFallback {
				c.fallback = nodepool.Managed
			}
			mode, why := (&Config{Form: c.form, DefaultMode: c.fallback, ReadOnly: c.readOnly}).Effective(cluster)
			if mode != c.want || why.Code != c.why || why.Message == "" || !strings.Contains(why.Message, c.says) {
				t.Errorf("mode = %v because %+v, want %v because %v", mode, why, c.want, c.why)
			}
		})
	}
}

func TestExactlyOneOfFleetAndSidecarManagesACluster(t *testing.T) {
	for _, mode := range []nodepool.Mode{"", nodepool.Managed} {
		for _, namespace := range []nodepool.Mode{"", nodepool.Managed, nodepool.Shadow, nodepool.Off} {
			for _, fallback := range []nodepool.Mode{"", nodepool.Managed} {
				cluster := nodepool.Cluster{Key: llm, Mode: mode, NamespaceMode: namespace, Head: nodepool.Head{Sidecar: nodepool.OurSidecar}}
				fleet, _ := (&Config{Form: Fleet, DefaultMode: fallback}).Effective(cluster)
				sidecar, _ := (&Config{Form: Sidecar}).Effective(cluster)
				if (fleet == nodepool.Managed) == (sidecar == nodepool.Managed) {
					t.Errorf("annotation %q, namespace %q, --mode %q: fleet %v, sidecar %v", mode, namespace, fallback, fleet, sidecar)
				}
			}
		}
	}
}

// The namespace's annotation changes between the plan and the patch, which cannot test it.
var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
