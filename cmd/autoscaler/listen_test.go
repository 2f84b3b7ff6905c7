package main

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

	"heliostat.dev/heliostat/internal/access/certs"
	"heliostat.dev/heliostat/internal/cli"
)

func TestFlagsThatWouldLetAnybodyInOrDoNotGoTogetherAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		options listenOptions
		want    string
	}{
		"as it comes":                       {listenOptions{listen: "127.0.0.1:8090"}, ""},
		"beyond loopback":                   {listenOptions{listen: ":8090"}, ""},
		"nobody asked on loopback":          {listenOptions{listen: "localhost:8090", noAuth: true}, ""},
		"nobody asked and nothing served":   {listenOptions{noAuth: true}, ""},
		"nobody asked beyond loopback":      {listenOptions{listen: ":8090", noAuth: true}, "let anybody who reaches :8090"},
		"nobody asked on a name":            {listenOptions{listen: "host:8090", noAuth: true}, "let anybody"},
		"nobody asked but for certificates": {listenOptions{listen: "[::1]:1", noAuth: true, certs: certs.Files{Cert: "a", Key: "b", ClientCA: "c"}}, "it cannot be combined with"},
		"nobody asked but for an audience":  {listenOptions{listen: "[::1]:1", noAuth: true, audiences: []string{"heliostat"}}, "it cannot be combined with"},
		"a certificate without a key":       {listenOptions{certs: certs.Files{Cert: "a"}}, `--tls-cert-file "a", --tls-key-file "", --client-ca-file "": a certificate and its key go together`},
		"profiles on loopback":              {listenOptions{pprof: "localhost:6060"}, ""},
		"profiles beyond loopback":          {listenOptions{pprof: ":6060"}, `--pprof-bind-address ":6060": profiles reveal memory`},
		"clients' certificates without TLS": {listenOptions{certs: certs.Files{ClientCA: "c"}}, "need TLS"},
	} {
		err := test.options.validate()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	code, _, errOut := command(t, "", "autoscaler", "serve", "--listen", "0.0.0.0:8090", "--insecure-no-auth")
	if code != cli.ExitBadInput || !strings.Contains(errOut, "let anybody") {
		t.Errorf("serve: %d, %s", code, errOut)
	}
}

func TestTokensInClearTextAreToldBeyondLoopbackAlone(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:8090": false, "localhost:8090": false, "": false, ":8090": true, "10.0.0.1:8090": true} {
		for _, files := range []certs.Files{{}, {Cert: "a", Key: "b"}} {
			var log bytes.Buffer
			o := listenOptions{listen: listen, certs: files}
			o.warn(slog.New(slog.NewTextHandler(&log, nil)))
			if told := strings.Contains(log.String(), "clear text"); told != (want && !files.Given()) {
				t.Errorf("%q with certificate %q: told %v", listen, files.Cert, told)
			}
		}
	}
}

func TestPortsOfTheirOwnServeWhatTheyAreForAndNothingElse(t *testing.T) {
	fault := error(nil)
	server := serverOf("", probes(func() error { return fault }))
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
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &servers{fail: cancel}
	if err := s.start("metrics", serverOf(taken.Addr().String(), nil), 1); err == nil || !strings.Contains(err.Error(), "listening for metrics on "+taken.Addr().String()) {
		t.Errorf("a port in use: %v", err)
	}
	response, err := http.Get("http://" + probesOn(t, s, 1) + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != "ok\n" {
		t.Errorf("%q, %v", text, err)
	}
	response.Body.Close()
	if err := s.shutdown(shutdownGrace); err != nil || ctx.Err() != nil {
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

func TestASidecarServesMetricsWhereRaysOwnDidUnlessThePortIsTaken(t *testing.T) {
	if got := newSidecarCommand().Flags().Lookup("metrics-bind-address").Value.String(); got != ":44217" {
		t.Errorf("a sidecar's metrics are at %q, want :44217, which RayClusters call as-metrics", got)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for chosen, wantErr := range map[bool]bool{true: true, false: false} {
		var log bytes.Buffer
		s := &servers{fail: func(err error) { t.Error(err) }}
		o := listenOptions{metrics: taken.Addr().String(), metricsIfFree: !chosen}
		err := o.listenSeparately(s, http.NotFoundHandler(), func() error { return nil }, slog.New(slog.NewTextHandler(&log, nil)))
		if (err != nil) != wantErr || wantErr == strings.Contains(log.String(), "no metrics are served") {
			t.Errorf("a port in use that somebody chose, %v: %v, log %q", chosen, err, log.String())
		}
	}
}

// probesOn serves probes on a port that stays open, so that no other process can take it. It returns the address.
func probesOn(t *testing.T, s *servers, connections int) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.serve("probes", serverOf("", probes(func() error { return nil })), listener, connections)
	return listener.Addr().String()
}

func TestAConnectionThatAsksNothingTakesNoTimeFromCallsUnderWay(t *testing.T) {
	s := &servers{fail: func(err error) { t.Error(err) }}
	address := probesOn(t, s, 2)
	silent, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := s.shutdown(2 * time.Second); err != nil {
		t.Errorf("an end within its grace: %v", err)
	}
	if got := <-answered; got != "done" {
		t.Errorf("the call was answered %q", got)
	}
}

func TestFurtherConnectionsThanThereMayBeWaitForTheEndOfOne(t *testing.T) {
	s := &servers{fail: func(err error) { t.Error(err) }}
	address := probesOn(t, s, 2)
	defer func() { _ = s.shutdown(shutdownGrace) }() // closes a connection that still waits
	var held []net.Conn
	answered := make(chan int, 3)
	for i := range 3 {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		held = append(held, connection)
		if _, err := io.WriteString(connection, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		go func() {
			if _, err := connection.Read(make([]byte, 1)); err == nil {
				answered <- i
			}
		}()
		if i < 2 {
			if got := <-answered; got != i {
				t.Fatalf("connection %d is answered before %d", got, i)
			}
		}
	}
	select {
	case i := <-answered:
		t.Fatalf("connection %d of 2 is answered", i+1)
	case <-time.After(50 * time.Millisecond): // no response is expected
	}
	held[0].Close()
	if got := <-answered; got != 2 {
		t.Errorf("connection %d is answered, want 2", got)
	}
}

func TestOtherCopiesCallTheAddressThatIsAdvertisedWhereItIsListenedTo(t *testing.T) {
	for _, test := range []struct {
		options listenOptions
		want    string
	}{
		{listenOptions{listen: ":8090", advertised: "10.1.2.3"}, "10.1.2.3:8090"},
		{listenOptions{listen: "0.0.0.0:8443", advertised: "10.1.2.3"}, "10.1.2.3:8443"},
		{listenOptions{listen: "[::]:8090", advertised: "fd00::1"}, "[fd00::1]:8090"},
		{listenOptions{listen: "10.1.2.3:8090", advertised: "10.1.2.3"}, "10.1.2.3:8090"},
		{listenOptions{listen: "127.0.0.1:8090", advertised: "10.1.2.3"}, ""},
		{listenOptions{listen: "localhost:8090", noAuth: true, advertised: "10.1.2.3"}, ""},
		{listenOptions{listen: ":8090"}, ""},
		{listenOptions{advertised: "10.1.2.3"}, ""},
	} {
		if got := test.options.address(); got != test.want {
			t.Errorf("%+v is called at %q, want %q", test.options, got, test.want)
		}
	}
	if err := (&listenOptions{advertised: "leader.example"}).validate(); err == nil || !strings.Contains(err.Error(), "want an IP address") {
		t.Errorf("a name is advertised: %v", err)
	}
}
