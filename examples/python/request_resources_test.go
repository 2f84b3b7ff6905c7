// Package python holds examples for Ray drivers; its test runs them against a live server.
package python

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// keeper keeps one request, which is satisfied once it was renewed.
type keeper struct {
	api.OwnedRequests

	mu    sync.Mutex // guards what follows
	kept  *nodepool.OwnedRequest
	calls []string
}

func (k *keeper) Put(_ context.Context, wanted nodepool.OwnedRequest, may func(*nodepool.OwnedRequest) error) (nodepool.OwnedRequest, bool, error) {
	if err := may(nil); err != nil { // it looks at the others, so nothing is locked
		return nodepool.OwnedRequest{}, false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept != nil { // a renewal
		wanted.Status = nodepool.OwnedStatus{ObservedRequest: wanted.Fingerprint(), State: raydemand.RequestSatisfied, Code: "satisfied"}
	}
	k.kept = &wanted
	k.calls = append(k.calls, fmt.Sprintf("put %s %s %d × %s priority %d", wanted.Cluster, wanted.ID, wanted.Requests[0].Count, wanted.Requests[0].Bundle[raydemand.GPU], wanted.Priority))
	return wanted, true, nil
}

func (k *keeper) All(string) ([]nodepool.OwnedRequest, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		return nil, nil
	}
	return []nodepool.OwnedRequest{*k.kept}, nil
}

func (k *keeper) Get(nodepool.ClusterKey, string) (nodepool.OwnedRequest, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return *k.kept, nil
}

func (k *keeper) Delete(context.Context, nodepool.ClusterKey, string, func(*nodepool.OwnedRequest) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = append(k.calls, "delete")
	return nil
}

// nobody knows no RayCluster: the example asks for none.
type nobody struct{}

func (nobody) Views() []api.View                         { return nil }
func (nobody) View(nodepool.ClusterKey) (api.View, bool) { return api.View{}, false }
func (nobody) ResourceRequests(context.Context, nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	return nil, time.Time{}, nodepool.ErrGone
}
func (nobody) SetResourceRequests(context.Context, nodepool.ClusterKey, []raydemand.Request, time.Time) error {
	return nodepool.ErrGone
}

func TestADriverHoldsCapacityWhileItRunsAndLetsGoOfItAfterAnError(t *testing.T) {
	k := &keeper{}
	handler, err := api.NewHandler(api.Config{Fleet: nobody{}, Requests: nobody{}, Owned: k})
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		tokens[r.Header.Get("Authorization")] = true
		k.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	account := t.TempDir()
	for name, text := range map[string]string{"token": "t0ken\n", "namespace": "ml"} {
		if err := os.WriteFile(filepath.Join(account, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const driver = `
from request_resources import hold
with hold("train-7", [{"resources": {"GPU": 1}, "count": 4}], lease=1, priority=3) as request:
    print(request["state"], request["owner"], flush=True)
    raise SystemExit(3)
`
	python := exec.CommandContext(t.Context(), "python3", "-c", driver)
	python.Env = append(os.Environ(), "HELIOSTAT_SERVER="+server.URL, "HELIOSTAT_ACCOUNT="+account, "RAY_CLUSTER_NAME=llm", "PYTHONDONTWRITEBYTECODE=1")
	out, err := python.CombinedOutput()
	if code := python.ProcessState.ExitCode(); code != 3 || string(out) != "Satisfied anonymous\n" {
		t.Errorf("exit %d %v: %s", code, err, out)
	}
	calls := slices.Compact(k.calls) // how often it was renewed depends on the machine
	if want := []string{"put " + llm.String() + " train-7 4 × 1 priority 3", "delete"}; !slices.Equal(calls, want) {
		t.Errorf("calls were %q, want %q", calls, want)
	}
	if len(tokens) != 1 || !tokens["Bearer t0ken"] {
		t.Errorf("tokens were %v", tokens)
	}
}

func TestTheExampleIsShort(t *testing.T) {
	text, err := os.ReadFile("request_resources.py")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(strings.TrimPrefix(string(text), `"""`), `"""`)
	if n := strings.Count(code, "\n"); n > 45 {
		t.Errorf("%d lines after the description, want at most 45", n)
	}
}
