package main

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestOfARayThatHasNotAnsweredNothingIsToldAsIfItHad(t *testing.T) {
	r := newRemote(t)
	r.view = api.View{Decision: &addon.Decision{Cluster: llmKey, Mode: nodepool.Managed, Why: planner.Reason{Message: "managed by the default"}, Err: "the Ray head is unavailable", Snapshot: planner.Snapshot{Name: "ml/llm"}}}
	_, out, _ := command(t, "", "autoscaler", "status", "ml/llm")
	if !strings.Contains(out, "Demand: unknown") || strings.Contains(out, "nothing is asked for") || strings.Contains(out, "Unmet") {
		t.Errorf("what Ray was never asked is told as known:\n%s", out)
	}
	_, out, _ = command(t, "", "autoscaler", "status")
	if line := strings.Fields(strings.Split(out, "\n")[1]); line[4] != "-" || line[5] != "-" {
		t.Errorf("what waits and what is unmet is told as known: %q", line)
	}
}

func TestAFreezeIsToldInThePlaceOfTheMode(t *testing.T) {
	r := newRemote(t)
	r.view.Mode, r.view.Kube.Freeze, r.view.Why.Message, r.view.Err = nodepool.Shadow, true, "frozen by annotation heliostat.dev/freeze", "no answer"
	r.view.Read = addon.LatestOf(time.Now())
	for _, args := range [][]string{{"status"}, {"status", "ml/llm"}} {
		if _, out, _ := command(t, "", append([]string{"autoscaler"}, args...)...); !strings.Contains(out, "frozen") || strings.Contains(out, "shadow") {
			t.Errorf("%q:\n%s", args, out)
		}
	}
}

func TestTablesHaveAgesAndWhatDescribesOneThingTheTime(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	cycle := now.Add(-98 * time.Millisecond)
	age := 0.0978
	c := apiv1.Cluster{Namespace: "ml", Name: "llm", LastCycle: &cycle, CycleSeconds: 0.0034, DataAgeSeconds: &age,
		Decisions: []apiv1.Decision{{At: now.Add(-200 * time.Second), Action: "scale-up", Group: "gpu", From: 1, To: 2}}}
	out := printer.Page{Now: now}
	printer.WriteCluster(&out, c)
	for _, want := range []string{"  last decision 2026-11-20T11:59:59Z, which took 3ms; Ray's state is 98ms old\n", "LAST CHANGES  ACTION    GROUP  REPLICAS  WHY\n3m20s ago     scale-up  gpu    1 → 2     -\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want in it %q, got\n%s", want, out.String())
		}
	}
}

func TestADrainNamesItsPod(t *testing.T) {
	var out printer.Page
	drain := apiv1.Decision{Action: "drain", Group: "gpu", Pods: []string{"gpu-7"}, Reason: planner.Reason{Message: "Heliostat: idle for 61s, longer than 60s"}}
	printer.WriteCluster(&out, apiv1.Cluster{Decisions: []apiv1.Decision{drain}})
	if want := "gpu-7: Heliostat: idle for 61s, longer than 60s\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("want %q at the end of\n%s", want, out.String())
	}
}

func TestAnAnswerThatRayHasNoPartInSaysSo(t *testing.T) {
	r := newRemote(t)
	r.holding()
	asks := [][]string{
		{"explain", "ml/llm", "--request", "serve"},
		{"explain", "ml/llm", "--demand", `{"GPU": 1}`},
		{"request", "ml/llm", "--id", "serve", "--wait", "1s"},
	}
	for name, test := range map[string]struct {
		at        time.Time
		err, want string
	}{
		"never read": {time.Time{}, "the head pod is not ready yet", "autoscaler: note: the state of Ray in ml/llm has not been read yet: the head pod is not ready yet\n"},
		"not read now": {time.Now().Add(-9*24*time.Hour - time.Hour), "the head does not answer",
			"autoscaler: note: the state of Ray in ml/llm was last read 9d ago, so this answer is that old: the head does not answer\n"},
		"read": {time.Now(), "", ""},
	} {
		r.mu.Lock()
		r.view.Read, r.view.Err = addon.LatestOf(test.at), test.err
		r.mu.Unlock()
		for _, args := range asks {
			_, _, errOut := command(t, "", append([]string{"autoscaler"}, args...)...)
			if test.want == "" && strings.Contains(errOut, "note:") || !strings.Contains(errOut, test.want) {
				t.Errorf("%s: %q tells %q, want %q", name, args, errOut, test.want)
			}
		}
	}
}

