package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	r.view = api.View{Decision: addon.Decision{Cluster: llmKey, Mode: nodepool.Managed, Why: planner.Reason{Message: "managed by the default"}, Err: "the Ray head is unavailable", Snapshot: planner.Snapshot{Name: "ml/llm"}}}
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
	r.view.Read = addon.ReadAt(time.Now())
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
	for _, as := range []printer.Look{{}, {Wide: true}} {
		var out strings.Builder
		as.Now = func() time.Time { return now }
		if err := printer.WriterOf("table", as, printer.WriteCluster)(&out, c); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"  last decision 2026-11-20T11:59:59Z, which took 3ms; Ray's state is 98ms old\n", "LAST CHANGES  ACTION    GROUP  REPLICAS  WHY\n   3m20s ago  scale-up  gpu    1 → 2\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%+v: want in it %q, got\n%s", as, want, out.String())
			}
		}
	}
}

func TestADrainNamesItsPod(t *testing.T) {
	var out strings.Builder
	drain := apiv1.Decision{Action: "drain", Group: "gpu", Pods: []string{"gpu-7"}, Reason: planner.Reason{Message: "Heliostat: idle for 61s, longer than 60s"}}
	if err := printer.WriterOf("table", printer.Look{Wide: true, Now: time.Now}, printer.WriteCluster)(&out, apiv1.Cluster{Decisions: []apiv1.Decision{drain}}); err != nil {
		t.Fatal(err)
	}
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
		r.view.Read, r.view.Err = addon.ReadAt(test.at), test.err
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
	certificate, key := certificateOf(t)
	for _, c := range []struct {
		name, variable string // what the file of the variable holds
		flags          []string
		want, wrong    string
	}{
		{name: "of the flag", flags: []string{"--token-file", fileOf(t, "t0ken\n")}, want: "Bearer t0ken"},
		{name: "of the variable", variable: "fr0m\n", want: "Bearer fr0m"},
		{name: "the flag before the variable", variable: "fr0m", flags: []string{"--token-file", fileOf(t, "t0ken")}, want: "Bearer t0ken"},
		{name: "a certificate before the variable", variable: "fr0m", flags: []string{"--client-certificate", certificate, "--client-key", key}},
		{name: "both flags", flags: []string{"--token-file", fileOf(t, "t0ken"), "--client-certificate", certificate, "--client-key", key}, want: "Bearer t0ken"},
		{name: "no token in the variable's file", variable: " ", wrong: "reading $HELIOSTAT_TOKEN_FILE: "},
		{name: "no TLS", variable: "fr0m", flags: []string{"--server", "http://heliostat.example"}, wrong: "$HELIOSTAT_TOKEN_FILE: http://heliostat.example has no TLS"},
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

// certificateOf writes a self-signed client certificate and its key, and returns their files.
func certificateOf(t *testing.T) (certificate, key string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return fileOf(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))),
		fileOf(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
}

// proxy is an API server that returns the caller's identity, issues tokens, and forwards calls as services/proxy does:
// without the Authorization header.
type proxy struct {
	*testing.T
	to, user string
	refuses  bool
	lent     string // the token that it issues

	mu sync.Mutex // guards the fields below
	// tokens is the number of issued tokens. audiences are the audiences of these tokens.
	tokens    int
	audiences string
	// passed contains all forwarded calls, including headers.
	passed []string
}

// lentAsProtobuf is a TokenRequest's audiences [heliostat] and expirationSeconds 600.
const lentAsProtobuf = "\n\theliostat \xd8\x04"

const proxyPrefix = "/api/v1/namespaces/heliostat/services/https:heliostat:8090/proxy"

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	path, proxied := strings.CutPrefix(r.URL.Path, proxyPrefix)
	switch {
	case proxied:
		p.pass(w, r, path)
	case r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews" && p.user != "":
		p.answer(w, http.StatusCreated, map[string]any{"status": map[string]any{"userInfo": map[string]any{"username": p.user}}})
	case r.URL.Path == "/api/v1/namespaces/ml/serviceaccounts/driver/token" && !p.refuses:
		p.tokens++
		body, _ := io.ReadAll(r.Body)
		p.audiences = string(body)
		until := time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)
		p.answer(w, http.StatusCreated, map[string]any{"status": map[string]any{"token": p.lent, "expirationTimestamp": until}})
	case p.refuses:
		p.answer(w, http.StatusForbidden, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "serviceaccounts is forbidden"})
	default:
		p.answer(w, http.StatusNotFound, map[string]any{"kind": "Status", "message": `services "elsewhere" not found`})
	}
}

func (p *proxy) answer(w http.ResponseWriter, code int, document map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(document); err != nil {
		p.Error(err)
	}
}

func (p *proxy) pass(w http.ResponseWriter, r *http.Request, path string) {
	passed, err := http.NewRequestWithContext(r.Context(), r.Method, p.to+path, nil)
	if err != nil {
		p.Error(err)
		return
	}
	passed.Header = r.Header.Clone()
	passed.Header.Del("Authorization")
	p.passed = append(p.passed, fmt.Sprint(passed.Header))
	answer, err := http.DefaultClient.Do(passed)
	if err != nil {
		p.Error(err)
		return
	}
	defer answer.Body.Close()
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // the client reports what it read
}

