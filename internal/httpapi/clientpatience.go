package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// clientPatience is for how long a call that is answered 503 is tried again: a server that has just started has read everything by
// then, and another replica has taken over.
const clientPatience = 10 * time.Second

// patient tries calls again that the server cannot answer now, after the pause that it names. Others than plain GETs and PUTs may have
// happened although they were answered 503, and would be answered otherwise a second time.
type patient struct {
	next     http.RoundTripper
	patience time.Duration
}

// RoundTrip makes one call. The last answer is the caller's, whatever it is.
func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	end := time.Now().Add(p.patience)
	for {
		response, err := p.next.RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusServiceUnavailable || !again(request) {
			return response, err
		}
		pause, err := strconv.Atoi(response.Header.Get("Retry-After"))
		wait := time.Duration(pause) * time.Second
		if err != nil || time.Now().Add(wait).After(end) {
			return response, nil
		}
		response.Body.Close()
		if err := rest(request.Context(), wait); err != nil {
			return nil, err
		}
		if request, err = renewed(request); err != nil {
			return nil, err
		}
	}
}

func again(request *http.Request) bool {
	switch {
	case request.Body != nil && request.GetBody == nil:
		return false
	case request.Method == http.MethodPut:
		return request.Header.Get("If-Match") == "" && request.Header.Get("If-None-Match") == ""
	default:
		return request.Method == http.MethodGet
	}
}

// renewed is the request with a body that is not read yet.
func renewed(request *http.Request) (*http.Request, error) {
	if request.Body == nil {
		return request, nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Body = body
	return request, nil
}

func rest(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