func TestATokenIsSentToTheServerItself(t *testing.T) {
	for _, c := range []struct {
		name, variable string // what the file of the variable holds
		flags          []string
		want, wrong    string
	}{
		{name: "of the flag", flags: []string{"--token-file", fileOf(t, "t0ken\n")}, want: "Bearer t0ken"},
		{name: "of the variable", variable: "fr0m\n", want: "Bearer fr0m"},
		{name: "the flag before the variable", variable: "fr0m", flags: []string{"--token-file", fileOf(t, "t0ken")}, want: "Bearer t0ken"},
		{name: "no token in the variable's file", variable: " ", wrong: "read empty token from file"},
		{name: "no TLS", variable: "fr0m", flags: []string{"--server", "http://heliostat.example"}, wrong: "http://heliostat.example has no TLS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRemote(t)
			if c.variable != "" {
				t.Setenv(cli.TokenFileVariable, fileOf(t, c.variable))
			}
			code, _, errOut := command(t, "", append([]string{"autoscaler", "status"}, c.flags...)...)
			if c.wrong != "" {
				if code != cli.ExitBadInput || !strings.Contains(errOut, c.wrong) || r.seen != nil {
					t.Errorf("exit %d %s: the server was told %v; want %q", code, errOut, r.seen, c.wrong)
				}
				return
			}
			if code != cli.ExitOK || r.seen.Get("Authorization") != c.want {
				t.Errorf("exit %d %s: Authorization %q, want %q", code, errOut, r.seen.Get("Authorization"), c.want)
			}
		})
	}
}

const proxyPrefix = "/api/v1/namespaces/heliostat/services/https:heliostat:8090/proxy"

