package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var historyKey = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// decidedAt plans a snapshot as a cycle would.
func decidedAt(t *testing.T, snapshot string, at time.Time, actions ...addon.Action) *addon.Decision {
	t.Helper()
	s, err := snapshotfile.ReadSnapshot(strings.NewReader(snapshot), "snapshot")
	must(t, err)
	return &addon.Decision{Cluster: historyKey, At: at, Mode: nodepool.Managed, Snapshot: snapshotfile.Exportable(s), Plan: planner.Compute(s, s.Policy), Actions: actions}
}

func waitingFor(gpus int) string {
	return fmt.Sprintf(`{"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 9}], "pendingRequests": [{"resources": {"GPU": 1}, "count": %d}]}`, gpus)
}

func keep(t *testing.T, h *History, d *addon.Decision) {
	t.Helper()
	must(t, h.Observe(d))
}

var historyStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestHistoryHoldsWhatWasDecidedOtherwiseNewestFirst(t *testing.T) {
	h := newHistory(0, 0)
	patch := addon.Action{Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", From: 0, To: 2}
	for i, d := range []*addon.Decision{
		decidedAt(t, waitingFor(1), historyStart),
		// the same again
		decidedAt(t, waitingFor(1), historyStart.Add(time.Second)),
		// reported to Ray alone
		decidedAt(t, waitingFor(1), historyStart.Add(2*time.Second), addon.Action{Kind: addon.ActionReport}),
		// something else
		decidedAt(t, waitingFor(2), historyStart.Add(3*time.Second), patch, addon.Action{Kind: addon.ActionReport}),
		// the same, carried out
		decidedAt(t, waitingFor(2), historyStart.Add(4*time.Second), patch),
		// nothing decidedAt
		{Cluster: historyKey, ObserveFailed: true, At: historyStart.Add(5 * time.Second), Err: "not readable"},
	} {
		keep(t, h, d)
		_ = i
	}
	pasts := h.Entries(historyKey)
	var got []string
	for _, p := range pasts {
		got = append(got, fmt.Sprintf("%s %s %d", p.ID, p.At.Format(time.TimeOnly), len(p.Decisions)))
	}
	if want := "[1772366404000 12:00:04 1 1772366403000 12:00:03 1 1772366400000 12:00:00 0]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if _, known, _ := h.Past(historyKey, "1772366403000"); !known {
		t.Error("a decision is not found by its id")
	}
	if _, known, _ := h.Past(historyKey, "1"); known {
		t.Error("a decision is found that never was")
	}
	h.Forget(historyKey)
	if len(h.Entries(historyKey)) != 0 || h.used != 0 {
		t.Errorf("a cluster that is gone is remembered, %d bytes", h.used)
	}
}

func TestDecisionsOfOneMillisecondHaveIDsOfTheirOwn(t *testing.T) {
	h := newHistory(0, 0)
	keep(t, h, decidedAt(t, waitingFor(1), historyStart))
	keep(t, h, decidedAt(t, waitingFor(2), historyStart))
	keep(t, h, decidedAt(t, waitingFor(3), historyStart.Add(-time.Hour))) // the clock was set back
	pasts := h.Entries(historyKey)
	if pasts[0].ID != "1772366400002" || pasts[1].ID != "1772366400001" || pasts[2].ID != "1772366400000" {
		t.Errorf("ids %s, %s, %s", pasts[0].ID, pasts[1].ID, pasts[2].ID)
	}
}

func TestEveryDecisionOfTheHistoryPlannedAgainIsTheSame(t *testing.T) {
	files, err := filepath.Glob("../../../internal/planner/testdata/cases/*.json")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	h := newHistory(1000, 0)
	var wants [][]byte
	for i, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		d := decidedCase(t, text, historyStart.Add(time.Duration(i)*time.Second))
		if d == nil {
			continue
		}
		d.Actions = []addon.Action{{Kind: addon.ActionPatch}}
		keep(t, h, d)
		want, err := json.Marshal(d.Plan)
		must(t, err)
		wants = append(wants, want)
	}
	pasts := h.Entries(historyKey)
	if len(pasts) < 50 || len(pasts) != len(wants) {
		t.Fatalf("only %d decisions", len(pasts))
	}
	for i, past := range pasts { // newest first
		want := wants[len(wants)-1-i]
		snapshot, _, err := h.Past(historyKey, past.ID)
		must(t, err)
		again, err := snapshotfile.ReadSnapshot(bytes.NewReader(snapshot), past.ID)
		must(t, err)
		plan, err := json.Marshal(planner.Compute(again, again.Policy))
		if err != nil || !bytes.Equal(plan, want) {
			t.Errorf("%s: planned again it is\n%s\nand it was\n%s", again.Name, plan, want)
		}
	}
}

// decidedCase is nil for a case whose groups stand in a manifest.
func decidedCase(t *testing.T, text []byte, at time.Time) *addon.Decision {
	t.Helper()
	doc, err := snapshotfile.ReadDocument(bytes.NewReader(text), "case")
	must(t, err)
	if doc.RayCluster != nil {
		return nil
	}
	s := snapshotfile.Exportable(doc.Snapshot)
	return &addon.Decision{Cluster: historyKey, At: at, Mode: nodepool.Managed, Snapshot: s, Plan: planner.Compute(s, s.Policy)}
}

