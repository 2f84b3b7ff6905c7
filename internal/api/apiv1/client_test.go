package apiv1

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheErrorHasTheStatusOfAProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }))
	defer server.Close()
	caller, err := NewClient(server.URL, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := caller.Clusters(context.Background(), ""); err == nil || !strings.Contains(err.Error(), "502 Bad Gateway") {
		t.Errorf("error %v", err)
	}
	for _, address := range []string{"", "127.0.0.1:8090", "ftp://host", "http://", ":"} {
		if _, err := NewClient(address, nil); err == nil {
			t.Errorf("address %q is accepted", address)
		}
	}
}

func TestAnAddressWithoutASchemeIsRefused(t *testing.T) {
	for _, address := range []string{"127.0.0.1:8090", "localhost:8090", "heliostat"} {
		if _, err := NewClient(address, nil); err == nil || !strings.Contains(err.Error(), "write https://host:port") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestTheErrorSaysThatNothingListens(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	caller, err := NewClient(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := caller.Clusters(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "nothing listens there: start the server") {
		t.Errorf("%v", err)
	}
}

func TestGETAndPUTAreRetriedWhileTheServerIsUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		method, after string
		// busy is how many 503s the server answers first.
		busy   int
		status int
		calls  int
	}{
		"GET":                               {http.MethodGet, "0", 2, http.StatusOK, 3},
		"PUT":                               {http.MethodPut, "0", 2, http.StatusOK, 3},
		"DELETE":                            {http.MethodDelete, "0", 2, http.StatusServiceUnavailable, 1},
		"POST":                              {http.MethodPost, "0", 2, http.StatusServiceUnavailable, 1},
		"without a pause":                   {http.MethodGet, "", 2, http.StatusServiceUnavailable, 1},
		"a pause that is longer than worth": {http.MethodGet, "60", 2, http.StatusServiceUnavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != "what" {
					t.Errorf("call %d has the body %q, %v", calls, body, err)
				}
				if calls <= c.busy {
					if c.after != "" {
						w.Header().Set("Retry-After", c.after)
					}
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), c.method, server.URL, strings.NewReader("what"))
			if err != nil {
				t.Fatal(err)
			}
			response, err := retrying{http.DefaultTransport, time.Minute / 2}.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != c.status || calls != c.calls {
				t.Errorf("%s after %d calls, want %d after %d", response.Status, calls, c.status, c.calls)
			}
		})
	}
}

// pipes is a listener in memory that accepts calls until its test ends.
type pipes struct {
	calls chan net.Conn
	test  context.Context
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.test.Done():
		return nil, net.ErrClosed
	}
}

func (pipes) Close() error { return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestCallsAreRetriedWhileTheServerRestarts(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		// met means that the server answers one 503 before it stops; otherwise it cuts the connection.
		met, wantAnswer bool
	}{
		"GET that is cut off":   {http.MethodGet, false, true},
		"PUT that is cut off":   {http.MethodPut, false, true},
		"PUT answered 503":      {http.MethodPut, true, true},
		"POST that is cut off":  {http.MethodPost, false, false},
		"DELETE of one cut off": {http.MethodDelete, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				server := pipes{make(chan net.Conn), t.Context()}
				go http.Serve(server, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:errcheck // it ends with the test
					calls++
					if body, err := io.ReadAll(r.Body); err != nil || string(body) != "what" {
						t.Errorf("call %d has the body %q, %v", calls, body, err)
					}
					switch {
					case calls > 1:
					case c.met:
						w.Header().Set("Retry-After", "1")
						w.Header().Set("Connection", "close")
						w.WriteHeader(http.StatusServiceUnavailable)
					default:
						panic(http.ErrAbortHandler)
					}
				}))
				dials := 0
				transport := &http.Transport{DialContext: func(_ context.Context, network, _ string) (net.Conn, error) {
					if dials++; dials > 1 && dials < 4 { // it restarts
						return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
					}
					here, there := net.Pipe()
					server.calls <- there
					return here, nil
				}}
				defer transport.CloseIdleConnections()
				request, err := http.NewRequestWithContext(t.Context(), c.method, "http://127.0.0.1/", strings.NewReader("what"))
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				response, err := retrying{transport, retryWithin}.RoundTrip(request)
				if !c.wantAnswer {
					if err == nil || calls != 1 {
						t.Fatalf("%v after %d calls, want an error after 1", response, calls)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if took := time.Since(begun); response.StatusCode != http.StatusOK || calls != 2 || took != 3*time.Second {
					t.Errorf("%s after %d calls and %v, want 200 after 2 and 3s", response.Status, calls, took)
				}
			})
		})
	}
}

func TestACallFailsImmediatelyIfNothingListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			dials++
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := (retrying{transport, retryWithin}).RoundTrip(request); err == nil || dials != 1 {
			t.Errorf("%v, %v after %d tries, want an error after 1", response, err, dials)
		}
	})
}