// newProxy starts an API server in front of the server that commands call, which forwards calls as services/proxy does:
// without the Authorization header. It also returns a kubeconfig with the token cluster-secret.
func newProxy(t *testing.T) (kubeconfig string, r *remote) {
	t.Helper()
	r = newRemote(t)
	t.Setenv(cli.ServerVariable, "")
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, call *http.Request) {
		path, proxied := strings.CutPrefix(call.URL.Path, proxyPrefix)
		if !proxied {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind": "Status", "message": "services \"elsewhere\" not found"}`)
			return
		}
		to, _ := url.Parse(r.address)
		call.URL.Path = path
		call.Header.Del("Authorization")
		httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, call)
	}))
	t.Cleanup(server.Close)
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return fileOf(t, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: s, cluster: {server: %q, certificate-authority-data: %s}}]\n"+
		"contexts: [{name: c, context: {cluster: s, user: u, namespace: ml}}]\nusers: [{name: u, user: {token: cluster-secret}}]\n", server.URL, authority)), r
}

func fileOf(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// TestThroughTheAPIServersProxyGoTokensForHeliostatAlone checks which credentials a command sends. The API server's
// proxy forwards calls to any backend that has the Service's name, so a command must not send it a credential that the
// API server accepts.
func TestThroughTheAPIServersProxyGoTokensForHeliostatAlone(t *testing.T) {
	kubeconfig, r := newProxy(t)
	argv := []string{"autoscaler", "status", "llm", "--kubeconfig", kubeconfig}
	code, _, errOut := command(t, "", argv...)
	if code != cli.ExitBadInput || !strings.Contains(errOut, "the command never sends the kubeconfig's own credentials") || r.seen != nil {
		t.Errorf("without a token: exit %d %s, sent %v", code, errOut, r.seen)
	}
	code, out, errOut := command(t, "", append(argv, "--token-file", fileOf(t, "another\n"))...)
	if code != cli.ExitOK || !strings.HasPrefix(out, "ml/llm: managed") || r.seen.Get(access.ForwardedHeader) != "Bearer another" || strings.Contains(fmt.Sprint(r.seen), "cluster-secret") {
		t.Errorf("exit %d %s: %s, sent %v", code, errOut, out, r.seen)
	}
	t.Setenv(cli.TokenFileVariable, fileOf(t, "of the variable"))
	if code, _, errOut := command(t, "", argv...); code != cli.ExitOK || r.seen.Get(access.ForwardedHeader) != "Bearer of the variable" {
		t.Errorf("exit %d %s, sent %v", code, errOut, r.seen)
	}
	code, _, errOut = command(t, "", append(argv, "--service", "heliostat/elsewhere")...)
	if code != cli.ExitFailed || !strings.Contains(errOut, `the API server answered 404 Not Found: services "elsewhere" not found`) {
		t.Errorf("a Service that is not there: exit %d %s", code, errOut)
	}
}

// withoutAnyServer hides every server and kubeconfig from commands, as on a machine without any configuration.
func withoutAnyServer(t *testing.T) {
	t.Setenv(cli.ServerVariable, "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
}

// kubeconfigOf returns the path of a kubeconfig that names an API server and no user.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	return fileOf(t, fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: s, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: s}}]}", server))
}

func TestAKubeconfigThatIsNoneIsBadInputForEveryCommand(t *testing.T) {
	withoutAnyServer(t)
	broken, foreign := fileOf(t, "{{{"), fileOf(t, `{"groups": []}`)
	noContext := fileOf(t, "{apiVersion: v1, kind: Config, current-context: gone, clusters: [{name: s, cluster: {server: 'http://127.0.0.1:1'}}]}")
	commands := [][]string{{"status"}, {"explain", "ml/llm", "--group", "g"}, {"doctor"}, {"doctor", "ml/llm"}, {"nodepools"}}
	for _, c := range []struct{ file, want string }{
		{"", "kubeconfig " + os.Getenv("KUBECONFIG") + ": it is missing or names no API server, and this process is not in a pod"},
		{"no/such", "kubeconfig no/such: stat no/such: no such file or directory"},
		{broken, "kubeconfig " + broken + ": error loading config file"},
		{foreign, "kubeconfig " + foreign + ": it is missing or names no API server"},
		{noContext, "kubeconfig " + noContext + ": invalid configuration: [context was not found"},
	} {
		for _, argv := range commands {
			if c.file != "" {
				argv = slices.Concat(argv, []string{"--kubeconfig", c.file})
			}
			code, out, errOut := command(t, "", append([]string{"autoscaler"}, argv...)...)
			if code != cli.ExitBadInput || out != "" || !strings.Contains(errOut, c.want) || !strings.Contains(errOut, "--kubeconfig") {
				t.Errorf("%v: exit %d %q: %s, want %q", argv, code, out, errOut, c.want)
			}
		}
	}
	for _, argv := range commands {
		argv = slices.Concat([]string{"autoscaler"}, argv, []string{"--kubeconfig", noContext, "--context", "other"})
		if code, _, errOut := command(t, "", argv...); code != cli.ExitBadInput || !strings.Contains(errOut, `context "other" does not exist`) {
			t.Errorf("%v: exit %d: %s", argv, code, errOut)
		}
	}
}

// TestDoctorLooksAtOneRayClusterByNamespaceAndName checks that doctor finds one RayCluster by every form of its name.
func TestDoctorLooksAtOneRayClusterByNamespaceAndName(t *testing.T) {
	withoutAnyServer(t)
	var mu sync.Mutex
	asked := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path] = true
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1/namespaces/ml" {
			fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}`)
			return
		}
		if r.URL.Path != "/apis/ray.io/v1/namespaces/ml/rayclusters" {
			http.NotFound(w, r)
			return
		}
		const cluster = `{"metadata": {"name": %q, "namespace": "ml"}, "spec": {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "h", "image": "r"}]}}}}}`
		fmt.Fprintf(w, `{"apiVersion": "ray.io/v1", "kind": "RayClusterList", "items": [`+cluster+`, `+cluster+`]}`, "llm", "other")
	}))
	defer server.Close()
	file := kubeconfigOf(t, server.URL)
	for _, argv := range [][]string{{"ml/llm"}, {"llm", "-n", "ml"}, {"ml/llm", "-n", "ml"}} {
		clear(asked)
		code, out, errOut := command(t, "", append([]string{"autoscaler", "doctor", "--kubeconfig", file}, argv...)...)
		if code == cli.ExitBadInput || !strings.Contains(out, "Looked at 1 RayCluster.") || strings.Contains(out, "other") || asked["/apis/ray.io/v1/rayclusters"] {
			t.Errorf("%v: exit %d %s, asked %v:\n%s", argv, code, errOut, asked, out)
		}
	}
	if code, _, errOut := command(t, "", "autoscaler", "doctor", "--kubeconfig", file, "ml/gone"); code != cli.ExitBadInput || !strings.Contains(errOut, "there is no RayCluster gone in namespace ml") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}
