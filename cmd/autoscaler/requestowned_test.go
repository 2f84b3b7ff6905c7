package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// owners stores requests of owners in memory.
type owners struct{ *remote }

func (o owners) All(string) ([]nodepool.OwnedRequest, error) { return o.List(llmKey) }

func (o owners) List(nodepool.ClusterKey) (all []nodepool.OwnedRequest, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(o.owned)) {
		all = append(all, o.owned[id])
	}
	return all, nil
}

func (o owners) Get(_ nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	request, there := o.owned[id]
	if !there {
		return request, nodepool.ErrNoRequest
	}
	return request, nil
}

func (o owners) Put(_ context.Context, wanted nodepool.OwnedRequest, _ func(*nodepool.OwnedRequest) error) (nodepool.OwnedRequest, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owned[wanted.ID] = wanted
	return wanted, true, nil
}

func (o owners) Renew(_ context.Context, key nodepool.ClusterKey, id string, now time.Time, _ func(*nodepool.OwnedRequest) error) (nodepool.OwnedRequest, error) {
	request, err := o.Get(key, id)
	if err != nil {
		return request, err
	}
	request.RenewedAt = now
	request.Status = nodepool.OwnedStatus{ObservedRequest: request.Fingerprint(), State: raydemand.RequestCapped, Code: planner.Capped, Message: "group gpu is at its maximum of 2"}
	_, _, err = o.Put(context.Background(), request, nil)
	return request, err
}

func (o owners) Delete(_ context.Context, key nodepool.ClusterKey, id string, _ func(*nodepool.OwnedRequest) error) error {
	_, err := o.Get(key, id)
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.owned, id)
	return err
}

func (o owners) Changes(nodepool.ClusterKey, string) <-chan struct{} { return nil }

// holding adds a plain request and an owner's request to the server.
func (r *remote) holding() {
	one := []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: 2}}
	r.kept = one
	r.owned["serve"] = nodepool.OwnedRequest{Owned: raydemand.Owned{ID: "serve", Owner: "ann", Priority: 5, Requests: one}, Cluster: llmKey}
}

func TestRequestsOfOwnersAreMadeListedRenewedAndEnded(t *testing.T) {
	r := newRemote(t)
	r.holding()
	for _, c := range []struct {
		argv []string
		code int
		want string
	}{
		{[]string{"request", "ml/llm", "--id", "train-7", "--bundle", `{"GPU": 1, "count": 4}`, "--cpus", "2", "--lease", "10m", "--priority", "10"}, cli.ExitOK,
			"train-7  anonymous  2 × {CPU 1}, 4 × {GPU 1}  Waiting"},
		{[]string{"requests", "ml/llm"}, cli.ExitOK, "(plain)  -"},
		{[]string{"requests"}, cli.ExitOK, "ml/llm      train-7  anonymous"},
		{[]string{"requests", "-n", "dev"}, cli.ExitOK, "No requests found in namespace dev. Omit -n to search all namespaces.\n"},
		{[]string{"request", "ml/llm", "--id", "train-7", "--renew"}, cli.ExitOK, "Capped"},
		{[]string{"request", "ml/llm", "--id", "train-7", "--wait", "1s"}, cli.ExitFailed, "is not satisfied: Capped: group gpu is at its maximum of 2"},
		{[]string{"request", "ml/llm", "--id", "hold", "--bundle", `{"resources": {"CPU": 2}, "slice": {"memory": "10Gi"}}`, "--hold", "-o", "json"}, cli.ExitOK, `"holdUntilDeleted": true`},
		{[]string{"request", "ml/llm", "--id", "train-7", "--delete"}, cli.ExitOK, "request train-7 of ml/llm deleted"},
		{[]string{"request", "ml/llm", "--id", "train-7"}, cli.ExitFailed, "404"},
		{[]string{"request", "ml/llm", "--id", "x", "--cpus", "1"}, cli.ExitBadInput, "want one of --lease and --hold"},
		{[]string{"request", "ml/llm", "--id", "x", "--renew", "--delete"}, cli.ExitBadInput, "want one of --renew, --delete"},
		{[]string{"request", "ml/llm", "--id", "x", "--clear"}, cli.ExitBadInput, "want --delete"},
		{[]string{"request", "ml/llm", "--id", "x", "--cpus", "1", "--lease", "1ms"}, cli.ExitBadInput, "--lease 1ms"},
		{[]string{"request", "ml/llm", "--id", "x", "--bundle", `{"GPU": 1, "resources": {"CPU": 1}}`, "--hold"}, cli.ExitBadInput, "not both"},
		{[]string{"request", "ml/llm", "--priority", "1"}, cli.ExitBadInput, "give --id"},
		{[]string{"request", "ml/llm", "--id", "x", "--lease", "5m"}, cli.ExitBadInput, "give --bundle, --cpus or -f"},
		{[]string{"request", "ml/llm", "--id", "x", "--renew", "--priority", "5"}, cli.ExitBadInput, "give --bundle, --cpus or -f"},
	} {
		code, out, errOut := command(t, "", append([]string{"autoscaler"}, c.argv...)...)
		if code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("%v: exit %d, want %d and %q, got\n%s%s", c.argv, code, c.code, c.want, out, errOut)
		}
		if c.code == cli.ExitOK && !slices.Contains(c.argv, "json") {
			fitsThePage(t, out)
		}
	}
}

