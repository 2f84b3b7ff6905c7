package main

import (
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/httpapi"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestOfARayThatHasNotAnsweredNothingIsToldAsIfItHad(t *testing.T) {
	r := newRemote(t)
	r.view = httpapi.View{Key: llmKey, Mode: nodepool.Managed, ModeReason: "managed by the default", Error: "the Ray head is unavailable", Snapshot: planner.Snapshot{Name: "ml/llm"}}
	_, out, _ := command(t, "", "autoscaler", "status", "ml/llm")
	if !strings.Contains(out, "Demand: not known") || strings.Contains(out, "nothing is asked for") || strings.Contains(out, "Unmet") {
		t.Errorf("what Ray was never asked is told as known:\n%s", out)
	}
	_, out, _ = command(t, "", "autoscaler", "status")
	if line := strings.Fields(strings.Split(out, "\n")[1]); line[4] != unknownCell || line[5] != unknownCell {
		t.Errorf("what waits and what is unmet is told as known: %q", line)
	}
}

func TestAFreezeIsToldInThePlaceOfTheMode(t *testing.T) {
	r := newRemote(t)
	r.view.Mode, r.view.Frozen, r.view.ModeReason, r.view.Error = nodepool.Shadow, true, "frozen by annotation heliostat.dev/freeze", "no answer"
	r.view.StateAt = time.Now()
	for _, args := range [][]string{{"status"}, {"status", "ml/llm"}} {
		if _, out, _ := command(t, "", append([]string{"autoscaler"}, args...)...); !strings.Contains(out, "frozen") || strings.Contains(out, "shadow") {
			t.Errorf("%q:\n%s", args, out)
		}
	}
}

func TestADrainNamesItsPod(t *testing.T) {
	var out strings.Builder
	drain := httpapi.Decision{Action: "drain", Group: "gpu", Pods: []string{"gpu-7"}, Reason: planner.Reason{Message: "Heliostat: idle for 61 s, longer than 60 s"}}
	if err := writeCluster(look{wide: true}, time.Now)(&out, httpapi.Cluster{Decisions: []httpapi.Decision{drain}}); err != nil {
		t.Fatal(err)
	}
	if want := "gpu-7: Heliostat: idle for 61 s, longer than 60 s\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("want %q at the end of\n%s", want, out.String())
	}
}
