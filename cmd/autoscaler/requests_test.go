package main

import (
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTheTableOfRequestsSaysWholeWhyOneWaits(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	since, expires, expected := now.Add(-3*time.Minute), now.Add(7*time.Minute), now.Add(90*time.Second)
	const reason = "pods requested earlier have not joined Ray yet, for 4 × {CPU 8, GPU 1} where zone=in(us-1,us-2)"
	gpu := raydemand.Bundle{raydemand.GPU: raydemand.One, raydemand.CPU: raydemand.Whole(8)}
	list := apiv1.RequestList{Items: []apiv1.OwnedRequest{{
		ID: "nightly-training", Namespace: "research", Cluster: "language-models", Owner: "system:serviceaccount:research:trainer", Priority: 10,
		Bundles: []raydemand.Request{{Bundle: gpu, Count: 4}, {Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 16}}, MoreBundles: 2,
		State: raydemand.RequestWaiting, Since: &since, ExpiresAt: &expires, ExpectedAt: &expected,
		Reason: apiv1.Reason{Code: "on_the_way", Message: reason}, Groups: []apiv1.ServingGroup{{Name: "a100", Pods: 4}},
	}}}
	for _, c := range []struct {
		as   printer.Look
		want []string
	}{
		{printer.Look{}, []string{"research:trainer", "nightly-training", "3m", "7m", "expected in 90s"}},
		{printer.Look{Wide: true}, []string{"system:serviceaccount:research:trainer", "PRIORITY", " 10 ", reason + "; expected in 90s", "4 × a100"}},
	} {
		var out strings.Builder
		c.as.Now = func() time.Time { return now }
		write := printer.WriterOf("table", c.as, func(p *printer.Page, list apiv1.RequestList) { printer.WriteRequests(p, true, "", list) })
		if err := write(&out, list); err != nil {
			t.Fatal(err)
		}
		// The table wraps the text of a cell, so look for each word separately.
		for _, want := range append(c.want, strings.Fields(reason)...) {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%+v: want in it %q, got\n%s", c.as, want, out.String())
			}
		}
		if !c.as.Wide {
			fitsThePage(t, out.String())
		}
	}
}