func TestWhatAFileSaysOfARequestIsNotSaidASecondTime(t *testing.T) {
	r := newRemote(t)
	body := fileOf(t, `{"holdUntilDeleted": true, "bundles": [{"resources": {"CPU": 1}}]}`)
	for _, also := range []string{"--priority=7", "--lease=60s", "--hold", "--all-or-nothing", `--bundle={"CPU":5}`, "--cpus=2"} {
		code, _, errOut := command(t, "", "autoscaler", "request", "ml/llm", "--id", "x", "-f", body, also)
		if code != cli.ExitBadInput || !strings.Contains(errOut, "want -f, which sets the whole request, or") || len(r.owned) > 0 {
			t.Errorf("%s: exit %d %s, kept %v", also, code, errOut, r.owned)
		}
	}
	if code, _, errOut := command(t, "", "autoscaler", "request", "ml/llm", "--id", "x", "-f", body); code != cli.ExitOK || len(r.owned) != 1 {
		t.Errorf("the file alone: exit %d %s, kept %v", code, errOut, r.owned)
	}
}

// waitingServer stores a request with a lease. The request is waiting until the client has called the given number of
// times. The server responds at once, as if the wait had timed out.
func waitingServer(t *testing.T, lease, rounds int) (address string, calls *[]string) {
	t.Helper()
	calls = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == llmKey.Name { // the status, which the caller may not read
			w.WriteHeader(http.StatusForbidden)
			return
		}
		*calls = append(*calls, r.Method+" "+path.Base(r.URL.Path)+" "+r.URL.RawQuery)
		state := raydemand.RequestWaiting
		if r.Method == http.MethodGet {
			if rounds--; rounds <= 0 {
				state = raydemand.RequestSatisfied
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id": "x", "namespace": "ml", "cluster": "llm", "owner": "ann", "leaseSeconds": %d, "bundles": [], "state": %q, "reason": {"code": "", "message": ""}}`, lease, state)
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

func TestWhoWaitsForARequestRenewsItsLeaseMeanwhile(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, c := range []struct {
		name          string
		lease, rounds int
		flags         []string
		want          []string
	}{
		{"at a third of a short lease", 60, 3, []string{"--cpus", "1", "--lease", "1m"},
			[]string{"PUT x ", "GET x wait=20s", "POST renew ", "GET x wait=20s", "POST renew ", "GET x wait=20s"}},
		{"at a third of a long one, in answers of a minute", 450, 4, []string{"--cpus", "1", "--lease", "450s"},
			[]string{"PUT x ", "GET x wait=60s", "GET x wait=60s", "GET x wait=30s", "POST renew ", "GET x wait=60s"}},
		{"one that was just renewed", 60, 2, []string{"--renew"}, []string{"POST renew ", "GET x wait=20s", "POST renew ", "GET x wait=20s"}},
		{"not one that is only looked at", 60, 3, nil, []string{"GET x ", "GET x wait=60s", "GET x wait=60s"}},
		{"not one without a lease", 0, 2, []string{"--cpus", "1", "--hold"}, []string{"PUT x ", "GET x wait=60s", "GET x wait=60s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, calls := waitingServer(t, c.lease, c.rounds)
			argv := append([]string{"autoscaler", "request", "ml/llm", "--server", address, "--id", "x", "--wait", "10m"}, c.flags...)
			code, _, errOut := command(t, "", argv...)
			if diff := cmp.Diff(c.want, *calls); code != cli.ExitOK || diff != "" {
				t.Errorf("exit %d %s (-want +got):\n%s", code, errOut, diff)
			}
		})
	}
}
