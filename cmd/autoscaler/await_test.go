package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/cli"
)

// silentServer listens and never responds, like a stopped API server.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// freeAddress returns an address that no other process takes in the meantime: no other test listens on this host.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.83.7.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestServeWaitsForAnAPIServerAndAnswersProbesMeanwhile(t *testing.T) {
	outsidePods(t)
	config := kubeconfigOf(t, "http://"+silentServer(t))
	probes, metrics := freeAddress(t), freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	var errOut bytes.Buffer
	go func() {
		ended <- run(ctx, []string{"autoscaler", "serve", "--kubeconfig", config, "--health-probe-bind-address", probes, "--metrics-bind-address", metrics}, strings.NewReader(""), io.Discard, &errOut)
	}()
	for url, want := range map[string]struct {
		status int
		says   string
	}{
		probes + "/healthz":  {http.StatusOK, "ok"},
		probes + "/readyz":   {http.StatusServiceUnavailable, "the API server has not answered yet"},
		metrics + "/metrics": {http.StatusOK, "\nheliostat_leading 0\n"},
	} {
		response, err := http.Get("http://" + url)
		for i := 0; err != nil && i < 1000; i++ { // the server is starting
			time.Sleep(10 * time.Millisecond)
			response, err = http.Get("http://" + url)
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != want.status || !strings.Contains(string(body), want.says) {
			t.Errorf("%s: %s, %q, %v; want %d that says %q", url, response.Status, body, err, want.status, want.says)
		}
	}
	cancel()
	if code := <-ended; code != cli.ExitOK {
		t.Errorf("it ends with %d when it is told to: %s", code, errOut.String())
	}
}
