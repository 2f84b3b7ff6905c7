package main

import (
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestOfARayThatHasNotAnsweredNothingIsToldAsIfItHad(t *testing.T) {
	r := newRemote(t)
	r.view = api.View{Decision: addon.Decision{Cluster: llmKey, Mode: nodepool.Managed, Why: planner.Reason{Message: "managed by the default"}, Err: "the Ray head is unavailable", Snapshot: planner.Snapshot{Name: "ml/llm"}}}
	_, out, _ := command(t, "", "autoscaler", "status", "ml/llm")
	if !strings.Contains(out, "Demand: unknown") || strings.Contains(out, "nothing is asked for") || strings.Contains(out, "Unmet") {
		t.Errorf("what Ray was never asked is told as known:\n%s", out)
	}
	_, out, _ = command(t, "", "autoscaler", "status")
	if line := strings.Fields(strings.Split(out, "\n")[1]); line[4] != "-" || line[5] != "-" {
		t.Errorf("what waits and what is unmet is told as known: %q", line)
	}
}

func TestAFreezeIsToldInThePlaceOfTheMode(t *testing.T) {
	r := newRemote(t)
	r.view.Mode, r.view.Kube.Freeze, r.view.Why.Message, r.view.Err = nodepool.Shadow, true, "frozen by annotation heliostat.dev/freeze", "no answer"
	r.view.Read = addon.ReadAt(time.Now())
	for _, args := range [][]string{{"status"}, {"status", "ml/llm"}} {
		if _, out, _ := command(t, "", append([]string{"autoscaler"}, args...)...); !strings.Contains(out, "frozen") || strings.Contains(out, "shadow") {
			t.Errorf("%q:\n%s", args, out)
		}
	}
}

func TestTablesHaveAgesAndWhatDescribesOneThingTheTime(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	cycle := now.Add(-98 * time.Millisecond)
	age := 0.0978
	c := apiv1.Cluster{Namespace: "ml", Name: "llm", LastCycle: &cycle, CycleSeconds: 0.0034, DataAgeSeconds: &age,
		Decisions: []apiv1.Decision{{At: now.Add(-200 * time.Second), Action: "scale-up", Group: "gpu", From: 1, To: 2}}}
	for _, as := range []printer.Look{{}, {Wide: true}} {
		var out strings.Builder
		as.Now = func() time.Time { return now }
		if err := printer.WriterOf("table", as, printer.WriteCluster)(&out, c); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"  last decision 2026-11-20T11:59:59Z, which took 3ms; Ray's state is 98ms old\n", "LAST CHANGES  ACTION    GROUP  REPLICAS  WHY\n   3m20s ago  scale-up  gpu    1 → 2\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%+v: want in it %q, got\n%s", as, want, out.String())
			}
		}
	}
}

func TestADrainNamesItsPod(t *testing.T) {
	var out strings.Builder
	drain := apiv1.Decision{Action: "drain", Group: "gpu", Pods: []string{"gpu-7"}, Reason: planner.Reason{Message: "Heliostat: idle for 61s, longer than 60s"}}
	if err := printer.WriterOf("table", printer.Look{Wide: true, Now: time.Now}, printer.WriteCluster)(&out, apiv1.Cluster{Decisions: []apiv1.Decision{drain}}); err != nil {
		t.Fatal(err)
	}
	if want := "gpu-7: Heliostat: idle for 61s, longer than 60s\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("want %q at the end of\n%s", want, out.String())
	}
}
