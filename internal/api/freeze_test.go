package api

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// fakeFreezer freezes known clusters, and fails on demand.
type fakeFreezer struct {
	known   fakeFleet
	frozen  map[nodepool.ClusterKey]bool
	calls   int
	seen    func(trace.SpanContext)
	NextErr error
}

func (f *fakeFreezer) SetFreeze(ctx context.Context, key nodepool.ClusterKey, frozen bool) error {
	f.calls++
	if f.seen != nil {
		f.seen(trace.SpanContextFromContext(ctx))
	}
	if err := f.NextErr; err != nil {
		f.NextErr = nil
		return err
	}
	if _, ok := f.known[key]; !ok {
		return nodepool.ErrGone
	}
	f.frozen[key] = frozen
	return nil
}

// unreachable is the error of a dialer.
type unreachable struct{ error }

func (unreachable) Timeout() bool   { return false }
func (unreachable) Temporary() bool { return false }

func TestFreezingTwiceIsNotAnError(t *testing.T) {
	w := newFixture(t)
	for _, step := range []struct {
		method string
		want   bool
	}{{http.MethodPut, true}, {http.MethodPut, true}, {http.MethodDelete, false}, {http.MethodDelete, false}} {
		answer := w.call(step.method, llmPath+"/freeze", "")
		if got := readAnswer[apiv1.Freeze](t, answer); answer.Code != http.StatusOK || got.Frozen != step.want || w.frozen.frozen[llm] != step.want {
			t.Errorf("%s: %d %+v, kept %v", step.method, answer.Code, got, w.frozen.frozen[llm])
		}
	}
}

func TestAFailedFreezeIsAProblem(t *testing.T) {
	w := newFixture(t)
	if got := w.call(http.MethodPut, "/v1/namespaces/ml/rayclusters/other/freeze", ""); got.Code != http.StatusNotFound {
		t.Errorf("a cluster that is not there: %d", got.Code)
	}
	for want, err := range map[int]error{
		http.StatusServiceUnavailable: unreachable{errors.New("connection refused")}, http.StatusGatewayTimeout: context.DeadlineExceeded,
		http.StatusConflict: nodepool.ErrConflict, http.StatusInternalServerError: errors.New("an unexpected error"),
	} {
		w.frozen.NextErr = err
		if got := w.call(http.MethodPut, llmPath+"/freeze", ""); got.Code != want {
			t.Errorf("%v: %d, want %d", err, got.Code, want)
		}
	}
	without := newFixture(t, func(c *Config) { c.Clusters = nil })
	if got := without.call(http.MethodPut, llmPath+"/freeze", ""); got.Code != http.StatusNotFound {
		t.Errorf("where freezes are not served: %d", got.Code)
	}
}