func TestHistoryStaysWithinItsBounds(t *testing.T) {
	h := newHistory(3, 4000)
	for i := range 40 {
		d := decidedAt(t, waitingFor(1+i%8), historyStart.Add(time.Duration(i)*time.Second))
		d.Cluster.Name = fmt.Sprint("c", i%4)
		keep(t, h, d)
		kept := 0
		for n := range 4 {
			pasts := h.Entries(nodepool.ClusterKey{Namespace: "ml", Name: fmt.Sprint("c", n)})
			if len(pasts) > 3 {
				t.Fatalf("%d decisions about one cluster, want at most 3", len(pasts))
			}
			for _, entry := range h.storedOf(nodepool.ClusterKey{Namespace: "ml", Name: fmt.Sprint("c", n)}) {
				kept += entry.size()
			}
		}
		if kept > 4000 || kept != h.used {
			t.Fatalf("%d bytes are kept and %d counted, want at most 4000", kept, h.used)
		}
	}
	tiny := newHistory(3, 1)
	keep(t, tiny, decidedAt(t, waitingFor(1), historyStart))
	keep(t, tiny, decidedAt(t, waitingFor(2), historyStart.Add(time.Second)))
	if pasts := tiny.Entries(historyKey); len(pasts) != 1 || pasts[0].ID != "1772366401000" {
		t.Errorf("%+v, want the latest decision alone", pasts)
	}
}

