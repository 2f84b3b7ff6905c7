package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTheTableOfRequestsSaysWholeWhyOneWaits(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	since, expires := now.Add(-3*time.Minute), now.Add(7*time.Minute)
	const reason = "pods requested earlier have not joined Ray yet, for 4 × {CPU 8, GPU 1} where zone=in(us-1,us-2)"
	gpu := raydemand.Bundle{raydemand.GPU: raydemand.One, raydemand.CPU: raydemand.Whole(8)}
	list := apiv1.RequestList{Items: []apiv1.OwnedRequest{{
		ID: "nightly-training", Namespace: "research", Cluster: "language-models", Owner: "system:serviceaccount:research:trainer", Priority: 10,
		Bundles: []raydemand.Request{{Bundle: gpu, Count: 4}, {Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 16}},
		State:   raydemand.RequestWaiting, Since: &since, ExpiresAt: &expires,
		Reason: apiv1.Reason{Code: "on_the_way", Message: reason}, Groups: []apiv1.ServingGroup{{Name: "a100", Pods: 4}},
	}}}
	out := printer.Page{Now: now, Wide: true}
	printer.WriteRequests(&out, list)
	want := "research/language-models nightly-training system:serviceaccount:research:trainer 10 4 × {CPU 8, GPU 1}, 16 × {CPU 1} Waiting 3m 7m 4 × a100 " + reason
	if got := strings.Join(strings.Fields(strings.Split(out.String(), "\n")[1]), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

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

func (o owners) Delete(_ context.Context, key nodepool.ClusterKey, id string, _ func(*nodepool.OwnedRequest) error) error {
	_, err := o.Get(key, id)
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.owned, id)
	return err
}

// holding adds a plain request and an owner's request to the server.
func (r *remote) holding() {
	one := []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: 2}}
	r.kept = one
	r.owned["serve"] = nodepool.OwnedRequest{Owned: raydemand.Owned{ID: "serve", Owner: "ann", Priority: 5, Requests: one}, Cluster: llmKey}
}

func TestRequestsOfOwnersAreMadeListedAndEnded(t *testing.T) {
	r := newRemote(t)
	r.holding()
	capped := r.owned["serve"]
	capped.Status = nodepool.OwnedStatus{ObservedRequest: capped.Fingerprint(), State: raydemand.RequestCapped, Code: planner.Capped, Message: "group gpu is at its maximum of 2"}
	r.owned["serve"] = capped
	held := fileOf(t, `{"holdUntilDeleted": true, "bundles": [{"resources": {"CPU": 1}}]}`)
	for _, c := range []struct {
		argv []string
		code int
		want string
	}{
		{[]string{"request", "ml/llm", "--id", "train-7", "--bundle", `{"GPU": 1, "count": 4}`, "--lease", "10m", "--priority", "10"}, cli.ExitOK,
			"train-7  anonymous  4 × {GPU 1}  Waiting"},
		{[]string{"request", "ml/llm"}, cli.ExitOK, "(plain)  -"},
		{[]string{"request", "ml/llm"}, cli.ExitOK, "ml/llm      train-7  anonymous"},
		{[]string{"request", "ml/llm", "--id", "train-7"}, cli.ExitOK, "Waiting"},
		{[]string{"request", "ml/llm", "--id", "serve", "--wait", "1s"}, cli.ExitFailed, "is not satisfied: Capped: group gpu is at its maximum of 2"},
		{[]string{"request", "ml/llm", "--id", "hold", "-f", held, "-o", "json"}, cli.ExitOK, `"holdUntilDeleted": true`},
		{[]string{"request", "ml/llm", "--id", "train-7", "--delete"}, cli.ExitOK, "request train-7 of ml/llm deleted"},
		{[]string{"request", "ml/llm", "--id", "train-7"}, cli.ExitFailed, "404"},
		{[]string{"request", "ml/llm", "--id", "x", "--bundle", `{"CPU": 1}`}, cli.ExitBadInput, "leaseSeconds: want "},
		{[]string{"request", "ml/llm", "--id", "x", "--bundle", `{"GPU": 1, "resources": {"CPU": 1}}`, "--lease", "1m"}, cli.ExitBadInput, "not both"},
		{[]string{"request", "ml/llm", "--id", "x", "--bundle", `{"CPU": 1}`, "--lease", "1500ms"}, cli.ExitBadInput, "--lease 1.5s: want whole seconds"},
		{[]string{"request", "ml/llm", "--bundle", `{"CPU": 1, "CPU": 2}`}, cli.ExitBadInput, "repeated key"},
		{[]string{"request", "ml/llm", "--priority", "1"}, cli.ExitBadInput, "give --id"},
		{[]string{"request", "ml/llm", "--id", "x", "--lease", "5m"}, cli.ExitBadInput, "give --bundle"},
		{[]string{"request", "ml/llm", "--id", "x", "-f", held, "--lease", "5m"}, cli.ExitBadInput, "[filename lease]"},
	} {
		code, out, errOut := command(t, "", append([]string{"autoscaler"}, c.argv...)...)
		if code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("%v: exit %d, want %d and %q, got\n%s%s", c.argv, code, c.code, c.want, out, errOut)
		}
	}
}

// waitingServer stores a request with a lease. The request is waiting until the client has called the given number of
// times. The server responds at once, as if the wait had timed out. It cannot serve the call of the number away.
func waitingServer(t *testing.T, lease, rounds, away int) (address string, calls *[]string) {
	t.Helper()
	calls = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == llmKey.Name { // the status, which the caller may not read
			w.WriteHeader(http.StatusForbidden)
			return
		}
		*calls = append(*calls, r.Method+" "+path.Base(r.URL.Path))
		if len(*calls) == away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		state := raydemand.RequestWaiting
		if rounds--; rounds < 0 {
			state = raydemand.RequestSatisfied
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id": "x", "namespace": "ml", "cluster": "llm", "owner": "ann", "leaseSeconds": %d, "bundles": [], "state": %q, "reason": {"code": "", "message": ""}}`, lease, state)
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

func TestWhoWaitsForARequestRenewsItsLeaseMeanwhile(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for name, c := range map[string]struct {
		lease, rounds, away int
		flags               []string
		want                []string
	}{
		"at a third of the lease":        {3, 1, 0, []string{"--bundle", `{"CPU": 1}`, "--lease", "3s"}, []string{"PUT x", "PUT x"}},
		"not before":                     {60, 1, 0, []string{"--bundle", `{"CPU": 1}`, "--lease", "1m"}, []string{"PUT x", "GET x"}},
		"again after a restart":          {3, 1, 2, []string{"--bundle", `{"CPU": 1}`, "--lease", "3s"}, []string{"PUT x", "PUT x", "PUT x"}},
		"not one that is only looked at": {3, 1, 0, nil, []string{"GET x", "GET x"}},
	} {
		t.Run(name, func(t *testing.T) {
			address, calls := waitingServer(t, c.lease, c.rounds, c.away)
			argv := append([]string{"autoscaler", "request", "ml/llm", "--server", address, "--id", "x", "--wait", "10m"}, c.flags...)
			code, _, errOut := command(t, "", argv...)
			if diff := cmp.Diff(c.want, *calls); code != cli.ExitOK || diff != "" {
				t.Errorf("exit %d %s (-want +got):\n%s", code, errOut, diff)
			}
		})
	}
}

// silentServer listens and never responds, like a stopped API server.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// freeAddress returns an address that no other process takes in the meantime: no other test listens on this host.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.83.7.1:0")
	must(t, err)
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
		must(t, err)
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
