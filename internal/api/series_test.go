package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestASeriesShowsEveryPointOfTheCluster(t *testing.T) {
	lines := &Charts{}
	lines.Add(llm, ChartPoint{At: noon.Add(-time.Minute), Capacity: ChartAmounts{raydemand.Whole(4), raydemand.Whole(32)}})
	lines.Add(llm, ChartPoint{At: noon, Waiting: ChartAmounts{raydemand.One / 2, 0}})
	lines.Add(nodepool.ClusterKey{Namespace: "ml", Name: "other"}, ChartPoint{At: noon})
	w := newFixture(t, func(c *Config) { c.Series = lines })
	const none = `{"CPU":0,"GPU":0}`
	want := `{"points":[` +
		`{"at":"2026-03-01T11:59:00Z","capacity":{"CPU":32,"GPU":4},"desired":` + none + `,"used":` + none + `,"waiting":` + none + `},` +
		`{"at":"2026-03-01T12:00:00Z","capacity":` + none + `,"desired":` + none + `,"used":` + none + `,"waiting":{"CPU":0,"GPU":0.5}}]}`
	if answer := w.call(http.MethodGet, llmPath+"/series", ""); answer.Code != http.StatusOK || strings.TrimSpace(answer.Body.String()) != want {
		t.Errorf("%d %s\nwant 200 %s", answer.Code, answer.Body, want)
	}
}

func TestAClusterWithoutASeriesHasAnEmptyOne(t *testing.T) {
	w := newFixture(t)
	if answer := w.call(http.MethodGet, llmPath+"/series", ""); answer.Code != http.StatusOK || strings.TrimSpace(answer.Body.String()) != `{"points":[]}` {
		t.Errorf("%d %s, want no points", answer.Code, answer.Body)
	}
	if answer := w.call(http.MethodGet, "/v1/namespaces/ml/rayclusters/nobody/series", ""); answer.Code != http.StatusNotFound {
		t.Errorf("%d %s, want 404", answer.Code, answer.Body)
	}
}