func TestADecisionThatCannotBeRememberedIsAnError(t *testing.T) {
	h := newHistory(0, 0)
	for what, spoil := range map[string]func(*addon.Decision){
		// no JSON has such a year
		"the decision":          func(d *addon.Decision) { d.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"what it was made from": func(d *addon.Decision) { d.Snapshot.Groups[0].Price = new(math.NaN()) },
	} {
		d := decidedAt(t, waitingFor(1), historyStart)
		spoil(d)
		if err := h.Observe(d); err == nil || !strings.Contains(err.Error(), "storing a decision about ml/llm") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(h.Entries(historyKey)) > 0 || h.used > 0 {
		t.Errorf("%d decisions are kept", len(h.Entries(historyKey)))
	}
}

// heapInUse is what is reachable, in bytes. The first collection leaves what pools hold to the second.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestTheBoundOfTheHistoryIsOneOfMemory(t *testing.T) {
	const bound = 2 << 20
	h := newHistory(0, bound)
	groups, message := make([]planner.GroupPlan, 8), strings.Repeat("group gpu is at its maximum; ", 8)
	before := heapInUse()
	for i := range 4000 {
		d := decidedByGroups(i, groups, message)
		keep(t, h, d)
	}
	grown := heapInUse() - before
	if kept := len(h.Entries(nodepool.ClusterKey{Namespace: "ml", Name: "c0"})); kept < 10 || kept > 150 {
		t.Errorf("%d decisions are kept, want the bound of memory to be reached, and not at once", kept)
	}
	if grown > bound*5/4 || h.used > bound {
		t.Errorf("%d bytes are held and %d counted, want at most %d", grown, h.used, bound)
	}
	runtime.KeepAlive(h)
}

// decidedByGroups is the i-th decision, of one of twenty RayClusters: nothing in it is shared with another one.
func decidedByGroups(i int, groups []planner.GroupPlan, message string) *addon.Decision {
	d := &addon.Decision{Cluster: nodepool.ClusterKey{Namespace: "ml", Name: fmt.Sprint("c", i%20)}, At: historyStart.Add(time.Duration(i) * time.Second), Mode: nodepool.Managed}
	d.Plan.Launch = map[string]int{}
	for n := range groups {
		name := fmt.Sprint("group-", n)
		d.Plan.Launch[name] = i
		d.Plan.Groups = append(d.Plan.Groups, planner.GroupPlan{
			Name: name, Desired: i, Resources: raydemand.Bundle{raydemand.GPU: raydemand.One, raydemand.CPU: raydemand.One},
			Reasons: []planner.Reason{{Code: "at_max", Message: message + strconv.Itoa(i)}, {Code: "not_chosen", Message: message + strconv.Itoa(n+i)}},
		})
		d.Actions = append(d.Actions, addon.Action{Kind: addon.ActionPatch, Group: name, To: i, Pods: []string{fmt.Sprint("pod-", i)}, Message: message + strconv.Itoa(i)})
	}
	return d
}

func TestAPastSaysAllThatItsDecisionSaid(t *testing.T) {
	h := newHistory(0, 0)
	d := decidedByGroups(7, make([]planner.GroupPlan, 2), "why ")
	d.Err, d.Actions[0].At, d.Actions[0].Took, d.Actions[1].Kind = "patching: conflict", historyStart, time.Second, addon.ActionReport
	keep(t, h, d)
	pasts := h.Entries(d.Cluster)
	want := []apiv1.HistoryEntry{{
		ID: strconv.FormatInt(d.At.UnixMilli(), 10), At: d.At, Mode: d.Mode, Error: d.Err,
		Decisions: []apiv1.Decision{api.ChangeOf(d.Actions[0])},
		Groups: []apiv1.HistoryGroup{{Name: "group-0", Desired: 7, Reasons: d.Plan.Groups[0].Reasons},
			{Name: "group-1", Desired: 7, Reasons: d.Plan.Groups[1].Reasons}},
	}}
	if diff := cmp.Diff(want, pasts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func BenchmarkHistoryOfASteadyCluster(b *testing.B) {
	h := newHistory(0, 0)
	s, _ := snapshotfile.ReadSnapshot(strings.NewReader(waitingFor(4)), "snapshot")
	d := &addon.Decision{Cluster: historyKey, At: historyStart, Snapshot: s, Plan: planner.Compute(s, s.Policy)}
	for b.Loop() {
		must(b, h.Observe(d))
	}
}

func TestADecisionIsAnotherOneWhenItWantsSomethingElse(t *testing.T) {
	plan := func() *addon.Decision {
		return &addon.Decision{Mode: nodepool.Managed, Plan: planner.Plan{
			Launch: map[string]int{"a": 1}, Groups: []planner.GroupPlan{{Name: "a", Current: 1, Desired: 2}},
			InfeasibleRequests: []planner.UnmetRequest{{Request: raydemand.Request{Count: 2}, Reason: planner.Reason{Code: planner.Capped, Message: "at its maximum"}}},
		}}
	}
	seen := map[goal]string{goalOf(plan()): "the first"}
	for what, change := range map[string]func(*addon.Decision){
		"another mode":             func(d *addon.Decision) { d.Mode = nodepool.Shadow },
		"an error":                 func(d *addon.Decision) { d.Err = "refused" },
		"more to launch":           func(d *addon.Decision) { d.Plan.Launch["a"] = 2 },
		"another group to launch":  func(d *addon.Decision) { d.Plan.Launch = map[string]int{"b": 1} },
		"a group that grows":       func(d *addon.Decision) { d.Plan.Groups[0].Desired = 3 },
		"a group of another name":  func(d *addon.Decision) { d.Plan.Groups[0].Name = "b" },
		"one more unmet":           func(d *addon.Decision) { d.Plan.InfeasibleRequests[0].Count = 3 },
		"unmet for another reason": func(d *addon.Decision) { d.Plan.InfeasibleRequests[0].Reason.Code = planner.Impossible },
	} {
		d := plan()
		change(d)
		if before, known := seen[goalOf(d)]; known {
			t.Errorf("%s is the same as %s", what, before)
		}
		seen[goalOf(d)] = what
	}
	comesUp := plan()
	comesUp.Plan.Groups[0].Current, comesUp.Plan.InfeasibleRequests[0].Reason.Message = 2, "in other words"
	if goalOf(comesUp) != goalOf(plan()) {
		t.Error("pods that come up as they were meant to, and other words, are nothing new")
	}
}

func TestWhatWasDecidedIsListedExportedAndForgotten(t *testing.T) {
	a := newHistory(0, 0)
	d := decided()
	d.Actions = d.Recent
	must(t, a.Observe(d))
	entries := a.Entries(d.Cluster)
	if len(entries) != 1 || len(entries[0].Decisions) != 4 || entries[0].Decisions[0].Action != "scale-up" || entries[0].Unmet != 2 ||
		len(entries[0].Groups) != 1 || entries[0].Groups[0].Reasons == nil {
		t.Fatalf("%+v", entries)
	}
	snapshot, known, err := a.Past(d.Cluster, entries[0].ID)
	if err != nil || !known || !strings.Contains(string(snapshot), `"groups"`) {
		t.Fatalf("%v, %v: %s", known, err, snapshot)
	}
	a.Forget(d.Cluster)
	if _, known, err := a.Past(d.Cluster, entries[0].ID); known || err != nil {
		t.Errorf("a cluster that is gone: %v, %v", known, err)
	}
}

func TestCallersShareOneReadingOfTheNodesWhileItIsYoung(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	readings, answer, hold := 0, error(nil), make(chan struct{})
	v := &nodepoolsView{now: func() time.Time { return now }, list: func(context.Context) (*decode.NodeSet, error) {
		readings++
		<-hold
		return &decode.NodeSet{Notes: []string{"a note"}}, answer
	}}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Nodepools(gone); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("a caller that is gone: %v", err)
	}
	close(hold)
	for range 3 {
		if report, err := v.Nodepools(t.Context()); err != nil || len(report.Notes) != 1 || readings != 1 {
			t.Errorf("%+v, %v after %d readings", report, err, readings)
		}
	}
	now, answer = now.Add(nodepoolsAge), errors.New("no route")
	if _, err := v.Nodepools(t.Context()); !errors.Is(err, api.ErrUnavailable) || readings != 2 {
		t.Errorf("when it is old: %v after %d readings", err, readings)
	}
	answer = apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))
	if report, err := v.Nodepools(t.Context()); err != nil || len(report.Notes) != 1 || readings != 3 {
		t.Errorf("without the right, and after a failure: %+v, %v after %d readings", report, err, readings)
	}
}
