package python

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestADriverThatIsRefusedIsToldWhy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"title":"Forbidden","status":403,"detail":"driver may not request on rayclusters.ray.io"}`)) // the client sees what came
	}))
	defer server.Close()
	account := t.TempDir()
	for name, text := range map[string]string{"token": "t0ken\n", "namespace": "ml"} {
		if err := os.WriteFile(filepath.Join(account, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	python := exec.CommandContext(t.Context(), "python3", "-c", `
from request_resources import hold
with hold("train-7", [{"resources": {"GPU": 1}, "count": 4}]):
    print("it runs nevertheless")
`)
	python.Env = append(os.Environ(), "HELIOSTAT_SERVER="+server.URL, "HELIOSTAT_ACCOUNT="+account, "RAY_CLUSTER_NAME=llm", "PYTHONDONTWRITEBYTECODE=1")
	out, err := python.CombinedOutput()
	if text := string(out); err == nil || strings.Contains(text, "nevertheless") || !strings.Contains(text, "driver may not request on rayclusters.ray.io") {
		t.Errorf("%v: %s", err, text)
	}
}
