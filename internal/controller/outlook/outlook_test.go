package outlook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/forecast"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
)

var (
	llm    = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
)

// working is a decision about a RayCluster with some busy workers of 8.
func working(at time.Time, busy int) *decision.Decision {
	d := &decision.Decision{Cluster: llm, At: at, Mode: nodepool.Managed,
		Kube:     nodepool.Cluster{Key: llm, IdleTimeout: time.Minute},
		Snapshot: planner.Snapshot{Groups: []planner.Group{{Name: "gpu", Max: 8}}}}
	for range busy {
		d.Snapshot.Nodes = append(d.Snapshot.Nodes, planner.Node{Group: "gpu", State: planner.Running})
	}
	return d
}

// days observes days in which the RayCluster needs six workers from nine to five.
func days(o *Outlook, from time.Time, n int) (end time.Time) {
	end = from.AddDate(0, 0, n)
	for at := from; at.Before(end); at = at.Add(5 * time.Minute) {
		busy := 0
		if at.Hour() >= 9 && at.Hour() < 17 {
			busy = 6
		}
		o.Observe(working(at, busy))
	}
	return end
}

func TestWhatIsNeeded(t *testing.T) {
	node := func(pod string, state planner.NodeState) planner.Node {
		return planner.Node{Pod: pod, Group: "gpu", State: state}
	}
	for _, test := range []struct {
		name  string
		nodes []planner.Node
		plan  planner.Plan
		want  int
	}{
		{"nothing", nil, planner.Plan{}, 0},
		{"busy workers, and one on its way", []planner.Node{node("a", planner.Running), node("b", planner.Pending)},
			planner.Plan{}, 2},
		{"idle, leaving and given up workers are not needed", []planner.Node{node("a", planner.Idle),
			node("b", planner.Leaving), node("c", planner.AllocationTimeout)}, planner.Plan{}, 0},
		{"pods on their way to be free are not needed", []planner.Node{node("a", planner.Running),
			node("b", planner.Pending), node("c", planner.Pending)}, planner.Plan{Launch: map[string]int{"gpu": 2},
			Warm: []planner.WarmPlan{{WarmEntry: planner.WarmEntry{Group: "gpu"}, Coming: 1, Launching: 2}}}, 2},
		{"launches", []planner.Node{node("a", planner.Running)},
			planner.Plan{Launch: map[string]int{"gpu": 3, "former": 2}}, 4},
		{"a pod on its way that is withdrawn", []planner.Node{node("a", planner.Pending), node("b", planner.Pending)},
			planner.Plan{Terminate: []planner.Termination{{Pod: "b", Group: "gpu"}}}, 1},
		{"a busy worker that must go is still needed", []planner.Node{node("a", planner.Running)},
			planner.Plan{Terminate: []planner.Termination{{Pod: "a", Group: "gpu", Busy: true}}}, 1},
		{"idle workers that a request keeps", []planner.Node{node("a", planner.Running), node("b", planner.Idle)},
			planner.Plan{Requests: []planner.RequestPlan{{Groups: []planner.RequestGroup{{Name: "gpu", Pods: 2}}}}}, 2},
		{"a worker of a former group", []planner.Node{{Pod: "a", Group: "former", State: planner.Running}},
			planner.Plan{}, 0},
	} {
		d := &decision.Decision{Plan: test.plan,
			Snapshot: planner.Snapshot{Groups: []planner.Group{{Name: "gpu"}}, Nodes: test.nodes}}
		if diff := cmp.Diff(map[string]int{"gpu": test.want}, Needed(d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestAnAnswerSaysWhatToKeepReadyAndWhatThatWouldHaveSaved(t *testing.T) {
	o := New("")
	end := days(o, monday, 10)
	start, price := 600.0, 3.0
	d := working(end.Add(9*time.Hour), 2)
	d.Snapshot.Groups[0].StartSeconds, d.Snapshot.Groups[0].Price = &start, &price
	d.Snapshot.Policy.WaitingCost = 60
	a := o.Of(d, d.At)
	if len(a.Groups) != 1 || !a.From.Equal(monday) || !a.To.Equal(end) || a.NotStored != "" {
		t.Fatalf("%+v", a)
	}
	g := a.Groups[0]
	if g.Workers != 6 || g.Needed != 2 || g.Ready != 2 || g.Start != 10*time.Minute || g.StartAssumed || !g.Priced ||
		g.Why != "of the last 7 days from 09:00 to 09:15 UTC, 7 needed at least 6 workers" {
		t.Errorf("%+v", g)
	}
	saved := g.Choice.Without.Waited - g.Choice.With.Waited
	if !g.Choice.Pays || saved < 6.9 || saved > 7.1 { // six workers on seven days, ten minutes each
		t.Errorf("it saves %v hours: %+v", saved, g.Choice)
	}
	if want := end.Add(9*time.Hour + 15*time.Minute); !g.Forecast.To.Equal(want) {
		t.Errorf("it counts until %v, want %v", g.Forecast.To, want)
	}
	if g := o.Of(working(end, 0), end.Add(3*time.Hour)).Groups[0]; g.Workers != 0 {
		t.Errorf("at three at night it keeps %d", g.Workers)
	}
	d.Snapshot.Groups[0].Max = 0
	if g := o.Of(d, d.At).Groups[0]; g.Workers != 0 || g.Why != "its maxReplicas is 0" {
		t.Errorf("of a group without room it keeps %d: %s", g.Workers, g.Why)
	}
}

func TestTheStartTimeIsTheMeasuredOne(t *testing.T) {
	o := New("")
	d := working(monday, 0)
	if g := o.Of(d, monday).Groups[0]; g.Start != assumedStart || !g.StartAssumed || g.Priced {
		t.Errorf("of a group that never started: %+v", g)
	}
	d.Kube.StartTimes = map[string]arrival.Samples{"gpu": {Whole: []int64{50, 20, 30}}}
	if g := o.Of(d, monday).Groups[0]; g.Start != 30*time.Second || g.StartAssumed {
		t.Errorf("of a group that had nodes: %+v", g)
	}
}

func TestWhatIsNotSeenIsNoDemandOfZero(t *testing.T) {
	for name, change := range map[string]func(*decision.Decision){
		"the head does not answer": func(d *decision.Decision) { d.RayErr = "refused" },
		"no RayCluster":            func(d *decision.Decision) { d.ObserveFailed = true },
		"off":                      func(d *decision.Decision) { d.Mode = nodepool.Off },
		"suspended":                func(d *decision.Decision) { d.Kube.Suspended = true },
	} {
		o := New("")
		d := working(monday, 1)
		change(d)
		o.Observe(d)
		if len(o.Unread()) != 0 {
			t.Errorf("%s: it is remembered", name)
		}
	}
}

func TestAHistoryIsReadOnceAndStoredFromTimeToTime(t *testing.T) {
	stored := New("")
	end := days(stored, monday, 3)
	encoded, until, known := stored.Save(llm, end)
	if !known || !until.Equal(end.Add(forecast.Span)) {
		t.Fatalf("known %v until %v", known, until)
	}

	o := New("")
	begun := end.Add(time.Hour)
	o.Observe(working(begun, 3))
	if diff := cmp.Diff([]nodepool.ClusterKey{llm}, o.Unread()); diff != "" {
		t.Fatal(diff)
	}
	if due := o.Due(begun.Add(24 * time.Hour)); len(due) != 0 {
		t.Errorf("it would be stored before it is read: %v", due)
	}
	if err := o.Read(llm, encoded); err != nil {
		t.Fatal(err)
	}
	if a := o.Of(working(begun, 3), begun); !a.From.Equal(monday) || !a.To.Equal(begun.Add(5*time.Minute)) {
		t.Errorf("it reaches from %v to %v", a.From, a.To)
	}
	if err := o.Read(llm, []byte("nonsense")); err == nil || len(o.Unread()) != 0 {
		t.Errorf("reading again: %v, unread %v", err, o.Unread())
	}
	if due := o.Due(begun.Add(saveEvery)); len(due) != 1 {
		t.Error("after half an hour it is not due")
	}
	if _, _, known := o.Save(llm, begun.Add(saveEvery)); !known || len(o.Due(begun.Add(saveEvery+time.Minute))) != 0 {
		t.Error("it is due again at once")
	}
	o.Forget(llm)
	if _, _, known := o.Save(llm, begun); known {
		t.Error("a RayCluster that is gone is stored")
	}
}

func TestANewHistoryWaitsForAnHour(t *testing.T) {
	o := New("")
	o.Observe(working(monday, 1))
	if err := o.Read(llm, nil); err != nil {
		t.Fatal(err)
	}
	if due := o.Due(monday.Add(youngest - time.Second)); len(due) != 0 {
		t.Error("a RayCluster that may be gone in a moment is stored")
	}
	if due := o.Due(monday.Add(youngest + saveEvery)); len(due) != 1 {
		t.Error("it is never stored")
	}
}

func TestAHistoryThatCannotBeReadIsReplaced(t *testing.T) {
	o := New("")
	end := days(o, monday, 1)
	if err := o.Read(llm, []byte{9}); err == nil || !strings.Contains(err.Error(), "its version is 9") {
		t.Errorf("the error is %v", err)
	}
	if len(o.Unread()) != 0 || len(o.Due(end)) != 1 {
		t.Error("want what this process has seen, and that it is stored")
	}
}

func TestTheRayClusterOfAJobIsNotStored(t *testing.T) {
	o := New("")
	d := working(monday, 1)
	d.Kube.Owner = nodepool.Owner{Kind: "RayJob", Name: "train"}
	o.Observe(d)
	if len(o.Unread()) != 0 || len(o.Due(monday.AddDate(0, 0, 1))) != 0 {
		t.Error("it is read or stored")
	}
	if a := o.Of(d, monday); !strings.Contains(a.NotStored, "belongs to a RayJob") {
		t.Errorf("it says %q", a.NotStored)
	}
	o.NotStored("nobody may")
	if a := o.Of(d, monday); a.NotStored != "nobody may" {
		t.Errorf("it says %q", a.NotStored)
	}
}

func TestTheHistoryOfASteadyGroupIsSmall(t *testing.T) {
	o := New("")
	days(o, monday, 28)
	if encoded, _, known := o.Save(llm, monday.AddDate(0, 0, 28)); !known || len(encoded) < 100 || len(encoded) > 2000 {
		t.Errorf("four weeks take %d bytes", len(encoded))
	}
}
