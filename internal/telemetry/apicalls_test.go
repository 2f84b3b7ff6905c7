package telemetry

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type answer func() (*http.Response, error)

func (a answer) RoundTrip(*http.Request) (*http.Response, error) { return a() }

func TestCallsThatFailAreCountedByTheirCode(t *testing.T) {
	report, registry := start(t, Limits{})
	given, cancel := context.WithCancel(t.Context())
	cancel()
	for _, call := range []struct {
		ctx    context.Context
		method string
		code   int
	}{
		{t.Context(), "GET", 200}, {t.Context(), "PATCH", 409}, {t.Context(), "PATCH", 409}, {t.Context(), "GET", 503},
		{t.Context(), "GET", 0}, {given, "GET", 0},
	} {
		request, err := http.NewRequestWithContext(call.ctx, call.method, "http://api", nil)
		if err != nil {
			t.Fatal(err)
		}
		transport := report.APICalls(answer(func() (*http.Response, error) {
			if call.code == 0 {
				return nil, errors.New("no route")
			}
			return &http.Response{StatusCode: call.code, Body: http.NoBody}, nil
		}))
		if response, err := transport.RoundTrip(request); (err != nil) != (call.code == 0) || (err == nil && response.StatusCode != call.code) {
			t.Errorf("the answer is %v, %v; want it as it was", response, err)
		}
	}
	want := map[string]float64{"code=409,method=PATCH": 2, "code=503,method=GET": 1, "code=none,method=GET": 1}
	if diff := cmp.Diff(want, of(scrape(t, registry), "heliostat_api_errors_total")); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}
