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

// RoundTrip counts an answer of 400 or above by its code. A call that its caller canceled did not fail.
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

// WrappedRoundTripper gives the client access to the connections below, to close idle ones.
func (a apiCalls) WrappedRoundTripper() http.RoundTripper { return a.next }
