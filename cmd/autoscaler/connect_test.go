package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/cli"
)

func TestATokenIsSentToTheServerItself(t *testing.T) {
	r := newRemote(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("t0ken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := command(t, "", "autoscaler", "status", "--token-file", file); code != cli.ExitOK || r.seen.Get("Authorization") != "Bearer t0ken" {
		t.Errorf("exit %d %s: Authorization %q", code, errOut, r.seen.Get("Authorization"))
	}
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
		silent                bool // the API server issues no token and does not return the caller's identity
		wrong                 string
	}{
		{name: "a ServiceAccount's token", who: account, user: "token: cluster-secret", want: "Bearer lent"},
		{name: "a ServiceAccount's token out of a plugin", who: account, user: plugin, want: "Bearer lent"},
		{name: "a token of a file", who: account, user: "token: cluster-secret", tokenFile: true, want: "Bearer another"},
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
