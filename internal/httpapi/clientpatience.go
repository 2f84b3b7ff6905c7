package httpapi

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

// clientPatience is for how long a call that is answered 503, or whose connection ends without an answer, is tried again: a server that has just
// started has read everything by then, and another replica has taken over.
const clientPatience = 10 * time.Second

// reconnectPause is before a new connection where one was lost.
const reconnectPause = time.Second

// patient tries calls again that the server cannot answer now, after the pause that it names. Others than plain GETs and PUTs may have
// happened although they were answered 503, and would be answered otherwise a second time.
type patient struct {
	next     http.RoundTripper
	patience time.Duration
}

// RoundTrip makes one call. The last answer is the caller's, whatever it is.
func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	end := time.Now().Add(p.patience)
	for met := false; ; {
		response, err := p.next.RoundTrip(request)
		met = met || err == nil || cutOff(err)
		pause, worth := pauseBefore(response, err, met)
		if !worth || !again(request) || time.Now().Add(pause).After(end) {
			return response, err
		}
		if err == nil {
			response.Body.Close()
		}
		if err := rest(request.Context(), pause); err != nil {
			return nil, err
		}
		if request, err = renewed(request); err != nil {
			return nil, err
		}
	}
}

// pauseBefore is how long to wait before another try, and whether that is worth one. Where nobody listens it is only while a server that this call
// has met may be on its way back.
func pauseBefore(response *http.Response, err error, met bool) (time.Duration, bool) {
	if err != nil {
		var network *net.OpError
		nobody := errors.As(err, &network) && network.Op == "dial"
		return reconnectPause, cutOff(err) || met && nobody
	}
	pause, err := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(pause) * time.Second, err == nil && response.StatusCode == http.StatusServiceUnavailable
}

// cutOff reports whether a connection was made and ended without an answer.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
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