// newProxy starts the API server in front of the server that commands call. It also returns a function that writes a
// kubeconfig with the given user.
func newProxy(t *testing.T, user string) (p *proxy, kubeconfig func(user string) string, r *remote) {
	t.Helper()
	r = newRemote(t)
	t.Setenv(cli.ServerVariable, "")
	p = &proxy{T: t, to: r.address, user: user, lent: "lent"}
	server := httptest.NewTLSServer(p)
	t.Cleanup(server.Close)
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return p, func(user string) string {
		text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: s, cluster: {server: %q, certificate-authority-data: %s}}]\n"+
			"contexts: [{name: c, context: {cluster: s, user: u, namespace: ml}}]\nusers: [{name: u, user: {%s}}]\n", server.URL, authority, user)
		return fileOf(t, text)
	}, r
}

func fileOf(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestThroughTheAPIServersProxyGoTokensForHeliostatAlone checks which credentials a command sends. The API server's
// proxy forwards calls to any backend that has the Service's name, so a command must not send it a credential that the
// API server accepts.
func TestThroughTheAPIServersProxyGoTokensForHeliostatAlone(t *testing.T) {
	plugin := `exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: [-c, "echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": {\"token\": \"cluster-secret\"}}'"]}`
	const account = "system:serviceaccount:ml:driver"
	for _, c := range []struct {
		name, who, user, want string
		tokenFile, refuses    bool
		variable              bool // names the token's file in place of the flag
		silent                bool // the API server issues no token and does not return the caller's identity
		wrong                 string
	}{
		{name: "a ServiceAccount's token", who: account, user: "token: cluster-secret", want: "Bearer lent"},
		{name: "a ServiceAccount's token out of a plugin", who: account, user: plugin, want: "Bearer lent"},
		{name: "a token of a file", who: account, user: "token: cluster-secret", tokenFile: true, want: "Bearer another"},
		{name: "a token of the variable's file", who: account, user: "token: cluster-secret", variable: true, want: "Bearer another"},
		{name: "a ServiceAccount that may create no token", who: account, user: "token: cluster-secret", refuses: true, wrong: "kubectl -n ml create token driver --audience heliostat"},
		{name: "a person's token", who: "ann", user: "token: cluster-secret", wrong: "it never sends the kubeconfig's own credentials; set --token-file"},
		{name: "a person's token out of a plugin", who: "ann", user: plugin, wrong: "set --token-file"},
		{name: "a ServiceAccount without a namespace", who: "system:serviceaccount:driver", user: "token: cluster-secret", wrong: "the kubeconfig's user is not a ServiceAccount"},
		{name: "a person of a name like a ServiceAccount's", who: "ml:driver", user: "token: cluster-secret", wrong: "the kubeconfig's user is not a ServiceAccount"},
		{name: "an API server that gives no token", who: account, user: "token: cluster-secret", silent: true, wrong: "ServiceAccount ml/driver: the API server returned none"},
		{name: "an API server that does not say who calls", user: "token: cluster-secret", silent: true, wrong: "who the kubeconfig's user is"},
		{name: "a password", who: "ann", user: "username: u, password: cluster-secret", wrong: "set --token-file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, kubeconfig, r := newProxy(t, c.who)
			if p.refuses = c.refuses; c.silent {
				p.lent = ""
			}
			argv := []string{"autoscaler", "status", "llm", "--kubeconfig", kubeconfig(c.user)}
			if c.tokenFile {
				argv = append(argv, "--token-file", fileOf(t, "another"))
			}
			if c.variable {
				t.Setenv(cli.TokenFileVariable, fileOf(t, "another"))
			}
			code, out, errOut := command(t, "", argv...)
			if c.wrong != "" {
				if code != cli.ExitFailed || !strings.Contains(errOut, c.wrong) || len(p.passed) > 0 {
					t.Errorf("exit %d %s, passed %v; want %q", code, errOut, p.passed, c.wrong)
				}
				return
			}
			if code != cli.ExitOK || !strings.HasPrefix(out, "ml/llm: managed") {
				t.Errorf("exit %d %s: %s", code, errOut, out)
			}
			if got := r.seen.Get("X-Heliostat-Authorization"); got != c.want || strings.Contains(fmt.Sprint(p.passed), "cluster-secret") {
				t.Errorf("the server was told %q, want %q; passed: %v", got, c.want, p.passed)
			}
			if c.want == "Bearer lent" && (p.tokens != 1 || !strings.Contains(p.audiences, lentAsProtobuf)) {
				t.Errorf("%d tokens, asked for as %s", p.tokens, p.audiences)
			}
		})
	}
}

func TestAServiceThatIsNotThereIsTold(t *testing.T) {
	_, kubeconfig, _ := newProxy(t, "system:serviceaccount:ml:driver")
	code, _, errOut := command(t, "", "autoscaler", "status", "--kubeconfig", kubeconfig("token: t"), "--service", "heliostat/elsewhere")
	if code != cli.ExitFailed || !strings.Contains(errOut, `the API server answered 404 Not Found: services "elsewhere" not found`) {
		t.Errorf("exit %d %s", code, errOut)
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
	commands := [][]string{{"status"}, {"requests"}, {"explain", "ml/llm", "--group", "g"}, {"doctor"}, {"doctor", "ml/llm"}, {"nodepools"}}
	for _, c := range []struct{ file, want string }{
		{"", "no API server is named: the file at $KUBECONFIG, \"" + os.Getenv("KUBECONFIG") + "\", is missing or names none, and this process is not in a pod"},
		{"no/such", "--kubeconfig no/such: there is no such file"},
		{broken, "--kubeconfig " + broken + ": error loading config file"},
		{foreign, "--kubeconfig " + foreign + ": it names no API server; want a kubeconfig"},
		{noContext, "--kubeconfig " + noContext + ": it has no context"},
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
