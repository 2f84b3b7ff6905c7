package publish

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/outlook"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

// Forecasts provides forecasts to the REST server.
type Forecasts struct {
	// Decision returns the last decision of a RayCluster; false if there is none.
	Decision func(nodepool.ClusterKey) (*decision.Decision, bool)
	Outlook  *outlook.Outlook
	// Now is the clock.
	Now func() time.Time
	// Mode is that of RayClusters whose policy does not say whether forecasts are acted on.
	Mode string
}

// Expected returns what forecasts want ready, as entries of warm capacity.
func Expected(o *outlook.Outlook) func(*decision.Decision, time.Time) []planner.WarmEntry {
	return func(d *decision.Decision, now time.Time) (entries []planner.WarmEntry) {
		for _, g := range o.Of(d, now).Groups {
			if g.Workers > 0 {
				entries = append(entries, planner.WarmEntry{Name: "forecast " + g.Name, Group: g.Name,
					Total: min(int64(g.Workers), capacity.MaxCount), Forecast: g.Why})
			}
		}
		return entries
	}
}

// Forecast returns what would be worth keeping ready of a cluster.
func (f Forecasts) Forecast(key nodepool.ClusterKey) apiv1.Forecast {
	d, known := f.Decision(key)
	if !known {
		return apiv1.Forecast{Mode: apiv1.ForecastSuggest}
	}
	shown := forecastOf(f.Outlook.Of(d, f.Now()))
	if shown.WhyNotKept = d.Kube.Policy.WhyNoForecast(f.Mode); shown.WhyNotKept == "" {
		shown.Mode = apiv1.ForecastAct
	}
	return shown
}

func forecastOf(a outlook.Answer) apiv1.Forecast {
	shown := apiv1.Forecast{Mode: apiv1.ForecastSuggest, NotStored: a.NotStored,
		Since: apiv1.Time(a.From), Until: apiv1.Time(a.To)}
	for i := range a.Groups {
		shown.Groups = append(shown.Groups, forecastGroupOf(&a.Groups[i]))
	}
	return shown
}

func forecastGroupOf(g *outlook.Group) apiv1.ForecastGroup {
	shown := apiv1.ForecastGroup{
		Name: g.Name, Needed: g.Needed, Ready: g.Ready, Keep: g.Workers, From: g.From.UTC(), To: g.To.UTC(), Why: g.Why,
		StartSeconds: g.Start.Seconds(), StartAssumed: g.StartAssumed,
		WaitingRatio: g.Costs.Waiting / g.Costs.Worker, RatioAssumed: g.Costs.Assumed, Quantile: g.Quantile,
	}
	if c := g.Choice; !c.From.IsZero() {
		more := c.With.Minus(c.Without)
		shown.Replay = &apiv1.ForecastReplay{
			From: c.From.UTC(), To: c.To.UTC(), Pays: c.Pays, Why: c.Why,
			WaitedHours: c.Without.Waited, SavedHours: -more.Waited, WorkerHours: more.Paid,
		}
		if g.Priced {
			price := more.Paid * g.Costs.Worker
			shown.Replay.Price = &price
		}
	}
	return shown
}
