package httpapi

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/httpapi/clusterview"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// fakeForecasts forecasts for one cluster.
type fakeForecasts struct{}

func (fakeForecasts) Forecast(key nodepool.ClusterKey) apiv1.Forecast {
	f := apiv1.Forecast{Mode: apiv1.ForecastSuggest, NotStored: "no right"}
	if key != llm {
		return f
	}
	at, price := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 2.5
	f.Since, f.Until = &at, &at
	f.Groups = []apiv1.ForecastGroup{
		{Name: "gpu", Needed: 1, Ready: 2, Keep: 3, From: at, To: at, Why: "of the last 4 Mondays", StartSeconds: 90.5,
			WaitingRatio: 10, RatioAssumed: true, Quantile: 0.75, Replay: &apiv1.ForecastReplay{From: at, To: at, Pays: true,
				WaitedHours: 2, SavedHours: 1.5, WorkerHours: 4, Price: &price, Why: "it saves"}},
		{Name: "cpu", From: at, To: at, Why: "the history is too short", StartAssumed: true},
	}
	return f
}

func TestTheClientReadsTheForecast(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Forecasts = fakeForecasts{} })
	w.fleet[llm] = clusterview.View{Key: llm}
	got, err := dial(t, w.handler).Forecast(context.Background(), llm)
	if diff := cmp.Diff(fakeForecasts{}.Forecast(llm), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestForecastsCanBeOff(t *testing.T) {
	w := newFixture(t)
	w.fleet[llm] = clusterview.View{Key: llm}
	answer := w.call(http.MethodGet, llmPath+"/forecast", "")
	loadSpec(t).mustMatch("Forecast", answer.Body.Bytes())
	if got, err := dial(t, w.handler).Forecast(context.Background(), llm); err != nil || got.Mode != apiv1.ForecastOff {
		t.Errorf("answers %d: %s: %v", answer.Code, answer.Body, err)
	}
	if answer := w.call(http.MethodGet, "/v1/namespaces/ml/rayclusters/nobody/forecast", ""); answer.Code != http.StatusNotFound {
		t.Errorf("of no cluster: %d: %s", answer.Code, answer.Body)
	}
}
