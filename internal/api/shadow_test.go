package api

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// fakeShadow compares one cluster.
type fakeShadow struct{}

func (fakeShadow) Comparison(key nodepool.ClusterKey) apiv1.ShadowComparison {
	if key != llm {
		return apiv1.ShadowComparison{}
	}
	agreement, lead := 0.5, -2.5
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	reason := apiv1.Reason{Code: "launch", Message: "for work"}
	return apiv1.ShadowComparison{Writer: "python-requests", Since: &began, ComparedSeconds: 60, Agreement: &agreement, TheirsFirst: 1, MedianLeadSeconds: &lead,
		Groups: []apiv1.ShadowGroup{{Name: "gpu", Ours: 2, Theirs: 1, Reason: reason}},
		Differences: []apiv1.ShadowDifference{
			{At: began, Group: "gpu", Ours: 2, Theirs: 1, Outcome: apiv1.Differs, Writer: "python-requests", Reason: reason},
			{At: began, Until: &began, Group: "gpu", Ours: 1, Theirs: 1, Outcome: apiv1.TheirsFirst, LeadSeconds: &lead, Reason: reason},
		}}
}

func TestTheClientReadsTheComparison(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Shadow = fakeShadow{} })
	w.fleet[llm] = View{Decision: addon.Decision{Cluster: llm}}
	got, err := dial(t, w.handler).Shadow(context.Background(), llm)
	if diff := cmp.Diff(fakeShadow{}.Comparison(llm), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAComparisonCanBeEmpty(t *testing.T) {
	w := newFixture(t)
	w.fleet[llm] = View{Decision: addon.Decision{Cluster: llm}}
	answer := w.call(http.MethodGet, llmPath+"/shadow", "")
	loadSpec(t).mustMatch("ShadowComparison", answer.Body.Bytes())
	if answer.Code != http.StatusOK {
		t.Errorf("answers %d: %s", answer.Code, answer.Body)
	}
	if answer := w.call(http.MethodGet, "/v1/namespaces/ml/rayclusters/nobody/shadow", ""); answer.Code != http.StatusNotFound {
		t.Errorf("of no cluster: %d: %s", answer.Code, answer.Body)
	}
}
