package apiv1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// retryWithin is how long the client retries a call that gets a 503 or loses its connection. In this time a new server
// has read all objects, and another replica has taken over.
const retryWithin = 10 * time.Second

// reconnectPause is the pause between a lost connection and a new one.
const reconnectPause = time.Second

// retrying retries calls that the server cannot answer now, after the pause in Retry-After. It retries only GETs, and
// PUTs: other calls may have taken effect despite the 503, and a second one would get another
// answer.
type retrying struct {
	next   http.RoundTripper
	within time.Duration
}

// RoundTrip makes one call, with retries, and returns the last answer.
func (r retrying) RoundTrip(request *http.Request) (*http.Response, error) {
	end := time.Now().Add(r.within)
	for reached := false; ; {
		response, err := r.next.RoundTrip(request)
		reached = reached || err == nil || cutOff(err)
		pause, retry := pauseBefore(response, err, reached)
		if !retry || !repeatable(request) || time.Now().Add(pause).After(end) {
			return response, err
		}
		if err == nil {
			response.Body.Close()
		}
		if err := wait(request.Context(), pause); err != nil {
			return nil, err
		}
		if request, err = withUnreadBody(request); err != nil {
			return nil, err
		}
	}
}

// pauseBefore returns the pause before another try, and whether to try again. If nothing listens, it tries again only
// if this call has reached the server before: then the server may be restarting.
func pauseBefore(response *http.Response, err error, reached bool) (time.Duration, bool) {
	if err != nil {
		var network *net.OpError
		refused := errors.As(err, &network) && network.Op == "dial"
		return reconnectPause, cutOff(err) || reached && refused
	}
	pause, err := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(pause) * time.Second, err == nil && response.StatusCode == http.StatusServiceUnavailable
}

// cutOff reports whether the connection ended without an answer.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

func repeatable(request *http.Request) bool {
	if request.Body != nil && request.GetBody == nil {
		return false
	}
	return request.Method == http.MethodGet || request.Method == http.MethodPut
}

// withUnreadBody returns the request with a new copy of its body.
func withUnreadBody(request *http.Request) (*http.Request, error) {
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

func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
