package consolidation

import (
	"errors"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// after is the default of --consolidate-after.
const after = 10 * time.Minute

// found is what a look finds: one worker with a Serve replica and one with a restartable actor.
func found() []Move {
	return []Move{
		{Pod: "w0", Group: "cpu", Needs: nodepool.ConsolidateServe, Hourly: 3, Again: time.Minute},
		{Pod: "w1", Group: "cpu", Needs: nodepool.ConsolidateRestartable, Hourly: 3, Again: time.Minute},
	}
}

// steady has looked every minute for that long.
func steady(d time.Duration) (*Tracker, time.Time) {
	t, now := &Tracker{}, noon
	for ; now.Sub(noon) <= d; now = now.Add(time.Minute) {
		t.Observe(now, "session", "", false)
		if t.WantsLook(now, nodepool.ConsolidateServe, "", after) {
			t.Looked(now, found(), nil)
		}
	}
	return t, now
}

func TestWhenAWorkerIsDrained(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		opted  nodepool.Consolidate
		change func(t *Tracker, now time.Time)
		now    string // unquiet
		want   string // the pod, or a part of why not
	}{
		"after its time":                {after: 10 * time.Minute, opted: nodepool.ConsolidateServe, want: "w0"},
		"not before":                    {after: 5 * time.Minute, opted: nodepool.ConsolidateServe, want: "if nothing changes"},
		"not unasked":                   {after: time.Hour, want: ""},
		"not if it says none":           {after: time.Hour, opted: nodepool.ConsolidateNone, want: ""},
		"Serve comes first":             {after: time.Hour, opted: nodepool.ConsolidateRestartable, want: "w0"},
		"not while demand waits":        {after: time.Hour, opted: nodepool.ConsolidateServe, now: "demand waits", want: "demand waits"},
		"not if it saves too little":    {after: time.Hour, opted: nodepool.ConsolidateServe, want: "it would be paid for 1h0m0s for nothing", change: func(t *Tracker, _ time.Time) { t.moves[0].Again = time.Hour }},
		"not if the price is unknown":   {after: time.Hour, opted: nodepool.ConsolidateServe, want: "price of group cpu is unknown", change: func(t *Tracker, _ time.Time) { t.moves[0].Hourly = 0 }},
		"not after demand has waited":   {after: time.Hour, opted: nodepool.ConsolidateServe, want: "just become possible", change: func(t *Tracker, now time.Time) { t.Observe(now, "session", "demand waits", false) }},
		"not right after a launch":      {after: time.Hour, opted: nodepool.ConsolidateServe, want: "if nothing changes", change: func(t *Tracker, now time.Time) { t.Observe(now, "session", "", true) }},
		"not beyond the budget":         {after: time.Hour, opted: nodepool.ConsolidateServe, want: "4 workers were drained", change: func(t *Tracker, now time.Time) { t.drained = []time.Time{now, now, now, now} }},
		"not after it was regretted":    {after: time.Hour, opted: nodepool.ConsolidateServe, want: "launched again", change: func(t *Tracker, now time.Time) { t.drained = []time.Time{now}; t.Observe(now, "session", "", true) }},
		"not in a new Ray session":      {after: time.Hour, opted: nodepool.ConsolidateServe, want: "", change: func(t *Tracker, now time.Time) { t.Observe(now, "other", "", false) }},
		"not if actors cannot be read":  {after: time.Hour, opted: nodepool.ConsolidateServe, want: "cannot be read", change: func(t *Tracker, now time.Time) { t.Looked(now, nil, errors.New("no")) }},
		"not without a look since then": {after: time.Hour, opted: nodepool.ConsolidateServe, want: "", change: func(t *Tracker, now time.Time) { t.Drained(now) }},
	} {
		t.Run(name, func(t *testing.T) {
			tracker, now := steady(c.after)
			if c.change != nil {
				c.change(tracker, now)
			}
			move, why := tracker.Next(now, c.opted, c.now, after)
			got := why
			if move != nil {
				got = move.Pod
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || (move != nil) != (c.want == "w0") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestSuggestionsAloneAreLookedForSeldom(t *testing.T) {
	for opted, want := range map[nodepool.Consolidate]int{
		nodepool.ConsolidateServe: 60, nodepool.ConsolidateRestartable: 60, nodepool.ConsolidateNone: 6, "": 6,
	} {
		tracker, looks := &Tracker{}, 0
		for now := noon; now.Sub(noon) < time.Hour; now = now.Add(time.Second) {
			if tracker.WantsLook(now, opted, "", after) {
				tracker.Looked(now, found(), nil)
				looks++
			}
		}
		if looks != want {
			t.Errorf("%q: %d looks in an hour, want %d", opted, looks, want)
		}
		if tracker.WantsLook(noon.Add(3*time.Hour), opted, "demand waits", after) {
			t.Errorf("%q: actors are read although nothing may move", opted)
		}
	}
}

func TestABudgetIsPerHour(t *testing.T) {
	tracker, now := steady(time.Hour)
	for range perHour {
		tracker.Drained(now.Add(-50 * time.Minute))
	}
	for end := now.Add(25 * time.Minute); now.Before(end); now = now.Add(time.Minute) {
		tracker.Observe(now, "session", "", false)
		tracker.Looked(now, found(), nil)
	}
	if move, why := tracker.Next(now, nodepool.ConsolidateServe, "", after); move == nil {
		t.Errorf("nothing is drained although an hour has passed: %s", why)
	}
}

func TestASuggestionHasTheCommand(t *testing.T) {
	key := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	all := Findings(append(found(), found()...), key, nodepool.ConsolidateServe, "USD", "at 12:00")
	if len(all) != mostShown {
		t.Fatalf("%d suggestions, want %d", len(all), mostShown)
	}
	if want := "Heliostat drains one worker at a time: at 12:00"; all[0].Fix != want {
		t.Errorf("allowed: %q, want %q", all[0].Fix, want)
	}
	want := "kubectl -n ml annotate raycluster llm --overwrite heliostat.dev/consolidate=restartable"
	if all[1].Fix != want {
		t.Errorf("not allowed: %q, want %q", all[1].Fix, want)
	}
}
