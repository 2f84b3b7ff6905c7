package nodeguard

import (
	"errors"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var (
	bare  = nodepool.Guard{Version: "1"}
	ours  = nodepool.Guard{DoNotDisrupt: nodepool.MarkedByUs, SafeToEvict: nodepool.MarkedByUs, Ours: true, Version: "1"}
	users = nodepool.Guard{DoNotDisrupt: nodepool.MarkedByUser, SafeToEvict: nodepool.MarkedByUser, Version: "1"}
	half  = nodepool.Guard{DoNotDisrupt: nodepool.MarkedOtherwise, Version: "1"}
)

func gpus(n int64) raydemand.Bundle { return raydemand.Bundle{raydemand.GPU: raydemand.Whole(n)} }

// node is the Ray node of the worker, free GPUs of 2.
func node(status raydemand.NodeStatus, free int64) *raydemand.Node {
	return &raydemand.Node{ID: raydemand.NodeID{1}, Status: status, Total: gpus(2), Available: gpus(free),
		Labels: map[string]string{"zone": "a"}}
}

// reserved is a node whose GPUs a placement group reserves, with more activity.
func reserved(status raydemand.NodeStatus, activity ...string) *raydemand.Node {
	n := node(status, 0)
	n.Activity = append(activity, "Resource: GPU currently in use.")
	return n
}

func goes(w *nodepool.Worker) {
	w.Going = &departure.Notice{Sign: departure.NodeClaimDeleting, Certain: true}
}

func view(m observe.Member) observe.View {
	v := observe.View{Now: now, Members: []observe.Member{m}}
	v.Cluster.Key = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	return v
}

func facts() Facts {
	return Facts{Trusted: true, JoinTime: 5 * time.Minute, Drained: func(raydemand.NodeID) bool { return false }}
}

func written(changes []nodepool.GuardChange) string {
	text := ""
	for _, c := range changes {
		text += map[bool]string{true: "+", false: "-"}[c.Keep] + c.Pod
	}
	return text
}

// TestTheRule judges one worker, right away and after it has been calm for long enough.
func TestTheRule(t *testing.T) {
	waits := func(count int64, bundle raydemand.Bundle) func(*observe.View, *Facts) {
		return func(v *observe.View, _ *Facts) {
			v.State.Demand.Requests = []raydemand.Request{{Bundle: bundle, Count: count}}
		}
	}
	for name, c := range map[string]struct {
		change      func(*nodepool.Worker)
		named       bool
		node        *raydemand.Node
		around      func(*observe.View, *Facts)
		bare, ours  string // the write to a worker without and with our guard, at once
		oursLastsTo string // the write to a worker with our guard after calm
	}{
		"busy":                              {node: node(raydemand.Running, 0), bare: "+w"},
		"busy without resources in use":     {node: node(raydemand.Running, 2), bare: "+w"},
		"state unspecified":                 {node: node(raydemand.Unspecified, 2), bare: "+w"},
		"said to be idle, resources in use": {node: node(raydemand.Idle, 1), bare: "+w"},
		"idle":                              {node: node(raydemand.Idle, 2), oursLastsTo: "-w"},
		"idle, demand waits":                {node: node(raydemand.Idle, 2), around: waits(1, gpus(2)), bare: "+w"},
		"idle, demand without resources":    {node: node(raydemand.Idle, 2), around: waits(1, raydemand.Bundle{}), bare: "+w"},
		"idle, a gang waits": {node: node(raydemand.Idle, 2), bare: "+w", around: func(v *observe.View, _ *Facts) {
			v.State.Demand.Gangs = []raydemand.Gang{{Bundles: []raydemand.Bundle{gpus(9), gpus(1)}}}
		}},
		"idle, Ray's list of demand is cut": {node: node(raydemand.Idle, 2), bare: "+w",
			around: func(v *observe.View, _ *Facts) { v.State.Truncated = true }},
		"idle, Ray's reading is in doubt": {node: node(raydemand.Idle, 2),
			around: func(_ *observe.View, f *Facts) { f.Trusted = false }},
		"drained idle": {node: node(raydemand.Draining, 2), ours: "-w", oursLastsTo: "-w",
			around: func(_ *observe.View, f *Facts) { f.Drained = func(raydemand.NodeID) bool { return true } }},
		"drained idle while demand waits": {node: node(raydemand.Idle, 2), ours: "-w", oursLastsTo: "-w",
			around: func(v *observe.View, f *Facts) {
				waits(1, gpus(1))(v, f)
				f.Drained = func(raydemand.NodeID) bool { return true }
			}},
		"draining with work":                               {node: node(raydemand.Draining, 0), bare: "+w"},
		"draining with an actor without resources":         {node: node(raydemand.Draining, 2), bare: "+w"},
		"draining because its machine goes, only reserved": {node: reserved(raydemand.Draining), change: goes},
		"draining because its machine goes, an actor runs in what is reserved": {change: goes, bare: "+w",
			node: reserved(raydemand.Draining, raydemand.ActiveWorkers)},
		"draining because its machine goes, it has objects": {change: goes, bare: "+w",
			node: reserved(raydemand.Draining, "Resource: object_store_memory currently in use.")},
		"draining because its machine goes, activity unknown": {node: node(raydemand.Draining, 0), change: goes, bare: "+w"},
		"its machine goes, only reserved, not drained":        {node: reserved(raydemand.Running), change: goes, bare: "+w"},
		"draining, only reserved, its machine stays":          {node: reserved(raydemand.Draining), bare: "+w"},
		"named for deletion":                                  {node: node(raydemand.Idle, 2), named: true, ours: "-w", oursLastsTo: "-w"},
		"named, but Ray has come up in it": {node: node(raydemand.Running, 0), named: true, bare: "+w",
			change: func(w *nodepool.Worker) { w.Returned = true }},
		"joining":           {change: func(w *nodepool.Worker) { w.ScheduledAt = now.Add(-time.Minute) }, bare: "+w"},
		"bound, time unset": {change: func(w *nodepool.Worker) { w.Node = "n1" }, bare: "+w"},
		"its container started again": {bare: "+w", change: func(w *nodepool.Worker) {
			w.ScheduledAt, w.StartedAt = now.Add(-time.Hour), now.Add(-time.Second)
		}},
		"never joined": {change: func(w *nodepool.Worker) { w.ScheduledAt, w.CreatedAt = now.Add(-time.Hour), now.Add(-time.Hour) },
			oursLastsTo: "-w"},
		"without a node":      {},
		"Ray died in it":      {node: node(raydemand.Dead, 0), oursLastsTo: "-w"},
		"being deleted":       {node: node(raydemand.Running, 0), change: func(w *nodepool.Worker) { w.Terminating = true }},
		"failed":              {change: func(w *nodepool.Worker) { w.Failed = true }},
		"its machine is gone": {node: node(raydemand.Running, 0), change: func(w *nodepool.Worker) { w.NodeGone = true }},
		"Ray does not answer": {node: node(raydemand.Idle, 2),
			around: func(v *observe.View, _ *Facts) { v.StateErr = errors.New("no answer") }},
		"handed back, busy": {node: node(raydemand.Running, 0), around: func(_ *observe.View, f *Facts) { f.HandBack = true }},
		"handed back, idle": {node: node(raydemand.Idle, 2), oursLastsTo: "-w",
			around: func(_ *observe.View, f *Facts) { f.HandBack = true }},
	} {
		t.Run(name, func(t *testing.T) {
			judge := func(k *Keeper, read nodepool.Guard, after time.Duration) string {
				m := observe.Member{Node: c.node, Named: c.named,
					Worker: &nodepool.Worker{Pod: "w", UID: "u", CreatedAt: now, Guard: read}}
				if c.change != nil {
					c.change(m.Worker)
				}
				v, f := view(m), facts()
				if c.around != nil {
					c.around(&v, &f)
				}
				v.Now = now.Add(after)
				return written(k.Changes(v, f))
			}
			if got := judge(&Keeper{}, bare, 0); got != c.bare {
				t.Errorf("without a guard: %q, want %q", got, c.bare)
			}
			k := &Keeper{}
			if got := judge(k, ours, 0); got != c.ours {
				t.Errorf("with our guard: %q, want %q", got, c.ours)
			}
			if got := judge(k, ours, calm); got != c.oursLastsTo {
				t.Errorf("with our guard, %v later: %q, want %q", calm, got, c.oursLastsTo)
			}
			for _, foreign := range []nodepool.Guard{users} {
				if got := judge(&Keeper{}, foreign, time.Hour); got != "" {
					t.Errorf("a user's own guard: %q, want nothing", got)
				}
			}
		})
	}
}

func TestAUsersValueIsLeftAndTheOtherAnnotationAdded(t *testing.T) {
	m := observe.Member{Node: node(raydemand.Running, 0), Worker: &nodepool.Worker{Pod: "w", UID: "u", Guard: half}}
	if got := written((&Keeper{}).Changes(view(m), facts())); got != "+w" {
		t.Errorf("a busy worker that lacks one annotation: %q", got)
	}
	m.Node = node(raydemand.Idle, 2)
	k := &Keeper{}
	k.Changes(view(m), facts())
	v := view(m)
	v.Now = now.Add(time.Hour)
	if got := written(k.Changes(v, facts())); got != "" {
		t.Errorf("an idle worker with nothing of ours: %q", got)
	}
}

func TestAPauseBetweenTwoTasksCostsNoWrite(t *testing.T) {
	k, writes := &Keeper{}, ""
	for i := range 100 { // busy for 1 s, idle for 1 s
		n := node(raydemand.Running, 0)
		if i%20 >= 10 {
			n = node(raydemand.Idle, 2)
		}
		v := view(observe.Member{Node: n, Worker: &nodepool.Worker{Pod: "w", UID: "u", Guard: ours}})
		v.Now = now.Add(time.Duration(i) * 100 * time.Millisecond)
		writes += written(k.Changes(v, facts()))
	}
	if writes != "" {
		t.Errorf("written: %s", writes)
	}
}

// A process that Ray started before the drain may still register, and then its work must not die.
func TestADrainingNodeThatIsOnlyReservedLosesItsGuardWhenNothingCanStartAnyMore(t *testing.T) {
	k := &Keeper{}
	at := func(after time.Duration, activity ...string) string {
		w := nodepool.Worker{Pod: "w", UID: "u", Guard: ours}
		goes(&w)
		v := view(observe.Member{Node: reserved(raydemand.Draining, activity...), Worker: &w})
		v.Now = now.Add(after)
		return written(k.Changes(v, facts()))
	}
	if got := at(0) + at(raydemand.ProcessStart-1); got != "" {
		t.Errorf("in the first %v: %q", raydemand.ProcessStart, got)
	}
	if got := at(raydemand.ProcessStart, raydemand.ActiveWorkers) + at(2*raydemand.ProcessStart-1); got != "" {
		t.Errorf("in the %v after its work: %q", raydemand.ProcessStart, got)
	}
	if got := at(2 * raydemand.ProcessStart); got != "-w" {
		t.Errorf("then: %q, want its guard removed", got)
	}
}

func TestDoubtAboutRayRestartsNothingAndRemovesNothing(t *testing.T) {
	k := &Keeper{}
	at := func(after time.Duration, trusted bool) string {
		v := view(observe.Member{Node: node(raydemand.Idle, 2), Worker: &nodepool.Worker{Pod: "w", UID: "u", Guard: ours}})
		v.Now = now.Add(after)
		f := facts()
		f.Trusted = trusted
		return written(k.Changes(v, f))
	}
	at(0, true)
	if got := at(time.Hour, false); got != "" {
		t.Errorf("in doubt: %q", got)
	}
	if got := at(time.Hour+time.Second, true); got != "-w" {
		t.Errorf("when the doubt ends: %q", got)
	}
}

func TestTheHeadIsGuardedWhateverRaySays(t *testing.T) {
	v := observe.View{Now: now, StateErr: errors.New("no answer")}
	v.Cluster.Head = nodepool.Head{Pod: "head", PodUID: "h", Guard: bare}
	if got := written((&Keeper{}).Changes(v, facts())); got != "+head" {
		t.Errorf("head: %q", got)
	}
	v.Cluster.Head.Guard = ours
	f := facts()
	if got := written((&Keeper{}).Changes(v, f)); got != "" {
		t.Errorf("guarded head: %q", got)
	}
	f.HandBack = true
	if got := written((&Keeper{}).Changes(v, f)); got != "-head" {
		t.Errorf("head of a RayCluster that is handed back: %q", got)
	}
}

func TestWorkComesFirst(t *testing.T) {
	v := observe.View{Now: now}
	v.State.Demand.Requests = []raydemand.Request{{Bundle: gpus(2), Count: 1}}
	add := func(pod string, n *raydemand.Node, read nodepool.Guard, named bool) {
		v.Members = append(v.Members, observe.Member{Node: n, Named: named,
			Worker: &nodepool.Worker{Pod: pod, UID: pod, Guard: read, Node: "n", CreatedAt: now}})
	}
	add("named", node(raydemand.Idle, 2), ours, true)
	add("joins", nil, bare, false)
	add("waits", node(raydemand.Idle, 2), bare, false)
	add("busy", node(raydemand.Running, 0), bare, false)
	if got := written((&Keeper{}).Changes(v, facts())); got != "+busy+waits+joins-named" {
		t.Errorf("order: %s", got)
	}
}

func TestWhatFailedComesLastAndNothingIsWrittenTwiceToTheSameVersion(t *testing.T) {
	k, v := &Keeper{}, observe.View{Now: now}
	for _, pod := range []string{"refused", "wrote", "lags", "frozen"} {
		v.Members = append(v.Members, observe.Member{Node: node(raydemand.Running, 0),
			Worker: &nodepool.Worker{Pod: pod, UID: pod, Guard: bare}})
	}
	v.Cluster.Head = nodepool.Head{Pod: "head", PodUID: "head", Guard: bare}
	for i, change := range k.Changes(v, facts()) {
		k.Tried(change, []error{errors.New("forbidden"), errors.New("forbidden"), nil, nodepool.ErrConflict, nodepool.ErrReadOnly}[i])
	}
	v.Members = append(v.Members, observe.Member{Node: node(raydemand.Running, 0),
		Worker: &nodepool.Worker{Pod: "new", UID: "new", Guard: bare}})
	if got := written(k.Changes(v, facts())); got != "+frozen+new+head+refused" {
		t.Errorf("next: %s", got)
	}
	v.Members[2].Guard.Version = "2" // another program has changed it
	if got := written(k.Changes(v, facts())); got != "+lags+frozen+new+head+refused" {
		t.Errorf("when the caches show a newer version: %s", got)
	}
}
