package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// suggested is a forecast of a group that pays, and of one with a short history.
func suggested() apiv1.Forecast {
	at := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }
	since, price := at(1, 0), 55.25
	return apiv1.Forecast{Mode: apiv1.ForecastSuggest, Since: &since, Groups: []apiv1.ForecastGroup{
		{Name: "a100", Needed: 1, Ready: 2, Keep: 6, From: at(30, 9), To: at(30, 10), Why: "of the last 4 Mondays, 3",
			StartSeconds: 600, WaitingRatio: 10, Quantile: 0.5,
			Replay: &apiv1.ForecastReplay{From: at(23, 9), To: at(30, 9), Pays: true, WaitedHours: 9.5, SavedHours: 7.25,
				WorkerHours: 18.4, Price: &price, Why: "it saves"}},
		{Name: "cpu", Why: "the history is too short", StartSeconds: 300, StartAssumed: true},
	}}
}

func TestForecastShowsWhatToKeepAndWhatThatWouldHaveSaved(t *testing.T) {
	r := newRemote(t)
	r.forecast = suggested()
	code, out, errOut := command(t, "", "autoscaler", "forecast", "ml/llm")
	want := `Suggestions, by the demand since 2026-03-01 00:00 UTC. Heliostat keeps nothing ready.

GROUP  NEEDED  READY  KEEP       START  WHY
a100        1      2     6       10m0s  of the last 4 Mondays, 3
cpu         0      0     0  about 5m0s  the history is too short

GROUP  WAITED  SAVED  WORKERS  PRICE  IN THE LAST WEEK
a100    9.5 h  7.2 h   18.4 h  55.25  it saves
`
	if diff := cmp.Diff(want, out); code != cli.ExitOK || diff != "" {
		t.Errorf("exit %d %s (-want +got):\n%s", code, errOut, diff)
	}
	code, out, _ = command(t, "", "autoscaler", "forecast", "ml/llm", "-o", "json")
	if code != cli.ExitOK || !strings.Contains(out, `"savedHours": 7.25`) {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, _, errOut := command(t, "", "autoscaler", "forecast", "ml/nobody"); code == cli.ExitOK {
		t.Errorf("of no RayCluster: exit %d: %s", code, errOut)
	}
}

func TestForecastSaysWhyThereIsNone(t *testing.T) {
	r := newRemote(t)
	stored, acting, asked := suggested(), suggested(), suggested()
	stored.NotStored = "no right"
	acting.Mode = apiv1.ForecastAct
	asked.WhyNotKept = "the capacity policy has no budget"
	for want, forecast := range map[string]apiv1.Forecast{
		"This Heliostat does not forecast; serve --forecast=suggest does.":  {Mode: apiv1.ForecastOff},
		"There is no history of demand yet.":                                {Mode: apiv1.ForecastSuggest},
		"This history is lost when Heliostat's process ends: no right.":     stored,
		"Heliostat keeps it ready, within the policy's budget.":             acting,
		"Heliostat keeps nothing ready: the capacity policy has no budget.": asked,
	} {
		r.forecast = forecast
		if _, out, _ := command(t, "", "autoscaler", "forecast", "ml/llm"); !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("want %q in it, got\n%s", want, out)
		}
	}
}
