package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/test/rig"
)

func TestADemandIsNarratedBeforeItsConsequences(t *testing.T) {
	var out strings.Builder
	n := &narrator{out: &out, begin: at(0), clock: newClock(), took: map[rig.Stage][]time.Duration{}}
	n.asked(at(0), "task, {GPU 1}")
	for _, f := range []rig.Fact{
		{At: at(0.78), Stage: rig.GroupPatched, Group: "gpu", From: 0, To: 1, Detail: "0 → 1"},
		{At: at(0.79), Stage: rig.PodCreated, Group: "gpu", Pod: "demo-a"},
		{At: at(0.81), Stage: rig.DemandSeen, Detail: "1 × {GPU 1}"}, // read later than by who patched
		{At: at(0.82), Stage: rig.Scheduled, Group: "gpu", Pod: "demo-a"},
	} {
		n.fact(f)
	}
	want := `      0.00s             asked                                task, {GPU 1}
      0.78s     +0.78s  demand seen                          1 × {GPU 1}
      0.78s     +0.00s  group patched    gpu                 0 → 1
      0.79s     +0.01s  pod created      a
      0.82s     +0.03s  scheduled        a
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// The driver reports a request after it has made it: an observer of Ray may be faster.
func TestARequestIsNarratedBeforeItsDemand(t *testing.T) {
	var out strings.Builder
	n := &narrator{out: &out, begin: at(0), number: 1, clock: newClock(), took: map[rig.Stage][]time.Duration{}}
	n.asked(at(0), "an earlier chapter")
	n.fact(rig.Fact{At: at(0.5), Stage: rig.DemandSeen})
	n.chapter(chapter{title: "Two", ask: []rig.Command{{ID: "a"}, {ID: "b"}}})
	out.Reset()
	n.fact(rig.Fact{At: at(161.2), Stage: rig.DemandSeen, Detail: "1 × {GPU 1}"})
	n.asked(at(161.1), "a")
	n.fact(rig.Fact{At: at(161.5), Stage: rig.DemandSeen, Detail: "2 × {GPU 1}"})
	n.asked(at(161.4), "b")
	n.fact(rig.Fact{At: at(161.6), Stage: rig.GroupPatched, Group: "gpu", From: 0, To: 2, Detail: "0 → 2"})
	want := `    161.10s             asked                                a
    161.20s     +0.10s  demand seen                          1 × {GPU 1}
    161.40s             asked                                b
    161.50s     +0.10s  demand seen                          2 × {GPU 1}
    161.60s     +0.10s  group patched    gpu                 0 → 2
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	if rows := stages(n.took); rows[0].stage != rig.DemandSeen || rows[0].max > time.Second {
		t.Errorf("the table has %+v", rows)
	}
}

func TestEventsThatWaitForADemandAreNarratedBeforeAFailure(t *testing.T) {
	var out strings.Builder
	n := &narrator{out: &out, begin: at(0), clock: newClock(), took: map[rig.Stage][]time.Duration{}}
	n.asked(at(0), "task, {GPU 1}")
	n.fact(rig.Fact{At: at(1), Stage: rig.GroupPatched, Group: "gpu", From: 0, To: 1})
	n.failed(errDied, "")
	if got := out.String(); !strings.Contains(got, "group patched") || strings.Index(got, "group patched") > strings.Index(got, "did not happen") {
		t.Errorf("printed\n%s", got)
	}
}

func TestTheLastLinesAreCommandsThatRunAsPrinted(t *testing.T) {
	var out strings.Builder
	n := &narrator{out: &out}
	n.further("/run/kubeconfig", "http://127.0.0.1:4711", "/built/bin/autoscaler", false)
	for _, want := range []string{
		`export PATH="/built/bin:$PATH" HELIOSTAT_SERVER=http://127.0.0.1:4711`, "autoscaler status ray/demo ", "export KUBECONFIG=/run/kubeconfig",
		"kubectl --name " + clusterName() + " get pods -n ray)",
		"autoscaler requests ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want in it %q, got\n%s", want, out.String())
		}
	}
	// What ends now has nothing that could be looked at.
	out.Reset()
	n.further("/run/kubeconfig", "http://127.0.0.1:4711", "/built/bin/autoscaler", true)
	if got := out.String(); strings.Contains(got, "4711") || strings.Contains(got, "KUBECONFIG") || !strings.Contains(got, "without DEMO_EXIT") {
		t.Errorf("at the end it is said\n%s", got)
	}
}
