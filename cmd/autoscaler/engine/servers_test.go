package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// grace is how long the servers of a test may take to stop.
const grace = shutdownGrace

func TestPortsOfTheirOwnServeWhatTheyAreForAndNothingElse(t *testing.T) {
	fault := error(nil)
	server := serverOf("", Probes(func() error { return fault }))
	get := func(method, path string) (int, string) {
		recorder := httptest.NewRecorder()
		server.Handler.ServeHTTP(recorder, httptest.NewRequest(method, path, nil))
		return recorder.Code, recorder.Body.String()
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := get(http.MethodGet, path); code != http.StatusOK || body != "ok\n" {
			t.Errorf("GET %s: %d %q", path, code, body)
		}
	}
	fault = errors.New("caches are empty")
	if code, body := get(http.MethodGet, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "caches are empty") {
		t.Errorf("not ready: %d %q", code, body)
	}
	if code, _ := get(http.MethodGet, "/healthz"); code != http.StatusOK {
		t.Errorf("alive although not ready: %d", code)
	}
	if code, _ := get(http.MethodGet, "/metrics"); code != http.StatusNotFound {
		t.Errorf("metrics among the probes: %d", code)
	}
	if code, _ := get(http.MethodPost, "/healthz"); code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
	if server.ReadHeaderTimeout == 0 || server.ReadTimeout == 0 || server.WriteTimeout == 0 || server.IdleTimeout == 0 || server.MaxHeaderBytes == 0 {
		t.Errorf("an unlimited connection: %+v", server)
	}
}

func TestAPortInUseIsToldAtOnceAndAServerThatEndsEndsTheProcess(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &servers{fail: cancel}
	if err := s.start("metrics", serverOf(taken.Addr().String(), nil), 1); err == nil || !strings.Contains(err.Error(), "listening for metrics on "+taken.Addr().String()) {
		t.Errorf("a port in use: %v", err)
	}
	response, err := http.Get("http://" + probesOn(t, s, 1) + "/healthz")
	must(t, err)
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != "ok\n" {
		t.Errorf("%q, %v", text, err)
	}
	response.Body.Close()
	if err := s.Shutdown(grace); err != nil || ctx.Err() != nil {
		t.Errorf("an orderly end: %v, %v", err, context.Cause(ctx))
	}
}

func TestProfilesAreServedAndTakeAsLongAsTheyTake(t *testing.T) {
	server := profiles("localhost:6060")
	if server.WriteTimeout != 0 || server.ReadHeaderTimeout == 0 {
		t.Errorf("answers end after %v and headers after %v, want never and some time", server.WriteTimeout, server.ReadHeaderTimeout)
	}
	for path, want := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile", "/debug/pprof/cmdline": os.Args[0]} {
		recorder := httptest.NewRecorder()
		server.Handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		if recorder.Code != http.StatusOK || !strings.Contains(recorder.Body.String(), want) {
			t.Errorf("GET %s: %d %.80q, want %q in it", path, recorder.Code, recorder.Body.String(), want)
		}
	}
}

func TestAPortOfMetricsThatIsInUseIsRefusedOnlyIfSomebodyChoseIt(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	for chosen, wantErr := range map[bool]bool{true: true, false: false} {
		var log bytes.Buffer
		s := &servers{fail: func(err error) { t.Error(err) }}
		f := portFlags{Metrics: taken.Addr().String(), MetricsIfFree: !chosen}
		err := s.StartOthers(&f, http.NotFoundHandler(), func() error { return nil }, slog.New(slog.NewTextHandler(&log, nil)))
		if (err != nil) != wantErr || wantErr == strings.Contains(log.String(), "no metrics are served") {
			t.Errorf("a port in use that somebody chose, %v: %v, log %q", chosen, err, log.String())
		}
	}
}

// probesOn serves probes on a port that stays open, so that no other process can take it. It returns the address.
func probesOn(t *testing.T, s *servers, connections int) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.serve("probes", serverOf("", Probes(func() error { return nil })), listener, connections)
	return listener.Addr().String()
}

func TestAConnectionThatAsksNothingTakesNoTimeFromCallsUnderWay(t *testing.T) {
	s := &servers{fail: func(err error) { t.Error(err) }}
	address := probesOn(t, s, 2)
	silent, err := net.Dial("tcp", address)
	must(t, err)
	defer silent.Close()
	// the server responded after it had accepted the silent connection
	if response, err := http.Get("http://" + address + "/healthz"); err != nil {
		t.Fatal(err)
	} else {
		response.Body.Close()
	}
	begun, ends := make(chan struct{}), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-ends
		io.WriteString(w, "done")
	})}
	server.RegisterOnShutdown(func() { close(ends) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.serve("calls", server, listener, 2)
	answered := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + listener.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		answered <- string(text)
	}()
	<-begun
	if err := s.Shutdown(2 * time.Second); err != nil {
		t.Errorf("an end within its grace: %v", err)
	}
	if got := <-answered; got != "done" {
		t.Errorf("the call was answered %q", got)
	}
}
