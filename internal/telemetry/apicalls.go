package telemetry

import (
	"context"
	"net/http"
	"strconv"
)

// APICalls counts failed calls to the Kubernetes API. It wraps the transport of a client.
func (m *Metrics) APICalls(next http.RoundTripper) http.RoundTripper { return apiCalls{m, next} }

type apiCalls struct {
	metrics *Metrics
	next    http.RoundTripper
}

// RoundTrip counts responses with a code of 400 or above by their code. It does not count calls that the caller
// canceled.
func (a apiCalls) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(request)
	switch {
	case err != nil && request.Context().Err() == nil:
		a.count(request.Method, "none")
	case err == nil && response.StatusCode >= http.StatusBadRequest:
		a.count(request.Method, strconv.Itoa(response.StatusCode))
	}
	return response, err
}

func (a apiCalls) count(method, code string) {
	a.metrics.apiErrors.Add(context.Background(), 1, a.metrics.labelled("method", method, "code", code))
}

// WrappedRoundTripper returns the wrapped transport, so that the client can close idle connections.
func (a apiCalls) WrappedRoundTripper() http.RoundTripper { return a.next }
