package python

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestADriverThatIsRefusedIsToldWhy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"title":"Forbidden","status":403,"detail":"driver may not request on rayclusters.ray.io"}`)) // the client sees what came
	}))
	defer server.Close()
	out, err := driven(t, server.URL, `
from request_resources import hold
with hold("train-7", [{"resources": {"GPU": 1}, "count": 4}]):
    print("it runs nevertheless")
`)
	if text := string(out); err == nil || strings.Contains(text, "nevertheless") || !strings.Contains(text, "driver may not request on rayclusters.ray.io") {
		t.Errorf("%v: %s", err, text)
	}
}

func TestADriverOutlivesARestartOfHeliostat(t *testing.T) {
	var gets atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		state := "Waiting"
		switch r.Method {
		case http.MethodDelete:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case http.MethodGet:
			if state = "Satisfied"; gets.Add(1) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = w.Write([]byte(`{"state": "` + state + `"}`)) // the client sees what came
	}))
	defer server.Close()
	out, err := driven(t, server.URL, `
from request_resources import hold
with hold("train-7", [{"resources": {"GPU": 1}, "count": 4}]) as request:
    print(request["state"])
`)
	if err != nil || string(out) != "Satisfied\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// driven runs a driver that calls a server.
func driven(t *testing.T, server, driver string) ([]byte, error) {
	t.Helper()
	account := t.TempDir()
	for name, text := range map[string]string{"token": "t0ken\n", "namespace": "ml"} {
		if err := os.WriteFile(filepath.Join(account, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	python := exec.CommandContext(t.Context(), "python3", "-c", driver)
	python.Env = append(os.Environ(), "HELIOSTAT_SERVER="+server, "HELIOSTAT_ACCOUNT="+account, "RAY_CLUSTER_NAME=llm", "PYTHONDONTWRITEBYTECODE=1")
	return python.CombinedOutput()
}
