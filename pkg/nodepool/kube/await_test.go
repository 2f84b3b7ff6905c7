package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// answering is a transport that answers each call by the next of its statuses: 0 is none, and the last one stays.
type answering struct {
	statuses []int
	err      error
	calls    int
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	status := a.statuses[min(a.calls, len(a.statuses)-1)]
	if a.calls++; status == 0 {
		return nil, a.err
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("x")), Request: r}, nil
}

func TestAStartWaitsForAnAPIServerThatDoesNotAnswer(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		server answering
		calls  int
		says   string
	}{
		"it answers":                   {answering{statuses: []int{200}}, 1, ""},
		"it knows nobody":              {answering{statuses: []int{401}}, 1, ""},
		"it forbids":                   {answering{statuses: []int{403}}, 1, ""},
		"it comes back":                {answering{statuses: []int{0, 0, 0, 200}, err: refused}, 4, ""},
		"it is not ready yet":          {answering{statuses: []int{500, 503, 429, 200}}, 4, ""},
		"who answers is somebody else": {answering{statuses: []int{0}, err: &tls.CertificateVerificationError{Err: errors.New("unknown authority")}}, 1, "reaching the API server at https://api.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				err := Await(t.Context(), &rest.Config{Host: "https://api.invalid", Transport: &c.server}, slog.New(slog.NewTextHandler(&log, nil)))
				if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%v, want %q", err, c.says)
				}
				if reported := strings.Count(log.String(), "does not respond"); c.server.calls != c.calls || reported != c.calls-1 {
					t.Errorf("%d calls and %d warnings, want %d and one less", c.server.calls, reported, c.calls)
				}
			})
		})
	}
}

func TestAWaitingStartEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		server := answering{statuses: []int{0}, err: errors.New("no route to host")}
		begun := time.Now()
		err := Await(ctx, &rest.Config{Host: "https://api.invalid", Transport: &server}, slog.New(slog.DiscardHandler))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 10*time.Second || server.calls < 4 {
			t.Errorf("%v after %v and %d calls", err, time.Since(begun), server.calls)
		}
	})
}
