package publish

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/outlook"
	"heliostat.dev/heliostat/internal/forecast"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

func TestAForecastShowsWhatTheModelWouldHaveSaved(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	replayed := forecast.Choice{Quantile: 0.5, Pays: true, From: at, To: at.Add(time.Hour), Why: "it saves",
		Without: forecast.Outcome{Paid: 10, Waited: 4}, With: forecast.Outcome{Paid: 16, Waited: 1}}
	ahead := forecast.Forecast{Workers: 3, From: at, To: at.Add(time.Minute), Quantile: 0.5, Why: "of the last 4 Mondays"}
	got := forecastOf(outlook.Answer{From: at, To: at.Add(time.Hour), NotStored: "no right", Groups: []outlook.Group{
		{Name: "priced", Needed: 1, Ready: 2, Start: 90 * time.Second, Costs: forecast.CostsOf(2, 6), Priced: true,
			Forecast: ahead, Choice: replayed},
		{Name: "plain", StartAssumed: true, Costs: forecast.CostsOf(0, 0), Forecast: ahead, Choice: replayed},
		{Name: "new", Costs: forecast.CostsOf(0, 0), Forecast: forecast.Forecast{From: at, To: at}},
	}})
	later, price := at.Add(time.Hour), 12.0
	replay := apiv1.ForecastReplay{From: at, To: later, Pays: true, WaitedHours: 4, SavedHours: 3, WorkerHours: 6,
		Why: "it saves"}
	withPrice := replay
	withPrice.Price = &price
	want := apiv1.Forecast{Mode: apiv1.ForecastSuggest, NotStored: "no right", Since: &at, Until: &later,
		Groups: []apiv1.ForecastGroup{
			{Name: "priced", Needed: 1, Ready: 2, Keep: 3, From: at, To: at.Add(time.Minute), StartSeconds: 90,
				WaitingRatio: 3, Quantile: 0.5, Why: "of the last 4 Mondays", Replay: &withPrice},
			{Name: "plain", Keep: 3, From: at, To: at.Add(time.Minute), StartAssumed: true, WaitingRatio: 10,
				RatioAssumed: true, Quantile: 0.5, Why: "of the last 4 Mondays", Replay: &replay},
			{Name: "new", From: at, To: at, WaitingRatio: 10, RatioAssumed: true},
		}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A policy with a budget lets Heliostat act on forecasts; otherwise the answer says why nothing is kept.
func TestAForecastSaysWhetherItIsActedOn(t *testing.T) {
	key := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		policy *capacity.Written
		mode   apiv1.ForecastMode
		why    string
	}{
		"without a policy":            {nil, apiv1.ForecastSuggest, "forecasts only suggest, by --forecast"},
		"a policy with a budget":      {&capacity.Written{Policy: capacity.Policy{Forecast: capacity.ForecastAct, Budget: &capacity.Budget{}}}, apiv1.ForecastAct, ""},
		"a policy that has no budget": {&capacity.Written{Policy: capacity.Policy{Forecast: capacity.ForecastAct}}, apiv1.ForecastSuggest, "the capacity policy has no budget, and forecasts act within the budget alone"},
		"an unknown RayCluster":       {nil, apiv1.ForecastSuggest, ""},
	} {
		d := &decision.Decision{Cluster: key, At: at, Snapshot: planner.Snapshot{Groups: []planner.Group{{Name: "gpu", Max: 8}}}}
		d.Kube.Policy = c.policy
		f := Forecasts{Outlook: outlook.New(""), Now: func() time.Time { return at }, Mode: capacity.ForecastSuggest,
			Decision: func(asked nodepool.ClusterKey) (*decision.Decision, bool) { return d, asked == key }}
		asked := key
		if name == "an unknown RayCluster" {
			asked.Name = "etl"
		}
		got := f.Forecast(asked)
		if got.Mode != c.mode || got.WhyNotKept != c.why || (len(got.Groups) == 1) != (asked == key) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What a forecast wants ready becomes an entry of warm capacity that counts what is in use.
func TestForecastsBecomeWarmCapacity(t *testing.T) {
	o := outlook.New("")
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	decided := func(busy int) *decision.Decision {
		d := &decision.Decision{Cluster: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, At: at, Mode: nodepool.Managed,
			Snapshot: planner.Snapshot{Groups: []planner.Group{{Name: "gpu", Max: 8}}}}
		for range busy {
			d.Snapshot.Nodes = append(d.Snapshot.Nodes, planner.Node{Group: "gpu", State: planner.Running})
		}
		return d
	}
	for end := at.AddDate(0, 0, 28); at.Before(end); at = at.Add(5 * time.Minute) {
		busy := 0
		if at.Hour() >= 9 && at.Hour() < 17 {
			busy = 6
		}
		o.Observe(decided(busy))
	}
	at = at.Add(8*time.Hour + 55*time.Minute)
	o.Observe(decided(0))
	entries := Expected(o)(decided(0), at)
	if len(entries) != 1 || entries[0].Group != "gpu" || entries[0].Total != 6 || entries[0].Count != 0 || entries[0].Forecast == "" {
		t.Errorf("%+v, want 6 of gpu in all", entries)
	}
}
