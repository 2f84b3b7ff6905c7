package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
)

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
