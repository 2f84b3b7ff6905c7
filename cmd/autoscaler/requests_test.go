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
	for _, c := range []struct {
		as   printer.Look
		want []string
	}{
		{printer.Look{}, []string{"research:trainer", "nightly-training", "3m", "7m", reason}},
		{printer.Look{Wide: true}, []string{"system:serviceaccount:research:trainer", "PRIORITY", " 10 ", reason, "4 × a100"}},
	} {
		var out strings.Builder
		c.as.Now = func() time.Time { return now }
		write := printer.WriterOf("table", c.as, func(p *printer.Page, list apiv1.RequestList) { printer.WriteRequests(p, true, "", list) })
		if err := write(&out, list); err != nil {
			t.Fatal(err)
		}
		// The table wraps the text of a cell, so look for each word separately.
		for _, want := range append(c.want, strings.Fields(reason)...) {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%+v: want in it %q, got\n%s", c.as, want, out.String())
			}
		}
		if !c.as.Wide {
			fitsThePage(t, out.String())
		}
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
