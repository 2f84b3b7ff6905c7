package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"heliostat.dev/heliostat/internal/api"
)

func TestServeNamesItselfToTheAPIServer(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	var mu sync.Mutex
	agents := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, call *http.Request) {
		mu.Lock()
		agents[call.UserAgent()] = true
		mu.Unlock()
		end()
		http.NotFound(w, call)
	}))
	defer server.Close()
	run(ctx, []string{"autoscaler", "serve", "--kubeconfig", kubeconfigOf(t, server.URL), "--listen", ""},
		strings.NewReader(""), io.Discard, io.Discard)
	mu.Lock()
	defer mu.Unlock()
	if len(agents) == 0 {
		t.Error("serve has not called the API server")
	}
	for agent := range agents {
		if want := "heliostat/" + api.Release + " ("; !strings.HasPrefix(agent, want) {
			t.Errorf("the user agent is %q, want that it begins with %q", agent, want)
		}
	}
}
